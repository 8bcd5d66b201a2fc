//! Cost of packets in the forwarding engine, by schedule, over the same packets.
//!
//! The measurement runs a whole worker of the router: frames of an Ethernet port in memory, as mbufs, pass link
//! service, engine and link service to another such port, with the whole protocol enabled. Each poll iteration of the
//! worker handles a burst of packets, and the time-stamp counter is read before and after it. Figures are totals (all
//! ticks over all packets) and medians over bursts of one kind of packet: other load on the host disturbs single
//! bursts, seldom half of them. For comparison each schedule can also be measured on the stripped path, which the
//! publications measured.
//!
//! | file | what |
//! |---|---|
//! | `prefixes` | a FIB filled with prefixes |
//! | `peers` | the peers on the links, and the traffic between them |
//! | `names` | the names to request and to answer next |
//! | `frames` | templates of packets |
//! | `stock` | packet buffers |
//! | `rig` | a worker between two ports, and the far ends of the ports |
//! | `load` | the order of packets, and the cost of a poll iteration |
//! | `turn` | the frames received in one poll iteration |
//! | `rotation` | schedules that take turns |
//! | `requests` | requests of a workload, with an actual Content Store |
//! | `policies` | cache policies that take turns, and the blocks of packet flow |
//! | `flood` | an Interest flood, and its effect on ordinary traffic |
//! | `stall` | a second tier on a disk that does not answer |
//! | `watch` | observations of poll iterations besides time |
//! | `costs` | cost of packets from single bursts |
//! | `figures` | figures from the costs of runs |
//! | `lines` | cache lines of tables fetched per packet |
//! | `division` | several workers among which names are divided |
//! | `error` | errors |

mod costs;
mod division;
mod error;
mod figures;
mod flood;
mod frames;
mod lines;
mod load;
mod names;
mod peers;
mod policies;
mod prefixes;
mod requests;
mod rig;
mod rotation;
mod stall;
mod stock;
mod turn;
mod watch;

use std::error::Error;
use std::fmt;
use std::sync::Barrier;
use std::thread;

use namehop_engine::fib::FibStatistics;
use namehop_face::FaceUri;
use namehop_hash::HashKey;
use namehop_orders::{Order, PathKind, ScheduleKind};
use namehop_packet::BufferPool;
use namehop_port::drivers::parse_uri;
use namehop_worker::{pin_to_processor, usable_processors};

use crate::counters::{Counters, CountersUnavailable, Events};
use crate::measurements::EngineMeasurements;
use crate::memory::DramFigures;
use crate::policy::{BlockFigures, PolicyFigures, PolicyParameters};
use crate::progress::{OnProgress, Progress};
use crate::schedule::{Buffers, ByPacket, EngineParameters, FloodFigures, FloodParameters, ScheduleFigures};
use crate::workload::WorkloadParameters;
pub use division::{CostSpread, DivisionCase, DivisionFigures};
pub use error::EngineBenchError;
use figures::{Measured, Runs, mean, summary};
use prefixes::Prefixes;
pub use stall::{StallFigures, StallParameters};

/// Size of small tables, in bursts.
const NEAR_BURSTS: usize = 4;

/// Measures schedules over the same FIB.
pub struct EngineBench {
    key: HashKey,
    prefixes: Prefixes,
    lookups_per_match: f64,
    /// A FIB with few prefixes, which stays in the core's caches; only if `computing` is set.
    few_prefixes: Option<Prefixes>,
    /// One pool per worker.
    pools: Vec<BufferPool>,
    /// Hardware events to count, or why counters are not available.
    events: Result<Events, CountersUnavailable>,
    /// Parameters that the FIB and the pools were created for.
    made_for: EngineParameters,
}

/// Returns the same load with tables and packets that stay in the core's private caches: a few bursts in size.
fn with_small_tables(parameters: &EngineParameters) -> EngineParameters {
    let few = NEAR_BURSTS * parameters.burst;
    EngineParameters {
        workload: WorkloadParameters { prefixes: parameters.workload.prefixes.min(few as u64), ..parameters.workload },
        in_flight: parameters.in_flight.min(few),
        cs_capacity: parameters.cs_capacity.min(few),
        dead_nonce_capacity: parameters.dead_nonce_capacity.min(few),
        buffers: Buffers::Near,
        ..parameters.clone()
    }
}

/// Returns the same load with all Interests answered, for the stripped path, where an unanswered Interest never
/// expires.
fn all_answered(parameters: &EngineParameters) -> EngineParameters {
    EngineParameters { unanswered: 0.0, ..parameters.clone() }
}

/// What one pass measures.
#[derive(Debug, Clone, Copy)]
enum Pass<'f> {
    /// The whole protocol.
    Whole,
    /// The stripped path.
    Stripped,
    /// The whole protocol with small tables.
    Computing,
    /// The whole protocol during a flood.
    Flood(&'f FloodParameters),
}

impl Pass<'_> {
    /// The path that packets take.
    fn path(self) -> PathKind {
        match self {
            Pass::Stripped => PathKind::Stripped,
            Pass::Whole | Pass::Computing | Pass::Flood(_) => PathKind::Whole,
        }
    }
}

/// Description of a pass, for progress reports.
struct About<'a> {
    schedules: &'a [ScheduleKind],
    pass: Pass<'a>,
    /// Number of the run, from 1.
    run: usize,
    runs: usize,
    on_progress: &'a OnProgress<'a>,
}

impl fmt::Display for About<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.schedules {
            [schedule] => f.write_str(schedule.name())?,
            several => write!(f, "{} schedules in turns", several.len())?,
        }
        match self.pass {
            Pass::Whole => {}
            Pass::Stripped => f.write_str(", stripped path")?,
            Pass::Computing => f.write_str(", small tables")?,
            Pass::Flood(_) => f.write_str(", flood")?,
        }
        if self.runs > 1 { write!(f, ", run {} of {}", self.run, self.runs) } else { Ok(()) }
    }
}

impl EngineBench {
    /// Fills the FIB with the workload's prefixes.
    ///
    /// # Errors
    /// Fails if the workload is impossible, if there are too few cores, or if memory cannot be allocated.
    pub fn new(parameters: &EngineParameters, on_progress: &OnProgress<'_>) -> Result<Self, EngineBenchError> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        if parameters.workers > cores {
            return Err(EngineBenchError::TooFewCores { wanted: parameters.workers, cores });
        }
        let pools = rig::pools(parameters)?;
        // The key is fixed, so that hashes do not vary between runs.
        let key = HashKey::new(0x6e61_6d65_686f_7031, 0x656e_6769_6e65_3032);
        let prefixes = Prefixes::new(key, parameters, on_progress)?;
        let few = || Prefixes::new(key, &with_small_tables(parameters), &|_| ());
        let few_prefixes = parameters.computing.then(few).transpose()?;
        let events = Events::of_this_processor();
        let events = Counters::open(&events).map(|_| events);
        let (lookups_per_match, made_for) = (prefixes.lookups_per_match()?, parameters.clone());
        Ok(EngineBench { key, prefixes, lookups_per_match, few_prefixes, pools, events, made_for })
    }

    /// Refills the FIB for other parameters that fit the same packet buffers.
    #[cfg(test)]
    fn refill(&mut self, parameters: &EngineParameters) -> Result<(), EngineBenchError> {
        self.prefixes = Prefixes::new(self.key, parameters, &|_| ())?;
        self.lookups_per_match = self.prefixes.lookups_per_match()?;
        self.made_for = parameters.clone();
        Ok(())
    }

    /// True if it can measure with these parameters; otherwise a new one is needed.
    fn suits(&self, parameters: &EngineParameters) -> bool {
        let parts = |of: &EngineParameters| {
            (of.workload, of.workers, of.peers, of.traffic, of.payload_bytes, of.buffers, of.burst, of.computing)
        };
        parts(&self.made_for) == parts(parameters)
    }

    /// Average number of FIB buckets that a longest-first search reads for one name.
    pub fn lookups_per_match(&self) -> f64 {
        self.lookups_per_match
    }

    /// Statistics of the FIB.
    pub fn fib_statistics(&self) -> FibStatistics {
        self.prefixes.fib.statistics()
    }

    /// Bytes of tables that a worker uses under this load: FIB, entries and cached packets.
    pub fn table_bytes(&self, parameters: &EngineParameters) -> usize {
        self.fib_statistics().bytes + lines::table_bytes(parameters)
    }

    /// Returns why hardware counters are not available, if so.
    pub fn counters_unavailable(&self) -> Option<&CountersUnavailable> {
        self.events.as_ref().err()
    }

    /// Measures all schedules `runs` times; in each run they take turns over the same tables.
    ///
    /// # Errors
    /// Fails if the router cannot be set up, or if it loses packets.
    pub fn run(
        &self,
        parameters: &EngineParameters,
        on_progress: &OnProgress<'_>,
    ) -> Result<Vec<ScheduleFigures>, EngineBenchError> {
        let schedules = &parameters.schedules;
        let mut measured: Vec<Runs> = schedules.iter().map(|_| Runs::default()).collect();
        let mut round = 0;
        for run in 0..parameters.runs.max(1) {
            let mut pass = |pass| {
                round += 1;
                let about = About { schedules, pass, run: run + 1, runs: parameters.runs, on_progress };
                self.run_once(&about, parameters, round - 1)
            };
            for (runs, whole) in measured.iter_mut().zip(pass(Pass::Whole)?) {
                runs.whole.push(mean(&whole));
            }
            if parameters.stripped {
                for (runs, stripped) in measured.iter_mut().zip(pass(Pass::Stripped)?) {
                    runs.stripped.push(mean(&stripped));
                }
            }
            if parameters.computing {
                for (runs, computing) in measured.iter_mut().zip(pass(Pass::Computing)?) {
                    runs.computing.push(mean(&computing));
                }
            }
        }
        let figures = schedules.iter().zip(measured);
        let lines = lines::lines(parameters, self.lookups_per_match);
        Ok(figures.map(|(&schedule, runs)| summary(schedule, &runs, parameters.workers, lines)).collect())
    }

    /// Measures the flood once per run, with each worker of each schedule, each time with new tables.
    ///
    /// # Errors
    /// Fails if the flood is impossible, if the router cannot be set up, or if it loses ordinary packets.
    pub fn run_flood(
        &self,
        parameters: &EngineParameters,
        flood: &FloodParameters,
        on_progress: &OnProgress<'_>,
    ) -> Result<Vec<(ScheduleKind, FloodFigures)>, EngineBenchError> {
        flood::Flood::new(parameters, flood)?;
        let mut figures = Vec::new();
        for run in 0..parameters.runs.max(1) {
            for &schedule in &parameters.schedules {
                let pass = Pass::Flood(flood);
                let schedules = &[schedule];
                let about = About { schedules, pass, run: run + 1, runs: parameters.runs, on_progress };
                let measured = self.run_once(&about, parameters, figures.len() as u64)?;
                figures.extend(measured.into_iter().flatten().filter_map(|worker| Some((schedule, worker.flood?))));
            }
        }
        Ok(figures)
    }

    /// Runs one pass with all workers at once, each with its own names. Returns the workers' measurements by schedule.
    fn run_once(
        &self,
        about: &About<'_>,
        parameters: &EngineParameters,
        round: u64,
    ) -> Result<Vec<Vec<Measured>>, EngineBenchError> {
        let start = Barrier::new(self.pools.len());
        let processors = usable_processors().unwrap_or_default();
        let results: Vec<Result<Vec<Measured>, EngineBenchError>> = thread::scope(|scope| {
            let threads: Vec<_> = (0..self.pools.len())
                .map(|worker| {
                    let (start, processor) = (&start, processors.get(worker).copied());
                    scope.spawn(move || {
                        // Pinning only reduces noise, so its failure is ignored.
                        let _ = processor.map(pin_to_processor);
                        let place = (worker, round * self.pools.len() as u64 + worker as u64);
                        self.pass(parameters, about, place, start)
                    })
                })
                .collect();
            let panicked = || EngineBenchError::Rig("a worker's thread panicked".to_owned());
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(panicked()))).collect()
        });
        let mut by_schedule: Vec<Vec<Measured>> = about.schedules.iter().map(|_| Vec::new()).collect();
        for of_worker in results {
            for (all, measured) in by_schedule.iter_mut().zip(of_worker?) {
                all.push(measured);
            }
        }
        Ok(by_schedule)
    }

    fn pass(
        &self,
        parameters: &EngineParameters,
        about: &About<'_>,
        place: (usize, u64),
        start: &Barrier,
    ) -> Result<Vec<Measured>, EngineBenchError> {
        match about.pass {
            Pass::Stripped => self.work(&self.prefixes, &all_answered(parameters), about, place, start),
            Pass::Whole | Pass::Flood(_) => self.work(&self.prefixes, parameters, about, place, start),
            Pass::Computing => {
                let prefixes = self.few_prefixes.as_ref().unwrap_or(&self.prefixes);
                self.work(prefixes, &with_small_tables(parameters), about, place, start)
            }
        }
    }

    /// Runs one worker's part of a pass over all schedules. The router's schedule warms it up.
    fn work(
        &self,
        prefixes: &Prefixes,
        parameters: &EngineParameters,
        about: &About<'_>,
        (worker, number): (usize, u64),
        start: &Barrier,
    ) -> Result<Vec<Measured>, EngineBenchError> {
        // Only worker 0 reports progress.
        let tell = |doing: &str, done, total| {
            if worker == 0 {
                (about.on_progress)(Progress { what: format!("{about}: {doing}"), done, total });
            }
        };
        let warm = || {
            let order = Order::new(ScheduleKind::Burst, about.pass.path());
            let rig = rig::Rig::new(&prefixes.fib, self.key, self.pools[worker].clone(), parameters, order)?;
            let mut load = load::Load::new(rig, prefixes, parameters, number)?;
            load.warm_up(&|done, total| tell("warming up", done, total))?;
            tell("measuring", 0, 0);
            Ok(rotation::Rotation::new(load))
        };
        if let Pass::Flood(flood) = about.pass {
            let mut rotation = warm()?;
            let measured = about.schedules.iter().map(|&schedule| rotation.measure_flood(schedule, flood));
            let measured = measured.collect::<Result<_, _>>()?;
            rotation.finish()?;
            return Ok(measured);
        }
        let (mut rotation, mut measured) = rotation::take_turns(warm(), about.schedules, parameters.time, start)?;
        let events = self.events.as_ref().ok();
        rotation.count(about.schedules, &mut measured, || events.and_then(|events| Counters::open(events).ok()))?;
        rotation.finish()?;
        Ok(measured)
    }
}

/// Minimum nanoseconds of an Interest and its Data at the memory's best rate.
pub fn floor_ns(lines: &ByPacket<f64>, dram: &DramFigures) -> f64 {
    dram.floor_ns(lines.interest_miss + lines.data)
}

/// Creates an [`EngineBench`] when first needed, and again for parameters that it does not suit.
#[derive(Default)]
pub struct EngineOnDemand {
    made: Option<EngineBench>,
}

impl EngineOnDemand {
    fn made_for(
        &mut self,
        parameters: &EngineParameters,
        on_progress: &OnProgress<'_>,
    ) -> Result<&EngineBench, EngineBenchError> {
        let bench = match self.made.take() {
            Some(bench) if bench.suits(parameters) => bench,
            _ => EngineBench::new(parameters, on_progress)?,
        };
        Ok(self.made.insert(bench))
    }
}

impl EngineMeasurements for EngineOnDemand {
    fn measure(
        &mut self,
        parameters: &EngineParameters,
        on_progress: &OnProgress<'_>,
    ) -> Result<Vec<ScheduleFigures>, Box<dyn Error + Send + Sync>> {
        Ok(self.made_for(parameters, on_progress)?.run(parameters, on_progress)?)
    }

    fn measure_policies(
        &mut self,
        parameters: &EngineParameters,
        of: &PolicyParameters,
        on_progress: &OnProgress<'_>,
    ) -> Result<Vec<Vec<PolicyFigures>>, Box<dyn Error + Send + Sync>> {
        Ok(self.made_for(parameters, on_progress)?.run_policies(parameters, of, on_progress)?)
    }

    fn measure_blocks(
        &mut self,
        parameters: &EngineParameters,
        of: &PolicyParameters,
        on_progress: &OnProgress<'_>,
    ) -> Result<Vec<Vec<BlockFigures>>, Box<dyn Error + Send + Sync>> {
        Ok(self.made_for(parameters, on_progress)?.run_blocks(parameters, of, on_progress)?)
    }
}

/// Parses a URI.
fn uri(text: &str) -> Result<FaceUri, EngineBenchError> {
    parse_uri(text).map_err(|error| EngineBenchError::Rig(format!("{text}: {error}")))
}

#[cfg(test)]
mod tests;
