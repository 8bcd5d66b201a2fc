//! The forwarding worker: moves packets between the rings, the ports and the engine.
//!
//! In one poll iteration a worker takes a burst of frames from its rings and ports and runs them through the link
//! services and the engine. It enqueues the resulting frames to the rings of the links, or sends them on its ports.
//! [`serve`] decides when a worker iterates and when it sleeps. It runs a single worker as a task (see `task`), and on
//! its own thread once there is a port (see `polling`). A single worker that never sleeps, and each of several workers,
//! has its own thread from the start. Several workers transfer packets to each other (see `handover`).
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use namehop_engine::engine::{Engine, EngineConfig};
//! use namehop_engine::fib::FibWriter;
//! use namehop_engine::strategy::StrategyInstance;
//! use namehop_face::port::PortSet;
//! use namehop_face::registry::{FaceFlags, FaceTable};
//! use namehop_face::ring::FrameRing;
//! use namehop_face::wake::Waker;
//! use namehop_hash::HashKey;
//! use namehop_packet::{BufferPool, Timestamp};
//! use namehop_worker::{Worker, WorkerRings};
//!
//! let (key, pool) = (HashKey::new(1, 2), BufferPool::new(64, 8));
//! let fib = FibWriter::new(key, StrategyInstance::default())?;
//! let engine = Engine::new(EngineConfig::default(), fib.reader(), pool.clone(), key)?;
//! let (table, waker) = (Arc::new(FaceTable::new()), Arc::new(Waker::new()));
//! let ring = || Arc::new(FrameRing::new(64, Arc::clone(&waker)));
//! let rings = WorkerRings {
//!     from_streams: ring(),
//!     from_datagrams: ring(),
//!     to_sockets: ring(),
//!     from_control: ring(),
//!     to_control: ring(),
//!     to_control_from_neighbours: ring(),
//! };
//! let (events, _) = tokio::sync::mpsc::unbounded_channel();
//! let idle_timeout = Duration::from_secs(600);
//! let (ports, _) =
//!     PortSet::new(Arc::clone(&table), events, Arc::clone(&waker), FaceFlags::default(), false, idle_timeout);
//! let (mut worker, _handle) = Worker::new(engine, pool, table, rings, ports, waker, None);
//! assert!(!worker.turn(Timestamp(1)), "no packet, no command");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod command;
mod exchange;
mod execute;
mod faces;
mod fault;
mod handles;
mod handover;
mod idle;
#[cfg(test)]
mod interest_way;
mod latency;
mod polling;
mod processors;
mod sending;
mod task;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use namehop_engine::engine::Engine;
use namehop_engine::second_tier::SecondTier;
use namehop_face::capture::{CaptureRecorder, Direction};
use namehop_face::counters::LinkDrop;
use namehop_face::latency::LatencyRecorder;
use namehop_face::link_service::{DroppedInterest, Reassembler};
use namehop_face::port::PortSet;
use namehop_face::registry::{Face, FaceTable};
use namehop_face::ring::{Frame, FrameRing};
use namehop_face::wait_watch::WaitWatch;
use namehop_face::wake::Waker;
use namehop_packet::{BufferPool, FaceId, Incoming, IncomingBurst, Outgoing, PacketBuffer, Timestamp};

use command::{Mailbox, Settled, WorkerMailbox};
use execute::Erasing;
use faces::{FaceRecords, LinkTimers, Output, WorkerFaces};
use handover::Received;
use latency::FrameStamps;

pub use command::{WorkerGone, WorkerHandle};
pub use fault::fault_point;
pub use handles::{WorkerHandles, share};
pub use handover::Handover;
pub use idle::Idling;
pub use polling::serve;
pub use processors::{pin_to_processor, usable_processors};

/// Most frames that one poll iteration takes from a ring.
pub const BURST: usize = 64;

/// The rings between a worker and the other threads.
#[derive(Clone)]
pub struct WorkerRings {
    /// From sockets that carry streams.
    pub from_streams: Arc<FrameRing>,
    /// From sockets that carry datagrams.
    pub from_datagrams: Arc<FrameRing>,
    /// To the sockets.
    pub to_sockets: Arc<FrameRing>,
    /// From the control thread.
    pub from_control: Arc<FrameRing>,
    /// To the control thread, from applications on this host.
    pub to_control: Arc<FrameRing>,
    /// To the control thread, from other hosts. A separate ring, so that packets of other hosts cannot take the room of
    /// commands from this host. The face of a frame is the one on which the packet arrived.
    pub to_control_from_neighbours: Arc<FrameRing>,
}

impl WorkerRings {
    /// Returns the waker of the worker, which the rings to it share.
    pub fn waker(&self) -> Arc<Waker> {
        Arc::clone(self.from_control.waker())
    }
}

/// One forwarding worker.
pub struct Worker {
    engine: Engine,
    pool: BufferPool,
    /// All faces, shared with other threads.
    table: Arc<FaceTable>,
    /// This worker's records of the same faces.
    records: FaceRecords,
    timers: LinkTimers,
    reassembler: Reassembler,
    rings: WorkerRings,
    ports: PortSet,
    /// Time until the next attempt to send, when frames were left over at the last flush of the ports.
    port_retry: Option<Duration>,
    mailbox: WorkerMailbox,
    waker: Arc<Waker>,
    number: usize,
    /// The rings to and from the other workers; `None` for a single worker.
    handover: Option<Handover>,
    handed: Received,
    started: Instant,
    is_stopping: bool,
    /// Total time of poll iterations that found work.
    busy: Duration,
    /// Number of the CPU that the thread is pinned to.
    processor: Option<usize>,
    erasing: VecDeque<Erasing>,
    /// Replies owed to senders of `CsConfigure`, sent when the change is complete.
    settling: Vec<oneshot::Sender<Settled>>,
    /// Measures how long packets stay in the router; `None` when not measuring.
    latency: Option<Box<LatencyRecorder>>,
    /// Copies frames; `None` when not capturing.
    capture: Option<Box<CaptureRecorder>>,
    // Scratch of one poll iteration, kept so that nothing is allocated per iteration.
    frames: Vec<Frame>,
    incoming: IncomingBurst,
    outgoing: Vec<Outgoing>,
    encoded: Vec<PacketBuffer>,
    dropped_interests: Vec<DroppedInterest>,
    stamps: FrameStamps,
    /// How long frames wait in the two rings from the sockets.
    watches: [WaitWatch; 2],
    /// Indices in `frames` of the frames to mark as congested, because the frames behind them have waited too long.
    congested: Vec<usize>,
    /// Number of packets marked as congested in this way.
    congestion_marks: u64,
}

impl Worker {
    /// Creates a worker around `engine`, with the faces that exist; faces on ports are added with their ports. `waker`
    /// must be the waker of the worker's incoming rings. `handover` is `None` for a single worker.
    pub fn new(
        mut engine: Engine,
        pool: BufferPool,
        table: Arc<FaceTable>,
        rings: WorkerRings,
        mut ports: PortSet,
        waker: Arc<Waker>,
        handover: Option<Handover>,
    ) -> (Self, WorkerHandle) {
        let mailbox = Arc::new(Mailbox::default());
        let handle = WorkerHandle::new(Arc::clone(&mailbox), Arc::clone(&waker));
        let number = handover.as_ref().map_or(0, Handover::worker);
        let started = handover.as_ref().map_or_else(Instant::now, |handover| handover.started);
        if let Some(handover) = &handover {
            engine.share_dispatch(Arc::clone(handover.dispatch()));
            ports.set_worker(number);
        }
        let mut worker = Worker {
            engine,
            pool,
            reassembler: Reassembler::new(number, table.reassembly_limit() / table.workers()),
            table,
            records: FaceRecords::default(),
            timers: LinkTimers::new(),
            rings,
            ports,
            port_retry: None,
            mailbox: WorkerMailbox(mailbox),
            waker,
            number,
            handover,
            handed: Received::default(),
            started,
            is_stopping: false,
            busy: Duration::ZERO,
            processor: None,
            erasing: VecDeque::new(),
            settling: Vec::new(),
            latency: None,
            capture: None,
            frames: Vec::with_capacity(2 * BURST),
            incoming: IncomingBurst::with_capacity(2 * BURST),
            outgoing: Vec::with_capacity(4 * BURST),
            encoded: Vec::with_capacity(BURST),
            dropped_interests: Vec::new(),
            stamps: FrameStamps::default(),
            watches: Default::default(),
            congested: Vec::new(),
            congestion_marks: 0,
        };
        for face in worker.table.snapshot() {
            worker.add_face(&face);
        }
        (worker, handle)
    }

    /// Returns when the worker's clock started.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// Gives the Content Store a second tier. Must be called before the first poll iteration.
    pub fn use_second_tier(&mut self, tier: Box<dyn SecondTier>) {
        self.engine.use_second_tier(tier);
    }

    /// Returns the engine, for measurements.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Returns the time on the worker's clock.
    fn now(&self) -> Timestamp {
        Timestamp(u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Returns whether a poll iteration would find packets, commands, disk completions or unfinished work.
    fn has_work(&self) -> bool {
        !self.rings.from_streams.is_empty()
            || !self.rings.from_datagrams.is_empty()
            || !self.rings.from_control.is_empty()
            || !self.mailbox.commands.is_empty()
            || !self.erasing.is_empty()
            || self.engine.has_tier_completions()
            || !self.settling.is_empty()
            || self.ports.has_work()
            || self.handover.as_ref().is_some_and(Handover::has_work)
    }

    /// Returns whether the ring to the sockets or to the control thread is more than half full, so that another poll
    /// iteration might overfill it.
    fn is_output_behind(&self) -> bool {
        [&self.rings.to_sockets, &self.rings.to_control].into_iter().any(|ring| ring.len() > ring.capacity() / 2)
    }

    /// Returns when a poll iteration is due even without work; [`Timestamp::NEVER`] when no timer runs.
    fn next_deadline(&self) -> Timestamp {
        let links = self.timers.next_deadline().min(self.reassembler.next_deadline()).min(self.ports.next_deadline());
        self.engine.next_deadline().unwrap_or(Timestamp::NEVER).min(links)
    }

    /// Announces that the worker is about to sleep, so that other threads do not wait for it. The next poll iteration
    /// ends this state.
    fn prepare_to_sleep(&mut self) {
        self.engine.prepare_to_sleep();
    }

    /// Returns the waker of the worker, which all rings to it and its command queue use.
    fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Returns whether the worker was told to shut down.
    fn is_stopping(&self) -> bool {
        self.is_stopping
    }

    /// Runs one poll iteration: commands, a burst from each ring and each port, due timers, sending. Returns whether
    /// there were commands, packets or unfinished work.
    pub fn turn(&mut self, now: Timestamp) -> bool {
        self.turn_with(now, Engine::process)
    }

    /// The same with another function in place of [`Engine::process`], with the same contract, for measurements.
    /// Packets that other workers offer are processed by the engine in any case.
    #[inline(always)]
    pub fn turn_with(
        &mut self,
        now: Timestamp,
        process: impl FnOnce(&mut Engine, Timestamp, &mut Vec<Incoming>, &mut Vec<Outgoing>),
    ) -> bool {
        let mut worked = false;
        while let Some(command) = self.mailbox.commands.pop() {
            worked = true;
            self.execute(now, command);
        }
        self.erase();
        self.settle();
        worked |= !self.erasing.is_empty() || !self.settling.is_empty();
        let (ports, mut faces) = self.ports_and_faces();
        worked |= ports.apply_changes(&mut faces);
        self.rings.from_control.pop_burst(&mut self.frames, BURST);
        let from_sockets = [&self.rings.from_streams, &self.rings.from_datagrams];
        for (ring, watch) in from_sockets.into_iter().zip(&mut self.watches) {
            let taken = ring.pop_burst(&mut self.frames, BURST);
            let waiting = if taken < BURST { 0 } else { ring.len() };
            if watch.note(now, taken, waiting) {
                self.congested.push(self.frames.len() - 1);
            }
        }
        let mut frames = std::mem::take(&mut self.frames);
        let from_rings = frames.len();
        // Another core wrote these frames, or this one did long ago. Ports prefetch their own frames.
        frames.iter().for_each(|frame| frame.buffer.prefetch());
        let Worker { ports, records, engine, reassembler, pool, number, .. } = self;
        let mut faces = WorkerFaces { records, engine, reassembler, worker: *number };
        worked |= ports.receive(now, &mut frames, &mut faces, pool);
        self.congested.extend(self.ports.congested_frames());
        if let Some(latency) = &mut self.latency {
            latency.stamp_all(&mut frames[from_rings..]);
        }
        if let Some(capture) = &mut self.capture {
            capture.record(Direction::Received, &frames, |frame| (frame.face, frame.buffer.bytes()));
        }
        self.frames = frames;
        worked |= !self.frames.is_empty();
        self.receive(now);
        if self.handover.is_some() {
            worked |= self.exchange(now);
        }
        process(&mut self.engine, now, self.incoming.in_order(), &mut self.outgoing);
        if self.handover.is_some() {
            self.process_handed(now);
        }
        self.run_link_timers(now);
        self.transmit(now);
        let (ports, mut faces) = self.ports_and_faces();
        self.port_retry = ports.flush(&mut faces);
        self.stamps.note_sent(self.latency.as_deref_mut());
        if let Some(handover) = &mut self.handover {
            handover.publish();
        }
        for event in self.engine.take_events() {
            self.mailbox.events.push(event);
        }
        // Waking a thread costs more than forwarding a burst, so wake one only if its ring has frames.
        if !self.rings.to_sockets.is_empty() {
            self.rings.to_sockets.wake();
        }
        if !self.rings.to_control.is_empty()
            || !self.rings.to_control_from_neighbours.is_empty()
            || !self.mailbox.events.is_empty()
        {
            self.rings.to_control.wake();
        }
        worked
    }

    /// Borrows the ports together with the face records, which port changes add and remove.
    fn ports_and_faces(&mut self) -> (&mut PortSet, WorkerFaces<'_>) {
        let Worker { ports, records, engine, reassembler, number, .. } = self;
        (ports, WorkerFaces { records, engine, reassembler, worker: *number })
    }

    fn faces(&mut self) -> WorkerFaces<'_> {
        self.ports_and_faces().1
    }

    /// Adds a face, unless it belongs to a port of this worker.
    fn add_face(&mut self, face: &Arc<Face>) {
        if let Some(output) = Output::without_port(face, self.number) {
            self.faces().add(face, output);
        }
    }

    /// Adds a face if its first frame arrived before the control thread's command to add it. Returns whether the face
    /// exists.
    #[cold]
    fn add_face_of_first_frame(&mut self, id: FaceId) -> bool {
        if let Some(face) = self.table.get(id) {
            self.add_face(&face);
        }
        self.records.get(id).is_some()
    }

    /// Runs the link services over the received frames. Consecutive frames of one face share one lookup of its record.
    fn receive(&mut self, now: Timestamp) {
        let (mut frames, mut congested) = (std::mem::take(&mut self.frames), std::mem::take(&mut self.congested));
        let count = frames.len();
        let mut marks = congested.drain(..);
        let mut next_mark = marks.next().unwrap_or(usize::MAX);
        let mut rest = frames.drain(..);
        while let Some(id) = rest.as_slice().first().map(|frame| frame.face) {
            let Some(record) = self.records.get(id) else {
                if !self.add_face_of_first_frame(id) {
                    // The face was closed while its last frames were in the ring.
                    self.table.link_drops().add(LinkDrop::LinkDown, 1);
                    rest.next();
                } else if let Some(handover) = &mut self.handover {
                    handover.announce_face(now, id);
                }
                continue;
            };
            while rest.as_slice().first().is_some_and(|frame| frame.face == id)
                && let Some(Frame { endpoint, buffer, stamp, .. }) = rest.next()
            {
                let is_congested = count - rest.len() > next_mark;
                let is_noted = stamp.is_some() || is_congested;
                let before = is_noted.then(|| self.incoming.kinds().map(|packets| packets.len()));
                // The link service counts a drop under its reason.
                let _ =
                    record.link.receive(now, buffer, endpoint, &self.pool, &mut self.reassembler, &mut self.incoming);
                let Some(before) = before else { continue };
                if stamp.is_some() {
                    self.incoming.stamp_added(before, stamp);
                }
                // A frame that completes no packet leaves the mark to the next frame.
                if is_congested && self.incoming.kinds().map(|packets| packets.len()) != before {
                    self.congestion_marks += self.incoming.mark_added(before);
                    next_mark = marks.next().unwrap_or(usize::MAX);
                }
            }
            self.timers.note(record);
        }
        drop(rest);
        drop(marks);
        (self.frames, self.congested) = (frames, congested);
    }
}
