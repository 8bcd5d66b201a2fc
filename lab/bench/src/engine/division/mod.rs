//! Several workers among which names are divided, as in the router: what they hand to each other, and what that costs.
//!
//! Each worker has a thread, which also plays the peers: it makes all packets that come to its worker, takes what that sends, and
//! sees that it is answered. Only turns of the worker are timed. Interests are for names never asked for before; each comes in at
//! the worker that it belongs to, or, as often as `misplaced` says, at another one, and so does the Data with its PIT token. Faces are
//! over sockets, so that each worker sends by itself. Cases with as many workers are measured with the same ones: other tables would
//! lie elsewhere in memory, and that alone can make more of a difference than hand-overs do. The same is measured with one worker, which
//! has nobody to divide names with, for comparison.
//!
//! A packet that is handed over comes out of another processor's cache, which costs something whoever put it there. To tell that from the
//! hand-over, each case with hand-overs has a counterpart in which the thread of the other worker makes as many packets, and they come in
//! at the right worker.

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
use namehop_daemon::worker::{Handover, Worker, WorkerRings, pin_to_processor, usable_processors};
use namehop_engine::dispatch::{DEFAULT_COMPONENTS, NameDispatch};
use namehop_engine::engine::{CsConfig, Engine, EngineConfig};
use namehop_engine::schedule::Burst;
use namehop_face::port::PortSet;
use namehop_face::registry::{FaceFlags, FaceParams, FaceTable};
use namehop_face::ring::{Frame, FrameRing};
use namehop_face::wake::Waker;
use namehop_hash::DispatchKey;
use namehop_packet::{BufferPool, FaceId};
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

/// Frames that fit into each ring of a worker.
const RING_FRAMES: usize = 8_192;
/// Names of each worker are this far from those of the others.
const NAMES_PER_WORKER: u64 = 1 << 32;
/// Buffers for each worker.
const POOL_FRAMES: usize = 4 * RING_FRAMES;
/// Memory of the Content Store for each packet it may hold, above its content.
const CONTENT_OVERHEAD_BYTES: usize = 1_024;

/// What a thread has measured, when it has ended.
fn ended<T>(thread: thread::ScopedJoinHandle<'_, T>) -> Result<T, EngineBenchError> {
    thread.join().map_err(|_| EngineBenchError::Rig("a worker's thread ended by itself".to_owned()))
}

/// What all threads of a case share.
struct Shared<'a> {
    prefixes: &'a Prefixes,
    parameters: &'a EngineParameters,
    /// What is measured with these workers, with the numbers of its turns.
    loads: Vec<(usize, Load)>,
    rings: Vec<WorkerRings>,
    faces: [Vec<FaceId>; LINKS],
    dispatch: Arc<NameDispatch>,
    pool: BufferPool,
    /// How far the clock of any worker was after the last turn, in nanoseconds.
    clock: AtomicU64,
    /// Which workers have the traffic that they are to be measured with.
    warm: Vec<AtomicBool>,
    /// How often packets have come in at each worker.
    rounds: Vec<AtomicU64>,
    /// What workers have sent that is to be answered at another one, by the number of that.
    elsewhere: Vec<ArrayQueue<Pending>>,
    /// Frames that threads of other workers have made and that are to come in at this one, by its number.
    brought: Vec<ArrayQueue<Frame>>,
}

/// What comes to the workers of a case in turns of one kind.
#[derive(Debug, Clone, Copy)]
struct Load {
    case: DivisionCase,
    /// Packets that would be misplaced come in at the right worker, and out of the same processor's cache as if they were.
    is_brought: bool,
}

impl Load {
    /// Of each case, and of its counterpart without hand-overs if it has any.
    fn of_cases(cases: &[DivisionCase]) -> Vec<Load> {
        let of = |&case: &DivisionCase| {
            let has_counterpart = case.workers > 1 && case.misplaced > 0.0;
            let counterpart = has_counterpart.then_some(Load { case, is_brought: true });
            [Load { case, is_brought: false }].into_iter().chain(counterpart)
        };
        cases.iter().flat_map(of).collect()
    }
}

/// So many workers, of whose packets this share comes in at the wrong one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DivisionCase {
    /// Workers.
    pub workers: usize,
    /// Share of packets that come in at another worker than the one they belong to.
    pub misplaced: f64,
}

/// What workers do together. All figures but counts are medians of turns; those that compare are of turns next to each other.
#[derive(Debug, Clone, Serialize)]
pub struct DivisionFigures {
    /// How many workers, and how many packets came in at the wrong one.
    #[serde(flatten)]
    pub case: DivisionCase,
    /// Time of one worker for one packet, in nanoseconds.
    pub packet_ns: f64,
    /// Millions of packets a second of all workers together, by the time that each was busy.
    pub mpps: f64,
    /// Packets a second of all workers by those of the first case.
    pub speedup: f64,
    /// The quarter of turns with the least speed-up is below the first, the quarter with the most above the second.
    pub speedup_quartiles: (f64, f64),
    /// What a packet that is handed over costs more than one that is not, at both workers together; absent where none is, and when no
    /// case with as many workers hands nothing over.
    pub handover: Option<CostSpread>,
    /// What a packet costs more that comes in at the right worker but out of another processor's cache.
    pub moved: Option<CostSpread>,
    /// What a hand-over costs beyond that.
    pub beyond_moved: Option<CostSpread>,
    /// The least that moving can cost: as many cache lines go from one processor to the other, and nothing is done with them, in turns
    /// next to those of this case. Absent where no packet is handed over.
    pub floor: Option<CostSpread>,
    /// Packets that were handed over, by all packets.
    pub handed_over: f64,
    /// Packets that found no room in a ring between workers.
    pub lost: u64,
}

/// Nanoseconds by turns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CostSpread {
    /// The median.
    pub ns: f64,
    /// A quarter of the turns had less than the first, and a quarter more than the second.
    pub quartiles_ns: (f64, f64),
}

impl CostSpread {
    /// Of these; `None` of none. Changes their order.
    fn of(ns: &mut [f64]) -> Option<CostSpread> {
        (!ns.is_empty()).then(|| CostSpread { ns: median(ns), quartiles_ns: quartiles(ns) })
    }
}

impl EngineBench {
    /// Measures all cases, the first of which is the one that others are compared with: they take turns, so that all have their
    /// part of the times at which the machine is faster or slower.
    ///
    /// # Errors
    /// When the workers cannot be put together.
    pub fn run_divided(
        &self,
        parameters: &EngineParameters,
        cases: &[DivisionCase],
        on_progress: &OnProgress<'_>,
    ) -> Result<Vec<DivisionFigures>, EngineBenchError> {
        let loads = Load::of_cases(cases);
        // The floor has its turns behind them.
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
            // A thread that stays where the system puts it measures the same, only less steadily.
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
                let (wanted, refused) = (parameters.in_flight, "Interests at a time did not come to be pending");
                return Err(EngineBenchError::Rig(format!("{wanted} {refused}: try fewer with --in-flight")));
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
    ) -> Result<(Vec<Worker<Burst>>, Shared<'a>), EngineBenchError> {
        let error = |error: &dyn std::error::Error| EngineBenchError::Rig(error.to_string());
        let pool = BufferPool::new(POOL_FRAMES * count, 64);
        let dispatch = Arc::new(NameDispatch::new(count, DEFAULT_COMPONENTS, DispatchKey::new(7, 9)));
        let table = Arc::new(FaceTable::new());
        table.set_workers(count);
        let mut faces: [Vec<FaceId>; LINKS] = Default::default();
        // In the order in which the FIB counts them.
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
            let engine = Engine::<Burst>::new(config, self.prefixes.fib.reader(), pool.clone(), self.key);
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
                Arc::clone(waker),
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
