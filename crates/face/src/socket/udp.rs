//! UDP: one unconnected socket (a channel) per local address, shared by the faces of all remote addresses.
//!
//! Because faces share the listening socket, whatever they send leaves from the NDN port, where the peer answers to.
//! Datagrams are received and sent in batches; those to different peers leave in one call. A multicast face has a
//! channel of its own, on which everything belongs to that face, and so has a face to a peer that no socket listened on can reach
//! (in `connected`). Some peers have a second socket that only they are received from: see `standing`.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use namehop_packet::{FaceId, PacketBuffer};
use nix::sys::socket::SockaddrStorage;
use socket2::Socket;
use tokio::task::spawn_local;
use tokio::time::Instant;

use super::framing;
use super::inlet::{self, Inlet};
use super::listen::source_towards;
use super::permits::{Activity, PermitRequest};
use super::shared::{Link, OpenError, Shared, SocketFace, note_queue};
use super::standing::Standing;
use crate::counters::LinkDrop;
use crate::peers::{PeerTable, endpoint_number};
use crate::registry::{Face, FaceParams, FacePersistency, FaceUpdate};
use crate::uri::FaceUri;

/// Most datagrams that wait on one socket, each in a buffer of the router's pool: small ones must not take all of it.
const MAX_WAITING: usize = 4096;

/// A remote address (or group) and the face it belongs to.
pub(super) struct Peer {
    pub(super) face: Arc<Face>,
    pub(super) address: SocketAddr,
    destination: SockaddrStorage,
    /// What is noted of its packets.
    activity: Rc<Activity>,
    /// Whether it gets a receive queue of its own.
    pub(super) standing: Standing,
}

impl Peer {
    /// Number of the face.
    pub(super) fn face_id(&self) -> FaceId {
        self.face.id()
    }
}

struct Waiting {
    peer: Rc<Peer>,
    buffer: PacketBuffer,
}

/// Whom a socket is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Audience {
    /// Whoever sends to its address.
    Anybody,
    /// A multicast group.
    Group,
    /// The peer that it is connected to.
    OnePeer,
}

/// Whom received datagrams belong to.
enum Receivers {
    /// A face per remote address.
    Unicast(PeerTable<Rc<Peer>>),
    /// One face for everybody in the group; `None` before it is made and after it was closed.
    Group(Option<Rc<Peer>>),
}

/// A UDP socket.
pub(super) struct Channel {
    inlet: Rc<Inlet>,
    pub(super) local: SocketAddr,
    audience: Audience,
    receivers: RefCell<Receivers>,
    waiting: RefCell<VecDeque<Waiting>>,
    waiting_bytes: Cell<usize>,
    limit_bytes: usize,
    /// A task waits until the kernel takes more.
    draining: Cell<bool>,
    /// A look at the standing of all peers is planned.
    pub(super) looks_at_standing: Cell<bool>,
}

/// Transport state of a UDP face.
pub(super) struct DatagramLink {
    /// Another one after a multicast group was joined anew.
    channel: RefCell<Rc<Channel>>,
    peer: RefCell<Option<Rc<Peer>>>,
}

impl DatagramLink {
    /// The link of a face that is about to be made; it is complete when [`Channel::attach`] was called.
    pub(super) fn new(channel: &Rc<Channel>) -> Self {
        DatagramLink { channel: RefCell::new(Rc::clone(channel)), peer: RefCell::new(None) }
    }

    pub(super) fn channel(&self) -> Rc<Channel> {
        Rc::clone(&self.channel.borrow())
    }

    /// Whether the face has its socket for itself.
    pub(super) fn has_own_socket(&self) -> bool {
        self.channel.borrow().audience == Audience::OnePeer
    }

    /// Whom it reaches; `None` before it is complete and after the face was closed.
    pub(super) fn peer(&self) -> Option<Rc<Peer>> {
        self.peer.borrow().clone()
    }

    /// Queues a frame on the channel.
    pub(super) fn queue(&self, face: &Face, buffer: PacketBuffer) -> Result<(), LinkDrop> {
        let peer = self.peer().ok_or(LinkDrop::LinkDown)?;
        let channel = self.channel.borrow();
        let bytes = buffer.bytes().len();
        let total = channel.waiting_bytes.get() + bytes;
        if total > channel.limit_bytes || channel.waiting.borrow().len() == MAX_WAITING {
            return Err(LinkDrop::SendQueueFull);
        }
        channel.waiting_bytes.set(total);
        note_queue(face, face.send_queue_bytes.load(Ordering::Relaxed) + bytes);
        peer.activity.note_use();
        channel.waiting.borrow_mut().push_back(Waiting { peer, buffer });
        Ok(())
    }

    /// Forgets the peer and what waits for it.
    pub(super) fn disconnect(&self, face: &Face) {
        let Some(peer) = self.peer.take() else { return };
        peer.standing.give_up_queue();
        let channel = self.channel.borrow();
        match &mut *channel.receivers.borrow_mut() {
            Receivers::Unicast(peers) => drop(peers.remove(&peer.address)),
            Receivers::Group(group) => *group = None,
        }
        channel.waiting.borrow_mut().retain(|waiting| {
            let stays = !Rc::ptr_eq(&waiting.peer, &peer);
            if !stays {
                face.counters.count_transport_drop(LinkDrop::LinkDown);
                channel.waiting_bytes.set(channel.waiting_bytes.get() - waiting.buffer.bytes().len());
            }
            stays
        });
        note_queue(face, 0);
    }
}

impl Channel {
    /// Puts a socket to use. Up to `limit_bytes` wait to be sent.
    pub(super) fn new(
        socket: Socket,
        local: SocketAddr,
        audience: Audience,
        limit_bytes: usize,
    ) -> io::Result<Rc<Self>> {
        let receivers = match audience {
            Audience::Group => Receivers::Group(None),
            Audience::Anybody | Audience::OnePeer => Receivers::Unicast(PeerTable::new()),
        };
        Ok(Rc::new(Channel {
            inlet: Inlet::new(socket)?,
            local,
            audience,
            receivers: RefCell::new(receivers),
            waiting: RefCell::default(),
            waiting_bytes: Cell::new(0),
            limit_bytes,
            draining: Cell::new(false),
            looks_at_standing: Cell::new(false),
        }))
    }

    /// Opens a face for `address` on this channel.
    pub(super) fn open(
        self: &Rc<Self>,
        shared: &Shared,
        address: SocketAddr,
        mut params: FaceParams,
        update: &FaceUpdate,
    ) -> Result<Rc<Peer>, OpenError> {
        params.is_datagram = true;
        params.link_mtu_bytes = shared.config.datagram_mtu_bytes;
        let entry = shared.open(params, update, Link::Datagram(DatagramLink::new(self)))?;
        // It was made so just now; otherwise there would be no such face.
        let Link::Datagram(link) = &entry.link else { return Err(OpenError::Closing) };
        Ok(self.attach(&entry, link, address))
    }

    /// Makes the link of a face use this channel to reach `address`.
    pub(super) fn attach(self: &Rc<Self>, entry: &SocketFace, link: &DatagramLink, address: SocketAddr) -> Rc<Peer> {
        let destination = SockaddrStorage::from(address);
        let (face, activity) = (Arc::clone(&entry.face), Rc::clone(&entry.activity));
        activity.note_use();
        let peer = Rc::new(Peer { face, address, destination, activity, standing: Standing::default() });
        *link.channel.borrow_mut() = Rc::clone(self);
        *link.peer.borrow_mut() = Some(Rc::clone(&peer));
        match &mut *self.receivers.borrow_mut() {
            Receivers::Unicast(peers) => peers.insert(address, Rc::clone(&peer)),
            Receivers::Group(group) => *group = Some(Rc::clone(&peer)),
        }
        peer
    }

    /// Opens a face for a peer on this channel, which reaches it from `local`.
    pub(super) fn open_unicast(
        self: &Rc<Self>,
        shared: &Shared,
        address: SocketAddr,
        local: SocketAddr,
        persistency: FacePersistency,
        update: &FaceUpdate,
    ) -> Result<Rc<Peer>, OpenError> {
        let mut params = shared.params(FaceUri::udp(address), FaceUri::udp(local));
        params.flags = shared.marking_flags();
        params.persistency = persistency;
        params.idle_timeout = Some(Duration::from_millis(shared.config.udp_idle_ms));
        params.allowed_persistencies = match self.audience {
            // Nobody looks whether it is idle.
            Audience::OnePeer => &[FacePersistency::Persistent, FacePersistency::Permanent],
            _ => &[FacePersistency::OnDemand, FacePersistency::Persistent, FacePersistency::Permanent],
        };
        self.open(shared, address, params, update)
    }

    /// The peer a datagram belongs to, made on demand on a unicast channel.
    fn peer_of(
        self: &Rc<Self>,
        shared: &Shared,
        from: SocketAddr,
        datagram: &[u8],
        checked: Result<(), LinkDrop>,
    ) -> Option<Rc<Peer>> {
        match &*self.receivers.borrow() {
            Receivers::Unicast(peers) => {
                if let Some(peer) = peers.get(&from) {
                    if checked.is_ok() {
                        peer.activity.note_received();
                    }
                    return Some(Rc::clone(peer));
                }
            }
            Receivers::Group(group) => {
                if group.is_none() {
                    shared.table.link_drops().add(LinkDrop::LinkDown, 1);
                }
                return group.clone();
            }
        }
        let is_worth = if framing::is_worth_a_face(datagram) { Ok(()) } else { Err(LinkDrop::NotNdnFrame) };
        if let Err(reason) = checked.and(is_worth) {
            // Noise from a stranger.
            shared.table.link_drops().add(reason, 1);
            return None;
        }
        if shared.is_far_ahead() {
            // The others are yet to hear of the strangers that gave way lately.
            shared.table.link_drops().add(LinkDrop::TooManyFaces, 1);
            return None;
        }
        // Before the kernel is asked for the way to the sender, so that a flood of forged datagrams costs little.
        if !shared.make_room(&PermitRequest::of_datagram(from)) {
            return None;
        }
        let local = source_towards(from, self.local).unwrap_or(self.local);
        self.open_unicast(shared, from, local, FacePersistency::OnDemand, &FaceUpdate::default()).ok()
    }

    /// Gives a datagram to the face of its sender.
    pub(super) fn accept(self: &Rc<Self>, shared: &Shared, from: SocketAddr, datagram: &[u8]) {
        let checked = framing::check_message(datagram);
        let Some(peer) = self.peer_of(shared, from, datagram, checked) else { return };
        let delivered = checked.and_then(|()| {
            let endpoint = match &*self.receivers.borrow() {
                Receivers::Unicast(_) => 0,
                Receivers::Group(_) => endpoint_number(&from),
            };
            shared.deliver_datagram(peer.face.id(), endpoint, datagram)
        });
        if let Err(reason) = delivered {
            peer.face.counters.count_transport_drop(reason);
        }
    }

    /// Whether it has a face per remote address.
    pub(super) fn is_unicast(&self) -> bool {
        self.audience != Audience::Group
    }

    /// Shows all peers of a unicast channel to `each`.
    pub(super) fn each_peer(&self, each: impl FnMut(&Rc<Peer>)) {
        if let Receivers::Unicast(peers) = &*self.receivers.borrow() {
            peers.values().for_each(each);
        }
    }

    /// Sends until nothing waits; `false` when the kernel takes no more for now.
    fn send(&self) -> bool {
        let mut waiting = self.waiting.borrow_mut();
        while !waiting.is_empty() {
            let batch = waiting.iter().map(|one| (&one.peer.destination, one.buffer.bytes()));
            let sent = self.inlet.send(batch);
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
pub(super) fn flush(channel: &Rc<Channel>) {
    if channel.draining.get() || channel.send() {
        return;
    }
    channel.draining.set(true);
    let channel = Rc::clone(channel);
    spawn_local(async move {
        let attempt = || if channel.send() { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) };
        if let Err(error) = channel.inlet.socket.write_when_possible(attempt).await {
            // What waits leaves with the next packet.
            tracing::debug!(local = %channel.local, %error, "cannot wait for room to send");
        }
        channel.draining.set(false);
    });
}

/// Receives on a channel for as long as it lives.
pub(super) async fn receive(shared: Rc<Shared>, channel: Rc<Channel>) {
    let inlet = Rc::clone(&channel.inlet);
    inlet::receive(shared, channel, inlet).await;
}

/// Closes on-demand faces that were not used since the last look, for as long as the channel lives.
pub(super) async fn expire(shared: Rc<Shared>, channel: Rc<Channel>) {
    let idle = Duration::from_millis(shared.config.udp_idle_ms.max(1));
    let mut looks = tokio::time::interval_at(Instant::now() + idle, idle);
    loop {
        looks.tick().await;
        let mut unused = Vec::new();
        let next_look = std::time::Instant::now() + idle;
        channel.each_peer(|peer| {
            if peer.face.persistency() == FacePersistency::OnDemand {
                if peer.activity.take_use() {
                    peer.face.set_expiration(Some(next_look));
                } else {
                    unused.push(peer.face.id());
                }
            }
        });
        for id in unused {
            shared.close(id);
        }
    }
}
