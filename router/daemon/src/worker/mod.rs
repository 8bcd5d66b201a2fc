//! The worker: between the rings and the engine.
//!
//! One turn takes a burst of frames from its rings, runs them through link services and engine, and puts the resulting
//! frames into the rings of the links; ports it polls and fills by itself. When it has its turns, and when it sleeps, is
//! decided by what drives it: [`serve`] makes it a task (in `task`), and a thread of its own as soon as there is
//! a port (in `polling`), or when it is one of several. Those hand packets to each other (in `handover`).

mod command;
mod exchange;
mod execute;
mod faces;
mod handles;
mod handover;
mod idle;
#[cfg(test)]
mod interest_way;
mod latency;
mod polling;
mod processors;
mod reschedule;
mod sending;
mod task;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use namehop_disk::DiskTier;
use namehop_engine::engine::Engine;
use namehop_engine::schedule::{Burst, Schedule};
use namehop_face::capture::{CaptureRecorder, Direction};
use namehop_face::counters::LinkDrop;
use namehop_face::latency::LatencyRecorder;
use namehop_face::link_service::{DroppedInterest, Reassembler};
use namehop_face::port::PortSet;
use namehop_face::registry::{Face, FaceTable};
use namehop_face::ring::{Frame, FrameRing};
use namehop_face::wait_watch::WaitWatch;
use namehop_face::wake::Waker;
use namehop_packet::{BufferPool, FaceId, IncomingBurst, Outgoing, PacketBuffer, Timestamp};

use command::{Mailbox, Settled, WorkerMailbox};
use execute::Erasing;
use faces::{FaceRecords, LinkTimers, Output, WorkerFaces};
use handover::Received;
use latency::FrameStamps;

pub use command::{WorkerGone, WorkerHandle};
pub use handles::{WorkerHandles, share};
pub use handover::Handover;
pub use idle::Idling;
pub use polling::serve;
pub use processors::{pin_to_processor, usable_processors};

/// Frames taken from one ring in a turn.
pub const BURST: usize = 64;

/// Where frames come from and go to.
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
    /// To the control thread, from applications on this computer.
    pub to_control: Arc<FrameRing>,
    /// To the control thread, from other computers: a ring of its own, so that however many of them send, commands of this
    /// computer find room. The face of a frame is the one that the packet came in on.
    pub to_control_from_neighbours: Arc<FrameRing>,
}

/// One forwarding worker. The schedule `S` decides how its engine fetches ahead.
pub struct Worker<S: Schedule = Burst> {
    engine: Engine<S>,
    pool: BufferPool,
    /// All faces, shared with other threads.
    table: Arc<FaceTable>,
    /// The same faces, as this worker knows them.
    records: FaceRecords,
    timers: LinkTimers,
    reassembler: Reassembler,
    rings: WorkerRings,
    ports: PortSet,
    /// Frames were left over when the ports last sent, and are worth another attempt after this time.
    port_retry: Option<Duration>,
    mailbox: WorkerMailbox,
    waker: Arc<Waker>,
    number: usize,
    /// The other workers; absent when there are none.
    handover: Option<Handover>,
    handed: Received,
    started: Instant,
    is_stopping: bool,
    /// Time of turns in which there was something to do.
    busy: Duration,
    /// The one it is pinned to.
    processor: Option<usize>,
    erasing: VecDeque<Erasing>,
    /// Who waits for changed settings of the Content Store to be carried out.
    settling: Vec<oneshot::Sender<Settled>>,
    /// Measures how long packets stay in the router, if anybody wants to know.
    latency: Option<Box<LatencyRecorder>>,
    /// Copies frames, if anybody wants some.
    capture: Option<Box<CaptureRecorder>>,
    // Scratch of one turn, kept to allocate nothing.
    frames: Vec<Frame>,
    incoming: IncomingBurst,
    outgoing: Vec<Outgoing>,
    encoded: Vec<PacketBuffer>,
    dropped_interests: Vec<DroppedInterest>,
    stamps: FrameStamps,
    /// How long frames wait in the two rings from the sockets.
    watches: [WaitWatch; 2],
    /// Places of the frames that are to be marked because others wait behind them for too long.
    congested: Vec<usize>,
    /// Packets that were marked for that.
    congestion_marks: u64,
}

impl<S: Schedule> Worker<S> {
    /// A worker around an engine, for the faces that exist; those of ports are added with their ports. `waker` is the one of its
    /// incoming rings. One of several workers has a `handover`.
    pub fn new(
        mut engine: Engine<S>,
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

    /// When the worker's clock started.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// Gives its Content Store a second tier. To be called before the first turn.
    pub fn use_disk(&mut self, tier: DiskTier) {
        self.engine.use_disk(tier);
    }

    /// Its engine, for measurements.
    pub fn engine(&self) -> &Engine<S> {
        &self.engine
    }

    /// Time on the worker's clock, which started with it.
    fn now(&self) -> Timestamp {
        Timestamp(u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Whether a turn would find packets, commands or a task that goes on.
    fn has_work(&self) -> bool {
        !self.rings.from_streams.is_empty()
            || !self.rings.from_datagrams.is_empty()
            || !self.rings.from_control.is_empty()
            || !self.mailbox.commands.is_empty()
            || !self.erasing.is_empty()
            || self.engine.has_disk_answers()
            || !self.settling.is_empty()
            || self.ports.has_work()
            || self.handover.as_ref().is_some_and(Handover::has_work)
    }

    /// Whether a ring to the links has become so full that another turn might overfill it.
    fn is_output_behind(&self) -> bool {
        [&self.rings.to_sockets, &self.rings.to_control].into_iter().any(|ring| ring.len() > ring.capacity() / 2)
    }

    /// When a turn is due although there is no work; [`Timestamp::NEVER`] when no timer runs.
    fn next_deadline(&self) -> Timestamp {
        let links = self.timers.next_deadline().min(self.reassembler.next_deadline()).min(self.ports.next_deadline());
        self.engine.next_deadline().unwrap_or(Timestamp::NEVER).min(links)
    }

    /// To be called before sleeping, so that nobody waits for this worker meanwhile. The next turn ends it.
    fn prepare_to_sleep(&mut self) {
        self.engine.prepare_to_sleep();
    }

    /// Wakes the worker; of all rings to it and of the commands.
    fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Whether it was told to shut down.
    fn is_stopping(&self) -> bool {
        self.is_stopping
    }

    /// Does what there is to do now: commands, a burst from each ring and each port, due timers. Returns whether there were
    /// commands or packets.
    pub fn turn(&mut self, now: Timestamp) -> bool {
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
        // Another processor wrote them, or this one long ago. Ports ask for their own.
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
        self.engine.process(now, self.incoming.in_order(), &mut self.outgoing);
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
        // Waking a thread costs more than a burst of packets: only when there is something for it.
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

    /// The ports, and the faces that come and go with them.
    fn ports_and_faces(&mut self) -> (&mut PortSet, WorkerFaces<'_, S>) {
        let Worker { ports, records, engine, reassembler, number, .. } = self;
        (ports, WorkerFaces { records, engine, reassembler, worker: *number })
    }

    fn faces(&mut self) -> WorkerFaces<'_, S> {
        self.ports_and_faces().1
    }

    /// Adds a face that is not one of a port of this worker.
    fn add_face(&mut self, face: &Arc<Face>) {
        if let Some(output) = Output::without_port(face, self.number) {
            self.faces().add(face, output);
        }
    }

    /// Adds a face whose first frame has come earlier than the command of the control thread to add it. Whether there is such
    /// a face.
    #[cold]
    fn add_face_of_first_frame(&mut self, id: FaceId) -> bool {
        if let Some(face) = self.table.get(id) {
            self.add_face(&face);
        }
        self.records.get(id).is_some()
    }

    /// Link services over the received frames. Those of one face that follow each other are taken in one go.
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
                // A drop is counted by the link service under its name.
                let _ =
                    record.link.receive(now, buffer, endpoint, &self.pool, &mut self.reassembler, &mut self.incoming);
                let Some(before) = before else { continue };
                if stamp.is_some() {
                    self.incoming.stamp_added(before, stamp);
                }
                // One that holds no whole packet leaves it to the next.
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
