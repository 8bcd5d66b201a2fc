//! The cost of packets in the forwarding engine, schedule by schedule, on the same packets.
//!
//! What is measured is a whole worker of the router: frames of an Ethernet port in memory, as mbufs, through link service,
//! engine and link service to another such port, with the whole protocol on. Each turn of the worker handles a burst of
//! one kind of packet, so that the kinds are told apart by reading the time-stamp counter around turns. Figures are
//! medians over bursts: what else runs on the machine disturbs single bursts, seldom half of them.
//!
//! | file | what |
//! |---|---|
//! | `frames` | the packets |
//! | `rig` | a worker between two ports, and the far ends of those |
//! | `load` | which packets when, and what a turn cost |

mod frames;
mod load;
mod rig;

use std::error::Error;
use std::sync::Barrier;
use std::thread;

use namehop_dpdk::MbufPool;
use namehop_face::FaceUri;
use namehop_forward::face::FaceId;
use namehop_forward::fib::{FibError, FibStatistics, FibWriter, NextHop};
use namehop_forward::schedule::{BucketPrefetch, Burst, Naive, PreHash, Schedule, ScheduleKind, Speculative};
use namehop_forward::strategy::StrategyInstance;
use namehop_hash::HashKey;
use namehop_wire::{DecodeError, NameRef};

use crate::median::median;
use crate::memory::DramFigures;
use crate::schedule::{ByPacket, EngineMeasurements, EngineParameters, ScheduleFigures, Spread};
use namehop_router::worker::{pin_to_processor, usable_processors};
use crate::workload::{Workload, WorkloadError};
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
        Ok(EngineBench { key, workload, fib, pools })
    }

    /// How large the FIB is.
    pub fn fib_statistics(&self) -> FibStatistics {
        self.fib.statistics()
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
        let mut costs: Vec<Vec<Costs>> = parameters.schedules.iter().map(|_| Vec::new()).collect();
        let mut round = 0;
        for run in 0..parameters.runs.max(1) {
            for (&schedule, costs) in parameters.schedules.iter().zip(&mut costs) {
                on_progress(schedule, run);
                costs.push(self.run_once(schedule, parameters, round)?);
                round += 1;
            }
        }
        let figures = parameters.schedules.iter().zip(costs);
        Ok(figures.map(|(&schedule, costs)| summary(schedule, &costs, parameters)).collect())
    }

    /// All workers at once, each with names of its own; the mean of their costs.
    fn run_once(
        &self,
        schedule: ScheduleKind,
        parameters: &EngineParameters,
        round: u64,
    ) -> Result<Costs, EngineBenchError> {
        let start = Barrier::new(self.pools.len());
        let processors = usable_processors().unwrap_or_default();
        let results: Vec<Result<Costs, EngineBenchError>> = thread::scope(|scope| {
            let threads: Vec<_> = (0..self.pools.len())
                .map(|worker| {
                    let (start, processor) = (&start, processors.get(worker).copied());
                    scope.spawn(move || {
                        // A thread that stays where the system puts it measures the same, only less steadily.
                        let _ = processor.map(pin_to_processor);
                        let place = (worker, round * self.pools.len() as u64 + worker as u64);
                        match schedule {
                            ScheduleKind::Naive => self.work::<Naive>(parameters, place, start),
                            ScheduleKind::BucketPrefetch => self.work::<BucketPrefetch>(parameters, place, start),
                            ScheduleKind::PreHash => self.work::<PreHash>(parameters, place, start),
                            ScheduleKind::Speculative => self.work::<Speculative>(parameters, place, start),
                            ScheduleKind::Burst => self.work::<Burst>(parameters, place, start),
                        }
                    })
                })
                .collect();
            let panicked = || EngineBenchError::Rig("a worker's thread ended by itself".to_owned());
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(panicked()))).collect()
        });
        let costs = results.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(Costs::mean(&costs))
    }

    fn work<S: Schedule>(
        &self,
        parameters: &EngineParameters,
        (worker, number): (usize, u64),
        start: &Barrier,
    ) -> Result<Costs, EngineBenchError> {
        let rig = rig::Rig::<S>::new(&self.fib, self.key, self.pools[worker].clone(), parameters);
        // Whoever fails must not leave the others waiting.
        start.wait();
        load::Load::new(rig?, &self.workload, parameters, number)?.run()
    }
}

/// Number of the upstream's face: the second that a new table gives out.
fn upstream() -> FaceId {
    rig::face_numbers().1
}

fn summary(schedule: ScheduleKind, costs: &[Costs], parameters: &EngineParameters) -> ScheduleFigures {
    let of = |figure: fn(&Costs) -> f64| median(&mut costs.iter().map(figure).collect::<Vec<_>>());
    let ns_per_cycle = 1e9 / namehop_table::clock::cycles_per_second() as f64;
    let pair = |costs: &Costs| (costs.interest_miss + costs.data) * ns_per_cycle;
    let pairs: Vec<f64> = costs.iter().map(pair).collect();
    let pair_ns = median(&mut pairs.clone());
    let spread = Spread {
        least: pairs.iter().copied().fold(f64::INFINITY, f64::min),
        most: pairs.iter().copied().fold(0.0, f64::max),
    };
    ScheduleFigures {
        schedule,
        imiss_cycles: of(|costs| costs.interest_miss),
        ihit_cycles: of(|costs| costs.interest_hit),
        data_cycles: of(|costs| costs.data),
        pair_ns,
        pair_ns_spread: spread,
        mpps: 2e3 / pair_ns * parameters.workers as f64,
        lines: lines(parameters),
        counters: None,
    }
}

/// Cache lines of tables that packets touch which memory must deliver, each counted once per packet: what the layout of the
/// tables says (the crate `table` checks its part by test).
///
/// An Interest that misses: one line of the dead nonce list, one FIB bucket for each length of prefixes, the first line of
/// the FIB entry (two when prefix and face need more than that), one PIT-CS bucket, four lines of the new entry.
/// Data: the four lines of its entry if they have left the cache since; with a full cache also the victim's bucket, its
/// place in the order of eviction, and the lines that the packet is copied to.
pub fn lines(parameters: &EngineParameters) -> ByPacket<f64> {
    const ENTRY_LINES: f64 = 4.0;
    let prefix_bytes = parameters.workload.prefix_components * (2 + parameters.workload.component_bytes);
    let fib_entry = if prefix_bytes <= 44 { 1.0 } else { 2.0 };
    let data_bytes = frames::data_bytes(parameters);
    let stored = (data_bytes + 32).div_ceil(64) as f64;
    let caches = parameters.cs_capacity > 0;
    // Entries are used again in the order in which they were freed, so without a cache the same few serve all packets in
    // flight.
    let entries_in_cache = !caches && parameters.in_flight * 256 <= parameters.private_cache_bytes;
    let entry = if entries_in_cache { 0.0 } else { ENTRY_LINES };
    ByPacket {
        interest_miss: 1.0 + 1.0 + fib_entry + 1.0 + entry,
        interest_hit: 1.0 + 1.0 + ENTRY_LINES / 2.0 + stored,
        data: if parameters.in_flight * 256 <= parameters.private_cache_bytes { 0.0 } else { ENTRY_LINES }
            + if caches { 2.0 + stored } else { 1.0 },
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
