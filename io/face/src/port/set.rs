//! All ports of a worker: polls them, finds out whose the received frames are, sends what faces give.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crossbeam_queue::SegQueue;
use namehop_packet::port::RETRY_PAUSE;
use namehop_packet::{BufferPool, FaceId, PacketBuffer, PortQueue, Timestamp};
use tokio::sync::mpsc::UnboundedSender;

use super::change::{Mailbox, PortControl};
use super::queues::Share;
use super::single::{Arrival, Last, Owner, Port};
use super::{FaceHeader, FaceRecords, PortId, PortOutput};
use crate::counters::LinkDrop;
use crate::encapsulation::{FacePeer, Header, cut_padding};
use crate::registry::{Face, FaceFlags, FaceTable};
use crate::ring::Frame;
use crate::socket::FaceEvent;
use crate::wake::Waker;

/// Frames that all ports together may have waiting, unless [`PortSet::limit_queues`] says otherwise.
const MAX_QUEUED_FRAMES: usize = 4096;
/// They may have so many however few buffers there are: what a turn of the worker sends.
const MIN_QUEUED_FRAMES: usize = 512;
/// Frames that a queue gives at once while others wait behind them.
const LEAST_WATCHED: usize = 32;

/// The ports of one worker.
pub struct PortSet {
    /// By number of the port.
    pub(super) ports: Vec<Option<Port>>,
    pub(super) mailbox: Arc<Mailbox>,
    pub(super) table: Arc<FaceTable>,
    pub(super) events: UnboundedSender<FaceEvent>,
    /// Properties of the faces that senders make.
    pub(super) on_demand_flags: FaceFlags,
    pub(super) self_learning: bool,
    pub(super) idle_timeout: Duration,
    received: Vec<PacketBuffer>,
    /// See [`PortSet::congested_frames`].
    congested: Vec<usize>,
    /// Frames for the workers that have their ports; see [`PortSet::frames_for_others`].
    pub(super) for_others: Vec<(usize, PortId, PacketBuffer)>,
    /// Frames of other workers' queues wait to be received.
    pub(super) has_accepted: bool,
    /// What ports say by themselves.
    pub(super) answers: Vec<PacketBuffer>,
    /// Time of the turn.
    pub(super) now: Timestamp,
    /// Frames that all ports together may have waiting.
    pub(super) max_queued: usize,
    /// Frames that were left over when the ports last sent.
    pub(super) backlog: usize,
    /// The number of the worker.
    pub(super) worker: usize,
}

impl PortSet {
    /// A set without ports, and the control side's hold on it. `waker` is the worker's. On-demand faces get
    /// `on_demand_flags`, honour the headers of self-learning if `self_learning` says so, and are closed after
    /// `idle_timeout` to twice that without a frame.
    pub fn new(
        table: Arc<FaceTable>,
        events: UnboundedSender<FaceEvent>,
        waker: Arc<Waker>,
        on_demand_flags: FaceFlags,
        self_learning: bool,
        idle_timeout: Duration,
    ) -> (Self, PortControl) {
        let mailbox = Arc::new(Mailbox { changes: SegQueue::new(), abandoned: SegQueue::new() });
        let set = PortSet {
            ports: Vec::new(),
            mailbox: Arc::clone(&mailbox),
            table,
            events,
            on_demand_flags,
            self_learning,
            idle_timeout,
            received: Vec::new(),
            congested: Vec::new(),
            for_others: Vec::new(),
            has_accepted: false,
            answers: Vec::new(),
            now: Timestamp(0),
            max_queued: MAX_QUEUED_FRAMES,
            backlog: 0,
            worker: 0,
        };
        (set, PortControl::new(mailbox, waker))
    }

    /// Sets how many frames may wait on all ports together, where 512 are the least; more are dropped and counted. A
    /// port has its share of what the others leave: one congested port half of it, two of them a third each, and so on.
    /// So however many ports are congested, the others find room in their queues and buffers in the pool.
    pub fn limit_queues(&mut self, frames: usize) {
        self.max_queued = frames.max(MIN_QUEUED_FRAMES);
    }

    /// Says which worker has it; without a word it is the first.
    pub fn set_worker(&mut self, worker: usize) {
        self.worker = worker;
    }

    /// Whether there is no port to poll.
    pub fn is_empty(&self) -> bool {
        self.ports.is_empty()
    }

    pub(super) fn port(&mut self, id: PortId) -> Option<&mut Port> {
        self.ports.get_mut(usize::from(id.0))?.as_mut()
    }

    /// Adds a face to a port, and to the records of the worker.
    pub(super) fn add_face(&mut self, id: PortId, face: &Arc<Face>, peer: FacePeer, faces: &mut impl FaceRecords) {
        let now = self.now;
        let Some(port) = self.port(id) else { return };
        let header = match peer {
            FacePeer::Link(peer) => {
                port.faces.insert(peer, face.id());
                FaceHeader::Link(Header::new(peer, &port.params.address))
            }
            FacePeer::Internet(peer) => {
                let mut hosts = (0..).zip(&mut port.hosts);
                match hosts.find(|(_, host)| host.vlan() == peer.vlan) {
                    Some((number, host)) => FaceHeader::Internet { host: number, place: host.add(now, face, peer) },
                    None => return,
                }
            }
        };
        faces.add(face, PortOutput { port: id, header });
    }

    /// Removes a face from the records of the worker, and from its port.
    pub(super) fn remove_face(&mut self, id: FaceId, faces: &mut impl FaceRecords) {
        let Some(PortOutput { port, header }) = faces.remove(id) else { return };
        let Some(port) = self.port(port) else { return };
        port.strangers.remove(id);
        match header {
            FaceHeader::Link(header) => {
                let peer = header.peer();
                if port.faces.get(&peer) == Some(&id) {
                    port.faces.remove(&peer);
                }
            }
            FaceHeader::Internet { host, place } => {
                if let Some(host) = port.host(host) {
                    host.remove(place);
                }
            }
        }
    }

    /// Receives a burst from every port; what belongs to a face is added to `frames`. Faces that senders make are added to
    /// the records. Whether any port had something. What ports say by themselves goes out with [`PortSet::flush`].
    pub fn receive(
        &mut self,
        now: Timestamp,
        frames: &mut Vec<Frame>,
        faces: &mut impl FaceRecords,
        pool: &BufferPool,
    ) -> bool {
        self.now = now;
        self.has_accepted = false;
        let mut any = false;
        for index in 0..self.ports.len() {
            let mut received = std::mem::take(&mut self.received);
            let (mut home, mut is_congested) = (None, false);
            if let Some(Some(port)) = self.ports.get_mut(index) {
                if let Some(queue) = &mut port.params.queue {
                    queue.receive(&mut received);
                    let waiting = if received.len() < LEAST_WATCHED { 0 } else { queue.waiting() };
                    is_congested = port.watch.note(now, received.len(), waiting);
                }
                if !received.is_empty() && !port.params.is_up {
                    // Frames come, so the link works, although whoever looks at links now and then does not know yet. Otherwise what
                    // answers them would be dropped until then.
                    port.change_state(true, now);
                }
                port.received_frames += received.len() as u64;
                received.append(&mut port.handed_in);
                if let Share::Further { home: worker, .. } = port.share {
                    home = Some(worker);
                }
            }
            any |= !received.is_empty();
            received.iter().for_each(PacketBuffer::prefetch);
            let already = frames.len();
            let id = PortId(index as u16);
            if let Some(home) = home {
                self.receive_further(id, home, &mut received, frames);
                self.received = received;
                self.note_congestion(is_congested, already, frames);
                continue;
            }
            let mut last = Last::None;
            for mut buffer in received.drain(..) {
                match self.find_owner(id, &mut buffer, &mut last, faces) {
                    Ok(Arrival::Packet((face, endpoint))) => frames.push(Frame::new(face, endpoint, buffer)),
                    Ok(Arrival::Answer) => self.answers.push(buffer),
                    Ok(Arrival::Nothing) => {}
                    Err(reason) => self.refuse(id, buffer, reason),
                }
            }
            self.received = received;
            self.note_congestion(is_congested, already, frames);
            self.run_internet(id, pool);
            any |= self.run_bypass(id);
        }
        any
    }

    /// Notes the last frame of a queue in which frames wait for too long, if any has come since there were `already` so many.
    #[inline]
    fn note_congestion(&mut self, is_congested: bool, already: usize, frames: &[Frame]) {
        if is_congested && frames.len() > already {
            self.congested.push(frames.len() - 1);
        }
    }

    /// Which of the frames that were [received](Self::receive) last are to be marked because others wait behind them for too long: their
    /// places among all, in order.
    pub fn congested_frames(&mut self) -> impl Iterator<Item = usize> {
        self.congested.drain(..)
    }

    /// Takes the header and padding off a received frame and finds out whose it is.
    #[inline]
    fn find_owner(
        &mut self,
        id: PortId,
        frame: &mut PacketBuffer,
        last: &mut Last,
        faces: &mut impl FaceRecords,
    ) -> Result<Arrival<Owner>, LinkDrop> {
        let port = self.port(id).ok_or(LinkDrop::LinkDown)?;
        if let Some((owner, place)) = port.known_owner(frame.bytes(), last) {
            frame.truncate(place.end);
            frame.trim_front(place.start);
            return cut_padding(frame).map(|()| Arrival::Packet(owner));
        }
        if let Some(host) = port.host_of(frame.bytes()) {
            // A face may give way to that of the sender, also the one of the frame before.
            *last = Last::None;
            return self.receive_at_host((id, host), frame, faces);
        }
        let received = port.params.framing.read(frame.bytes(), &port.params.address)?;
        if !received.peer.can_be_on_demand() {
            return Err(received.peer.drop_without_face());
        }
        // Before a face is made: noise is not worth one.
        received.header.take_off(frame)?;
        *last = Last::None;
        let face = self.add_on_demand_face(id, received.peer.into(), frame, faces)?;
        Ok(Arrival::Packet((face, received.endpoint)))
    }

    /// Takes frames of a face, whose record says `output`. They go out with [`PortSet::flush`]. Drops are counted on the
    /// face.
    pub fn send(&mut self, face: &Face, output: &PortOutput, frames: &mut Vec<PacketBuffer>, pool: &BufferPool) {
        let drops = &face.counters.worker(self.worker).link_drops;
        let (max_queued, backlog) = (self.max_queued, self.backlog);
        let port = self.port(output.port).filter(|port| port.params.is_up && port.params.queue.is_some());
        let Some(port) = port else {
            drops.add(LinkDrop::LinkDown, frames.len() as u64);
            frames.clear();
            return;
        };
        // A dynamic threshold, as in switches: a queue may be as long as what is left beside all queues.
        let room = max_queued.saturating_sub(backlog + port.waiting.len());
        if frames.len() > room {
            drops.add(LinkDrop::SendQueueFull, (frames.len() - room) as u64);
            frames.truncate(room);
        }
        match &output.header {
            FaceHeader::Link(Header::Bare) => {}
            FaceHeader::Link(header) => frames.retain_mut(|frame| {
                let has_header = header.put_on(frame, pool);
                if !has_header {
                    drops.add(LinkDrop::NoBuffer, 1);
                }
                has_header
            }),
            FaceHeader::Internet { host, place } => match port.host(*host) {
                Some(host) => host.put_on(*place, frames, drops, pool),
                // The port has no addresses there any more.
                None => {
                    drops.add(LinkDrop::LinkDown, frames.len() as u64);
                    frames.clear();
                }
            },
        }
        port.waiting.append(frames);
        if port.waiting.is_congested() {
            face.send_queue_bytes.store(port.waiting.backlog_bytes(), Ordering::Relaxed);
        }
    }

    /// Sends what waits on all ports, as far as their links take it. When something is left, how long it takes until that is
    /// worth another attempt.
    pub fn flush(&mut self, faces: &mut impl FaceRecords) -> Option<Duration> {
        let mut retry: Option<Duration> = None;
        self.backlog = 0;
        for port in self.ports.iter_mut().flatten().filter(|port| !port.waiting.is_empty()) {
            let was_congested = port.waiting.is_congested();
            if let Some(queue) = port.params.queue.as_deref_mut() {
                let waiting = port.waiting.len();
                port.waiting.send(queue);
                port.sent_frames += (waiting - port.waiting.len()) as u64;
            }
            if !port.waiting.is_empty() {
                self.backlog += port.waiting.len();
                let pause = port.params.queue.as_ref().map_or(RETRY_PAUSE, |queue| queue.retry_pause());
                retry = Some(retry.map_or(pause, |shortest| shortest.min(pause)));
            }
            if was_congested && !port.waiting.is_congested() {
                port.clear_backlog(faces);
            }
        }
        retry
    }

    /// To be called before the worker sleeps until one of [`PortSet::bells`] is readable.
    pub fn prepare_to_sleep(&mut self) {
        for port in self.ports.iter_mut().flatten() {
            if let Some(queue) = &mut port.params.queue {
                queue.prepare_to_sleep();
            }
            if let Some(bypass) = &mut port.bypass {
                bypass.prepare_to_sleep();
            }
        }
    }

    /// The bells of the ports that have one.
    pub fn bells(&self) -> Vec<BorrowedFd<'_>> {
        let bypasses = self.ports.iter().flatten().filter_map(|port| port.bypass.as_ref()?.bell());
        self.queues().filter_map(PortQueue::bell).chain(bypasses).collect()
    }

    /// Whether some ports have no bell and must be polled.
    pub fn must_be_polled(&self) -> bool {
        self.queues().any(|queue| queue.bell().is_none())
    }

    /// How long the worker may rely on the bells.
    pub fn longest_sleep(&self) -> Option<Duration> {
        self.queues().filter_map(PortQueue::longest_sleep).min()
    }

    fn queues(&self) -> impl Iterator<Item = &dyn PortQueue> {
        self.ports.iter().flatten().filter_map(|port| port.params.queue.as_deref())
    }
}
