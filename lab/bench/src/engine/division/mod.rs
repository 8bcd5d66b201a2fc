//! Several workers among which names are divided, as in the router: the hand-overs between them, and their cost.
//!
//! Each worker has a thread that also plays the peers. It makes all packets for its worker, takes the packets that the
//! worker sends, and arranges their answers. Only poll iterations of the worker are timed. All requested names are new.
//! Each Interest arrives at the worker that owns its name, or, with probability `misplaced`, at another one; the same
//! holds for Data with its PIT token. Faces are over sockets, so each worker sends by itself. Cases with the same
//! number of workers use the same workers: other tables would have other addresses, which alone can matter more than
//! hand-overs. The baseline is one worker, which does not divide names.
//!
//! A packet that is handed over comes from another CPU's cache, which has a cost even without a hand-over. To separate
//! the two, each case with hand-overs has a counterpart in which the thread of the other worker makes as many packets,
//! but they arrive at the right worker.

mod driver;
mod figures;
mod floor;
#[cfg(test)]
mod tests;
mod turns;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crossbeam_queue::ArrayQueue;
use namehop_engine::dispatch::{DEFAULT_COMPONENTS, NameDispatch};
use namehop_engine::engine::{CsConfig, Engine, EngineConfig};
use namehop_face::registry::{FaceFlags, FaceParams, FaceTable};
use namehop_face::ring::{Frame, FrameRing};
use namehop_face::wake::Waker;
use namehop_hash::DispatchKey;
use namehop_packet::{BufferPool, FaceId};
use namehop_port::faces::PortSet;
use namehop_worker::{Handover, Worker, WorkerRings, pin_to_processor, usable_processors};
use serde::Serialize;
use tokio::sync::mpsc::unbounded_channel;

use driver::{Driver, Pending};
use floor::Floor;
use turns::Turns;

use super::peers::{LINKS, Peers};
use super::prefixes::Prefixes;
use super::{EngineBench, EngineBenchError, uri};
use crate::median::{median, quartiles};
use crate::progress::{OnProgress, Progress};
use crate::schedule::EngineParameters;

/// Capacity of each ring of a worker, in frames.
const RING_FRAMES: usize = 8_192;
/// Distance between the first names of two workers.
const NAMES_PER_WORKER: u64 = 1 << 32;
/// Packet buffers per worker.
const POOL_FRAMES: usize = 4 * RING_FRAMES;
/// Memory of the Content Store per packet of its capacity, besides its content, in bytes.
const CONTENT_OVERHEAD_BYTES: usize = 1_024;

/// Joins a thread, and returns its results.
fn ended<T>(thread: thread::ScopedJoinHandle<'_, T>) -> Result<T, EngineBenchError> {
    thread.join().map_err(|_| EngineBenchError::Rig("a worker's thread panicked".to_owned()))
}

/// State shared by all threads of a case.
struct Shared<'a> {
    prefixes: &'a Prefixes,
    parameters: &'a EngineParameters,
    /// Loads measured with these workers, each with the index of its turns.
    loads: Vec<(usize, Load)>,
    rings: Vec<WorkerRings>,
    faces: [Vec<FaceId>; LINKS],
    dispatch: Arc<NameDispatch>,
    pool: BufferPool,
    /// The latest clock of any worker after its last turn, in nanoseconds.
    clock: AtomicU64,
    /// True for workers that have reached the traffic to be measured.
    warm: Vec<AtomicBool>,
    /// Number of rounds in which packets have arrived, by worker.
    rounds: Vec<AtomicU64>,
    /// Pending Interests to be answered at another worker, by the index of that worker.
    elsewhere: Vec<ArrayQueue<Pending>>,
    /// Frames made by threads of other workers that shall arrive at a worker, by the index of that worker.
    brought: Vec<ArrayQueue<Frame>>,
}

/// Load of the workers of a case in turns of one kind.
#[derive(Debug, Clone, Copy)]
struct Load {
    case: DivisionCase,
    /// If true, misplaced packets arrive at the right worker, but from the same CPU's cache as if they were misplaced.
    is_brought: bool,
}

impl Load {
    /// Returns the load of each case, followed by its counterpart without hand-overs if it has one.
    fn of_cases(cases: &[DivisionCase]) -> Vec<Load> {
        let of = |&case: &DivisionCase| {
            let has_counterpart = case.workers > 1 && case.misplaced > 0.0;
            let counterpart = has_counterpart.then_some(Load { case, is_brought: true });
            [Load { case, is_brought: false }].into_iter().chain(counterpart)
        };
        cases.iter().flat_map(of).collect()
    }
}

/// A number of workers, and the share of misplaced packets.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DivisionCase {
    /// Number of workers.
    pub workers: usize,
    /// Share of packets that arrive at another worker than their owner, 0 to 1.
    pub misplaced: f64,
}

/// Results of a case. All figures except counts are medians over turns; comparisons are over adjacent turns.
#[derive(Debug, Clone, Serialize)]
pub struct DivisionFigures {
    /// The case.
    #[serde(flatten)]
    pub case: DivisionCase,
    /// Time of one worker per packet, in nanoseconds.
    pub packet_ns: f64,
    /// Million packets per second of all workers, from the busy time of each.
    pub mpps: f64,
    /// Ratio of `mpps` to that of the first case.
    pub speedup: f64,
    /// Lower and upper quartile of `speedup`.
    pub speedup_quartiles: (f64, f64),
    /// Extra cost of a packet that is handed over, at both workers together; `None` if none is, or if there is no case
    /// without hand-overs with as many workers.
    pub handover: Option<CostSpread>,
    /// Extra cost of a packet that arrives at the right worker, but from another CPU's cache.
    pub moved: Option<CostSpread>,
    /// Cost of a hand-over in excess of `moved`.
    pub beyond_moved: Option<CostSpread>,
    /// Lower bound of `moved`: as many cache lines move between two CPUs without any processing, in turns adjacent to
    /// this case. `None` if no packet is handed over.
    pub floor: Option<CostSpread>,
    /// Packets handed over, as a share of all packets.
    pub handed_over: f64,
    /// Packets dropped because a ring between workers was full.
    pub lost: u64,
}

/// Nanoseconds, over turns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CostSpread {
    /// The median.
    pub ns: f64,
    /// Lower and upper quartile.
    pub quartiles_ns: (f64, f64),
}

impl CostSpread {
    /// Computes median and quartiles; `None` for no values. Reorders the values.
    fn of(ns: &mut [f64]) -> Option<CostSpread> {
        (!ns.is_empty()).then(|| CostSpread { ns: median(ns), quartiles_ns: quartiles(ns) })
    }
}

impl EngineBench {
    /// Measures all cases; the first one is the baseline. They take turns, so that changes of the host's speed affect
    /// all alike.
    ///
    /// # Errors
    /// Fails if the workers cannot be set up.
    pub fn run_divided(
        &self,
        parameters: &EngineParameters,
        cases: &[DivisionCase],
        on_progress: &OnProgress<'_>,
    ) -> Result<Vec<DivisionFigures>, EngineBenchError> {
        let loads = Load::of_cases(cases);
        // The turns of the floor come last.
        let turns = Arc::new(Turns::new(loads.len() + 1));
        let mut counts: Vec<usize> = cases.iter().map(|case| case.workers).collect();
        counts.sort_unstable();
        counts.dedup();
        let of_count = |&count: &usize| {
            let its = loads.iter().copied().enumerate().filter(|(_, load)| load.case.workers == count);
            self.build(parameters, count, its.collect())
        };
        let built = counts.iter().map(of_count).collect::<Result<Vec<_>, _>>()?;
        let processors = usable_processors().unwrap_or_default();
        let floor_pool = BufferPool::new(POOL_FRAMES, 1);
        let (measured, floor) = thread::scope(|scope| {
            let (mut all, mut all_shared, turns, processors) = (Vec::new(), Vec::new(), &turns, &processors);
            let count = loads.len();
            // Pinning only reduces noise, so its failure is ignored.
            let pin = move |number: usize| processors.get(number).map(|&processor| pin_to_processor(processor));
            for (workers, shared) in built {
                let shared = Arc::new(shared);
                all_shared.push(Arc::clone(&shared));
                let threads = workers.into_iter().enumerate().map(|(number, worker)| {
                    let shared = Arc::clone(&shared);
                    scope.spawn(move || {
                        let _ = pin(number);
                        Driver::new(worker, number, &shared).run(turns)
                    })
                });
                all.extend(threads);
            }
            let floor = Floor::pair(&floor_pool).into_iter().enumerate().map(|(number, floor)| {
                scope.spawn(move || {
                    let _ = pin(number);
                    floor.run(turns, count)
                })
            });
            let floor: Vec<_> = floor.collect();
            let mut rounds = 0;
            let is_warm = turns.give(parameters.time, || {
                on_progress(Progress { what: "warming up".to_owned(), done: rounds, total: 0 });
                rounds += 1;
                all_shared.iter().flat_map(|shared| &shared.warm).all(|worker| worker.load(Ordering::Relaxed))
            });
            if !is_warm {
                let (wanted, refused) = (parameters.in_flight, "Interests in flight were not reached");
                return Err(EngineBenchError::Rig(format!("{wanted} {refused}: reduce --in-flight")));
            }
            let mut measured = vec![Vec::new(); count];
            for thread in all {
                for (load, by_worker) in ended(thread)? {
                    measured[load].push(by_worker);
                }
            }
            Ok((measured, floor.into_iter().map(ended).collect::<Result<Vec<_>, _>>()?))
        })?;
        Ok(figures::of_loads(&loads, &measured, &floor))
    }

    fn build<'a>(
        &'a self,
        parameters: &'a EngineParameters,
        count: usize,
        loads: Vec<(usize, Load)>,
    ) -> Result<(Vec<Worker>, Shared<'a>), EngineBenchError> {
        let error = |error: &dyn std::error::Error| EngineBenchError::Rig(error.to_string());
        let pool = BufferPool::new(POOL_FRAMES * count, 64);
        let dispatch = Arc::new(NameDispatch::new(count, DEFAULT_COMPONENTS, DispatchKey::new(7, 9)));
        let table = Arc::new(FaceTable::new());
        table.set_workers(count);
        let mut faces: [Vec<FaceId>; LINKS] = Default::default();
        // In the order of the FIB's face ids.
        for peer in Peers::of(parameters).all() {
            let params = FaceParams {
                flags: FaceFlags::PIT_TOKENS_ON,
                ..FaceParams::new(uri("udp4://192.0.2.1:6363")?, uri("udp4://192.0.2.2:6363")?)
            };
            faces[peer.link].push(table.insert(params).map_err(|full| error(&full))?.id());
        }
        let wakers: Vec<_> = (0..count).map(|_| Arc::new(Waker::new())).collect();
        let mut handovers = Vec::new();
        if count > 1 {
            handovers = Handover::connect(&dispatch, &wakers);
        }
        let mut handovers = handovers.into_iter();
        let (mut workers, mut rings) = (Vec::new(), Vec::new());
        for (number, waker) in wakers.iter().enumerate() {
            let config = EngineConfig {
                worker: number as u8,
                pit_capacity: (2 * parameters.in_flight / count).max(EngineConfig::default().pit_capacity),
                cs: CsConfig {
                    capacity_packets: parameters.cs_capacity / count,
                    capacity_bytes: parameters.cs_capacity / count
                        * (parameters.payload_bytes + CONTENT_OVERHEAD_BYTES),
                    policy: parameters.cs_policy.into(),
                    ..CsConfig::default()
                },
                dead_nonce_capacity: parameters.dead_nonce_capacity,
                lookahead: parameters.lookahead.unwrap_or(EngineConfig::default().lookahead),
                ..EngineConfig::default()
            };
            let engine = Engine::new(config, self.prefixes.fib.reader(), pool.clone(), self.key);
            let ring = || Arc::new(FrameRing::new(RING_FRAMES, Arc::clone(waker)));
            let of_worker = WorkerRings {
                from_streams: ring(),
                from_datagrams: ring(),
                to_sockets: ring(),
                from_control: ring(),
                to_control: ring(),
                to_control_from_neighbours: ring(),
            };
            let (ports, _) = PortSet::new(
                Arc::clone(&table),
                unbounded_channel().0,
                Arc::clone(waker),
                FaceFlags::default(),
                false,
                Duration::from_secs(600),
            );
            let (worker, _) = Worker::new(
                engine.map_err(|refused| error(&refused))?,
                pool.clone(),
                Arc::clone(&table),
                of_worker.clone(),
                ports,
                handovers.next(),
            );
            workers.push(worker);
            rings.push(of_worker);
        }
        let (prefixes, clock) = (&self.prefixes, AtomicU64::new(0));
        let warm = (0..count).map(|_| AtomicBool::new(false)).collect();
        let elsewhere = (0..count).map(|_| ArrayQueue::new(RING_FRAMES)).collect();
        let brought = (0..count).map(|_| ArrayQueue::new(RING_FRAMES)).collect();
        let rounds = (0..count).map(|_| AtomicU64::new(0)).collect();
        let shared = Shared {
            prefixes,
            parameters,
            loads,
            rings,
            faces,
            dispatch,
            pool,
            clock,
            warm,
            rounds,
            elsewhere,
            brought,
        };
        Ok((workers, shared))
    }
}
