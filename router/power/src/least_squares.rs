//! Least squares: lines, lines through the origin, minimization over one unknown, and the coefficient of determination
//! R².
//!
//! Takemasa (2019), 6.3.3, prints R² = 1 - Σ(y - m) / Σ(y - ȳ). Its second sum is always 0, because the squares are
//! missing; this module uses them.

use serde::Serialize;

/// Equal steps in which a range is searched before refinement.
const COARSE_STEPS: u32 = 200;
/// Refinement steps; each keeps 62 % of the interval.
const FINE_STEPS: usize = 80;

/// A line and how well it fits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Line {
    /// Growth per unit of the horizontal axis.
    pub slope: f64,
    /// Value at 0.
    pub intercept: f64,
    /// R².
    pub r_squared: f64,
}

/// Fits a line to points (x, y) by least squares. NaN for fewer than two different x.
pub fn line(points: &[(f64, f64)]) -> Line {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (mean_x, mean_y) = (mean(|point| point.0), mean(|point| point.1));
    let product: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let square: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    let slope = product / square;
    let intercept = mean_y - slope * mean_x;
    let fitted = points.iter().map(|&(x, y)| (y, intercept + slope * x));
    Line { slope, intercept, r_squared: r_squared(&fitted.collect::<Vec<_>>()) }
}

/// Fits a line through the origin to points (x, y) by least squares. NaN if all x are 0.
pub fn line_through_origin(points: &[(f64, f64)]) -> Line {
    let product: f64 = points.iter().map(|(x, y)| x * y).sum();
    let square: f64 = points.iter().map(|(x, _)| x * x).sum();
    let slope = product / square;
    let fitted = points.iter().map(|&(x, y)| (y, slope * x));
    Line { slope, intercept: 0.0, r_squared: r_squared(&fitted.collect::<Vec<_>>()) }
}

/// R² of pairs (sample, value of the model): 1 for a perfect fit, 0 if the mean fits as well. NaN if all samples are
/// equal.
pub fn r_squared(pairs: &[(f64, f64)]) -> f64 {
    let mean = pairs.iter().map(|pair| pair.0).sum::<f64>() / pairs.len() as f64;
    let total: f64 = pairs.iter().map(|(sample, _)| (sample - mean).powi(2)).sum();
    if total > 0.0 { 1.0 - squared_error(pairs) / total } else { f64::NAN }
}

/// Sum of squared differences over pairs (sample, value of the model).
pub fn squared_error(pairs: &[(f64, f64)]) -> f64 {
    pairs.iter().map(|(sample, modelled)| (sample - modelled).powi(2)).sum()
}

/// Returns the place of the minimum of `error` in a range. Searches the range in equal steps, then refines around the
/// best step by golden section.
pub fn least_of(range: (f64, f64), error: impl Fn(f64) -> f64) -> f64 {
    let (start, end) = range;
    let step = (end - start) / f64::from(COARSE_STEPS);
    let place = |number: u32| start + step * f64::from(number);
    let better = |best: u32, number: u32| if error(place(number)) < error(place(best)) { number } else { best };
    let best = (1..=COARSE_STEPS).fold(0, better);
    let (mut low, mut high) = ((place(best) - step).max(start), (place(best) + step).min(end));
    let share = (5.0_f64.sqrt() - 1.0) / 2.0;
    for _ in 0..FINE_STEPS {
        let (left, right) = (high - share * (high - low), low + share * (high - low));
        if error(left) <= error(right) { high = right } else { low = left }
    }
    // The golden section only approaches the ends of the range.
    let middle = f64::midpoint(low, high);
    [start, end].into_iter().fold(middle, |least, end| if error(end) < error(least) { end } else { least })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn points_on_a_line_give_it_back() {
        let fitted = line(&[(1.0, 5.0), (2.0, 7.0), (4.0, 11.0)]);
        assert!((fitted.slope - 2.0).abs() < 1e-12 && (fitted.intercept - 3.0).abs() < 1e-12);
        assert!((fitted.r_squared - 1.0).abs() < 1e-12);
        assert!((line_through_origin(&[(1.0, 2.0), (3.0, 6.0)]).slope - 2.0).abs() < 1e-12);
    }

    #[test]
    fn a_known_regression() {
        // By hand, for (1,2), (2,4), (3,3): means 2 and 3; sum of products 1, of squares 2.
        let fitted = line(&[(1.0, 2.0), (2.0, 4.0), (3.0, 3.0)]);
        assert!((fitted.slope - 0.5).abs() < 1e-12 && (fitted.intercept - 2.0).abs() < 1e-12);
        assert!((fitted.r_squared - 0.25).abs() < 1e-12);
    }

    #[test]
    fn nothing_to_fit_gives_no_number() {
        assert!(line(&[]).slope.is_nan() && line(&[(1.0, 2.0)]).slope.is_nan());
        assert!(line_through_origin(&[(0.0, 2.0)]).slope.is_nan());
        assert!(r_squared(&[(1.0, 1.0), (1.0, 2.0)]).is_nan());
    }

    #[test]
    fn the_least_is_found_at_the_ends_too() {
        assert!((least_of((0.0, 10.0), |x| (x - 3.21).powi(2)) - 3.21).abs() < 1e-6);
        assert_eq!(least_of((0.0, 10.0), |x| x), 0.0);
        assert_eq!(least_of((0.0, 10.0), |x| -x), 10.0);
    }

    proptest! {
        #[test]
        fn no_other_line_is_closer(
            points in prop::collection::vec((-10.0..10.0_f64, -10.0..10.0_f64), 3..20),
            slope in -1.0..1.0_f64,
            intercept in -1.0..1.0_f64,
        ) {
            let fitted = line(&points);
            prop_assume!(fitted.slope.is_finite());
            let error = |slope: f64, intercept: f64| {
                squared_error(&points.iter().map(|&(x, y)| (y, slope * x + intercept)).collect::<Vec<_>>())
            };
            let best = error(fitted.slope, fitted.intercept);
            prop_assert!(best <= error(fitted.slope + slope, fitted.intercept + intercept) + 1e-9);
            prop_assert!(fitted.r_squared.is_nan() || (-1e-9..=1.0 + 1e-9).contains(&fitted.r_squared));
        }
    }
}
