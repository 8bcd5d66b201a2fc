//! Sweeps: measurements over links in which one parameter changes from case to case. This module has their parameters,
//! their results, and the trait that measures them.
//!
//! All sweeps start from the configuration of Shi et al. (2020), section 7: names of four components, 1000 bytes of
//! payload per Data, a Content Store of 2^15 Data per worker, names that never repeat. Differences here: one worker
//! unless a case has more, and no network cards.
//!
//! The crate that reproduces published figures depends on these types and not on the links.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

use namehop_client::nfd::LatencyStatus;
use namehop_store::{PolicyChoice, PolicyKind};
use serde::Serialize;

use crate::median::median;
use crate::progress::OnProgress;

/// Values of all parameters that a sweep does not vary.
const BASE: Setting = Setting {
    workers: 1,
    components: 4,
    payload_bytes: 1000,
    fib_entries: 0,
    cs_packets_per_worker: 1 << 15,
    cached_share: 0.0,
    matches: NameMatch::Exact,
};
/// Components of names (figure 6, which prints no numbers).
const COMPONENTS: [usize; 3] = [4, 8, 12];
/// Maximum number of measured workers, if the host has as many CPUs (figure 6).
const MOST_WORKERS: usize = 12;
/// Bytes of payload (figure 7).
const PAYLOADS: [usize; 6] = [100, 500, 1000, 2000, 4000, 8000];
/// Prefixes in the FIB (section 7.3).
const FIB_ENTRIES: [u64; 3] = [10_000, 100_000, 1_000_000];
/// Content Store capacity per worker in packets (figure 8).
const CS_PACKETS: [usize; 2] = [1 << 17, 1 << 20];
/// Shares of Interests for names in the Content Store (figure 8).
const CACHED_SHARES: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];

/// The parameter that changes from case to case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Sweep {
    /// Workers, and components of names (figure 6).
    Workers,
    /// Bytes of payload (figure 7).
    Payload,
    /// Prefixes in the FIB, all requested equally often (section 7.3).
    Fib,
    /// Interests for cached names, by exact name and by a prefix of it, with two capacities of the Content Store
    /// (figure 8).
    Cache,
    /// Latency inside the router, with half of the Interests for cached names (figures 10 and 11).
    Latency,
}

/// All sweeps, in the order of the paper.
pub const ALL_SWEEPS: [Sweep; 5] = [Sweep::Workers, Sweep::Payload, Sweep::Fib, Sweep::Cache, Sweep::Latency];

impl fmt::Display for Sweep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Sweep::Workers => "workers",
            Sweep::Payload => "payload",
            Sweep::Fib => "fib",
            Sweep::Cache => "cache",
            Sweep::Latency => "latency",
        })
    }
}

impl FromStr for Sweep {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = ALL_SWEEPS.into_iter().find(|sweep| sweep.to_string() == text);
        found.ok_or_else(|| format!("unknown sweep '{text}' (workers, payload, fib, cache, latency)"))
    }
}

/// Relation between the names of Interests and of Data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NameMatch {
    /// The names are equal.
    Exact,
    /// Data names have one more component, and Interests have CanBePrefix set.
    Prefix,
}

/// Configuration of the router and traffic of one case.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Setting {
    /// Number of workers of the router.
    pub workers: usize,
    /// Components of Interest names.
    pub components: usize,
    /// Bytes of content in each Data.
    pub payload_bytes: usize,
    /// Prefixes in the FIB besides the default route. If not 0, each name is below one of them, drawn at random.
    pub fib_entries: u64,
    /// Content Store capacity of each worker, in packets.
    pub cs_packets_per_worker: usize,
    /// Share of Interests for names that the Content Store can hold, 0 to 1.
    pub cached_share: f64,
    /// Relation between the names of Interests and of Data.
    pub matches: NameMatch,
}

impl Sweep {
    /// Returns the policy of the router's Content Store. Sweeps in which only some names repeat use a policy that keeps
    /// those names: they are not requested often enough to stay under a policy that admits all Data. Other sweeps use a
    /// policy that admits all Data, as the published router does.
    pub fn cs_policy(self) -> PolicyChoice {
        match self {
            Sweep::Cache | Sweep::Latency => PolicyKind::TinyLfuClock.into(),
            Sweep::Workers | Sweep::Payload | Sweep::Fib => PolicyKind::Lru.into(),
        }
    }

    /// Returns the cases of the sweep on a host with `processors` CPUs for the router.
    pub fn settings(self, processors: usize) -> Vec<Setting> {
        let both = [NameMatch::Exact, NameMatch::Prefix];
        match self {
            Sweep::Workers => {
                let workers = worker_counts(processors);
                let of = |workers| COMPONENTS.map(|components| Setting { workers, components, ..BASE });
                workers.into_iter().flat_map(of).collect()
            }
            Sweep::Payload => PAYLOADS.map(|payload_bytes| Setting { payload_bytes, ..BASE }).to_vec(),
            Sweep::Fib => FIB_ENTRIES.map(|fib_entries| Setting { fib_entries, ..BASE }).to_vec(),
            Sweep::Cache => {
                let of = |cs_packets_per_worker| {
                    both.into_iter().flat_map(move |matches| {
                        CACHED_SHARES.map(|cached_share| Setting {
                            cs_packets_per_worker,
                            cached_share,
                            matches,
                            ..BASE
                        })
                    })
                };
                CS_PACKETS.into_iter().flat_map(of).collect()
            }
            Sweep::Latency => both.map(|matches| Setting { cached_share: 0.5, matches, ..BASE }).to_vec(),
        }
    }
}

/// Powers of two and the published numbers, up to the number of CPUs; at least one worker.
fn worker_counts(processors: usize) -> Vec<usize> {
    let mut counts: Vec<usize> = [1, 2, 4, 8, MOST_WORKERS].into_iter().filter(|&count| count <= processors).collect();
    if counts.is_empty() {
        counts.push(1);
    }
    counts
}

/// Figures of one case.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CaseFigures {
    /// Configuration of the case.
    pub setting: Setting,
    /// True if a worker shared its CPU with consumer and producer.
    pub shares_processor: bool,
    /// Data received by the consumer per second, one value per run.
    pub data_per_s: Vec<f64>,
    /// Busy time of the workers per exchange in nanoseconds, one value per run.
    pub busy_ns: Vec<f64>,
    /// Share of the Interests that the Content Store answered, 0 to 1; `None` if no Interest was looked up in it.
    pub hit_share: Option<f64>,
    /// Interests without an answer, summed over the runs.
    pub lost: u64,
    /// Busy share of consumer and producer, 0 to 1; near 1 they limit the rate.
    pub generator_busy_share: f64,
    /// Latency of packets in the router, from a sample over all runs.
    #[serde(serialize_with = "latency_as_json")]
    pub latency: LatencyStatus,
}

impl CaseFigures {
    /// Median over the runs of the Data rate, per second.
    pub fn median_data_per_s(&self) -> f64 {
        median(&mut self.data_per_s.clone())
    }

    /// Median over the runs of the workers' busy time per exchange, in nanoseconds.
    pub fn median_busy_ns(&self) -> f64 {
        median(&mut self.busy_ns.clone())
    }
}

/// Figures of one sweep.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SweepFigures {
    /// The sweep.
    pub sweep: Sweep,
    /// Policy of the routers' Content Stores.
    pub cs_policy: String,
    /// Figures of the cases, in the order of its settings; fewer if the sweep was ended early.
    pub cases: Vec<CaseFigures>,
}

/// Serializes latency in the format of `namehop latency --json`.
fn latency_as_json<S: serde::Serializer>(latency: &LatencyStatus, serializer: S) -> Result<S::Ok, S::Error> {
    namehop_manage::views::LatencyView::from(latency).serialize(serializer)
}

/// Measures sweeps.
pub trait SweepMeasurements {
    /// Measures a sweep with `runs` runs of each case.
    ///
    /// # Errors
    /// Fails if links or a router cannot be started, or if no Data returns.
    fn measure(
        &mut self,
        sweep: Sweep,
        runs: usize,
        on_progress: &OnProgress<'_>,
    ) -> Result<SweepFigures, Box<dyn Error + Send + Sync>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sweeps_have_names_and_cases() {
        for sweep in ALL_SWEEPS {
            assert_eq!(sweep.to_string().parse(), Ok(sweep));
            let settings = sweep.settings(2);
            assert!(settings.len() > 1, "{sweep}");
            let differ = settings.windows(2).all(|pair| pair[0] != pair[1]);
            assert!(differ, "{sweep}: {settings:?}");
        }
        assert!("components".parse::<Sweep>().is_err());
    }

    #[test]
    fn there_are_no_more_workers_than_processors() {
        let workers = |processors| {
            let mut counts: Vec<usize> = Sweep::Workers.settings(processors).iter().map(|of| of.workers).collect();
            counts.dedup();
            counts
        };
        assert_eq!([0, 1, 2, 7, 64].map(workers), [vec![1], vec![1], vec![1, 2], vec![1, 2, 4], vec![1, 2, 4, 8, 12]]);
    }
}
