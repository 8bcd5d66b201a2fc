//! How many Interests for a name miss from the time its Data leaves the store until it is let in again.
//!
//! Equation 5.3 of the thesis takes each miss to find a history that knows nothing of the misses before it, so that the number is the
//! inverse of one probability. It is more: the history in which a miss finds too little is nearly the one that the next miss finds, and
//! the first miss after the Data has left comes after a gap that is longer than others, for it had to end behind that moment.
//!
//! Here one miss follows the other. What is known of the history after a miss that let nothing in is how many requests in it count for
//! the name; the latest of them is that miss, and the others are taken to lie anywhere in the history with the same probability. For
//! thresholds of 1 and 2 that is exact, for others it is close. Requests for names that share the counter count, too.
//!
//! Times are in histories: 1 is the time in which all that is remembered has become other requests.

use super::poisson_tail;

/// Above this threshold misses are taken to be independent, as published.
const MOST_FOLLOWED: u32 = 64;
/// Where the gap from one miss to the next is looked at.
const POINTS: usize = 16;
/// Gaps of more than so many mean ones are left out.
const LONGEST_GAP: f64 = 40.0;
/// Requests in the history at an admission beyond those needed that are told apart.
const MORE_THAN_NEEDED: usize = 30;
/// Beyond so many misses the equations lose their digits; misses are as good as independent there.
const MOST_MISSES: f64 = 1e10;

/// Misses for one name.
pub(super) struct Misses {
    /// Requests for it, and for others with its counter, in the time of a history.
    own: f64,
    others: f64,
    /// Requests in the history that the next one finds when it is let in.
    needed: usize,
    /// The number if all misses were independent.
    independent: f64,
    /// Gaps to the next request with their weights.
    gaps: Vec<(f64, f64)>,
    /// Misses to come after one that left so many requests in the history (that one is among them); empty if they are not followed.
    to_come: Vec<f64>,
}

impl Misses {
    /// Of a name that `own` requests are for in the time of a history, while `others` are for names with the same counter.
    pub(super) fn new(own: f64, others: f64, threshold: u32) -> Self {
        let needed = threshold.saturating_sub(1);
        let independent = 1.0 / poisson_tail(own + others, needed);
        let (needed, is_followed) = (needed as usize, (2..=MOST_FOLLOWED).contains(&threshold));
        let longest = (LONGEST_GAP / own).min(1.0);
        let gap = |&(place, weight): &(f64, f64)| {
            let gap = longest * (place + 1.0) / 2.0;
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

    /// Expected misses from the time that Data leaves, the one that lets it in included, `stayed` histories after it entered.
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
                // The request that let it in is still remembered, and some of those before.
                found = convolve(&found, &[0.0, 1.0], self.needed);
                found = convolve(&found, &self.left_of_admission(1.0 - stayed - gap), self.needed);
            }
            misses += weight * sum(&found);
        }
        // Behind a longer gap there are only the others.
        misses + (-self.own).exp() * sum(&poisson(self.others, self.needed))
    }

    /// How many of the requests that an admission found are left when this share of the history is: probabilities of less than needed.
    fn left_of_admission(&self, share: f64) -> Vec<f64> {
        let mean = self.own + self.others;
        if mean > (self.needed + MORE_THAN_NEEDED / 2) as f64 {
            // That it was enough says nothing.
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

    /// In row `n - 1`, after a miss that left `n` requests in the history: probabilities that the next one finds 0, 1, … and is
    /// rejected.
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
            let left = row.iter().enumerate().map(|(place, &share)| f64::from(place == number) - share);
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
        let known: f64 = (step + 1..count).map(|place| rows[step][place] * solution[place]).sum();
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

/// Probabilities of a sum, below `count`.
fn convolve(a: &[f64], b: &[f64], count: usize) -> Vec<f64> {
    let mut sums = vec![0.0; count];
    for (start, a) in a.iter().enumerate().take(count) {
        sums[start..].iter_mut().zip(b).for_each(|(sum, b)| *sum += a * b);
    }
    sums
}

/// Probabilities of a number to which one more is added with this probability.
fn thinned(of: &[f64], probability: f64) -> Vec<f64> {
    convolve(of, &[1.0 - probability, probability], of.len() + 1)
}

/// Places from -1 to 1 and weights of an integral (Gauss and Legendre): zeros of a polynomial, by Newton's method.
fn legendre() -> [(f64, f64); POINTS] {
    let count = POINTS as f64;
    std::array::from_fn(|number| {
        let mut place = (std::f64::consts::PI * (number as f64 + 0.75) / (count + 0.5)).cos();
        let mut slope = 1.0;
        for _ in 0..8 {
            let (mut value, mut before) = (1.0, 0.0);
            for degree in 0..POINTS {
                let degree = degree as f64;
                let next = ((2.0 * degree + 1.0) * place * value - degree * before) / (degree + 1.0);
                (value, before) = (next, value);
            }
            slope = count * (place * value - before) / (place * place - 1.0);
            place -= value / slope;
        }
        (place, 2.0 / ((1.0 - place * place) * slope * slope))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uniform numbers, the same in every run.
    fn numbers() -> impl FnMut() -> f64 {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1_u64 << 53) as f64
        }
    }

    /// Misses for each admission, by trying.
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
                    // What is left of the history of the admission is taken to be as old as any.
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
