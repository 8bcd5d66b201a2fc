//! How many packets to process together: what a packet costs by the size of its batch, and the size that costs least.
//!
//! Source: "Compiler Based Optimization For Software Packet Processing" (APSys 2017), section 3, equations 1 to 6. The paper
//! leaves open what its functions look like. Here:
//!
//! | of the paper | here, in cycles per packet, for batches of B |
//! |---|---|
//! | Υ(B), equation 3 | `each` + `burst` / B + `spill` · max(0, B − `held`) |
//! | Δcompute(B), equation 5 | `necessary` + Δshared / B + `crowding` · max(0, B − `room`) |
//! | Δstall(B) / B, equation 6 | `fetch` · `others` / (`others` + B − 1): so many other packets hide half of a fetch, and more of them ever less of what is left |
//! | Δhide(B) / B, equation 6 | what that is less than `fetch` |
//! | Θ(B), equation 4 | Δcompute(B) + Δstall(B) / B |

use serde::Serialize;

/// A batch this much dearer than the best one, as a share, is taken for as good: of those the smallest is best, since packets spend the
/// least time in it.
pub const AS_GOOD: f64 = 0.01;

/// Cycles to receive and send one packet, by how many are received at once: Υ, equation 3.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct InputOutput {
    /// For each packet.
    pub each: f64,
    /// For each burst.
    pub burst: f64,
    /// For each packet and each packet of its burst beyond those that caches hold.
    pub spill: f64,
    /// How many packets caches hold.
    pub held: f64,
}

/// Cycles to process one packet, by how many are processed together: Θ, equations 4 to 6.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Processing {
    /// Work that no batch makes less: Δnecessary.
    pub necessary: f64,
    /// Work for each batch: Δshared.
    pub shared: f64,
    /// What comes to each packet's work for each packet beyond those that there is room for in the nearest cache.
    pub crowding: f64,
    /// How many packets there is room for.
    pub room: f64,
    /// How long memory takes: Δfetch.
    pub fetch: f64,
    /// How many other packets of the batch hide half of that.
    pub others: f64,
}

impl InputOutput {
    /// Υ(B).
    pub fn cycles(&self, batch: u32) -> f64 {
        let batch = f64::from(batch);
        self.each + self.burst / batch + self.spill * (batch - self.held).max(0.0)
    }

    /// The function that is closest to points of batch and cycles, in relative terms. None for less than two different batches.
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

    /// Δhide(B) / B: what of a packet's fetch is hidden.
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

    /// The function that is closest to points of batch and cycles, in relative terms. Few points leave several that are as close: of
    /// those it is the one that promises least of the sizes between the points. None for less than three different batches.
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

/// The share of a fetch that a batch does not hide, when so many other packets hide half of it.
fn waiting(batch: f64, others: f64) -> f64 {
    others / (others + (batch - 1.0).max(0.0))
}

/// A term has to explain an error of one hundredth at one point at least, squared; otherwise fits of few points would be of noise.
const TERM_COST: f64 = 1e-4;

/// The sizes at which caches may be full, and the numbers of other packets that may hide half of a fetch, that fits try.
const ROOMS: [f64; 6] = [4.0, 8.0, 16.0, 32.0, 64.0, 128.0];
const OTHERS: [f64; 6] = [2.0, 4.0, 8.0, 16.0, 32.0, 64.0];

/// How packets are received and processed: in bursts of B1, and of these in batches of B2.
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

    /// B_opt, equation 1: the burst and the batch that cost least. None when there are none to choose from.
    pub fn best(&self, bursts: &[u32], batches: &[u32]) -> Option<(u32, u32)> {
        let burst = cheapest(bursts, |burst| self.input_output.cycles(burst))?;
        Some((burst, cheapest(batches, |batch| self.processing.cycles(batch))?))
    }
}

/// The smallest batch of those that are as good as the cheapest one: see [`AS_GOOD`].
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

/// Factors of terms, none of them negative, whose sum is closest to the points, each error in proportion to its point; and the sum of the
/// squares of errors, with a little for each term. The terms are few, so each subset of them is tried.
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

/// The normal equations for the terms of a subset, by elimination with pivots. None when they have no one solution.
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
    // Terms differ in size, so each equation is compared with its own diagonal.
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
        let fit = InputOutput::fit(&points).expect("there is a fit");
        assert!((fit.each - 12.0).abs() < 1e-6 && (fit.burst - 80.0).abs() < 1e-6 && fit.spill < 1e-9);
    }

    #[test]
    fn of_fits_as_close_the_one_that_promises_least_counts() {
        // Names in tables of 100,000 entries, as measured: cycles per packet without what rings take. The closest fit to half of the sizes
        // takes 32 to be as good as 64.
        let cycles = [262.0, 225.8, 177.8, 139.6, 112.2, 96.3, 90.5];
        let fit = Processing::fit(&[0, 2, 4, 6].map(|place| (BATCHES[place], cycles[place]))).expect("there is a fit");
        assert_eq!(cheapest(&BATCHES, |batch| fit.cycles(batch)), Some(64), "{fit:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        /// What was made by the model is predicted by it: the batch that the fit of some sizes takes for best is, of all sizes, at most as
        /// much dearer than the best as sizes of a grid allow.
        #[test]
        fn the_best_batch_of_a_known_function_is_predicted(
            necessary in 20.0..200.0f64, shared in 0.0..200.0f64, fetch in 0.0..600.0f64, others in 0..OTHERS.len(), crowding in 0.0..2.0f64, room in 1..ROOMS.len(),
        ) {
            let room = ROOMS[room];
            let known = Processing { necessary, shared, crowding, room, fetch, others: OTHERS[others] };
            let points = BATCHES.map(|batch| (batch, known.cycles(batch)));
            let fit = Processing::fit(&points).expect("there is a fit");
            let predicted = cheapest(&BATCHES, |batch| fit.cycles(batch)).expect("there are batches");
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
