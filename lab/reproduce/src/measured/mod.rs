//! Measured values, and their type.
//!
//! Only this module and its submodules can create a [`Measured`], from what measuring programs returned in several
//! runs. So a printed or chosen number cannot end up in a column of measured values:
//!
//! ```compile_fail,E0451
//! let made_up = namehop_reproduce::Measured { runs: vec![4.0] };
//! ```
//!
//! | file | what |
//! |---|---|
//! | `engine` | packets in the forwarding engine |
//! | `memory` | memory and prefetch instructions |
//! | `policies` | the engine with cache policies |
//! | `links` | routers between links |
//! | `lookups` | lookups in the compared structures |
//! | `programs` | compiled P4 programs |

pub(crate) mod engine;
pub(crate) mod links;
pub(crate) mod lookups;
pub(crate) mod memory;
pub(crate) mod policies;
pub(crate) mod programs;

use namehop_bench::machine::Machine;
use namehop_model::prefetch::reduction_percent;
use serde::{Serialize, Serializer};

/// A value measured on this host, once per run. There is at least one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// One value per run, in the order of the runs.
    runs: Vec<f64>,
}

impl Measured {
    /// `None` if there is no run, or if a value is not finite.
    fn of_runs(runs: impl IntoIterator<Item = f64>) -> Option<Self> {
        let runs: Vec<f64> = runs.into_iter().collect();
        (!runs.is_empty() && runs.iter().all(|value| value.is_finite())).then_some(Measured { runs })
    }

    /// Median of the runs; for an even number of runs, the mean of the two middle ones.
    pub fn median(&self) -> f64 {
        let mut sorted = self.runs.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
    }

    /// The least of the runs.
    pub fn least(&self) -> f64 {
        self.runs.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The most of the runs.
    pub fn most(&self) -> f64 {
        self.runs.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    /// Number of runs.
    pub fn runs(&self) -> usize {
        self.runs.len()
    }

    /// Reduction from `before` in per cent, run by run: each run measured both values shortly after one another.
    pub fn reduction_percent_from(&self, before: &Measured) -> Option<Measured> {
        Self::of_runs(before.runs.iter().zip(&self.runs).map(|(&before, &after)| reduction_percent(before, after)))
    }
}

impl Serialize for Measured {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Spread {
            median: f64,
            least: f64,
            most: f64,
            runs: usize,
        }
        let spread = Spread { median: self.median(), least: self.least(), most: self.most(), runs: self.runs() };
        spread.serialize(serializer)
    }
}

/// Properties of this host as reported by the system, and the rate of its time-stamp counter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MachineFigures {
    pub(crate) cores: Option<Measured>,
    pub(crate) ghz: Option<Measured>,
    pub(crate) last_level_cache_mebibytes: Option<Measured>,
}

impl MachineFigures {
    pub(crate) fn of(machine: &Machine) -> Self {
        let mebibytes = machine.last_level_cache_bytes.map(|bytes| bytes as f64 / f64::from(1 << 20));
        MachineFigures {
            cores: Measured::of_runs([machine.cores as f64]),
            ghz: Measured::of_runs([machine.cycles_hz / 1e9]),
            last_level_cache_mebibytes: mebibytes.and_then(|bytes| Measured::of_runs([bytes])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_have_a_median_and_a_spread() {
        let measured = Measured::of_runs([5.0, 1.0, 9.0]).expect("runs");
        assert_eq!((measured.median(), measured.least(), measured.most(), measured.runs()), (5.0, 1.0, 9.0, 3));
        assert_eq!(Measured::of_runs([1.0, 2.0, 8.0, 4.0]).map(|measured| measured.median()), Some(3.0));
        assert_eq!(Measured::of_runs([]), None);
        assert_eq!(Measured::of_runs([1.0, f64::NAN]), None);
        let json = serde_json::to_value(&measured).expect("JSON");
        assert_eq!(json, serde_json::json!({"median": 5.0, "least": 1.0, "most": 9.0, "runs": 3}));
    }

    #[test]
    fn reductions_compare_what_was_measured_in_the_same_run() {
        let before = Measured::of_runs([100.0, 200.0]).expect("runs");
        let after = Measured::of_runs([50.0, 150.0]).expect("runs");
        let reduction = after.reduction_percent_from(&before).expect("runs");
        assert_eq!((reduction.least(), reduction.most()), (25.0, 50.0));
    }
}
