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
//! | `lines` | cache lines of tables that packets need from memory |

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

use crate::counters::{Counters, Events, Tally, WhyNot};
use crate::median::median;
use crate::memory::DramFigures;
use crate::schedule::{
    ByPacket, EngineMeasurements, EngineParameters, FloodFigures, FloodParameters, PacketKind, ScheduleFigures, Spread,
    StrippedFigures,
};
use crate::workload::{Workload, WorkloadError};
use lines::lines;
use load::Costs;

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
    workload: Workload,
    fib: FibWriter<StrategyInstance>,
    /// One for each worker.
    pools: Vec<MbufPool>,
    /// What is counted, or why nothing is.
    events: Result<Events, WhyNot>,
}

/// What is measured of a schedule in one pass.
#[derive(Debug, Clone, Copy)]
enum Pass<'f> {
    /// The whole protocol.
    Whole,
    /// The stripped path.
    Stripped,
    /// The whole protocol in a flood.
    Flood(&'f FloodParameters),
}

/// What one pass, or one worker's part of it, gives.
#[derive(Debug, Default)]
struct Measured {
    costs: Costs,
    counted: Option<ByPacket<Tally>>,
    flood: Option<FloodFigures>,
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
        let workload = Workload::new(parameters.workload)?;
        let pools = rig::pools(parameters.workers)?;
        // The same key in every run: hashes are no part of what varies.
        let key = HashKey::new(0x6e61_6d65_686f_7031, 0x656e_6769_6e65_3032);
        let mut fib = FibWriter::new(key, StrategyInstance::default())?;
        let nexthops = [NextHop { face: upstream(), cost: 1 }];
        let mut value = vec![0; workload.prefix_bytes()];
        for number in 0..parameters.workload.prefixes {
            workload.write_prefix(number, &mut value);
            fib.set_nexthops(NameRef::from_value(&value)?, &nexthops)?;
            if number % PROGRESS_STEP == 0 {
                on_progress(number);
            }
        }
        let events = Events::of_this_processor();
        let events = Counters::open(&events).map(|_| events);
        Ok(EngineBench { key, workload, fib, pools, events })
    }

    /// How large the FIB is.
    pub fn fib_statistics(&self) -> FibStatistics {
        self.fib.statistics()
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
        let mut measured: Vec<[Vec<Measured>; 2]> = parameters.schedules.iter().map(|_| Default::default()).collect();
        let mut round = 0;
        for run in 0..parameters.runs.max(1) {
            for (&schedule, [whole, stripped]) in parameters.schedules.iter().zip(&mut measured) {
                on_progress(schedule, run);
                let mut pass = |pass| {
                    round += 1;
                    self.run_once(schedule, parameters, pass, round - 1).map(|workers| mean(&workers))
                };
                // One right behind the other, so that both have the machine in the same state.
                whole.push(pass(Pass::Whole)?);
                if parameters.stripped {
                    stripped.push(pass(Pass::Stripped)?);
                }
            }
        }
        let figures = parameters.schedules.iter().zip(measured);
        Ok(figures.map(|(&schedule, [whole, stripped])| summary(schedule, &whole, &stripped, parameters)).collect())
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
            Pass::Stripped => self.work::<Stripped<S>>(parameters, None, place, start),
            Pass::Whole => self.work::<S>(parameters, None, place, start),
            Pass::Flood(flood) => self.work::<S>(parameters, Some(flood), place, start),
        }
    }

    fn work<S: Schedule>(
        &self,
        parameters: &EngineParameters,
        flood: Option<&FloodParameters>,
        (worker, number): (usize, u64),
        start: &Barrier,
    ) -> Result<Measured, EngineBenchError> {
        let rig = rig::Rig::<S>::new(&self.fib, self.key, self.pools[worker].clone(), parameters);
        // Whoever fails must not leave the others waiting.
        start.wait();
        let mut load = load::Load::new(rig?, &self.workload, parameters, number)?;
        load.warm_up()?;
        if let Some(flood) = flood {
            let suffered = load.suffer(flood)?;
            load.finish()?;
            return Ok(Measured { flood: Some(suffered), ..Measured::default() });
        }
        let costs = load.measure(parameters.time)?;
        // Of the stripped path only the costs are wanted.
        let events = self.events.as_ref().ok().filter(|_| !S::IS_STRIPPED);
        let counters = events.and_then(|events| Counters::open(events).ok());
        let counted = counters.map(|counters| load.count(counters)).transpose()?;
        load.finish()?;
        Ok(Measured { costs, counted, flood: None })
    }
}

/// Number of the upstream's face: the second that a new table gives out.
fn upstream() -> FaceId {
    rig::face_numbers().1
}

/// The mean of several measurements, of their costs and of everything counted.
fn mean(all: &[Measured]) -> Measured {
    let mut mean = Measured::default();
    for Measured { costs, counted, .. } in all {
        for kind in PacketKind::ALL {
            *mean.costs.get_mut(kind) += costs.get(kind) / all.len() as f64;
            if let Some(counted) = counted {
                mean.counted.get_or_insert_default().get_mut(kind).merge(counted.get(kind));
            }
        }
    }
    mean
}

/// Nanoseconds of an Interest and its Data.
fn pair_ns(run: &Measured) -> f64 {
    let ns_per_cycle = 1e9 / namehop_table::clock::cycles_per_second() as f64;
    (run.costs.interest_miss + run.costs.data) * ns_per_cycle
}

/// What several runs on one path say together.
fn costs_of_runs(runs: &[Measured]) -> StrippedFigures {
    let of = |kind| median(&mut runs.iter().map(|run| *run.costs.get(kind)).collect::<Vec<_>>());
    let mut pairs: Vec<f64> = runs.iter().map(pair_ns).collect();
    StrippedFigures {
        imiss_cycles: of(PacketKind::InterestMiss),
        ihit_cycles: of(PacketKind::InterestHit),
        data_cycles: of(PacketKind::Data),
        pair_ns: median(&mut pairs),
        pair_ns_spread: Spread {
            least: pairs.iter().copied().fold(f64::INFINITY, f64::min),
            most: pairs.iter().copied().fold(0.0, f64::max),
        },
    }
}

/// The figures of a schedule from its runs; `stripped` has none when that was not measured.
fn summary(
    schedule: ScheduleKind,
    whole: &[Measured],
    stripped: &[Measured],
    parameters: &EngineParameters,
) -> ScheduleFigures {
    let costs = costs_of_runs(whole);
    let counted = mean(whole).counted;
    let mut ratios: Vec<f64> =
        whole.iter().zip(stripped).map(|(whole, stripped)| pair_ns(whole) / pair_ns(stripped)).collect();
    ScheduleFigures {
        schedule,
        imiss_cycles: costs.imiss_cycles,
        ihit_cycles: costs.ihit_cycles,
        data_cycles: costs.data_cycles,
        pair_ns: costs.pair_ns,
        pair_ns_spread: costs.pair_ns_spread,
        mpps: 2e3 / costs.pair_ns * parameters.workers as f64,
        lines: lines(parameters),
        counters: counted.map(|counted| counted.map(|tally| tally.figures().unwrap_or_default())),
        stripped: (!stripped.is_empty()).then(|| costs_of_runs(stripped)),
        whole_vs_stripped: (!ratios.is_empty()).then(|| median(&mut ratios)),
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
    fn measure(&mut self, parameters: &EngineParameters) -> Result<Vec<ScheduleFigures>, Box<dyn Error + Send + Sync>> {
        let bench = match self.made.take() {
            Some(bench)
                if *bench.workload.parameters() == parameters.workload && bench.pools.len() == parameters.workers =>
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
