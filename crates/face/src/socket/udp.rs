//! UDP: one unconnected socket (a channel) per local address, shared by the faces of all remote addresses.
//!
//! Because faces share the listening socket, whatever they send leaves from the NDN port, where the peer answers to.
//! Datagrams are received and sent in batches; those to different peers leave in one call. A multicast face has a
//! channel of its own, on which everything belongs to that face.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use namehop_forward::buffer::{BufferPool, PacketBuffer};
use namehop_forward::face::FaceId;
use namehop_wire::MAX_PACKET_SIZE;
use nix::sys::socket::SockaddrStorage;
use socket2::{Protocol, Socket, Type};
use tokio::task::{spawn_local, yield_now};
use tokio::time::Instant;

use super::datagram_io::{BATCH, DatagramIo};
use super::error::CreateError;
use super::framing;
use super::listen::{internet_address, internet_socket};
use super::shared::{Link, OpenError, Shared, note_queue};
use super::watch::{Read, Watched};
use crate::counters::LinkDrop;
use crate::peers::{PeerTable, endpoint_number};
use crate::registry::{Face, FaceParams, FacePersistency, FaceUpdate};
use crate::uri::FaceUri;

/// Most datagrams that wait on one socket, each in a buffer of the router's pool: small ones must not take all of it.
const MAX_WAITING: usize = 4096;
/// Pause after the socket itself failed, so that a lasting failure does not spin.
const FAILURE_PAUSE: Duration = Duration::from_millis(10);

/// A remote address (or group) and the face it belongs to.
pub(super) struct Peer {
    face: Arc<Face>,
    address: SocketAddr,
    destination: SockaddrStorage,
    /// Packets came in or went out since the last look for idle faces.
    used: Cell<bool>,
}

impl Peer {
    /// Number of the face.
    pub(super) fn face_id(&self) -> FaceId {
        self.face.id()
    }
}

struct Waiting<B> {
    peer: Rc<Peer>,
    buffer: B,
}

/// Whom received datagrams belong to.
enum Receivers {
    /// A face per remote address.
    Unicast(PeerTable<Rc<Peer>>),
    /// One face for everybody in the group; `None` before it is made and after it was closed.
    Group(Option<Rc<Peer>>),
}

/// A UDP socket.
pub(super) struct Channel<B> {
    socket: Watched,
    local: SocketAddr,
    io: RefCell<DatagramIo>,
    receivers: RefCell<Receivers>,
    waiting: RefCell<VecDeque<Waiting<B>>>,
    waiting_bytes: Cell<usize>,
    limit_bytes: usize,
    /// A task waits until the kernel takes more.
    draining: Cell<bool>,
}

/// Transport state of a UDP face.
pub(super) struct DatagramLink<B> {
    /// Another one after a multicast group was joined anew.
    channel: RefCell<Rc<Channel<B>>>,
    peer: RefCell<Option<Rc<Peer>>>,
}

impl<B: PacketBuffer> DatagramLink<B> {
    /// The link of a face that is about to be made; it is complete when [`Channel::attach`] was called.
    pub(super) fn new(channel: &Rc<Channel<B>>) -> Self {
        DatagramLink { channel: RefCell::new(Rc::clone(channel)), peer: RefCell::new(None) }
    }

    pub(super) fn channel(&self) -> Rc<Channel<B>> {
        Rc::clone(&self.channel.borrow())
    }

    /// Queues a frame on the channel.
    pub(super) fn queue(&self, face: &Face, buffer: B) -> Result<(), LinkDrop> {
        let peer = self.peer.borrow().clone().ok_or(LinkDrop::LinkDown)?;
        let channel = self.channel.borrow();
        let bytes = buffer.bytes().len();
        let total = channel.waiting_bytes.get() + bytes;
        if total > channel.limit_bytes || channel.waiting.borrow().len() == MAX_WAITING {
            return Err(LinkDrop::SendQueueFull);
        }
        channel.waiting_bytes.set(total);
        note_queue(face, face.send_queue_bytes.load(Ordering::Relaxed) + bytes);
        peer.used.set(true);
        channel.waiting.borrow_mut().push_back(Waiting { peer, buffer });
        Ok(())
    }

    /// Forgets the peer and what waits for it.
    pub(super) fn disconnect(&self, face: &Face) {
        let Some(peer) = self.peer.take() else { return };
        let channel = self.channel.borrow();
        match &mut *channel.receivers.borrow_mut() {
            Receivers::Unicast(peers) => drop(peers.remove(&peer.address)),
            Receivers::Group(group) => *group = None,
        }
        channel.waiting.borrow_mut().retain(|waiting| {
            let stays = !Rc::ptr_eq(&waiting.peer, &peer);
            if !stays {
                channel.waiting_bytes.set(channel.waiting_bytes.get() - waiting.buffer.bytes().len());
            }
            stays
        });
        note_queue(face, 0);
    }
}

impl<B: PacketBuffer + 'static> Channel<B> {
    /// Puts a bound socket to use, for unicast or for one multicast group.
    pub(super) fn new(socket: Socket, local: SocketAddr, is_group: bool, limit_bytes: usize) -> io::Result<Rc<Self>> {
        let receivers = if is_group { Receivers::Group(None) } else { Receivers::Unicast(PeerTable::new()) };
        Ok(Rc::new(Channel {
            socket: Watched::new(socket.into())?,
            local,
            io: RefCell::new(DatagramIo::new()),
            receivers: RefCell::new(receivers),
            waiting: RefCell::default(),
            waiting_bytes: Cell::new(0),
            limit_bytes,
            draining: Cell::new(false),
        }))
    }

    /// Opens a face for `address` on this channel.
    pub(super) fn open<P: BufferPool<Buffer = B>>(
        self: &Rc<Self>,
        shared: &Shared<P>,
        address: SocketAddr,
        mut params: FaceParams,
        update: &FaceUpdate,
    ) -> Result<Rc<Peer>, OpenError> {
        params.is_datagram = true;
        params.link_mtu_bytes = shared.config.datagram_mtu_bytes;
        let entry = shared.open(params, update, Link::Datagram(DatagramLink::new(self)))?;
        // It was made so just now; otherwise there would be no such face.
        let Link::Datagram(link) = &entry.link else { return Err(OpenError::Closing) };
        Ok(self.attach(&entry.face, link, address))
    }

    /// Has the link of a face use this channel to reach `address`.
    pub(super) fn attach(self: &Rc<Self>, face: &Arc<Face>, link: &DatagramLink<B>, address: SocketAddr) -> Rc<Peer> {
        let destination = SockaddrStorage::from(address);
        let peer = Rc::new(Peer { face: Arc::clone(face), address, destination, used: Cell::new(true) });
        *link.channel.borrow_mut() = Rc::clone(self);
        *link.peer.borrow_mut() = Some(Rc::clone(&peer));
        match &mut *self.receivers.borrow_mut() {
            Receivers::Unicast(peers) => peers.insert(address, Rc::clone(&peer)),
            Receivers::Group(group) => *group = Some(Rc::clone(&peer)),
        }
        peer
    }

    fn open_unicast<P: BufferPool<Buffer = B>>(
        self: &Rc<Self>,
        shared: &Shared<P>,
        address: SocketAddr,
        local: SocketAddr,
        persistency: FacePersistency,
        update: &FaceUpdate,
    ) -> Result<Rc<Peer>, OpenError> {
        let mut params = shared.params(FaceUri::udp(address), FaceUri::udp(local));
        params.flags = shared.marking_flags();
        params.persistency = persistency;
        params.allowed_persistencies =
            &[FacePersistency::OnDemand, FacePersistency::Persistent, FacePersistency::Permanent];
        self.open(shared, address, params, update)
    }

    /// The peer a datagram belongs to, made on demand on a unicast channel.
    fn peer_of<P: BufferPool<Buffer = B>>(
        self: &Rc<Self>,
        shared: &Shared<P>,
        from: SocketAddr,
        is_whole: bool,
    ) -> Option<Rc<Peer>> {
        match &*self.receivers.borrow() {
            Receivers::Unicast(peers) => {
                if let Some(peer) = peers.get(&from) {
                    return Some(Rc::clone(peer));
                }
            }
            Receivers::Group(group) => return group.clone(),
        }
        if !is_whole {
            // Noise from a stranger is not worth a face.
            shared.table.link_drops().add(LinkDrop::MalformedFrame, 1);
            return None;
        }
        let local = source_towards(from, self.local).unwrap_or(self.local);
        let peer = self.open_unicast(shared, from, local, FacePersistency::OnDemand, &FaceUpdate::default()).ok()?;
        let idle = Duration::from_millis(shared.config.udp_idle_ms);
        peer.face.set_expiration(Some(std::time::Instant::now() + idle * 2));
        Some(peer)
    }

    fn accept<P: BufferPool<Buffer = B>>(self: &Rc<Self>, shared: &Shared<P>, from: SocketAddr, datagram: &[u8]) {
        let is_whole = framing::is_whole(datagram);
        let Some(peer) = self.peer_of(shared, from, is_whole) else { return };
        let delivered = if is_whole {
            peer.used.set(true);
            let endpoint = match &*self.receivers.borrow() {
                Receivers::Unicast(_) => 0,
                Receivers::Group(_) => endpoint_number(&from),
            };
            shared.deliver(peer.face.id(), endpoint, datagram)
        } else if datagram.len() > MAX_PACKET_SIZE {
            Err(LinkDrop::FrameTooLong)
        } else {
            Err(LinkDrop::MalformedFrame)
        };
        if let Err(reason) = delivered {
            peer.face.counters.count_transport_drop(reason);
        }
    }

    /// Receives one batch; whether there is probably more.
    fn poll_receive<P: BufferPool<Buffer = B>>(
        self: &Rc<Self>,
        cx: &mut Context<'_>,
        shared: &Shared<P>,
    ) -> Poll<io::Result<bool>> {
        let mut memory = shared.datagram_memory.borrow_mut();
        let received = self.socket.poll_read(cx, |_| {
            let mut io = self.io.borrow_mut();
            let count = io.receive(&self.socket, &mut memory, |from, datagram| self.accept(shared, from, datagram))?;
            // A short batch emptied the socket.
            Ok(Read { value: count == BATCH, is_drained: count < BATCH })
        });
        shared.to_worker.wake();
        received
    }

    /// Sends until nothing waits; `false` when the kernel takes no more for now.
    fn send(&self) -> bool {
        let mut waiting = self.waiting.borrow_mut();
        while !waiting.is_empty() {
            let batch = waiting.iter().map(|one| (&one.peer.destination, one.buffer.bytes()));
            let sent = self.io.borrow_mut().send(&self.socket, batch);
            let (done, failure) = match sent {
                Ok(0) => return true,
                Ok(count) => (count, None),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // The error belongs to the first datagram only: no route, a local firewall, too long for the link.
                Err(error) => (1, Some(error)),
            };
            for one in waiting.drain(..done) {
                let bytes = one.buffer.bytes().len();
                self.waiting_bytes.set(self.waiting_bytes.get() - bytes);
                let face = &one.peer.face;
                note_queue(face, face.send_queue_bytes.load(Ordering::Relaxed).saturating_sub(bytes));
                if let Some(error) = &failure {
                    tracing::trace!(face = %face.id(), %error, "datagram not sent");
                    face.counters.count_transport_drop(LinkDrop::SendFailed);
                }
            }
        }
        true
    }
}

/// Sends what waits on a channel. What the kernel does not take is left to a task that waits for room.
pub(super) fn flush<B: PacketBuffer + 'static>(channel: &Rc<Channel<B>>) {
    if channel.draining.get() || channel.send() {
        return;
    }
    channel.draining.set(true);
    let channel = Rc::clone(channel);
    spawn_local(async move {
        let attempt = || if channel.send() { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) };
        if let Err(error) = channel.socket.write_when_possible(attempt).await {
            // What waits leaves with the next packet.
            tracing::debug!(local = %channel.local, %error, "cannot wait for room to send");
        }
        channel.draining.set(false);
    });
}

/// Receives on a channel for as long as it lives.
pub(super) async fn receive<P: BufferPool>(shared: Rc<Shared<P>>, channel: Rc<Channel<P::Buffer>>) {
    loop {
        match poll_fn(|cx| channel.poll_receive(cx, &shared)).await {
            Ok(true) => yield_now().await,
            Ok(false) => {}
            Err(error) => {
                tracing::debug!(local = %channel.local, %error, "receiving failed");
                tokio::time::sleep(FAILURE_PAUSE).await;
            }
        }
    }
}

/// Closes on-demand faces that were not used since the last look, for as long as the channel lives.
pub(super) async fn expire<P: BufferPool>(shared: Rc<Shared<P>>, channel: Rc<Channel<P::Buffer>>) {
    let idle = Duration::from_millis(shared.config.udp_idle_ms.max(1));
    let mut looks = tokio::time::interval_at(Instant::now() + idle, idle);
    loop {
        looks.tick().await;
        let mut unused = Vec::new();
        if let Receivers::Unicast(peers) = &*channel.receivers.borrow() {
            let next_look = std::time::Instant::now() + idle;
            for peer in peers.values() {
                if peer.face.persistency() != FacePersistency::OnDemand {
                    peer.face.set_expiration(None);
                } else if peer.used.replace(false) {
                    peer.face.set_expiration(Some(next_look));
                } else {
                    unused.push(peer.face.id());
                }
            }
        }
        for id in unused {
            shared.close(id);
        }
    }
}

/// Makes a face to `peer` on the channel that reaches it.
pub(super) fn create<P: BufferPool>(
    shared: &Shared<P>,
    peer: SocketAddr,
    update: &FaceUpdate,
) -> Result<Arc<Face>, CreateError> {
    let family = if peer.is_ipv4() { "IPv4" } else { "IPv6" };
    let channels = shared.channels.borrow();
    let mut fitting = channels.iter().filter(|channel| channel.local.is_ipv4() == peer.is_ipv4()).peekable();
    let Some(first) = fitting.peek().copied() else {
        return Err(CreateError::Unreachable(format!(
            "no UDP socket is open for {family}: configure a UDP listener for it"
        )));
    };
    let wildcard = SocketAddr::new(first.local.ip(), 0);
    let probe_from = if first.local.ip().is_unspecified() { wildcard } else { any_of_family(peer) };
    let source = source_towards(peer, probe_from)
        .map_err(|error| CreateError::Unreachable(format!("no {family} route to {peer}: {error}")))?;
    let (mut exact, mut any) = (None, None);
    for channel in fitting {
        if channel.local.ip() == source.ip() {
            exact = Some(channel);
        } else if channel.local.ip().is_unspecified() {
            any = Some(channel);
        }
    }
    let channel = exact.or(any).unwrap_or(first);
    let local = if channel.local.ip().is_unspecified() {
        SocketAddr::new(source.ip(), channel.local.port())
    } else {
        channel.local
    };
    channel
        .open_unicast(shared, peer, local, FacePersistency::Persistent, update)
        .map(|peer| Arc::clone(&peer.face))
        .map_err(|error| CreateError::NotAcceptable(error.to_string()))
}

fn any_of_family(peer: SocketAddr) -> SocketAddr {
    if peer.is_ipv4() { SocketAddr::from(([0, 0, 0, 0], 0)) } else { SocketAddr::from(([0_u16; 8], 0)) }
}

/// The address that datagrams to `peer` leave from when sent on a socket bound to `bound`. Asks the routing table by
/// connecting a socket, which sends nothing.
fn source_towards(peer: SocketAddr, bound: SocketAddr) -> io::Result<SocketAddr> {
    if !bound.ip().is_unspecified() {
        return Ok(bound);
    }
    let probe = internet_socket(peer, Type::DGRAM, Protocol::UDP)?;
    probe.connect(&peer.into())?;
    let source = internet_address(&probe.local_addr()?)?;
    Ok(SocketAddr::new(source.ip(), bound.port()))
}
