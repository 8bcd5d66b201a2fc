//! All ports of a worker: polls them, sorts what they receive to faces, sends what faces give.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{SendError, SyncSender};
use std::time::Duration;

use crossbeam_queue::SegQueue;
use namehop_forward::buffer::{BufferPool, PacketBuffer};
use namehop_forward::face::FaceId;
use tokio::sync::mpsc::UnboundedSender;

use super::change::{Mailbox, PortChange, PortControl};
use super::header::{self, HEADER_BYTES, MacAddress};
use super::port::{Framing, Owner, Port, PortId};
use super::{FramePort, RETRY_PAUSE, face_params};
use crate::counters::LinkDrop;
use crate::registry::{Face, FaceFlags, FacePersistency, FaceTable};
use crate::ring::Frame;
use crate::socket::FaceEvent;
use crate::wake::Waker;

/// Frames that all ports together may have waiting, unless [`PortSet::limit_queues`] says otherwise.
const MAX_QUEUED_FRAMES: usize = 4096;
/// They may have so many however few buffers there are: what a turn of the worker sends.
const MIN_QUEUED_FRAMES: usize = 512;

/// How a face sends.
struct Route {
    face: Arc<Face>,
    port: PortId,
    remote: MacAddress,
    /// Ready to be put in front; unused on a bare link.
    header: [u8; HEADER_BYTES],
    /// Counts among the faces that senders made, whatever its persistency has become since.
    made_by_sender: bool,
}

/// The ports of one worker.
pub struct PortSet<B> {
    /// By number of the port.
    ports: Vec<Option<Port<B>>>,
    /// By slot of the face number.
    routes: Vec<Option<Route>>,
    mailbox: Arc<Mailbox<B>>,
    table: Arc<FaceTable>,
    events: UnboundedSender<FaceEvent>,
    /// Properties of the faces that senders make.
    on_demand_flags: FaceFlags,
    self_learning: bool,
    idle_timeout: Duration,
    received: Vec<B>,
    /// Frames that all ports together may have waiting.
    max_queued: usize,
    /// Frames that were left over when the ports last sent.
    backlog: usize,
}

impl<B: PacketBuffer + 'static> PortSet<B> {
    /// A set without ports, and the control side's hold on it. `waker` is the worker's. On-demand faces get
    /// `on_demand_flags`, honour the headers of self-learning if `self_learning` says so, and are looked at once in
    /// `idle_timeout` by whoever closes idle ones.
    pub fn new(
        table: Arc<FaceTable>,
        events: UnboundedSender<FaceEvent>,
        waker: Arc<Waker>,
        on_demand_flags: FaceFlags,
        self_learning: bool,
        idle_timeout: Duration,
    ) -> (Self, PortControl<B>) {
        let mailbox = Arc::new(Mailbox { changes: SegQueue::new(), abandoned: SegQueue::new() });
        let set = PortSet {
            ports: Vec::new(),
            routes: Vec::new(),
            mailbox: Arc::clone(&mailbox),
            table,
            events,
            on_demand_flags,
            self_learning,
            idle_timeout,
            received: Vec::new(),
            max_queued: MAX_QUEUED_FRAMES,
            backlog: 0,
        };
        (set, PortControl::new(mailbox, waker))
    }

    /// Sets how many frames may wait on all ports together, where 512 are the least; more are dropped and counted. A
    /// port has its share of what the others leave: one congested port half of it, two of them a third each, and so on.
    /// So however many ports are congested, the others find room in their queues and buffers in the pool.
    pub fn limit_queues(&mut self, frames: usize) {
        self.max_queued = frames.max(MIN_QUEUED_FRAMES);
    }

    /// Whether there is no port to poll.
    pub fn is_empty(&self) -> bool {
        self.ports.is_empty()
    }

    /// Whether changes wait to be carried out.
    pub fn has_changes(&self) -> bool {
        !self.mailbox.changes.is_empty()
    }

    /// Carries out the changes that wait; whether there were any.
    pub fn obey(&mut self) -> bool {
        let mut obeyed = false;
        while let Some(change) = self.mailbox.changes.pop() {
            obeyed = true;
            // Whoever asked may have stopped waiting; the change is made all the same.
            match change {
                PortChange::Add(id, params, reply) => {
                    let slot = usize::from(id.0);
                    if self.ports.len() <= slot {
                        self.ports.resize_with(slot + 1, || None);
                    }
                    self.ports[slot] = Some(Port::new(params));
                    let _ = reply.send(());
                }
                PortChange::Remove(id, reply) => {
                    let mut port = self.ports.get_mut(usize::from(id.0)).and_then(Option::take);
                    let lost = port.as_mut().map_or(0, Port::discard);
                    self.table.link_drops().add(LinkDrop::LinkDown, lost as u64);
                    while matches!(self.ports.last(), Some(None)) {
                        self.ports.pop();
                    }
                    self.give_back(port.and_then(|port| port.params.link), &reply);
                }
                PortChange::TakeLink(id, reply) => {
                    let link = self.port(id).and_then(|port| port.params.link.take());
                    self.give_back(link, &reply);
                }
                PortChange::GiveLink(id, link, address, reply) => {
                    self.give_link(id, link, address);
                    let _ = reply.send(());
                }
                PortChange::SetState(id, is_up, mtu_bytes) => self.set_state(id, is_up, mtu_bytes),
                PortChange::AddFace(id, face, remote, reply) => {
                    self.attach(id, face, remote, false);
                    let _ = reply.send(());
                }
                PortChange::RemoveFace(id, reply) => {
                    self.detach(id);
                    let _ = reply.send(());
                }
            }
        }
        obeyed
    }

    /// Gives a link to whoever asked for it. One who has stopped waiting will open another.
    fn give_back(&self, link: Option<Box<dyn FramePort<B>>>, reply: &SyncSender<Option<Box<dyn FramePort<B>>>>) {
        if let Err(SendError(Some(link))) = reply.send(link) {
            self.mailbox.abandoned.push(link);
        }
    }

    fn port(&mut self, id: PortId) -> Option<&mut Port<B>> {
        self.ports.get_mut(usize::from(id.0))?.as_mut()
    }

    fn give_link(&mut self, id: PortId, link: Box<dyn FramePort<B>>, address: MacAddress) {
        let Some(port) = self.port(id) else { return };
        port.params.link = Some(link);
        port.params.address = address;
        for route in self.routes.iter_mut().flatten().filter(|route| route.port == id) {
            route.header = header::encode(&route.remote, &address);
        }
    }

    fn set_state(&mut self, id: PortId, is_up: bool, mtu_bytes: usize) {
        let Some(port) = self.port(id) else { return };
        port.params.is_up = is_up;
        port.params.mtu_bytes = mtu_bytes;
        if !is_up {
            let count = port.discard();
            self.table.link_drops().add(LinkDrop::LinkDown, count as u64);
            forget_backlog(&self.routes, id);
        }
    }

    fn attach(&mut self, id: PortId, face: Arc<Face>, remote: MacAddress, made_by_sender: bool) {
        // Whoever asked may have stopped waiting and given the face up.
        if self.table.get(face.id()).is_none() {
            return;
        }
        let Some(port) = self.port(id) else { return };
        port.attach(face.id(), remote);
        port.on_demand_faces += usize::from(made_by_sender);
        let header = header::encode(&remote, &port.params.address);
        let slot = face.id().slot();
        if self.routes.len() <= slot {
            self.routes.resize_with(slot + 1, || None);
        }
        self.routes[slot] = Some(Route { face, port: id, remote, header, made_by_sender });
    }

    fn detach(&mut self, id: FaceId) {
        let Some(route) = self.routes.get_mut(id.slot()).and_then(|route| route.take_if(|route| route.face.id() == id))
        else {
            return;
        };
        if let Some(port) = self.port(route.port) {
            port.detach(id, &route.remote);
            port.on_demand_faces -= usize::from(route.made_by_sender);
        }
    }

    /// Receives a burst from every port; what belongs to a face is added to `frames`. Whether any port had something.
    pub fn receive(&mut self, frames: &mut Vec<Frame<B>>) -> bool {
        let mut any = false;
        for index in 0..self.ports.len() {
            let mut received = std::mem::take(&mut self.received);
            if let Some(Some(Port { params, .. })) = self.ports.get_mut(index)
                && let Some(link) = &mut params.link
            {
                link.receive(&mut received);
            }
            any |= !received.is_empty();
            received.iter().for_each(PacketBuffer::prefetch);
            let mut last = None;
            for mut buffer in received.drain(..) {
                match self.sort(PortId(index as u16), &mut buffer, &mut last) {
                    Ok((face, endpoint)) => frames.push(Frame { face, endpoint, buffer }),
                    Err(reason) => self.table.link_drops().add(reason, 1),
                }
            }
            self.received = received;
        }
        any
    }

    /// Takes the header and padding off a received frame and finds whose it is. `last` is the last header of the same
    /// burst and whose that was: consecutive frames mostly come from one sender.
    #[inline]
    fn sort(
        &mut self,
        id: PortId,
        frame: &mut B,
        last: &mut Option<([u8; HEADER_BYTES], (FaceId, u64))>,
    ) -> Result<(FaceId, u64), LinkDrop> {
        if let Some((header, owner)) = last
            && frame.bytes().first_chunk() == Some(header)
        {
            frame.trim_front(HEADER_BYTES);
            return header::cut_padding(frame).map(|()| *owner);
        }
        let port = self.port(id).ok_or(LinkDrop::LinkDown)?;
        let header = match port.params.framing {
            Framing::Ethernet => frame.bytes().first_chunk().copied(),
            Framing::Bare => None,
        };
        let owner = match port.sort(frame)? {
            Owner::Face(face, endpoint) => (face, endpoint),
            Owner::Stranger(address) => self.meet(id, address)?,
        };
        *last = header.map(|header| (header, owner));
        Ok(owner)
    }

    /// Makes a face for an unknown sender, where that is allowed.
    #[cold]
    fn meet(&mut self, id: PortId, address: MacAddress) -> Result<(FaceId, u64), LinkDrop> {
        let flags = self.on_demand_flags;
        let (self_learning, idle_timeout) = (self.self_learning, self.idle_timeout);
        let port = self.port(id).ok_or(LinkDrop::UnknownSender)?;
        if port.params.max_on_demand_faces == 0 {
            return Err(LinkDrop::UnknownSender);
        }
        if port.on_demand_faces >= port.params.max_on_demand_faces {
            return Err(LinkDrop::TooManyFaces);
        }
        let mut params = face_params(address, port.params.local_uri.clone(), port.params.mtu_bytes);
        params.persistency = FacePersistency::OnDemand;
        params.flags = flags;
        params.self_learning = self_learning;
        params.idle_timeout = Some(idle_timeout);
        let face = self.table.insert(params).map_err(|_| LinkDrop::TooManyFaces)?;
        tracing::debug!(face = %face.id(), remote = %face.remote_uri(), local = %face.local_uri(), "face created");
        let number = face.id();
        self.attach(id, Arc::clone(&face), address, true);
        // When nobody listens any more the router is ending.
        let _ = self.events.send(FaceEvent::Created(face));
        Ok((number, 0))
    }

    /// Takes the frames of a face that is on one of these ports; `false` when it is not. They go out with
    /// [`PortSet::flush`]. Drops are counted on the face.
    pub fn send<P: BufferPool<Buffer = B>>(&mut self, face: &Face, frames: &mut Vec<B>, pool: &P) -> bool {
        let Some(Some(route)) = self.routes.get(face.id().slot()) else { return false };
        if route.face.id() != face.id() {
            return false;
        }
        let drops = &face.counters.worker.link_drops;
        let Some(Some(port)) = self.ports.get_mut(usize::from(route.port.0)) else { return false };
        if !port.params.is_up || port.params.link.is_none() {
            drops.add(LinkDrop::LinkDown, frames.len() as u64);
            frames.clear();
            return true;
        }
        // A dynamic threshold, as in switches: a queue may be as long as what is left beside all queues.
        let room = self.max_queued.saturating_sub(self.backlog + port.waiting.len());
        if frames.len() > room {
            drops.add(LinkDrop::SendQueueFull, (frames.len() - room) as u64);
            frames.truncate(room);
        }
        if port.params.framing == Framing::Ethernet {
            frames.retain_mut(|frame| {
                let has_header = put_header(frame, &route.header, pool);
                if !has_header {
                    drops.add(LinkDrop::NoBuffer, 1);
                }
                has_header
            });
        }
        port.queue(frames);
        if port.is_congested() {
            face.send_queue_bytes.store(port.backlog_bytes(), Ordering::Relaxed);
        }
        true
    }

    /// Sends what waits on all ports, as far as their links take it. When something is left, how long it takes until that is
    /// worth another attempt.
    pub fn flush(&mut self) -> Option<Duration> {
        let mut retry: Option<Duration> = None;
        self.backlog = 0;
        for (index, port) in self.ports.iter_mut().enumerate() {
            let Some(port) = port else { continue };
            if port.waiting.is_empty() {
                continue;
            }
            let was_congested = port.is_congested();
            port.flush();
            if !port.waiting.is_empty() {
                self.backlog += port.waiting.len();
                let pause = port.params.link.as_ref().map_or(RETRY_PAUSE, |link| link.retry_pause());
                retry = Some(retry.map_or(pause, |shortest| shortest.min(pause)));
            }
            if was_congested && !port.is_congested() {
                forget_backlog(&self.routes, PortId(index as u16));
            }
        }
        retry
    }

    /// To be called before the worker sleeps until one of [`PortSet::bells`] is readable.
    pub fn prepare_to_sleep(&mut self) {
        for port in self.ports.iter_mut().flatten() {
            if let Some(link) = &mut port.params.link {
                link.prepare_to_sleep();
            }
        }
    }

    /// The bells of the links that have one.
    pub fn bells(&self) -> Vec<BorrowedFd<'_>> {
        self.links().filter_map(FramePort::bell).collect()
    }

    /// Whether some links have no bell and must be polled.
    pub fn must_be_polled(&self) -> bool {
        self.links().any(|link| link.bell().is_none())
    }

    fn links(&self) -> impl Iterator<Item = &dyn FramePort<B>> {
        self.ports.iter().flatten().filter_map(|port| port.params.link.as_deref())
    }
}

/// Tells the faces of a port that nothing waits there any more.
fn forget_backlog(routes: &[Option<Route>], id: PortId) {
    for route in routes.iter().flatten().filter(|route| route.port == id) {
        route.face.send_queue_bytes.store(0, Ordering::Relaxed);
    }
}

/// Puts an Ethernet header in front of an NDN frame, and padding behind a short one; `false` when there is no buffer for
/// that.
#[inline]
fn put_header<P: BufferPool>(frame: &mut P::Buffer, header: &[u8; HEADER_BYTES], pool: &P) -> bool {
    if let Some(place) = frame.prepend(HEADER_BYTES) {
        place.copy_from_slice(header);
    } else if let Some(copy) = copy_behind(header, frame.bytes(), pool) {
        *frame = copy;
    } else {
        return false;
    }
    header::pad(frame);
    true
}

/// For a frame whose link-layer headers took all the headroom.
#[cold]
fn copy_behind<P: BufferPool>(header: &[u8; HEADER_BYTES], frame: &[u8], pool: &P) -> Option<P::Buffer> {
    let mut copy = pool.allocate(frame.len() + HEADER_BYTES)?;
    copy.append(HEADER_BYTES)?.copy_from_slice(header);
    copy.append(frame.len())?.copy_from_slice(frame);
    Some(copy)
}
