//! Batch size: cycles per packet by batch size, and the size that costs least.
//!
//! Source: "Compiler Based Optimization For Software Packet Processing" (APSys 2017), section 3, equations 1 to 6.
//! The paper does not give the form of its functions. This module uses:
//!
//! | in the paper | here, in cycles per packet, for batches of B |
//! |---|---|
//! | Υ(B), equation 3 | `each` + `burst` / B + `spill` · max(0, B − `held`) |
//! | Δcompute(B), equation 5 | `necessary` + Δshared / B + `crowding` · max(0, B − `room`) |
//! | Δstall(B) / B, equation 6 | `fetch` · `others` / (`others` + B − 1): `others` other packets hide half of a fetch |
//! | Δhide(B) / B, equation 6 | `fetch` − Δstall(B) / B |
//! | Θ(B), equation 4 | Δcompute(B) + Δstall(B) / B |

use serde::Serialize;

/// Relative cost difference up to which a batch size counts as equal to the best one. Of equal sizes the smallest is
/// chosen, because packets wait least in it.
pub const AS_GOOD: f64 = 0.01;

/// Cycles to receive and send one packet, by burst size: Υ, equation 3.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct InputOutput {
    /// Cycles per packet.
    pub each: f64,
    /// Cycles per burst.
    pub burst: f64,
    /// Cycles added to each packet for each packet of the burst above `held`.
    pub spill: f64,
    /// Packets that the caches hold.
    pub held: f64,
}

/// Cycles to process one packet, by batch size: Θ, equations 4 to 6.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Processing {
    /// Work per packet, independent of the batch size: Δnecessary.
    pub necessary: f64,
    /// Work per batch: Δshared.
    pub shared: f64,
    /// Cycles added to each packet for each packet of the batch above `room`.
    pub crowding: f64,
    /// Packets that fit into the nearest cache.
    pub room: f64,
    /// Latency of a memory access: Δfetch.
    pub fetch: f64,
    /// Other packets of the batch needed to hide half of `fetch`.
    pub others: f64,
}

impl InputOutput {
    /// Υ(B).
    pub fn cycles(&self, batch: u32) -> f64 {
        let batch = f64::from(batch);
        self.each + self.burst / batch + self.spill * (batch - self.held).max(0.0)
    }

    /// Fits the function to points (burst size, cycles), minimizing relative errors. `None` for fewer than two
    /// different sizes.
    pub fn fit(points: &[(u32, f64)]) -> Option<Self> {
        let fit = |held: f64| {
            let terms = |batch: f64| [1.0, 1.0 / batch, (batch - held).max(0.0)];
            let (factors, error) = least_squares(points, terms)?;
            Some((InputOutput { each: factors[0], burst: factors[1], spill: factors[2], held }, error))
        };
        best_fit(ROOMS.iter().filter_map(|&held| fit(held)))
    }
}

impl Processing {
    /// Δcompute(B), equation 5.
    pub fn compute(&self, batch: u32) -> f64 {
        let batch = f64::from(batch);
        self.necessary + self.shared / batch + self.crowding * (batch - self.room).max(0.0)
    }

    /// Δhide(B) / B: the part of a packet's fetch that is hidden.
    pub fn hidden(&self, batch: u32) -> f64 {
        self.fetch - self.stall(batch)
    }

    /// Δstall(B) / B, equation 6.
    pub fn stall(&self, batch: u32) -> f64 {
        self.fetch * waiting(f64::from(batch), self.others)
    }

    /// Θ(B), equation 4.
    pub fn cycles(&self, batch: u32) -> f64 {
        self.compute(batch) + self.stall(batch)
    }

    /// Fits the function to points (batch size, cycles), minimizing relative errors. `None` for fewer than three
    /// different sizes. If several fits are about equally close, as with few points, returns the one that predicts
    /// the most cycles between the points.
    pub fn fit(points: &[(u32, f64)]) -> Option<Self> {
        let fit = |others: f64, room: f64| {
            let terms = |batch: f64| [1.0, 1.0 / batch, (batch - room).max(0.0), waiting(batch, others)];
            let (factors, error) = least_squares(points, terms)?;
            let [necessary, shared, crowding, fetch] = factors;
            Some((Processing { necessary, shared, crowding, room, fetch, others }, error))
        };
        if different(points) < 3 {
            return None;
        }
        let fits: Vec<(Processing, f64)> =
            ROOMS.iter().flat_map(|&room| OTHERS.iter().filter_map(move |&others| fit(others, room))).collect();
        let least = fits.iter().map(|(_, error)| *error).fold(f64::INFINITY, f64::min);
        let largest = points.iter().map(|(batch, _)| *batch).max()?;
        let sizes = || (0..u32::BITS).map(|power| 1 << power).take_while(|size| *size <= largest);
        let between = |fit: &Processing| sizes().map(|size| fit.cycles(size)).sum::<f64>();
        let close = fits.into_iter().filter(|(_, error)| *error <= least + TERM_COST).map(|(fit, _)| fit);
        close.max_by(|one, other| between(one).total_cmp(&between(other)))
    }
}

/// Share of a fetch that a batch leaves exposed, where `others` other packets hide half of it.
fn waiting(batch: f64, others: f64) -> f64 {
    others / (others + (batch - 1.0).max(0.0))
}

/// Penalty per term in the sum of squared errors: a term must explain at least a 1 % error at one point. Otherwise
/// fits of few points would fit noise.
const TERM_COST: f64 = 1e-4;

/// Values that fits try: batch sizes at which caches are full, and numbers of other packets that hide half of a
/// fetch.
const ROOMS: [f64; 6] = [4.0, 8.0, 16.0, 32.0, 64.0, 128.0];
const OTHERS: [f64; 6] = [2.0, 4.0, 8.0, 16.0, 32.0, 64.0];

/// A program that receives packets in bursts of B1 and processes them in batches of B2.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Program {
    /// Υ
    pub input_output: InputOutput,
    /// Θ
    pub processing: Processing,
}

impl Program {
    /// Υ(B1) + Θ(B2), in cycles per packet.
    pub fn cycles(&self, burst: u32, batch: u32) -> f64 {
        self.input_output.cycles(burst) + self.processing.cycles(batch)
    }

    /// T, equation 2, in packets per second.
    pub fn throughput(&self, hz: f64, burst: u32, batch: u32) -> f64 {
        hz / self.cycles(burst, batch)
    }

    /// B_opt, equation 1: the cheapest burst size and batch size. `None` if either list is empty.
    pub fn best(&self, bursts: &[u32], batches: &[u32]) -> Option<(u32, u32)> {
        let burst = cheapest(bursts, |burst| self.input_output.cycles(burst))?;
        Some((burst, cheapest(batches, |batch| self.processing.cycles(batch))?))
    }
}

/// Returns the smallest of the sizes that cost at most [`AS_GOOD`] more than the cheapest one; `None` for an empty
/// list.
pub fn cheapest(batches: &[u32], cycles: impl Fn(u32) -> f64) -> Option<u32> {
    let least = batches.iter().map(|&batch| cycles(batch)).fold(f64::INFINITY, f64::min);
    batches.iter().copied().filter(|&batch| cycles(batch) <= least * (1.0 + AS_GOOD)).min()
}

fn different(points: &[(u32, f64)]) -> usize {
    let mut batches: Vec<u32> = points.iter().map(|(batch, _)| *batch).collect();
    batches.sort_unstable();
    batches.dedup();
    batches.len()
}

fn best_fit<F>(fits: impl Iterator<Item = (F, f64)>) -> Option<F> {
    fits.min_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(fit, _)| fit)
}

/// Fits non-negative factors of `terms` to the points, minimizing relative errors, by trying each subset of the
/// terms. Returns the factors and the sum of squared errors, which includes [`TERM_COST`] for each term used.
fn least_squares<const TERMS: usize>(
    points: &[(u32, f64)],
    terms: impl Fn(f64) -> [f64; TERMS],
) -> Option<([f64; TERMS], f64)> {
    let usable = |(batch, cycles): &&(u32, f64)| *batch > 0 && cycles.is_finite() && *cycles > 0.0;
    let rows: Vec<[f64; TERMS]> = points
        .iter()
        .filter(usable)
        .map(|(batch, cycles)| terms(f64::from(*batch)).map(|term| term / cycles))
        .collect();
    if different(points) < 2 || rows.len() < 2 {
        return None;
    }
    let error = |factors: &[f64; TERMS]| -> f64 {
        let of = |row: &[f64; TERMS]| row.iter().zip(factors).map(|(term, factor)| term * factor).sum::<f64>() - 1.0;
        let terms = factors.iter().filter(|factor| **factor > 0.0).count();
        rows.iter().map(|row| of(row).powi(2)).sum::<f64>() + TERM_COST * terms as f64
    };
    let subsets = (1u32..1 << TERMS).filter_map(|subset| {
        let factors = solve(&rows, subset)?;
        factors.iter().all(|factor| *factor >= 0.0).then(|| (factors, error(&factors)))
    });
    subsets.min_by(|(_, one), (_, other)| one.total_cmp(other))
}

/// Solves the normal equations for the terms of `subset` by elimination with pivoting. `None` if they are singular.
fn solve<const TERMS: usize>(rows: &[[f64; TERMS]], subset: u32) -> Option<[f64; TERMS]> {
    let chosen: Vec<usize> = (0..TERMS).filter(|term| subset >> term & 1 == 1).collect();
    let count = chosen.len();
    let mut equations: Vec<Vec<f64>> = chosen
        .iter()
        .map(|&left| {
            let sums = chosen.iter().map(|&right| rows.iter().map(|row| row[left] * row[right]).sum());
            sums.chain([rows.iter().map(|row| row[left]).sum()]).collect()
        })
        .collect();
    // Terms differ in magnitude, so each pivot is compared with the original diagonal of its equation.
    let sizes: Vec<f64> = (0..count).map(|at| equations[at][at]).collect();
    for column in 0..count {
        let pivot = (column..count)
            .max_by(|&one, &other| equations[one][column].abs().total_cmp(&equations[other][column].abs()))?;
        equations.swap(column, pivot);
        if equations[column][column].abs() <= 1e-9 * sizes[column] {
            return None;
        }
        for row in 0..count {
            if row != column {
                let factor = equations[row][column] / equations[column][column];
                let above = equations[column].clone();
                equations[row].iter_mut().zip(above).for_each(|(value, above)| *value -= factor * above);
            }
        }
    }
    let mut factors = [0.0; TERMS];
    for (at, &term) in chosen.iter().enumerate() {
        factors[term] = equations[at][count] / equations[at][at];
    }
    Some(factors)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BATCHES: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

    #[test]
    fn a_fetch_is_hidden_by_enough_other_packets() {
        let program = Processing {
            necessary: 50.0,
            shared: 20.0,
            fetch: 300.0,
            others: 4.0,
            room: 64.0,
            ..Processing::default()
        };
        assert_eq!(program.cycles(1), 50.0 + 20.0 + 300.0);
        assert_eq!((program.stall(5), program.hidden(5)), (150.0, 150.0));
        assert_eq!(program.stall(21), 50.0);
        assert_eq!(program.cycles(21), 50.0 + 20.0 / 21.0 + 50.0);
    }

    #[test]
    fn the_best_batch_is_where_stalls_end_and_before_caches_are_full() {
        let processing = Processing {
            necessary: 50.0,
            crowding: 10.0,
            room: 16.0,
            fetch: 600.0,
            others: 4.0,
            ..Processing::default()
        };
        let input_output = InputOutput { each: 10.0, burst: 100.0, ..InputOutput::default() };
        let program = Program { input_output, processing };
        assert_eq!(program.best(&[8, 32], &BATCHES), Some((32, 16)));
        assert_eq!(program.throughput(1e9, 32, 16), 1e9 / (10.0 + 100.0 / 32.0 + 50.0 + 600.0 * 4.0 / 19.0));
        assert_eq!(program.best(&[], &BATCHES), None);
    }

    #[test]
    fn the_throughput_of_the_paper_falls_beyond_what_the_card_holds() {
        // Section 4.5: a card with room for 40 descriptors; throughput grows to batches of 64 and falls from 128 on.
        let card = InputOutput { each: 20.0, burst: 400.0, spill: 0.1, held: 40.0 };
        assert!(card.cycles(64) < card.cycles(32) && card.cycles(128) > card.cycles(64));
    }

    #[test]
    fn too_few_points_have_no_fit() {
        assert_eq!(Processing::fit(&[(1, 100.0), (32, 50.0)]), None);
        assert_eq!(InputOutput::fit(&[(8, 100.0), (8, 90.0)]), None);
        assert_eq!(Processing::fit(&[(0, 1.0), (1, f64::NAN), (2, 0.0), (3, -1.0)]), None);
    }

    #[test]
    fn input_and_output_are_found_again() {
        let known = InputOutput { each: 12.0, burst: 80.0, spill: 0.0, held: 4.0 };
        let points = [1, 8, 32, 128].map(|batch| (batch, known.cycles(batch)));
        let fit = InputOutput::fit(&points).expect("the measurements can be fitted");
        assert!((fit.each - 12.0).abs() < 1e-6 && (fit.burst - 80.0).abs() < 1e-6 && fit.spill < 1e-9);
    }

    #[test]
    fn of_fits_as_close_the_one_that_promises_least_counts() {
        // Measured with tables of 100,000 names: cycles per packet without ring costs. The closest fit to half of the
        // sizes takes 32 to be as good as 64.
        let cycles = [262.0, 225.8, 177.8, 139.6, 112.2, 96.3, 90.5];
        let fit = Processing::fit(&[0, 2, 4, 6].map(|place| (BATCHES[place], cycles[place])))
            .expect("the measurements can be fitted");
        assert_eq!(cheapest(&BATCHES, |batch| fit.cycles(batch)), Some(64), "{fit:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        /// A fit to some points of a known function predicts its best batch: the predicted size costs at most as much
        /// more than the best one as the grid of sizes allows.
        #[test]
        fn the_best_batch_of_a_known_function_is_predicted(
            necessary in 20.0..200.0f64,
            shared in 0.0..200.0f64,
            fetch in 0.0..600.0f64,
            others in 0..OTHERS.len(),
            crowding in 0.0..2.0f64,
            room in 1..ROOMS.len(),
        ) {
            let room = ROOMS[room];
            let known = Processing { necessary, shared, crowding, room, fetch, others: OTHERS[others] };
            let points = BATCHES.map(|batch| (batch, known.cycles(batch)));
            let fit = Processing::fit(&points).expect("the measurements can be fitted");
            let predicted = cheapest(&BATCHES, |batch| fit.cycles(batch)).expect("at least one batch size is feasible");
            let best = BATCHES.iter().map(|&batch| known.cycles(batch)).fold(f64::INFINITY, f64::min);
            prop_assert!(known.cycles(predicted) <= best * 1.05, "{known:?} {fit:?}");
        }

        #[test]
        fn fits_of_anything_are_no_panics(points in prop::collection::vec((any::<u32>(), any::<f64>()), 0..12)) {
            if let Some(fit) = Processing::fit(&points) {
                prop_assert!([fit.necessary, fit.shared, fit.crowding, fit.fetch].iter().all(|factor| *factor >= 0.0));
            }
            InputOutput::fit(&points);
        }
    }
}
