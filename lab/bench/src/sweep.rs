//! Sweeps: measurements over links in which one thing changes from case to case. What they are, what they say, and the trait
//! through which they are asked for.
//!
//! The base of all is the configuration of Shi et al. (2020), section 7: names of four components, 1000 bytes of payload in every Data,
//! room for 2^15 Data in the Content Store of each worker, names that never repeat. What differs here: one worker where a case does not say
//! otherwise, and no network cards.
//!
//! The crate that reproduces published figures needs what sweeps say and not the links: this is the interface between them.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

use namehop_manage::server::LatencyStatus;
use namehop_store::{PolicyChoice, PolicyKind};
use serde::Serialize;

use crate::median::median;
use crate::progress::OnProgress;

/// Components of names, payload of Data and room in the Content Store, unless a sweep is about them.
const BASE: Setting = Setting {
    workers: 1,
    components: 4,
    payload_bytes: 1000,
    fib_entries: 0,
    cs_packets_per_worker: 1 << 15,
    cached_share: 0.0,
    matches: NameMatch::Exact,
};
/// Components of names (figure 6 prints no numbers).
const COMPONENTS: [usize; 3] = [4, 8, 12];
/// Most workers that are measured, if there are as many processors (figure 6).
const MOST_WORKERS: usize = 12;
/// Bytes of payload (figure 7).
const PAYLOADS: [usize; 6] = [100, 500, 1000, 2000, 4000, 8000];
/// Prefixes in the FIB (section 7.3).
const FIB_ENTRIES: [u64; 3] = [10_000, 100_000, 1_000_000];
/// Room in the Content Store (figure 8).
const CS_PACKETS: [usize; 2] = [1 << 17, 1 << 20];
/// Shares of Interests for names that the Content Store has (figure 8).
const CACHED_SHARES: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];

/// What changes from case to case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Sweep {
    /// Workers, and components of names (figure 6).
    Workers,
    /// Bytes of payload (figure 7).
    Payload,
    /// Prefixes in the FIB, each asked for as often as any other (section 7.3).
    Fib,
    /// Interests for cached names, by their exact name and by a prefix of it, with two sizes of the Content Store (figure 8).
    Cache,
    /// How long packets stay in the router, where half of the Interests are for cached names (figures 10 and 11).
    Latency,
}

/// All, in the order of the paper.
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
        found.ok_or_else(|| format!("no sweep is called '{text}': there are workers, payload, fib, cache and latency"))
    }
}

/// How the names of Interests compare with those of Data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NameMatch {
    /// They are the same.
    Exact,
    /// Data has one component more, and Interests say CanBePrefix.
    Prefix,
}

/// What router and traffic are like in one case.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Setting {
    /// Workers of the router.
    pub workers: usize,
    /// Components of Interests' names.
    pub components: usize,
    /// Bytes of content in each Data.
    pub payload_bytes: usize,
    /// Prefixes in the FIB beside the default route; with any, each name is one of them, drawn at random.
    pub fib_entries: u64,
    /// Data that the Content Store of each worker has room for.
    pub cs_packets_per_worker: usize,
    /// Share of the Interests that are for names which the Content Store can have.
    pub cached_share: f64,
    /// How names compare.
    pub matches: NameMatch,
}

impl Sweep {
    /// Policy of the router's Content Store. Where some names come again beside others that do not, it is one that keeps these, which are
    /// not asked for often enough for policies that let everything in; otherwise one that does that, as that of the published router.
    pub fn cs_policy(self) -> PolicyChoice {
        match self {
            Sweep::Cache | Sweep::Latency => PolicyKind::TinyLfuClock.into(),
            Sweep::Workers | Sweep::Payload | Sweep::Fib => PolicyKind::Lru.into(),
        }
    }

    /// Its cases on a machine with so many processors for the router.
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

/// Powers of two and the published numbers between them, up to the processors that there are.
fn worker_counts(processors: usize) -> Vec<usize> {
    let mut counts: Vec<usize> = [1, 2, 4, 8, MOST_WORKERS].into_iter().filter(|&count| count <= processors).collect();
    if counts.is_empty() {
        counts.push(1);
    }
    counts
}

/// What was measured in one case.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CaseFigures {
    /// The case.
    pub setting: Setting,
    /// Whether a worker had to share its processor with consumer and producer.
    pub shares_processor: bool,
    /// Data that came back per second, once for each run.
    pub data_per_s: Vec<f64>,
    /// Time of the workers for each exchange, in nanoseconds, once for each run.
    pub busy_ns: Vec<f64>,
    /// Share of the Interests that the Content Store answered; `None` where it was not asked.
    pub hit_share: Option<f64>,
    /// Interests of all runs that nothing answered.
    pub lost: u64,
    /// Share of the time in which consumer and producer had something to do: near 1 they limit the rate.
    pub generator_busy_share: f64,
    /// How long packets were in the router, of a sample of all runs.
    #[serde(serialize_with = "latency_as_json")]
    pub latency: LatencyStatus,
}

impl CaseFigures {
    /// Data per second, the median of the runs.
    pub fn median_data_per_s(&self) -> f64 {
        median(&mut self.data_per_s.clone())
    }

    /// Time of the workers for each exchange in nanoseconds, the median of the runs.
    pub fn median_busy_ns(&self) -> f64 {
        median(&mut self.busy_ns.clone())
    }
}

/// What was measured of a sweep.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SweepFigures {
    /// Which one.
    pub sweep: Sweep,
    /// Policy of the routers' Content Stores.
    pub cs_policy: String,
    /// In the order of its settings; fewer when it was ended early.
    pub cases: Vec<CaseFigures>,
}

/// As `namehop latency --json` has it.
fn latency_as_json<S: serde::Serializer>(latency: &LatencyStatus, serializer: S) -> Result<S::Ok, S::Error> {
    namehop_manage::views::LatencyView::from(latency).serialize(serializer)
}

/// Measures sweeps when asked to.
pub trait SweepMeasurements {
    /// A sweep, so many runs of every case.
    ///
    /// # Errors
    /// When links or router cannot be had, or nothing comes back.
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
