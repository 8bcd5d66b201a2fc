//! Theil-Sen estimator: a line through points that is robust against a few outliers. Its slope is the median of the
//! slopes of all pairs (Theil, 1950; Sen, 1968). Shi et al. (2020), 7.4, use it to relate forwarding rates and hit
//! ratios.

/// Slope of the line through points (x, y); `None` if no two of them differ in x, or if a coordinate is not finite.
///
/// ```
/// use namehop_model::theil_sen::slope;
/// assert_eq!(slope(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0), (3.0, 7.0), (4.0, 900.0)]), Some(2.0));
/// assert_eq!(slope(&[(1.0, 1.0), (1.0, 2.0)]), None);
/// ```
pub fn slope(points: &[(f64, f64)]) -> Option<f64> {
    if points.iter().any(|(x, y)| !x.is_finite() || !y.is_finite()) {
        return None;
    }
    let pairs = points.iter().enumerate().flat_map(|(index, a)| points[index + 1..].iter().map(move |b| (a, b)));
    let mut slopes: Vec<f64> = pairs.filter(|(a, b)| a.0 != b.0).map(|(a, b)| (b.1 - a.1) / (b.0 - a.0)).collect();
    slopes.sort_unstable_by(f64::total_cmp);
    match (slopes.len(), slopes.len() / 2) {
        (0, _) => None,
        (count, middle) if count % 2 == 1 => Some(slopes[middle]),
        (_, middle) => Some((slopes[middle - 1] + slopes[middle]) / 2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_are_medians_of_pairs() {
        assert_eq!(slope(&[(0.0, 0.0), (2.0, 1.0)]), Some(0.5));
        // Slopes 1, 2 and 3.
        assert_eq!(slope(&[(0.0, 0.0), (1.0, 1.0), (2.0, 4.0)]), Some(2.0));
        assert_eq!(slope(&[]), None);
        assert_eq!(slope(&[(0.0, f64::NAN), (1.0, 1.0)]), None);
    }
}
