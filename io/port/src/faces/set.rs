//! All ports of a worker: polls them, finds the face of each received frame, and sends the frames of faces.

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
use crate::encapsulation::{FacePeer, Header, cut_padding};
use namehop_face::counters::LinkDrop;
use namehop_face::registry::{Face, FaceFlags, FaceTable};
use namehop_face::ring::Frame;
use namehop_face::socket::FaceEvent;
use namehop_face::wake::Waker;

/// Maximum number of frames queued on all ports together, unless [`PortSet::limit_queues`] sets another.
const MAX_QUEUED_FRAMES: usize = 4096;
/// Minimum of that limit, however few buffers there are: the frames sent in one poll iteration of the worker.
const MIN_QUEUED_FRAMES: usize = 512;
/// Minimum size of a received burst for which the frames behind it in the queue are checked.
const LEAST_WATCHED: usize = 32;

/// The ports of one worker.
pub struct PortSet {
    /// Indexed by port number.
    pub(super) ports: Vec<Option<Port>>,
    pub(super) mailbox: Arc<Mailbox>,
    pub(super) table: Arc<FaceTable>,
    pub(super) events: UnboundedSender<FaceEvent>,
    /// Flags of on-demand faces.
    pub(super) on_demand_flags: FaceFlags,
    pub(super) self_learning: bool,
    pub(super) idle_timeout: Duration,
    received: Vec<PacketBuffer>,
    /// See [`PortSet::congested_frames`].
    congested: Vec<usize>,
    /// Frames for the workers that have their ports; see [`PortSet::frames_for_others`].
    pub(super) for_others: Vec<(usize, PortId, PacketBuffer)>,
    /// Frames of other workers' queues are waiting to be processed.
    pub(super) has_accepted: bool,
    /// Frames that ports send on their own behalf.
    pub(super) answers: Vec<PacketBuffer>,
    /// Time of the poll iteration.
    pub(super) now: Timestamp,
    /// Maximum number of frames queued on all ports together.
    pub(super) max_queued: usize,
    /// Number of frames left over when the ports last sent.
    pub(super) backlog: usize,
    /// Number of this worker.
    pub(super) worker: usize,
}

impl PortSet {
    /// Creates an empty set, and the control side's handle of it. `waker` is the worker's. On-demand faces get
    /// `on_demand_flags`, honour the headers of self-learning if `self_learning` is set, and are closed after
    /// `idle_timeout` to twice that time without a frame.
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

    /// Sets how many frames may be queued on all ports together, at least 512; frames beyond that are dropped and
    /// counted. A port may queue as many frames as are left of the limit: one congested port uses half of it, two ports
    /// a third each, and so on. So however many ports are congested, the other ports have space in their queues and
    /// buffers in the pool.
    pub fn limit_queues(&mut self, frames: usize) {
        self.max_queued = frames.max(MIN_QUEUED_FRAMES);
    }

    /// Sets the number of the worker that owns this set; initially 0.
    pub fn set_worker(&mut self, worker: usize) {
        self.worker = worker;
    }

    /// Sends an event about a face to the rest of the router. This fails only when the router is shutting down.
    pub fn announce(&self, event: FaceEvent) {
        let _ = self.events.send(event);
    }

    /// Whether there is no port to poll.
    pub fn is_empty(&self) -> bool {
        self.ports.is_empty()
    }

    pub(super) fn port(&mut self, id: PortId) -> Option<&mut Port> {
        self.ports.get_mut(usize::from(id.0))?.as_mut()
    }

    /// Adds a face to a port and to the worker's records.
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
                    Some((number, host)) => {
                        FaceHeader::Internet { host: number, output_index: host.add(now, face, peer) }
                    }
                    None => return,
                }
            }
        };
        faces.add(face, PortOutput { port: id, header });
    }

    /// Removes a face from the worker's records and from its port.
    pub(super) fn remove_face(&mut self, id: FaceId, faces: &mut impl FaceRecords) {
        let Some(PortOutput { port, header }) = faces.remove(id) else { return };
        let Some(port) = self.port(port) else { return };
        port.unsolicited.remove(id);
        match header {
            FaceHeader::Link(header) => {
                let peer = header.peer();
                if port.faces.get(&peer) == Some(&id) {
                    port.faces.remove(&peer);
                }
            }
            FaceHeader::Internet { host, output_index } => {
                if let Some(host) = port.host(host) {
                    host.remove(output_index);
                }
            }
        }
    }

    /// Receives a burst from every port and adds the frames of faces to `frames`. New on-demand faces are added to the
    /// records. Returns whether any port received frames. Frames that ports send on their own behalf leave with
    /// [`PortSet::flush`].
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
                    // Received frames show that the link works, before the periodic link check notices. Otherwise the
                    // answers would be dropped until then.
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

    /// Notes the last frame of a queue in which frames wait for too long. `already` is the number of frames before this
    /// queue was read.
    #[inline]
    fn note_congestion(&mut self, is_congested: bool, already: usize, frames: &[Frame]) {
        if is_congested && frames.len() > already {
            self.congested.push(frames.len() - 1);
        }
    }

    /// Returns the indices, in order, of the frames to be marked among those [received](Self::receive) last, because
    /// the frames behind them have waited for too long.
    pub fn congested_frames(&mut self) -> impl Iterator<Item = usize> {
        self.congested.drain(..)
    }

    /// Removes the header and padding of a received frame and finds its face.
    #[inline]
    fn find_owner(
        &mut self,
        id: PortId,
        frame: &mut PacketBuffer,
        last: &mut Last,
        faces: &mut impl FaceRecords,
    ) -> Result<Arrival<Owner>, LinkDrop> {
        let port = self.port(id).ok_or(LinkDrop::LinkDown)?;
        if let Some((owner, payload_range)) = port.known_owner(frame.bytes(), last) {
            frame.truncate(payload_range.end);
            frame.trim_front(payload_range.start);
            return cut_padding(frame).map(|()| Arrival::Packet(owner));
        }
        if let Some(host) = port.host_of(frame.bytes()) {
            // The sender's face may evict another one, perhaps that of the previous frame.
            *last = Last::None;
            return self.receive_at_host((id, host), frame, faces);
        }
        let received = port.params.framing.read(frame.bytes(), &port.params.address)?;
        if !received.peer.can_be_on_demand() {
            return Err(received.peer.drop_without_face());
        }
        // Checked before a face is created: noise does not justify one.
        received.header.take_off(frame)?;
        *last = Last::None;
        let face = self.add_on_demand_face(id, received.peer.into(), frame, faces)?;
        Ok(Arrival::Packet((face, received.endpoint)))
    }

    /// Queues frames of a face; `output` is from its record. They leave with [`PortSet::flush`]. Drops are counted on
    /// the face.
    pub fn send(&mut self, face: &Face, output: &PortOutput, frames: &mut Vec<PacketBuffer>, pool: &BufferPool) {
        let drops = &face.counters.worker(self.worker).link_drops;
        let (max_queued, backlog) = (self.max_queued, self.backlog);
        let port = self.port(output.port).filter(|port| port.params.is_up && port.params.queue.is_some());
        let Some(port) = port else {
            drops.add(LinkDrop::LinkDown, frames.len() as u64);
            frames.clear();
            return;
        };
        // A dynamic threshold, as in switches: a queue may be as long as what all queues together leave.
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
            FaceHeader::Internet { host, output_index } => match port.host(*host) {
                Some(host) => host.put_on(*output_index, frames, drops, pool),
                // The port no longer has addresses in that network.
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

    /// Sends the queued frames of all ports, as far as their links take them. If any are left, returns after which time
    /// another attempt is useful.
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

    /// Prepares the queues for sleep. Call it before the worker sleeps until one of [`PortSet::bells`] is readable.
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

    /// Returns the wake-up descriptors (bells) of the ports that have one.
    pub fn bells(&self) -> Vec<BorrowedFd<'_>> {
        let bypasses = self.ports.iter().flatten().filter_map(|port| port.bypass.as_ref()?.bell());
        self.queues().filter_map(PortQueue::bell).chain(bypasses).collect()
    }

    /// Whether some ports have no bell and must be polled.
    pub fn must_be_polled(&self) -> bool {
        self.queues().any(|queue| queue.bell().is_none())
    }

    /// Returns how long the worker may rely on the bells; `None` if there is no limit.
    pub fn longest_sleep(&self) -> Option<Duration> {
        self.queues().filter_map(PortQueue::longest_sleep).min()
    }

    fn queues(&self) -> impl Iterator<Item = &dyn PortQueue> {
        self.ports.iter().flatten().filter_map(|port| port.params.queue.as_deref())
    }
}
