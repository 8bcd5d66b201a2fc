//! The cost of packets in the forwarding engine, schedule by schedule, on the same packets.
//!
//! What is measured is a whole worker of the router: frames of an Ethernet port in memory, as mbufs, through link service,
//! engine and link service to another such port, with the whole protocol on. Each turn of the worker handles a burst of
//! packets; the time-stamp counter is read around turns. Figures are totals, all ticks by all packets, and medians over bursts of
//! one kind of packet beside them: what else runs on the machine disturbs single bursts, seldom half of them. For comparison each
//! schedule can be measured on the stripped path, too, which is what publications have measured.
//!
//! | file | what |
//! |---|---|
//! | `prefixes` | a FIB full of prefixes |
//! | `peers` | who sends what to whom |
//! | `names` | which names are asked for and answered next |
//! | `frames` | the packets |
//! | `stock` | their buffers |
//! | `rig` | a worker between two ports, and the far ends of those |
//! | `load` | which packets when, and what a turn cost |
//! | `turn` | what the worker receives in one turn |
//! | `flood` | a flood of Interests, and what it does to others |
//! | `watch` | what is observed of turns besides time |
//! | `costs` | from single bursts to costs |
//! | `figures` | from costs to figures of runs |
//! | `lines` | cache lines of tables that packets need |
//! | `division` | several workers among which names are divided |
//! | `error` | what can go wrong |

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
mod prefixes;
mod rig;
mod stock;
mod turn;
mod watch;

use std::error::Error;
use std::fmt;
use std::sync::Barrier;
use std::thread;

use namehop_face::FaceUri;
use namehop_forward::fib::FibStatistics;
use namehop_forward::schedule::{
    BucketPrefetch, Burst, BurstScalar, Naive, PreHash, Schedule, ScheduleKind, Speculative, SpeculativeFirst,
    SpeculativeFirstPairs, SpeculativePairs, Stripped,
};
use namehop_hash::HashKey;
use namehop_packet::BufferPool;
use namehop_router::worker::{pin_to_processor, usable_processors};

use crate::counters::{Counters, CountersUnavailable, Events};
use crate::memory::DramFigures;
use crate::progress::{OnProgress, Progress};
use crate::schedule::{
    Buffers, ByPacket, EngineMeasurements, EngineParameters, FloodFigures, FloodParameters, ScheduleFigures,
};
use crate::workload::WorkloadParameters;
pub use division::DivisionFigures;
pub use error::EngineBenchError;
use figures::{Measured, Runs, mean, summary};
use prefixes::Prefixes;

/// Bursts that small tables have room for.
const NEAR_BURSTS: usize = 4;

/// A FIB that all schedules are measured with.
pub struct EngineBench {
    key: HashKey,
    prefixes: Prefixes,
    lookups_per_match: f64,
    /// So few that they stay in the core's caches; only when computing is to be measured.
    few_prefixes: Option<Prefixes>,
    /// One for each worker.
    pools: Vec<BufferPool>,
    /// What is counted, or why nothing is.
    events: Result<Events, CountersUnavailable>,
    /// What the FIB was filled and the pools were made for.
    made_for: EngineParameters,
}

/// The same load with tables that stay in the core's own caches, of the size of bursts, and so do packets.
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

/// The same load for the stripped path, on which an Interest without answer stays for ever.
fn all_answered(parameters: &EngineParameters) -> EngineParameters {
    EngineParameters { unanswered: 0.0, ..parameters.clone() }
}

/// What is measured of a schedule in one pass.
#[derive(Debug, Clone, Copy)]
enum Pass<'f> {
    /// The whole protocol.
    Whole,
    /// The stripped path.
    Stripped,
    /// The whole protocol with small tables.
    Computing,
    /// The whole protocol in a flood.
    Flood(&'f FloodParameters),
}

/// What is measured at a time, as progress tells it.
struct About<'a> {
    schedule: ScheduleKind,
    pass: Pass<'a>,
    /// From 1.
    run: usize,
    runs: usize,
    on_progress: &'a OnProgress<'a>,
}

impl fmt::Display for About<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.schedule.name())?;
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
    /// When the workload or the memory for it cannot be had.
    pub fn new(parameters: &EngineParameters, on_progress: &OnProgress<'_>) -> Result<Self, EngineBenchError> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        if parameters.workers > cores {
            return Err(EngineBenchError::TooFewCores { wanted: parameters.workers, cores });
        }
        let pools = rig::pools(parameters)?;
        // The same key in every run: hashes are no part of what varies.
        let key = HashKey::new(0x6e61_6d65_686f_7031, 0x656e_6769_6e65_3032);
        let prefixes = Prefixes::new(key, parameters, on_progress)?;
        let few = || Prefixes::new(key, &with_small_tables(parameters), &|_| ());
        let few_prefixes = parameters.computing.then(few).transpose()?;
        let events = Events::of_this_processor();
        let events = Counters::open(&events).map(|_| events);
        let (lookups_per_match, made_for) = (prefixes.lookups_per_match()?, parameters.clone());
        Ok(EngineBench { key, prefixes, lookups_per_match, few_prefixes, pools, events, made_for })
    }

    /// Fills the FIB anew, for other parameters that need no other packet buffers.
    #[cfg(test)]
    fn refill(&mut self, parameters: &EngineParameters) -> Result<(), EngineBenchError> {
        self.prefixes = Prefixes::new(self.key, parameters, &|_| ())?;
        self.lookups_per_match = self.prefixes.lookups_per_match()?;
        self.made_for = parameters.clone();
        Ok(())
    }

    /// Can it measure with these parameters, or must it be made anew?
    fn suits(&self, parameters: &EngineParameters) -> bool {
        let parts = |of: &EngineParameters| {
            (of.workload, of.workers, of.peers, of.traffic, of.payload_bytes, of.buffers, of.burst, of.computing)
        };
        parts(&self.made_for) == parts(parameters)
    }

    /// Buckets of the FIB that a longest-first search looks at for one name, on average.
    pub fn lookups_per_match(&self) -> f64 {
        self.lookups_per_match
    }

    /// How large the FIB is.
    pub fn fib_statistics(&self) -> FibStatistics {
        self.prefixes.fib.statistics()
    }

    /// Bytes of tables that a worker uses under such a load: FIB, entries and cached packets.
    pub fn table_bytes(&self, parameters: &EngineParameters) -> usize {
        self.fib_statistics().bytes + lines::table_bytes(parameters)
    }

    /// Why hardware counters are not counted here, if they are not.
    pub fn counters_unavailable(&self) -> Option<&CountersUnavailable> {
        self.events.as_ref().err()
    }

    /// Measures each schedule `runs` times, one after another in every round.
    ///
    /// # Errors
    /// When the router cannot be put together, or loses packets.
    pub fn run(
        &self,
        parameters: &EngineParameters,
        on_progress: &OnProgress<'_>,
    ) -> Result<Vec<ScheduleFigures>, EngineBenchError> {
        let mut measured: Vec<Runs> = parameters.schedules.iter().map(|_| Runs::default()).collect();
        let mut round = 0;
        for run in 0..parameters.runs.max(1) {
            for (&schedule, runs) in parameters.schedules.iter().zip(&mut measured) {
                let mut pass = |pass| {
                    round += 1;
                    let about = About { schedule, pass, run: run + 1, runs: parameters.runs, on_progress };
                    self.run_once(&about, parameters, round - 1).map(|workers| mean(&workers))
                };
                // One right behind the other, so that both have the machine in the same state.
                runs.whole.push(pass(Pass::Whole)?);
                if parameters.stripped {
                    runs.stripped.push(pass(Pass::Stripped)?);
                }
                if parameters.computing {
                    runs.computing.push(pass(Pass::Computing)?);
                }
            }
        }
        let figures = parameters.schedules.iter().zip(measured);
        let lines = lines::lines(parameters, self.lookups_per_match);
        Ok(figures.map(|(&schedule, runs)| summary(schedule, &runs, parameters.workers, lines)).collect())
    }

    /// Measures the flood once in every run with each worker of each schedule. The schedules take turns.
    ///
    /// # Errors
    /// When there is no such flood, the router cannot be put together, or loses ordinary packets.
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
                let about = About { schedule, pass, run: run + 1, runs: parameters.runs, on_progress };
                let measured = self.run_once(&about, parameters, figures.len() as u64)?;
                figures.extend(measured.into_iter().filter_map(|worker| Some((schedule, worker.flood?))));
            }
        }
        Ok(figures)
    }

    /// All workers at once, each with names of its own.
    fn run_once(
        &self,
        about: &About<'_>,
        parameters: &EngineParameters,
        round: u64,
    ) -> Result<Vec<Measured>, EngineBenchError> {
        let start = Barrier::new(self.pools.len());
        let processors = usable_processors().unwrap_or_default();
        let results: Vec<Result<Measured, EngineBenchError>> = thread::scope(|scope| {
            let threads: Vec<_> = (0..self.pools.len())
                .map(|worker| {
                    let (start, processor) = (&start, processors.get(worker).copied());
                    scope.spawn(move || {
                        // A thread that stays where the system puts it measures the same, only less steadily.
                        let _ = processor.map(pin_to_processor);
                        let place = (worker, round * self.pools.len() as u64 + worker as u64);
                        match about.schedule {
                            ScheduleKind::Naive => self.pass::<Naive>(parameters, about, place, start),
                            ScheduleKind::BucketPrefetch => {
                                self.pass::<BucketPrefetch>(parameters, about, place, start)
                            }
                            ScheduleKind::PreHash => self.pass::<PreHash>(parameters, about, place, start),
                            ScheduleKind::Speculative => self.pass::<Speculative>(parameters, about, place, start),
                            ScheduleKind::SpeculativeFirst => {
                                self.pass::<SpeculativeFirst>(parameters, about, place, start)
                            }
                            ScheduleKind::SpeculativePairs => {
                                self.pass::<SpeculativePairs>(parameters, about, place, start)
                            }
                            ScheduleKind::SpeculativeFirstPairs => {
                                self.pass::<SpeculativeFirstPairs>(parameters, about, place, start)
                            }
                            ScheduleKind::BurstScalar => self.pass::<BurstScalar>(parameters, about, place, start),
                            ScheduleKind::Burst => self.pass::<Burst>(parameters, about, place, start),
                        }
                    })
                })
                .collect();
            let panicked = || EngineBenchError::Rig("a worker's thread ended by itself".to_owned());
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(panicked()))).collect()
        });
        results.into_iter().collect()
    }

    fn pass<S: Schedule>(
        &self,
        parameters: &EngineParameters,
        about: &About<'_>,
        place: (usize, u64),
        start: &Barrier,
    ) -> Result<Measured, EngineBenchError> {
        match about.pass {
            Pass::Stripped => self.work::<Stripped<S>>(&self.prefixes, &all_answered(parameters), about, place, start),
            Pass::Whole | Pass::Flood(_) => self.work::<S>(&self.prefixes, parameters, about, place, start),
            Pass::Computing => {
                let prefixes = self.few_prefixes.as_ref().unwrap_or(&self.prefixes);
                self.work::<S>(prefixes, &with_small_tables(parameters), about, place, start)
            }
        }
    }

    fn work<S: Schedule>(
        &self,
        prefixes: &Prefixes,
        parameters: &EngineParameters,
        about: &About<'_>,
        (worker, number): (usize, u64),
        start: &Barrier,
    ) -> Result<Measured, EngineBenchError> {
        let rig = rig::Rig::<S>::new(&prefixes.fib, self.key, self.pools[worker].clone(), parameters);
        // Before an error is returned, so that the other workers do not wait for this one.
        start.wait();
        let mut load = load::Load::new(rig?, prefixes, parameters, number)?;
        // One worker speaks for all.
        let tell = |doing: &str, done, total| {
            if worker == 0 {
                (about.on_progress)(Progress { what: format!("{about}: {doing}"), done, total });
            }
        };
        load.warm_up(&|done, total| tell("warming up", done, total))?;
        tell("measuring", 0, 0);
        if let Pass::Flood(flood) = about.pass {
            let figures = load.measure_flood(flood)?;
            load.finish()?;
            return Ok(Measured { flood: Some(figures), ..Measured::default() });
        }
        let costs = load.measure(parameters.time)?;
        let counters = self.events.as_ref().ok().and_then(|events| Counters::open(events).ok());
        let counted = counters.map(|counters| load.count(counters)).transpose()?;
        load.finish()?;
        Ok(Measured { costs, counted, flood: None })
    }
}

/// Least nanoseconds of an Interest and its Data according to the memory's best rate.
pub fn floor_ns(lines: &ByPacket<f64>, dram: &DramFigures) -> f64 {
    dram.floor_ns(lines.interest_miss + lines.data)
}

/// An [`EngineBench`] that is made when it is first needed, and again for another workload.
#[derive(Default)]
pub struct EngineOnDemand {
    made: Option<EngineBench>,
}

impl EngineMeasurements for EngineOnDemand {
    fn measure(
        &mut self,
        parameters: &EngineParameters,
        on_progress: &OnProgress<'_>,
    ) -> Result<Vec<ScheduleFigures>, Box<dyn Error + Send + Sync>> {
        let bench = match self.made.take() {
            Some(bench) if bench.suits(parameters) => bench,
            _ => EngineBench::new(parameters, on_progress)?,
        };
        let figures = bench.run(parameters, on_progress);
        self.made = Some(bench);
        Ok(figures?)
    }
}

/// Parses a URI.
fn uri(text: &str) -> Result<FaceUri, EngineBenchError> {
    text.parse().map_err(|error| EngineBenchError::Rig(format!("{text}: {error}")))
}

#[cfg(test)]
mod tests;
