//! The cost of packets in the forwarding engine, schedule by schedule, on the same packets.
//!
//! What is measured is a whole worker of the router: frames of an Ethernet port in memory, as mbufs, through link service,
//! engine and link service to another such port, with the whole protocol on. Each turn of the worker handles a burst of
//! one kind of packet, so that the kinds are told apart by reading the time-stamp counter around turns. Figures are
//! medians over bursts: what else runs on the machine disturbs single bursts, seldom half of them. For comparison each
//! schedule can be measured on the stripped path, too, which is what publications have measured.
//!
//! | file | what |
//! |---|---|
//! | `frames` | the packets |
//! | `rig` | a worker between two ports, and the far ends of those |
//! | `load` | which packets when, and what a turn cost |
//! | `flood` | a flood of Interests, and what it does to others |
//! | `watch` | what is observed of turns besides time |
//! | `figures` | from measurements to figures |
//! | `lines` | cache lines of tables that packets need from memory |

mod figures;
mod flood;
mod frames;
mod lines;
mod load;
mod rig;
mod watch;

use std::error::Error;
use std::sync::Barrier;
use std::thread;

use namehop_dpdk::MbufPool;
use namehop_face::FaceUri;
use namehop_forward::face::FaceId;
use namehop_forward::fib::{FibError, FibStatistics, FibWriter, NextHop};
use namehop_forward::schedule::{BucketPrefetch, Burst, Naive, PreHash, Schedule, ScheduleKind, Speculative, Stripped};
use namehop_forward::strategy::StrategyInstance;
use namehop_hash::HashKey;
use namehop_router::worker::{pin_to_processor, usable_processors};
use namehop_wire::{DecodeError, NameRef};

use crate::counters::{Counters, Events, WhyNot};
use crate::memory::DramFigures;
use crate::schedule::{ByPacket, EngineMeasurements, EngineParameters, FloodFigures, FloodParameters, ScheduleFigures};
use crate::workload::{Workload, WorkloadError, WorkloadParameters};
use figures::{Measured, Runs, mean, summary};

/// Bursts that small tables have room for.
const NEAR_BURSTS: usize = 4;
/// Prefixes between two reports of progress.
const PROGRESS_STEP: u64 = 1 << 18;

/// Why the engine could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum EngineBenchError {
    /// No such names.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The FIB has no room.
    #[error("the FIB took no more prefixes: {0}")]
    Fib(#[from] FibError),
    /// A name of the workload is not one.
    #[error("the workload made a wrong name: {0}")]
    Name(#[from] DecodeError),
    /// DPDK does not start, or gives no memory.
    #[error("{0}; 'namehop bench engine --help' says what it needs")]
    Dpdk(#[from] namehop_dpdk::DpdkError),
    /// Tables or faces could not be made.
    #[error("the router could not be put together: {0}")]
    Rig(String),
    /// The worker did not forward what it should.
    #[error(
        "the worker forwarded {got} of {expected} packets of a burst; smaller --in-flight or larger tables may help"
    )]
    Lost {
        /// Packets that came out.
        got: usize,
        /// Packets that went in.
        expected: usize,
    },
    /// There is no such flood.
    #[error("the flood is impossible: {0}")]
    Flood(String),
    /// The counters failed while they counted.
    #[error("the hardware counters failed: {0}")]
    Counters(#[source] std::io::Error),
    /// There are not as many cores.
    #[error("{wanted} workers need as many cores, and there are {cores}")]
    TooFewCores {
        /// Workers asked for.
        wanted: usize,
        /// Cores that this process may use.
        cores: usize,
    },
}

/// A FIB that all schedules are measured with.
pub struct EngineBench {
    key: HashKey,
    prefixes: Prefixes,
    /// So few that they stay in the core's caches; only when computing is to be measured.
    few_prefixes: Option<Prefixes>,
    /// One for each worker.
    pools: Vec<MbufPool>,
    /// What is counted, or why nothing is.
    events: Result<Events, WhyNot>,
}

/// A workload, and a FIB with its prefixes.
struct Prefixes {
    workload: Workload,
    fib: FibWriter<StrategyInstance>,
}

impl Prefixes {
    fn new(
        key: HashKey,
        parameters: WorkloadParameters,
        on_progress: &mut dyn FnMut(u64),
    ) -> Result<Self, EngineBenchError> {
        let workload = Workload::new(parameters)?;
        let mut fib = FibWriter::new(key, StrategyInstance::default())?;
        let nexthops = [NextHop { face: upstream(), cost: 1 }];
        let mut value = vec![0; workload.prefix_bytes()];
        for number in 0..parameters.prefixes {
            workload.write_prefix(number, &mut value);
            fib.set_nexthops(NameRef::from_value(&value)?, &nexthops)?;
            if number % PROGRESS_STEP == 0 {
                on_progress(number);
            }
        }
        Ok(Prefixes { workload, fib })
    }
}

/// The same load with tables that stay in the core's own caches, of the size of bursts.
fn with_small_tables(parameters: &EngineParameters) -> EngineParameters {
    let few = NEAR_BURSTS * parameters.burst;
    EngineParameters {
        workload: WorkloadParameters { prefixes: parameters.workload.prefixes.min(few as u64), ..parameters.workload },
        in_flight: parameters.in_flight.min(few),
        cs_capacity: parameters.cs_capacity.min(few),
        dead_nonce_capacity: parameters.dead_nonce_capacity.min(few),
        ..parameters.clone()
    }
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

impl EngineBench {
    /// Fills the FIB with the workload's prefixes. `on_progress` is told now and then how many are in.
    ///
    /// # Errors
    /// When the workload or the memory for it cannot be had.
    pub fn new(parameters: &EngineParameters, on_progress: &mut dyn FnMut(u64)) -> Result<Self, EngineBenchError> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        if parameters.workers > cores {
            return Err(EngineBenchError::TooFewCores { wanted: parameters.workers, cores });
        }
        let pools = rig::pools(parameters.workers)?;
        // The same key in every run: hashes are no part of what varies.
        let key = HashKey::new(0x6e61_6d65_686f_7031, 0x656e_6769_6e65_3032);
        let prefixes = Prefixes::new(key, parameters.workload, on_progress)?;
        let few = with_small_tables(parameters).workload;
        let few_prefixes = parameters.computing.then(|| Prefixes::new(key, few, &mut |_| ())).transpose()?;
        let events = Events::of_this_processor();
        let events = Counters::open(&events).map(|_| events);
        Ok(EngineBench { key, prefixes, few_prefixes, pools, events })
    }

    /// How large the FIB is.
    pub fn fib_statistics(&self) -> FibStatistics {
        self.prefixes.fib.statistics()
    }

    /// Why hardware counters are not counted here, if they are not.
    pub fn why_no_counters(&self) -> Option<&WhyNot> {
        self.events.as_ref().err()
    }

    /// Measures each schedule `runs` times, one after another in every round. `on_progress` is told which is next.
    ///
    /// # Errors
    /// When the router cannot be put together, or loses packets.
    pub fn run(
        &self,
        parameters: &EngineParameters,
        on_progress: &mut dyn FnMut(ScheduleKind, usize),
    ) -> Result<Vec<ScheduleFigures>, EngineBenchError> {
        let mut measured: Vec<Runs> = parameters.schedules.iter().map(|_| Runs::default()).collect();
        let mut round = 0;
        for run in 0..parameters.runs.max(1) {
            for (&schedule, runs) in parameters.schedules.iter().zip(&mut measured) {
                on_progress(schedule, run);
                let mut pass = |pass| {
                    round += 1;
                    self.run_once(schedule, parameters, pass, round - 1).map(|workers| mean(&workers))
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
        Ok(figures.map(|(&schedule, runs)| summary(schedule, &runs, parameters)).collect())
    }

    /// Lets each worker of each schedule suffer the flood, once in every run. The schedules take turns.
    ///
    /// # Errors
    /// When there is no such flood, the router cannot be put together, or loses ordinary packets.
    pub fn run_flood(
        &self,
        parameters: &EngineParameters,
        flood: &FloodParameters,
    ) -> Result<Vec<(ScheduleKind, FloodFigures)>, EngineBenchError> {
        flood::Flood::new(parameters, flood)?;
        let mut figures = Vec::new();
        for _ in 0..parameters.runs.max(1) {
            for &schedule in &parameters.schedules {
                let measured = self.run_once(schedule, parameters, Pass::Flood(flood), figures.len() as u64)?;
                figures.extend(measured.into_iter().filter_map(|worker| Some((schedule, worker.flood?))));
            }
        }
        Ok(figures)
    }

    /// All workers at once, each with names of its own.
    fn run_once(
        &self,
        schedule: ScheduleKind,
        parameters: &EngineParameters,
        pass: Pass<'_>,
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
                        match schedule {
                            ScheduleKind::Naive => self.pass::<Naive>(parameters, pass, place, start),
                            ScheduleKind::BucketPrefetch => self.pass::<BucketPrefetch>(parameters, pass, place, start),
                            ScheduleKind::PreHash => self.pass::<PreHash>(parameters, pass, place, start),
                            ScheduleKind::Speculative => self.pass::<Speculative>(parameters, pass, place, start),
                            ScheduleKind::Burst => self.pass::<Burst>(parameters, pass, place, start),
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
        pass: Pass<'_>,
        place: (usize, u64),
        start: &Barrier,
    ) -> Result<Measured, EngineBenchError> {
        match pass {
            Pass::Stripped => self.work::<Stripped<S>>(&self.prefixes, parameters, None, place, start),
            Pass::Whole => self.work::<S>(&self.prefixes, parameters, None, place, start),
            Pass::Flood(flood) => self.work::<S>(&self.prefixes, parameters, Some(flood), place, start),
            Pass::Computing => {
                let prefixes = self.few_prefixes.as_ref().unwrap_or(&self.prefixes);
                self.work::<S>(prefixes, &with_small_tables(parameters), None, place, start)
            }
        }
    }

    fn work<S: Schedule>(
        &self,
        prefixes: &Prefixes,
        parameters: &EngineParameters,
        flood: Option<&FloodParameters>,
        (worker, number): (usize, u64),
        start: &Barrier,
    ) -> Result<Measured, EngineBenchError> {
        let rig = rig::Rig::<S>::new(&prefixes.fib, self.key, self.pools[worker].clone(), parameters);
        // Whoever fails must not leave the others waiting.
        start.wait();
        let mut load = load::Load::new(rig?, &prefixes.workload, parameters, number)?;
        load.warm_up()?;
        if let Some(flood) = flood {
            let suffered = load.suffer(flood)?;
            load.finish()?;
            return Ok(Measured { flood: Some(suffered), ..Measured::default() });
        }
        let costs = load.measure(parameters.time)?;
        let counters = self.events.as_ref().ok().and_then(|events| Counters::open(events).ok());
        let counted = counters.map(|counters| load.count(counters)).transpose()?;
        load.finish()?;
        Ok(Measured { costs, counted, flood: None })
    }
}

/// Number of the upstream's face: the second that a new table gives out.
fn upstream() -> FaceId {
    rig::face_numbers().1
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
    fn measure(&mut self, parameters: &EngineParameters) -> Result<Vec<ScheduleFigures>, Box<dyn Error + Send + Sync>> {
        let bench = match self.made.take() {
            Some(bench)
                if *bench.prefixes.workload.parameters() == parameters.workload
                    && bench.pools.len() == parameters.workers =>
            {
                bench
            }
            _ => EngineBench::new(parameters, &mut |_| ())?,
        };
        let figures = bench.run(parameters, &mut |_, _| ());
        self.made = Some(bench);
        Ok(figures?)
    }
}

/// A URI that is written here and known to be one.
fn uri(text: &str) -> Result<FaceUri, EngineBenchError> {
    text.parse().map_err(|error| EngineBenchError::Rig(format!("{text}: {error}")))
}

#[cfg(test)]
mod tests;
