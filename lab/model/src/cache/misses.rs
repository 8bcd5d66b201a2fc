//! Number of misses for a name between the eviction of its Data and its next admission.
//!
//! Equation 5.3 of the thesis assumes that each miss finds a history independent of the earlier misses, so that the
//! number is the inverse of one probability. The true number is larger, for two reasons. A miss and the next one find
//! nearly the same history. And the gap before the first miss after the eviction is longer than average, because it
//! ends after the eviction.
//!
//! This module follows one miss after the other. Its state after a miss that admitted nothing is the number of
//! requests in the history that count for the name. The latest of them is that miss; the others are assumed uniformly
//! distributed over the history. This is exact for thresholds of 1 and 2, and close for others. Requests for other
//! names that share the counter count, too.
//!
//! The unit of time is one history: the time in which all requests in the history are replaced.

use super::poisson_tail;

/// Above this threshold misses are assumed independent, as published.
const MOST_FOLLOWED: u32 = 64;
/// Points of the quadrature over the gap between two misses.
const POINTS: usize = 16;
/// Gaps longer than this multiple of the mean gap are ignored.
const LONGEST_GAP: f64 = 40.0;
/// Resolution, above `needed`, of the number of requests in the history at an admission.
const MORE_THAN_NEEDED: usize = 30;
/// Above this number of misses the equations lose precision, and misses are practically independent.
const MOST_MISSES: f64 = 1e10;

/// Misses for one name.
pub(super) struct Misses {
    /// Expected requests per history for the name, and for other names with its counter.
    own: f64,
    others: f64,
    /// Requests that must be in the history for the next request to be admitted.
    needed: usize,
    /// Expected misses if they were independent.
    independent: f64,
    /// Quadrature points: gaps to the next request with their weights.
    gaps: Vec<(f64, f64)>,
    /// `to_come[n - 1]`: expected further misses after a miss that left `n` requests in the history, itself included.
    /// Empty if misses are assumed independent.
    to_come: Vec<f64>,
}

impl Misses {
    /// Misses of a name with `own` requests per history, where `others` requests per history are for names with the
    /// same counter.
    pub(super) fn new(own: f64, others: f64, threshold: u32) -> Self {
        let needed = threshold.saturating_sub(1);
        let independent = 1.0 / poisson_tail(own + others, needed);
        let (needed, is_followed) = (needed as usize, (2..=MOST_FOLLOWED).contains(&threshold));
        let longest = (LONGEST_GAP / own).min(1.0);
        let gap = |&(point, weight): &(f64, f64)| {
            let gap = longest * (point + 1.0) / 2.0;
            (gap, weight * longest / 2.0 * own * (-own * gap).exp())
        };
        let gaps: Vec<(f64, f64)> = legendre().iter().map(gap).collect();
        let mut misses = Misses { own, others, needed, independent, gaps, to_come: Vec::new() };
        if is_followed && independent < MOST_MISSES {
            let to_come = solve(misses.transitions());
            if to_come.iter().all(|&misses| (1.0..MOST_MISSES).contains(&misses)) {
                misses.to_come = to_come;
            }
        }
        misses
    }

    /// Expected misses from eviction to admission, including the miss that is admitted. `stayed` is the time between
    /// the last admission and the eviction, in histories.
    pub(super) fn until_admitted(&self, stayed: f64) -> f64 {
        if self.to_come.is_empty() {
            return self.independent;
        }
        let sum = |found: &[f64]| found.iter().zip(&self.to_come).map(|(share, misses)| share * misses).sum::<f64>();
        let mut misses = 1.0;
        for &(gap, weight) in &self.gaps {
            let back = (1.0 - gap).min(stayed);
            let mut found = poisson((self.own + self.others) * back + self.others * gap, self.needed);
            if stayed + gap < 1.0 {
                // The history still holds the request that admitted the Data, and some requests before it.
                found = convolve(&found, &[0.0, 1.0], self.needed);
                found = convolve(&found, &self.left_of_admission(1.0 - stayed - gap), self.needed);
            }
            misses += weight * sum(&found);
        }
        // After a gap of a history or more, only requests for other names remain.
        misses + (-self.own).exp() * sum(&poisson(self.others, self.needed))
    }

    /// Distribution, below `needed`, of how many requests found by an admission remain when this share of that
    /// history remains.
    fn left_of_admission(&self, share: f64) -> Vec<f64> {
        let mean = self.own + self.others;
        if mean > (self.needed + MORE_THAN_NEEDED / 2) as f64 {
            // The condition of having at least `needed` requests is nearly always met, so it is ignored.
            return poisson(mean * share, self.needed);
        }
        let found = poisson(mean, self.needed + MORE_THAN_NEEDED);
        let enough = found[self.needed..].iter().sum::<f64>().max(f64::MIN_POSITIVE);
        let mut left = vec![0.0; self.needed];
        let mut of_found = vec![1.0];
        (0..self.needed).for_each(|_| of_found = thinned(&of_found, share));
        for found in &found[self.needed..] {
            for (left, of_found) in left.iter_mut().zip(&of_found) {
                *left += found / enough * of_found;
            }
            of_found = thinned(&of_found, share);
        }
        left
    }

    /// Row `n - 1`: after a miss that left `n` requests in the history, the probabilities that the next one finds 0,
    /// 1, … requests and is rejected.
    fn transitions(&self) -> Vec<Vec<f64>> {
        let mut rows = vec![vec![0.0; self.needed]; self.needed];
        for &(gap, weight) in &self.gaps {
            let others = poisson(self.others * gap, self.needed);
            let mut earlier = vec![1.0];
            for row in &mut rows {
                for (row, share) in row[1..].iter_mut().zip(convolve(&earlier, &others, self.needed - 1)) {
                    *row += weight * share;
                }
                earlier = thinned(&earlier, 1.0 - gap);
            }
        }
        let late = (-self.own).exp();
        let alone = poisson(self.others, self.needed);
        for row in &mut rows {
            row.iter_mut().zip(&alone).for_each(|(row, share)| *row += late * share);
        }
        rows
    }
}

/// Solves `m = 1 + rows m` by elimination.
fn solve(rows: Vec<Vec<f64>>) -> Vec<f64> {
    let count = rows.len();
    let mut rows: Vec<Vec<f64>> = rows
        .into_iter()
        .enumerate()
        .map(|(number, row)| {
            let left = row.iter().enumerate().map(|(point, &share)| f64::from(point == number) - share);
            left.chain([1.0]).collect()
        })
        .collect();
    for step in 0..count {
        let largest = (step..count).max_by(|&a, &b| rows[a][step].abs().total_cmp(&rows[b][step].abs()));
        rows.swap(step, largest.unwrap_or(step));
        let (done, rest) = rows.split_at_mut(step + 1);
        let pivot = &done[step];
        for row in rest {
            let factor = row[step] / pivot[step];
            row[step..].iter_mut().zip(&pivot[step..]).for_each(|(value, pivot)| *value -= factor * pivot);
        }
    }
    let mut solution = vec![0.0; count];
    for step in (0..count).rev() {
        let known: f64 = (step + 1..count).map(|point| rows[step][point] * solution[point]).sum();
        solution[step] = (rows[step][count] - known) / rows[step][step];
    }
    solution
}

/// Probabilities of 0, 1, … below `count` events of which `mean` are expected.
fn poisson(mean: f64, count: usize) -> Vec<f64> {
    let next = |term: &mut f64, number: usize| {
        let this = *term;
        *term *= mean / (number + 1) as f64;
        Some(this)
    };
    (0..count).scan((-mean).exp(), next).collect()
}

/// Probabilities of a sum of two independent numbers, below `count`.
fn convolve(a: &[f64], b: &[f64], count: usize) -> Vec<f64> {
    let mut sums = vec![0.0; count];
    for (start, a) in a.iter().enumerate().take(count) {
        sums[start..].iter_mut().zip(b).for_each(|(sum, b)| *sum += a * b);
    }
    sums
}

/// Distribution of a number that is incremented with this probability.
fn thinned(of: &[f64], probability: f64) -> Vec<f64> {
    convolve(of, &[1.0 - probability, probability], of.len() + 1)
}

/// Gauss-Legendre quadrature on [-1, 1]: points and weights. The points are zeros of a polynomial, found by Newton's
/// method.
fn legendre() -> [(f64, f64); POINTS] {
    let count = POINTS as f64;
    std::array::from_fn(|number| {
        let mut point = (std::f64::consts::PI * (number as f64 + 0.75) / (count + 0.5)).cos();
        let mut slope = 1.0;
        for _ in 0..8 {
            let (mut value, mut before) = (1.0, 0.0);
            for degree in 0..POINTS {
                let degree = degree as f64;
                let next = ((2.0 * degree + 1.0) * point * value - degree * before) / (degree + 1.0);
                (value, before) = (next, value);
            }
            slope = count * (point * value - before) / (point * point - 1.0);
            point -= value / slope;
        }
        (point, 2.0 / ((1.0 - point * point) * slope * slope))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uniform pseudo-random numbers from a fixed seed.
    fn numbers() -> impl FnMut() -> f64 {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1_u64 << 53) as f64
        }
    }

    /// Misses per admission, by simulation.
    fn tried(own: f64, others: f64, threshold: usize, stays: f64) -> f64 {
        let mut number = numbers();
        let (mut now, mut history, mut leaves) = (0.0, Vec::new(), 0.0);
        let (mut misses, mut admissions) = (0, 0);
        while admissions < 20_000 {
            now -= (1.0 - number()).ln() / (own + others);
            history.retain(|&time| time > now - 1.0);
            history.push(now);
            if number() * (own + others) >= own || now < leaves {
                continue;
            }
            misses += 1;
            if history.len() >= threshold {
                admissions += 1;
                leaves = now + stays;
            }
        }
        f64::from(misses) / f64::from(admissions)
    }

    #[test]
    fn misses_are_as_many_as_when_tried() {
        for (threshold, tolerance) in [(1, 0.001), (2, 0.02), (3, 0.03), (5, 0.06), (10, 0.12)] {
            for (own, others) in [(0.5, 0.0), (2.0, 0.0), (2.0, 1.0), (10.0, 0.5)] {
                for stays in [0.3, 0.9, 4.0] {
                    let computed = Misses::new(own, others, threshold).until_admitted(stays);
                    if computed > 300.0 {
                        continue;
                    }
                    let tried = tried(own, others, threshold as usize, stays);
                    // The model assumes a uniform age of the requests left from the admission.
                    let tolerance = if stays < 1.0 { tolerance * 2.0 } else { tolerance };
                    assert!(
                        (computed / tried - 1.0).abs() < tolerance,
                        "threshold {threshold}, {own} and {others}, {stays}: {computed} instead of {tried}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_threshold_of_two_has_a_formula() {
        for own in [0.01, 0.3, 1.0, 4.0, 30.0_f64] {
            let exact = (1.0 + own * (-own).exp()) / -(-own).exp_m1();
            let computed = Misses::new(own, 0.0, 2).until_admitted(1.0);
            assert!((computed / exact - 1.0).abs() < 1e-6, "{own}: {computed} instead of {exact}");
        }
    }

    #[test]
    fn the_published_number_is_less() {
        for threshold in [2, 3, 10, MOST_FOLLOWED] {
            for own in [0.1, 1.0, 5.0, 50.0] {
                let misses = Misses::new(own, 0.0, threshold);
                if misses.independent < 1e6 {
                    assert!(misses.until_admitted(9.0) > misses.independent * 0.999, "{threshold} {own}");
                }
            }
        }
    }

    #[test]
    fn extreme_names_have_a_number() {
        for threshold in [0, 1, 2, 30, MOST_FOLLOWED, 60_000] {
            for own in [0.0, 1e-300, 1e-9, 1e9] {
                for others in [0.0, 1e-9, 1e3] {
                    let misses = Misses::new(own, others, threshold);
                    for stayed in [0.0, 0.5, 1.0, f64::INFINITY] {
                        assert!(misses.until_admitted(stayed) >= 0.999, "{threshold} {own} {others} {stayed}");
                    }
                }
            }
        }
    }
}
