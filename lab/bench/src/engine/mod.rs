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
//! | `rotation` | schedules in turns |
//! | `requests` | requests of a workload, which the cache answers or not |
//! | `policies` | cache policies in turns, and the blocks of the flow of packets |
//! | `flood` | a flood of Interests, and what it does to others |
//! | `stall` | a second tier on a disk that does not answer |
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

use namehop_daemon::worker::{pin_to_processor, usable_processors};
use namehop_engine::fib::FibStatistics;
use namehop_engine::schedule::{Burst, Schedule, ScheduleKind, Stripped};
use namehop_face::FaceUri;
use namehop_hash::HashKey;
use namehop_packet::BufferPool;

use crate::counters::{Counters, CountersUnavailable, Events};
use crate::memory::DramFigures;
use crate::policy::{BlockFigures, PolicyFigures, PolicyParameters};
use crate::progress::{OnProgress, Progress};
use crate::schedule::{
    Buffers, ByPacket, EngineMeasurements, EngineParameters, FloodFigures, FloodParameters, ScheduleFigures,
};
use crate::workload::WorkloadParameters;
pub use division::{CostSpread, DivisionCase, DivisionFigures};
pub use error::EngineBenchError;
use figures::{Measured, Runs, mean, summary};
use prefixes::Prefixes;
pub use stall::{StallFigures, StallParameters};

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

/// What is measured in one pass.
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
    schedules: &'a [ScheduleKind],
    pass: Pass<'a>,
    /// From 1.
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

    /// Measures all schedules `runs` times; in each run they take turns over the same tables.
    ///
    /// # Errors
    /// When the router cannot be put together, or loses packets.
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

    /// Measures the flood once in every run with each worker of each schedule, with tables of its own.
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
                let schedules = &[schedule];
                let about = About { schedules, pass, run: run + 1, runs: parameters.runs, on_progress };
                let measured = self.run_once(&about, parameters, figures.len() as u64)?;
                figures.extend(measured.into_iter().flatten().filter_map(|worker| Some((schedule, worker.flood?))));
            }
        }
        Ok(figures)
    }

    /// All workers at once, each with names of its own: what each measured, by schedule.
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
                        // A thread that stays where the system puts it measures the same, only less steadily.
                        let _ = processor.map(pin_to_processor);
                        let place = (worker, round * self.pools.len() as u64 + worker as u64);
                        self.pass(parameters, about, place, start)
                    })
                })
                .collect();
            let panicked = || EngineBenchError::Rig("a worker's thread ended by itself".to_owned());
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
            Pass::Stripped => {
                self.work::<Stripped<Burst>>(&self.prefixes, &all_answered(parameters), about, place, start)
            }
            Pass::Whole | Pass::Flood(_) => self.work::<Burst>(&self.prefixes, parameters, about, place, start),
            Pass::Computing => {
                let prefixes = self.few_prefixes.as_ref().unwrap_or(&self.prefixes);
                self.work::<Burst>(prefixes, &with_small_tables(parameters), about, place, start)
            }
        }
    }

    /// What one worker measures of each schedule. `B` warms its tables up.
    fn work<B: Schedule>(
        &self,
        prefixes: &Prefixes,
        parameters: &EngineParameters,
        about: &About<'_>,
        (worker, number): (usize, u64),
        start: &Barrier,
    ) -> Result<Vec<Measured>, EngineBenchError> {
        // One worker speaks for all.
        let tell = |doing: &str, done, total| {
            if worker == 0 {
                (about.on_progress)(Progress { what: format!("{about}: {doing}"), done, total });
            }
        };
        let warm = || {
            let rig = rig::Rig::<B>::new(&prefixes.fib, self.key, self.pools[worker].clone(), parameters)?;
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

/// Least nanoseconds of an Interest and its Data according to the memory's best rate.
pub fn floor_ns(lines: &ByPacket<f64>, dram: &DramFigures) -> f64 {
    dram.floor_ns(lines.interest_miss + lines.data)
}

/// An [`EngineBench`] that is made when it is first needed, and again for another workload.
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
    text.parse().map_err(|error| EngineBenchError::Rig(format!("{text}: {error}")))
}

#[cfg(test)]
mod tests;
