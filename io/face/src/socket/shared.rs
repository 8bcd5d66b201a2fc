//! State shared by all tasks of the socket service: its faces, the rings to and from the worker, scratch memory.
//!
//! All tasks run on one thread, so plain cells suffice. No borrow is held across an `await`.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Instant;

use namehop_packet::{BufferPool, FaceId, PacketBuffer, Stamp};
use namehop_wire::MAX_PACKET_SIZE;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;

use super::backlog::{Backlog, FRAMES_PER_ROUND, READ_BYTES};
use super::config::SocketConfig;
use super::error::CreateError;
use super::host::Dependence;
use super::permits::{Activity, Holder, Permit, PermitRequest, Permits, Transport};
use super::send_buffer::{Account, SendBudget};
use super::silence::Looks;
use super::stream::StreamLink;
use super::udp::{Channel, DatagramLink};
use super::websocket::WebSocketLink;
use super::{FaceEvent, datagram_io};
use crate::counters::LinkDrop;
use crate::latency::LatencyRecorder;
use crate::log_limit::LogLimit;
use crate::registry::{Face, FaceFlags, FaceParams, FaceTable, FaceTableError, FaceUpdate, RejectedProperties};
use crate::ring::{Frame, FrameInlet, FrameRing, SocketInlets};
use crate::uri::FaceUri;

/// Number of closed faces still referenced by other threads at which no more connections are accepted.
const MAX_LINGERING: usize = 1024;

/// The transport of one face.
pub(super) enum Link {
    Stream(StreamLink),
    Datagram(DatagramLink),
    WebSocket(WebSocketLink),
}

impl Link {
    /// Returns the system resources that the link uses.
    fn transport(&self) -> Transport {
        match self {
            Link::Datagram(link) if !link.has_own_socket() => Transport::Datagram,
            Link::Datagram(_) | Link::Stream(_) | Link::WebSocket(_) => Transport::Connection,
        }
    }
}

/// One face over a socket.
pub(super) struct SocketFace {
    pub(super) face: Arc<Face>,
    pub(super) link: Link,
    /// The transport works: it is connected, or the peer has not refused datagrams.
    works: Cell<bool>,
    /// A route leads to the peer.
    has_way: Cell<bool>,
    /// Frames were queued since the last flush.
    pub(super) dirty: Cell<bool>,
    /// Activity of the face, shared with its permit.
    pub(super) activity: Rc<Activity>,
    /// The task that serves the face, if it has one of its own.
    task: RefCell<Option<AbortHandle>>,
}

impl SocketFace {
    /// Sets the task to abort when the face is closed.
    pub(super) fn set_task(&self, task: AbortHandle) {
        *self.task.borrow_mut() = Some(task);
    }
}

type Slot = Option<(Rc<SocketFace>, Permit)>;

/// Replies waiting for the outcome of a connection attempt that another request started.
pub(super) type Waiting = Vec<oneshot::Sender<Result<Arc<Face>, CreateError>>>;

/// State of the socket service.
pub(super) struct ServiceState {
    pub(super) config: SocketConfig,
    pool: BufferPool,
    pub(super) table: Arc<FaceTable>,
    pub(super) to_workers: SocketInlets,
    pub(super) from_worker: Arc<FrameRing>,
    events: mpsc::UnboundedSender<FaceEvent>,
    /// Indexed by the slot of the face id.
    faces: RefCell<Vec<Slot>>,
    permits: Rc<Permits>,
    /// Memory budget of the send queues of streams.
    pub(super) send_budget: Rc<SendBudget>,
    /// Closed faces, in the order of closing. Other threads may still hold some, because they have not processed the
    /// event yet.
    lingering: RefCell<VecDeque<Weak<Face>>>,
    is_closing: Cell<bool>,
    /// Protocol and address of the listening Internet sockets.
    pub(super) listened_on: Vec<(&'static str, SocketAddr)>,
    /// Unicast UDP sockets.
    pub(super) channels: RefCell<Vec<Rc<Channel>>>,
    /// Notifies faces that wait to reconnect that addresses of this host have changed.
    pub(super) addresses_changed: watch::Sender<()>,
    /// Connection attempts in progress, by remote URI.
    pub(super) connecting: RefCell<HashMap<FaceUri, Waiting>>,
    /// Schedules the check for UDP peers that have fallen silent.
    pub(super) silence_looks: Looks,
    /// The packets that streams hold because the worker is behind.
    pub(super) backlog: Backlog,
    /// Buffer for reading streams: the incomplete packet of the last read, and one read.
    pub(super) stream_memory: RefCell<Box<[u8]>>,
    /// Measures how long packets stay in the router; `None` while latency is not measured.
    pub(super) latency: RefCell<Option<Box<LatencyRecorder>>>,
    /// Buffer for receiving datagrams.
    pub(super) datagram_memory: RefCell<Box<[u8]>>,
}

impl ServiceState {
    pub(super) fn new(
        config: SocketConfig,
        pool: BufferPool,
        table: Arc<FaceTable>,
        to_workers: SocketInlets,
        from_worker: Arc<FrameRing>,
        events: mpsc::UnboundedSender<FaceEvent>,
        listened_on: Vec<(&'static str, SocketAddr)>,
    ) -> Self {
        ServiceState {
            permits: Permits::new(&config),
            send_budget: SendBudget::new(config.all_stream_queues_bytes),
            config,
            pool,
            table,
            to_workers,
            from_worker,
            events,
            faces: RefCell::default(),
            lingering: RefCell::default(),
            is_closing: Cell::new(false),
            listened_on,
            channels: RefCell::default(),
            addresses_changed: watch::Sender::default(),
            connecting: RefCell::default(),
            silence_looks: Looks::default(),
            backlog: Backlog::default(),
            latency: RefCell::default(),
            stream_memory: RefCell::new(vec![0; MAX_PACKET_SIZE + READ_BYTES].into_boxed_slice()),
            datagram_memory: RefCell::new(datagram_io::receive_memory()),
        }
    }

    /// Returns the default parameters of a face over sockets.
    pub(super) fn params(&self, remote: FaceUri, local: FaceUri) -> FaceParams {
        let mut params = FaceParams::new(remote, local);
        params.self_learning = self.config.self_learning;
        params.flags = self.config.pit_tokens.flags();
        params
    }

    /// Returns the flags of a new face on a transport that reports its queue length.
    pub(super) fn marking_flags(&self) -> FaceFlags {
        if self.config.congestion_marking { FaceFlags::CONGESTION_MARKING } else { FaceFlags::default() }
    }

    /// Opens the account for the send queue of a new face.
    pub(super) fn send_account(&self, params: &FaceParams) -> Account {
        self.send_budget.account(PermitRequest::of_face(params, Transport::Connection).is_unsolicited())
    }

    /// Makes a permit available for `request`, if necessary by evicting an unsolicited peer. Returns `false` if there
    /// is none; the refusal is counted.
    pub(super) fn make_room(&self, request: &PermitRequest) -> bool {
        if self.permits.has_room(request) {
            return true;
        }
        if let Some(holder) = self.permits.take_back(request) {
            self.close_evicted(holder);
        }
        let has_room = self.permits.has_room(request);
        if !has_room {
            self.count_refused();
        }
        has_room
    }

    /// Takes a permit for a face, or for a connection during its WebSocket handshake. A refusal is counted.
    pub(super) fn take_permit(&self, request: &PermitRequest) -> Result<Permit, OpenError> {
        let permit = if self.make_room(request) { self.permits.take(request) } else { None };
        permit.ok_or(match request.transport() {
            Transport::Connection if self.config.max_connections < self.config.max_faces => {
                OpenError::Descriptors(self.config.max_connections)
            }
            _ => OpenError::Limit(self.config.max_faces),
        })
    }

    /// Closes connections of unsolicited peers that have never sent a packet, while more than half of the permits for
    /// such connections are in use.
    pub(super) fn close_silent(&self) {
        while let Some(holder) = self.permits.take_back_silent(Instant::now()) {
            self.close_evicted(holder);
        }
    }

    /// Evicts the connection of an unsolicited peer to free a file descriptor.
    pub(super) fn give_up_connection(&self) {
        if let Some(holder) = self.permits.take_back_connection() {
            self.close_evicted(holder);
        }
    }

    fn close_evicted(&self, holder: Holder) {
        self.table.link_drops().add(LinkDrop::FaceEvicted, 1);
        match holder {
            Holder::Face(face) => drop(self.close(face.id())),
            Holder::Handshake(task) => task.abort(),
            Holder::Unknown => {}
        }
    }

    fn count_refused(&self) {
        self.table.link_drops().add(LinkDrop::TooManyFaces, 1);
        // A flood of connections must not cause a flood of log lines.
        static LINES: LogLimit = LogLimit::new(3);
        if let Some(left_out) = LINES.admit() {
            tracing::warn!(left_out, "limit of faces or connections reached: new connections and peers are refused");
        }
    }

    /// Inserts a face, applies `update` to it and announces it.
    pub(super) fn open(
        &self,
        mut params: FaceParams,
        update: &FaceUpdate,
        link: Link,
    ) -> Result<Rc<SocketFace>, OpenError> {
        if self.is_closing.get() {
            return Err(OpenError::Closing);
        }
        let permit = self.take_permit(&PermitRequest::of_face(&params, link.transport()))?;
        let works = params.is_up;
        let has_way = Dependence::of(params.persistency, &params.remote_uri, &params.local_uri).is_met();
        params.is_up = works && has_way;
        let face = self.table.insert(params).inspect_err(|_| self.count_refused())?;
        if let Err(rejected) = face.update(update) {
            self.table.remove(face.id());
            return Err(rejected.into());
        }
        tracing::debug!(face = %face.id(), remote = %face.remote_uri(), local = %face.local_uri(), "face created");
        let slot = face.id().slot();
        permit.set_holder(Holder::Face(Arc::clone(&face)));
        let activity = Rc::clone(permit.activity());
        let (works, has_way) = (Cell::new(works), Cell::new(has_way));
        let (dirty, task) = (Cell::new(false), RefCell::new(None));
        let entry = Rc::new(SocketFace { face, link, works, has_way, dirty, activity, task });
        let mut faces = self.faces.borrow_mut();
        if faces.len() <= slot {
            faces.resize_with(slot + 1, || None);
        }
        faces[slot] = Some((Rc::clone(&entry), permit));
        self.announce(FaceEvent::Created(Arc::clone(&entry.face)));
        Ok(entry)
    }

    /// Sends an event to the rest of the router. This fails only when the router is shutting down.
    pub(super) fn announce(&self, event: FaceEvent) {
        let _ = self.events.send(event);
    }

    /// Returns the open face of this service with this id.
    pub(super) fn face(&self, id: FaceId) -> Option<Rc<SocketFace>> {
        let faces = self.faces.borrow();
        faces.get(id.slot())?.as_ref().map(|(entry, _)| entry).filter(|entry| entry.face.id() == id).cloned()
    }

    /// Returns all open faces of this service.
    pub(super) fn entries(&self) -> Vec<Rc<SocketFace>> {
        self.faces.borrow().iter().flatten().map(|(entry, _)| Rc::clone(entry)).collect()
    }

    /// Closes a face; returns `false` if there is none with this id.
    pub(super) fn close(&self, id: FaceId) -> bool {
        let Some(entry) = self.face(id) else { return false };
        self.faces.borrow_mut()[id.slot()] = None;
        match &entry.link {
            Link::Stream(link) => link.disconnect(&entry.face),
            Link::Datagram(link) => link.disconnect(&entry.face),
            Link::WebSocket(link) => link.disconnect(&entry.face),
        }
        if let Some(task) = entry.task.take() {
            task.abort();
        }
        entry.face.set_up(false);
        self.table.remove(id);
        tracing::debug!(face = %id, remote = %entry.face.remote_uri(), "face closed");
        self.announce(FaceEvent::Destroyed(Arc::clone(&entry.face)));
        self.lingering.borrow_mut().push_back(Arc::downgrade(&entry.face));
        self.is_far_ahead();
        true
    }

    /// Whether the other threads still hold [`MAX_LINGERING`] closed faces. A peer that connects and disconnects all
    /// the time must not fill the memory with events that the other threads have yet to process.
    pub(super) fn is_far_ahead(&self) -> bool {
        let mut lingering = self.lingering.borrow_mut();
        // The other threads process closed faces in the order of closing.
        while lingering.len() >= MAX_LINGERING && lingering.front().is_some_and(|face| face.strong_count() == 0) {
            lingering.pop_front();
        }
        lingering.len() >= MAX_LINGERING
    }

    /// Closes every face; no face can be created after that.
    pub(super) fn close_all(&self) {
        self.is_closing.set(true);
        for entry in self.entries() {
            self.close(entry.face.id());
        }
    }

    /// Sets whether the transport of a face works. Does nothing if the face is closed.
    pub(super) fn set_up(&self, face: &Face, works: bool) {
        if let Some(entry) = self.face(face.id()) {
            entry.works.set(works);
            self.note_state(&entry);
        }
    }

    /// Sets whether a route leads to the peer of a face.
    pub(super) fn set_way(&self, entry: &SocketFace, has_way: bool) {
        entry.has_way.set(has_way);
        self.note_state(entry);
    }

    /// Updates whether a face is up, and announces a change.
    fn note_state(&self, entry: &SocketFace) {
        let is_up = entry.works.get() && entry.has_way.get();
        if entry.face.set_up(is_up) != is_up {
            let event = if is_up { FaceEvent::Up } else { FaceEvent::Down };
            self.announce(event(Arc::clone(&entry.face)));
        }
    }

    /// Copies a packet of a stream into a pool buffer and pushes it to a ring. The caller wakes the workers after the
    /// last packet of a read.
    pub(super) fn deliver(&self, face: FaceId, packet: &[u8]) -> Result<(), LinkDrop> {
        self.push(&self.to_workers.streams, face, 0, packet)
    }

    /// Calls [`deliver`](Self::deliver) for a stream with a backlog. Refuses the packet while [`FRAMES_PER_ROUND`]
    /// frames wait for its worker, so that packets of other faces do not wait behind the backlog.
    pub(super) fn deliver_backlog(&self, face: FaceId, packet: &[u8]) -> Result<(), LinkDrop> {
        if self.to_workers.streams.waiting_before(face, packet) >= FRAMES_PER_ROUND {
            return Err(LinkDrop::ReceiveRingFull);
        }
        self.deliver(face, packet)
    }

    /// Copies a datagram into a pool buffer and pushes it to a ring; see [`deliver`](Self::deliver).
    pub(super) fn deliver_datagram(&self, face: FaceId, endpoint: u64, datagram: &[u8]) -> Result<(), LinkDrop> {
        self.push(&self.to_workers.datagrams, face, endpoint, datagram)
    }

    /// Returns a buffer with these bytes; `None` if the pool is exhausted.
    pub(super) fn buffer_of(&self, bytes: &[u8]) -> Option<PacketBuffer> {
        self.pool.copy_of(bytes)
    }

    fn push(&self, inlet: &FrameInlet, face: FaceId, endpoint: u64, bytes: &[u8]) -> Result<(), LinkDrop> {
        let buffer = self.pool.copy_of(bytes).ok_or(LinkDrop::NoBuffer)?;
        let stamp = self.latency.borrow_mut().as_mut().map_or(Stamp::NONE, |latency| latency.stamp());
        let frame = Frame { face, endpoint, buffer, stamp };
        inlet.push(frame).map_err(|_| LinkDrop::ReceiveRingFull)
    }
}

/// Counts and logs that a connection is closed because its peer reads nothing.
pub(super) fn note_blocked(face: &Face, config: &SocketConfig) {
    face.counters.count_transport_drop(LinkDrop::PeerBlocked);
    static LINES: LogLimit = LogLimit::new(10);
    if let Some(left_out) = LINES.admit() {
        let (remote, seconds) = (face.remote_uri(), config.blocked_timeout_ms / 1000);
        tracing::info!(face = %face.id(), %remote, left_out, "peer has read nothing for {seconds} s: closing");
    }
}

/// Sets the length of the face's send queue in bytes.
pub(super) fn note_queue(face: &Face, bytes: usize) {
    face.send_queue_bytes.store(bytes, Ordering::Relaxed);
}

/// Why a face was not opened.
#[derive(Debug, thiserror::Error)]
pub(super) enum OpenError {
    #[error("the socket service is shutting down")]
    Closing,
    #[error("the limit of {0} faces over sockets is reached: destroy some, or raise the limit in the configuration")]
    Limit(usize),
    #[error(
        "the limit of {0} connections is reached, which depends on the number of file descriptors: raise their hard \
         limit (LimitNOFILE of the service, or `ulimit -Hn`)"
    )]
    Descriptors(usize),
    #[error(transparent)]
    Table(#[from] FaceTableError),
    #[error(transparent)]
    Rejected(#[from] RejectedProperties),
}
