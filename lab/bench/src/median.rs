//! Median and quartiles: disturbances of less than half of the samples do not change the median.

/// Returns the median; 0 for no values. Reorders the values.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let middle = values.len() / 2;
    *values.select_nth_unstable_by(middle, f64::total_cmp).1
}

/// Returns the lower and upper quartile; 0 for no values. Reorders the values.
pub(crate) fn quartiles(values: &mut [f64]) -> (f64, f64) {
    values.sort_unstable_by(f64::total_cmp);
    let at = |part: usize| values.get(part * values.len() / 4).copied().unwrap_or_default();
    (at(1), at(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outliers_do_not_count() {
        assert_eq!(median(&mut [5.0, 1e9, 4.0, 6.0, -1e9]), 5.0);
        assert_eq!(median(&mut [1.0]), 1.0);
        assert_eq!(median(&mut []), 0.0);
        assert_eq!(quartiles(&mut [4.0, 1.0, 3.0, 2.0]), (2.0, 4.0));
        assert_eq!(quartiles(&mut []), (0.0, 0.0));
    }
}
