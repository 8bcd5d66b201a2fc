//! Several workers among which names are divided, as in the router: what they hand to each other, and what that costs.
//!
//! Each worker has a thread, which also plays the peers: it gives packets to the workers' rings, takes what its own worker sends,
//! and answers it. Only turns of the worker are timed. Interests are for names never asked for before; each comes in at the
//! worker that it belongs to, or, as often as `misplaced` says, at another one, and so does the Data with its PIT token. Faces are
//! over sockets, so that each worker sends by itself. The same is measured with one worker, which has nobody to divide names
//! with, for comparison.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use namehop_face::port::PortSet;
use namehop_face::registry::{FaceFlags, FaceParams, FaceTable};
use namehop_face::ring::{Frame, FrameRing};
use namehop_face::wake::Waker;
use namehop_forward::dispatch::{DEFAULT_COMPONENTS, NameDispatch};
use namehop_forward::engine::{CsConfig, Engine, EngineConfig};
use namehop_forward::schedule::Burst;
use namehop_hash::DispatchKey;
use namehop_packet::{BufferPool, FaceId, Timestamp};
use namehop_router::worker::{Handover, Worker, WorkerRings, pin_to_processor, usable_processors};
use namehop_table::clock::{cycles, cycles_per_second};
use namehop_wire::lp::{LpHeader, PitToken, UsualFrame, encode_packet};
use namehop_wire::peek::name_value;
use namehop_wire::security::NullSigner;
use namehop_wire::{DataBuilder, InterestBuilder, NameRef};
use serde::Serialize;
use tokio::sync::mpsc::unbounded_channel;

use super::peers::{LINKS, Peers};
use super::prefixes::Prefixes;
use super::{EngineBench, EngineBenchError, uri};
use crate::permutation::mix;
use crate::schedule::EngineParameters;

/// Frames that fit into each ring of a worker.
const RING_FRAMES: usize = 8_192;
/// Names of each worker are this far from those of the others.
const NAMES_PER_WORKER: u64 = 1 << 32;
/// Buffers for each worker.
const POOL_FRAMES: usize = 4 * RING_FRAMES;
/// Memory of the Content Store for each packet it may hold, above its content.
const CONTENT_OVERHEAD_BYTES: usize = 1_024;

/// What so many workers do together.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct DivisionFigures {
    /// Workers.
    pub workers: usize,
    /// Share of packets that came in at another worker than the one they belong to.
    pub misplaced: f64,
    /// Time of one worker for one packet, in nanoseconds.
    pub packet_ns: f64,
    /// Millions of packets a second of all workers together, by the time that each was busy.
    pub mpps: f64,
    /// Packets that were handed over, by all packets.
    pub handed_over: f64,
    /// Packets that found no room in a ring between workers.
    pub lost: u64,
}

/// What the threads do.
const WARMING_UP: u8 = 0;
const MEASURING: u8 = 1;
const OVER: u8 = 2;

/// What all threads share.
struct Shared<'a> {
    prefixes: &'a Prefixes,
    parameters: &'a EngineParameters,
    misplaced: f64,
    rings: Vec<WorkerRings>,
    faces: [Vec<FaceId>; LINKS],
    dispatch: Arc<NameDispatch>,
    pool: BufferPool,
    phase: AtomicU8,
    started: Instant,
}

/// What one thread has measured.
struct Measured {
    packets: u64,
    ticks: u64,
    handed_over: u64,
    lost: u64,
}

impl EngineBench {
    /// Measures so many workers, of whose packets this share comes in at the wrong one.
    ///
    /// # Errors
    /// When the workers cannot be put together.
    pub fn run_divided(
        &self,
        parameters: &EngineParameters,
        workers: usize,
        misplaced: f64,
    ) -> Result<DivisionFigures, EngineBenchError> {
        let (built, shared) = self.build(parameters, workers, misplaced)?;
        let processors = usable_processors().unwrap_or_default();
        let measured: Vec<Measured> = thread::scope(|scope| {
            let start = |(number, worker): (usize, Worker<Burst>)| {
                let (shared, processor) = (&shared, processors.get(number).copied());
                scope.spawn(move || {
                    // A thread that stays where the system puts it measures the same, only less steadily.
                    let _ = processor.map(pin_to_processor);
                    Driver::new(worker, number, shared).run()
                })
            };
            let threads: Vec<_> = built.into_iter().enumerate().map(start).collect();
            for phase in [MEASURING, OVER] {
                thread::sleep(parameters.time);
                shared.phase.store(phase, Ordering::Relaxed);
            }
            let ended = |thread: thread::ScopedJoinHandle<'_, Measured>| {
                thread.join().map_err(|_| EngineBenchError::Rig("a worker's thread ended by itself".to_owned()))
            };
            threads.into_iter().map(ended).collect::<Result<_, _>>()
        })?;
        let second = cycles_per_second() as f64;
        let sum = |part: fn(&Measured) -> u64| measured.iter().map(part).sum::<u64>();
        let packets = sum(|worker| worker.packets).max(1) as f64;
        let rate = |worker: &Measured| worker.packets as f64 / (worker.ticks.max(1) as f64 / second);
        Ok(DivisionFigures {
            workers,
            misplaced,
            packet_ns: sum(|worker| worker.ticks) as f64 / packets * 1e9 / second,
            mpps: measured.iter().map(rate).sum::<f64>() / 1e6,
            handed_over: sum(|worker| worker.handed_over) as f64 / packets,
            lost: sum(|worker| worker.lost),
        })
    }

    fn build<'a>(
        &'a self,
        parameters: &'a EngineParameters,
        count: usize,
        misplaced: f64,
    ) -> Result<(Vec<Worker<Burst>>, Shared<'a>), EngineBenchError> {
        let error = |error: &dyn std::error::Error| EngineBenchError::Rig(error.to_string());
        let pool = BufferPool::new(POOL_FRAMES * count, 64);
        let dispatch = Arc::new(NameDispatch::new(count, DEFAULT_COMPONENTS, DispatchKey::new(7, 9)));
        let table = Arc::new(FaceTable::new());
        table.set_workers(count);
        let mut faces: [Vec<FaceId>; LINKS] = Default::default();
        // In the order in which the FIB counts them.
        for peer in Peers::of(parameters).all() {
            let params = FaceParams::new(uri("udp4://192.0.2.1:6363")?, uri("udp4://192.0.2.2:6363")?);
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
                    policy: parameters.cs_policy,
                    ..CsConfig::default()
                },
                dead_nonce_capacity: parameters.dead_nonce_capacity,
                lookahead: parameters.lookahead.unwrap_or(EngineConfig::default().lookahead),
                ..EngineConfig::default()
            };
            let engine = Engine::<Burst>::new(config, self.prefixes.fib.reader(), pool.clone(), self.key);
            let ring = || Arc::new(FrameRing::new(RING_FRAMES, Arc::clone(waker)));
            let of_worker = WorkerRings {
                from_sockets: ring(),
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
        let (prefixes, started) = (&self.prefixes, Instant::now());
        let phase = AtomicU8::new(WARMING_UP);
        let shared = Shared { prefixes, parameters, misplaced, rings, faces, dispatch, pool, phase, started };
        Ok((workers, shared))
    }
}

/// One thread: a worker, and the peers that send to all workers and get what this one sends.
struct Driver<'a> {
    worker: Worker<Burst>,
    number: usize,
    shared: &'a Shared<'a>,
    next_name: u64,
    draws: u64,
    /// Interests that this worker has sent: their names and tokens, and where they went.
    pending: VecDeque<(Vec<u8>, PitToken, FaceId)>,
    sent: Vec<Frame>,
    content: Vec<u8>,
}

impl<'a> Driver<'a> {
    fn new(worker: Worker<Burst>, number: usize, shared: &'a Shared<'a>) -> Self {
        let content = vec![0; shared.parameters.payload_bytes];
        let next_name = number as u64 * NAMES_PER_WORKER;
        let (pending, sent) = (VecDeque::new(), Vec::new());
        Driver { worker, number, shared, next_name, draws: number as u64, pending, sent, content }
    }

    fn now(&self) -> Timestamp {
        Timestamp(self.shared.started.elapsed().as_nanos() as u64)
    }

    fn draw(&mut self, end: usize) -> usize {
        self.draws += self.shared.rings.len() as u64;
        ((u128::from(mix(self.draws)) * end as u128) >> 64) as usize
    }

    fn run(mut self) -> Measured {
        let (mut ticks, mut before) = (0, None);
        loop {
            match self.shared.phase.load(Ordering::Relaxed) {
                WARMING_UP => {}
                MEASURING if before.is_none() => {
                    ticks = 0;
                    before = Some(self.worker.status(self.now()));
                }
                MEASURING => {}
                _ => break,
            }
            for _ in 0..self.shared.parameters.burst / 2 {
                self.ask();
                if self.pending.len() > self.shared.parameters.in_flight / self.shared.rings.len() {
                    self.answer();
                }
            }
            // All that came in, so that what is prepared does not pile up.
            loop {
                let now = self.now();
                let begin = cycles();
                let worked = self.worker.turn(now);
                let spent = cycles().wrapping_sub(begin);
                if !worked {
                    break;
                }
                ticks += spent;
            }
            self.take_sent();
        }
        let (before, after) = (before.unwrap_or_default(), self.worker.status(self.now()));
        let (handover, handover_before) = (after.handover, before.handover);
        Measured {
            packets: after.packets - before.packets,
            ticks,
            handed_over: handover.handed_in - handover_before.handed_in,
            lost: handover.lost() - handover_before.lost(),
        }
    }

    /// Gives a frame to the worker that it belongs to, or to another one.
    fn give(&mut self, owner: usize, face: FaceId, frame: &[u8]) {
        let count = self.shared.rings.len();
        let is_misplaced = count > 1 && (self.draw(1 << 20) as f64) < self.shared.misplaced * f64::from(1 << 20);
        let target = if is_misplaced { (owner + 1 + self.draw(count - 1)) % count } else { owner };
        // A full ring holds back whoever fills it; so does an empty pool.
        if let Some(buffer) = self.shared.pool.copy_of(frame) {
            let _ = self.shared.rings[target].from_sockets.push(Frame { face, endpoint: 0, buffer });
        }
    }

    fn ask(&mut self) {
        let name = self.next_name;
        self.next_name += 1;
        let workload = &self.shared.prefixes.workload;
        let mut value = vec![0; workload.name_bytes()];
        workload.write_name(name, &mut value);
        let Ok(name_ref) = NameRef::from_value(&value) else { return };
        let Ok(packet) = InterestBuilder::new(name_ref.to_owned()).nonce(mix(name) as u32 | 1).build() else { return };
        let owner = self.shared.dispatch.entry_of(&value).map_or(0, |(_, owner)| usize::from(owner));
        let peer = self.shared.prefixes.peers.downstream(workload.prefix_of(name), name);
        self.give(owner, self.shared.faces[peer.link][peer.number], &packet);
    }

    /// What the worker has sent: Interests are answered later.
    fn take_sent(&mut self) {
        let mut sent = std::mem::take(&mut self.sent);
        self.shared.rings[self.number].to_sockets.pop_burst(&mut sent, usize::MAX);
        for frame in sent.drain(..) {
            let bytes = frame.buffer.bytes();
            let Some(usual) = UsualFrame::decode(bytes).filter(|usual| !usual.is_data) else { continue };
            if let Some(name) = name_value(&bytes[usual.header_len..]) {
                self.pending.push_back((name.to_vec(), usual.pit_token, frame.face));
            }
        }
        self.sent = sent;
    }

    fn answer(&mut self) {
        let place = self.draw(self.pending.len());
        let Some((value, pit_token, face)) = self.pending.swap_remove_back(place) else { return };
        let Ok(name) = NameRef::from_value(&value) else { return };
        let data = DataBuilder::new(name.to_owned()).content(self.content.clone()).sign(&NullSigner);
        let Ok(data) = data else { return };
        let frame = encode_packet(&LpHeader { pit_token, ..LpHeader::default() }, Some(&data));
        self.give(self.number, face, &frame);
    }
}
