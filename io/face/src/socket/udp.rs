//! UDP: one unconnected socket (a channel) per listening address, shared by the faces of all peers.
//!
//! A face is identified by its [`Path`]: the address of the peer and the address of this host that the peer uses.
//! Packets of the face leave from that address and the NDN port. Datagrams are received and sent in batches; datagrams
//! to different peers leave in one call.
//!
//! A multicast face has a channel of its own, and all datagrams received there belong to it. A face to a peer that no
//! listening socket can reach also has its own channel (`connected`). Some peers have a second socket that receives
//! from them only (`standing`). `follow` adapts faces to the addresses of the host.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use namehop_packet::{FaceId, PacketBuffer};
use nix::sys::socket::SockaddrStorage;
use socket2::Socket;
use tokio::task::spawn_local;
use tokio::time::Instant;

use super::datagram_path::Path;
use super::framing;
use super::inlet::{self, Inlet};
use super::mtu;
use super::outlet::{Outlet, Outlets};
use super::permits::{Activity, PermitRequest};
use super::reachability::{self, Reachability};
use super::shared::{Link, OpenError, ServiceState, SocketFace, note_queue};
use super::silence;
use super::standing::Standing;
use crate::counters::LinkDrop;
use crate::peers::{PeerTable, endpoint_number};
use crate::registry::{Face, FaceParams, FacePersistency, FaceUpdate};
use crate::silence::Silence;
use crate::uri::FaceUri;

/// A peer (or group) and its face.
pub(super) struct Peer {
    pub(super) face: Arc<Face>,
    pub(super) path: Path,
    pub(super) destination: SockaddrStorage,
    pub(super) outlet: Rc<Outlet>,
    /// Whether the face is down because the peer cannot be reached.
    pub(super) reachability: Reachability,
    /// Tracks whether the peer answers.
    pub(super) silence: Silence,
    /// Activity of the face.
    activity: Rc<Activity>,
    /// Decides whether the peer gets a receive queue of its own.
    pub(super) standing: Standing,
}

impl Peer {
    /// Number of the face.
    pub(super) fn face_id(&self) -> FaceId {
        self.face.id()
    }
}

/// The senders that a socket receives from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Audience {
    /// Every sender.
    Anybody,
    /// The members of a multicast group.
    Group,
    /// The connected peer.
    OnePeer,
}

/// Assigns received datagrams to faces.
enum Receivers {
    /// One face per path.
    Unicast(PeerTable<Rc<Peer>, Path>),
    /// One face for all members of the group; `None` before it is created and after it was closed.
    Group(Option<Rc<Peer>>),
}

/// A UDP socket.
pub(super) struct Channel {
    pub(super) inlet: Rc<Inlet>,
    pub(super) local: SocketAddr,
    audience: Audience,
    receivers: RefCell<Receivers>,
    outlets: Outlets,
    /// A task waits until the socket is writable.
    draining: Cell<bool>,
    /// A check of the standing of all peers is scheduled.
    pub(super) looks_at_standing: Cell<bool>,
}

/// Transport state of a UDP face.
pub(super) struct DatagramLink {
    /// Replaced when a multicast group is joined again or the face gets another socket.
    channel: RefCell<Rc<Channel>>,
    /// `None` while the face is down because it has no local address, and after it was closed.
    peer: RefCell<Option<Rc<Peer>>>,
    /// The peer has chosen the local address by sending to it.
    pub(super) is_chosen_by_peer: Cell<bool>,
}

impl DatagramLink {
    /// Creates the link of a new face; it is incomplete until [`Channel::attach`] is called.
    fn new(channel: &Rc<Channel>, is_chosen_by_peer: bool) -> Self {
        DatagramLink {
            channel: RefCell::new(Rc::clone(channel)),
            peer: RefCell::new(None),
            is_chosen_by_peer: Cell::new(is_chosen_by_peer),
        }
    }

    pub(super) fn channel(&self) -> Rc<Channel> {
        Rc::clone(&self.channel.borrow())
    }

    /// Whether the face has a socket of its own.
    pub(super) fn has_own_socket(&self) -> bool {
        self.channel.borrow().audience == Audience::OnePeer
    }

    /// Returns the peer; `None` before the link is complete, while the face has no local address, and after it was
    /// closed.
    pub(super) fn peer(&self) -> Option<Rc<Peer>> {
        self.peer.borrow().clone()
    }

    /// Queues a frame on the channel.
    pub(super) fn queue(&self, buffer: PacketBuffer) -> Result<(), LinkDrop> {
        let peer = self.peer().ok_or(LinkDrop::LinkDown)?;
        peer.activity.note_use();
        if !silence::is_answer(buffer.bytes()) {
            peer.silence.note_sent();
        }
        self.channel.borrow().outlets.push(peer, buffer)
    }

    /// Drops the peer and its queued datagrams.
    pub(super) fn disconnect(&self, face: &Face) {
        let Some(peer) = self.peer.take() else { return };
        peer.standing.give_up_queue();
        let channel = self.channel.borrow();
        match &mut *channel.receivers.borrow_mut() {
            // Another face may have this path by now.
            Receivers::Unicast(peers) if peers.get(&peer.path).is_some_and(|other| Rc::ptr_eq(other, &peer)) => {
                peers.remove(&peer.path);
            }
            Receivers::Unicast(_) => {}
            Receivers::Group(group) => *group = None,
        }
        channel.outlets.forget(&peer);
        note_queue(face, 0);
    }
}

impl Channel {
    /// Creates a channel on a socket. `limit_bytes` bounds its send queue.
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
            inlet: Inlet::new(socket, local)?,
            local,
            audience,
            receivers: RefCell::new(receivers),
            outlets: Outlets::new(limit_bytes),
            draining: Cell::new(false),
            looks_at_standing: Cell::new(false),
        }))
    }

    /// Opens a face for `path` on this channel.
    pub(super) fn open(
        self: &Rc<Self>,
        shared: &ServiceState,
        path: Path,
        mut params: FaceParams,
        update: &FaceUpdate,
    ) -> Result<Rc<Peer>, OpenError> {
        params.is_datagram = true;
        let link = DatagramLink::new(self, params.persistency == FacePersistency::OnDemand);
        let entry = shared.open(params, update, Link::Datagram(link))?;
        // The link was created as a datagram link above, so the other case cannot occur.
        let Link::Datagram(link) = &entry.link else { return Err(OpenError::Closing) };
        Ok(self.attach(&entry, link, path))
    }

    /// Makes the link of a face use this channel and `path`.
    pub(super) fn attach(self: &Rc<Self>, entry: &SocketFace, link: &DatagramLink, path: Path) -> Rc<Peer> {
        let destination = SockaddrStorage::from(path.remote);
        let outlet = self.outlets.at(path.local, self.inlet.reports_destinations);
        let (face, activity) = (Arc::clone(&entry.face), Rc::clone(&entry.activity));
        activity.note_use();
        let peer = Rc::new(Peer {
            face,
            path,
            destination,
            outlet,
            reachability: Reachability::default(),
            silence: Silence::default(),
            activity,
            standing: Standing::default(),
        });
        *link.channel.borrow_mut() = Rc::clone(self);
        *link.peer.borrow_mut() = Some(Rc::clone(&peer));
        match &mut *self.receivers.borrow_mut() {
            Receivers::Unicast(peers) => peers.insert(path, Rc::clone(&peer)),
            Receivers::Group(group) => *group = Some(Rc::clone(&peer)),
        }
        peer
    }

    /// Opens a face for a peer on this channel.
    pub(super) fn open_unicast(
        self: &Rc<Self>,
        shared: &ServiceState,
        path: Path,
        persistency: FacePersistency,
        update: &FaceUpdate,
    ) -> Result<Rc<Peer>, OpenError> {
        let mut params = shared.params(FaceUri::udp(path.remote), FaceUri::udp(path.local));
        params.flags = params.flags.union(shared.marking_flags());
        params.link_mtu_bytes = mtu::of_path(shared, &path);
        params.base_mtu_bytes = mtu::base_bytes(path.remote.ip());
        params.persistency = persistency;
        params.idle_timeout = Some(Duration::from_millis(shared.config.udp_idle_ms));
        params.allowed_persistencies = match self.audience {
            // The idle check covers listening channels only.
            Audience::OnePeer => &[FacePersistency::Persistent, FacePersistency::Permanent],
            _ => &[FacePersistency::OnDemand, FacePersistency::Persistent, FacePersistency::Permanent],
        };
        self.open(shared, path, params, update)
    }

    /// Returns the peer that a datagram belongs to. On a unicast channel a new peer gets an on-demand face.
    fn peer_of(
        self: &Rc<Self>,
        shared: &ServiceState,
        path: Path,
        datagram: &[u8],
        checked: Result<(), LinkDrop>,
    ) -> Option<Rc<Peer>> {
        match &*self.receivers.borrow() {
            Receivers::Unicast(peers) => {
                if let Some(peer) = peers.get(&path) {
                    if checked.is_ok() {
                        peer.activity.note_received();
                        peer.silence.note_heard();
                        if peer.reachability.is_down() {
                            reachability::note_reachable(shared, peer);
                        }
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
        // No answer can be sent from a multicast address.
        let is_mine = if path.local.ip().is_multicast() { Err(LinkDrop::ForeignFrame) } else { Ok(()) };
        if let Err(reason) = checked.and(is_worth).and(is_mine) {
            // Noise from an unknown address.
            shared.table.link_drops().add(reason, 1);
            return None;
        }
        if shared.is_far_ahead() {
            // The other threads have yet to process the faces that were evicted lately.
            shared.table.link_drops().add(LinkDrop::TooManyFaces, 1);
            return None;
        }
        if !shared.make_room(&PermitRequest::of_datagram(path.remote)) {
            return None;
        }
        self.open_unicast(shared, path, FacePersistency::OnDemand, &FaceUpdate::default()).ok()
    }

    /// Hands a datagram over as a packet of the face of its path.
    pub(super) fn accept(self: &Rc<Self>, shared: &ServiceState, path: Path, datagram: &[u8]) {
        let checked = framing::check_message(datagram);
        let Some(peer) = self.peer_of(shared, path, datagram, checked) else { return };
        let delivered = checked.and_then(|()| {
            let endpoint = match &*self.receivers.borrow() {
                Receivers::Unicast(_) => 0,
                Receivers::Group(_) => endpoint_number(&path.remote),
            };
            shared.deliver_datagram(peer.face.id(), endpoint, datagram)
        });
        if let Err(reason) = delivered {
            peer.face.counters.count_transport_drop(reason);
        }
    }

    /// Returns the peers of a unicast channel with this remote address: at most one for each local address.
    pub(super) fn peers_at(&self, remote: SocketAddr) -> Vec<Rc<Peer>> {
        match &*self.receivers.borrow() {
            Receivers::Unicast(peers) => {
                let paths = self.outlets.sources().map(|local| Path { remote, local });
                paths.filter_map(|path| peers.get(&path).cloned()).collect()
            }
            Receivers::Group(_) => Vec::new(),
        }
    }

    /// Returns the face with this path.
    pub(super) fn face_at(&self, path: &Path) -> Option<Arc<Face>> {
        match &*self.receivers.borrow() {
            Receivers::Unicast(peers) => peers.get(path).map(|peer| Arc::clone(&peer.face)),
            Receivers::Group(_) => None,
        }
    }

    /// Whether the channel has one face per path.
    pub(super) fn is_unicast(&self) -> bool {
        self.audience != Audience::Group
    }

    /// Calls `each` for all peers of a unicast channel.
    pub(super) fn each_peer(&self, each: impl FnMut(&Rc<Peer>)) {
        if let Receivers::Unicast(peers) = &*self.receivers.borrow() {
            peers.values().for_each(each);
        }
    }

    /// Returns and clears the list of peers to which a datagram was too long for its route.
    pub(super) fn take_refused(&self) -> Vec<Rc<Peer>> {
        self.outlets.take_refused()
    }

    /// Sends until the queues are empty; returns `false` if the kernel takes no more for now.
    fn send(&self, shared: &Rc<ServiceState>) -> bool {
        self.outlets.send(shared, self)
    }
}

/// Sends the queued datagrams of a channel. If the kernel does not take all, a task waits until it takes more.
pub(super) fn flush(shared: &Rc<ServiceState>, channel: &Rc<Channel>) {
    if channel.draining.get() {
        return;
    }
    let is_done = channel.send(shared);
    mtu::renew_refused(shared, channel);
    if is_done {
        return;
    }
    channel.draining.set(true);
    let (shared, channel) = (Rc::clone(shared), Rc::clone(channel));
    spawn_local(async move {
        let attempt = || if channel.send(&shared) { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) };
        if let Err(error) = channel.inlet.socket.write_when_possible(attempt).await {
            // The queued datagrams are sent with the next packet.
            tracing::debug!(local = %channel.local, %error, "cannot wait until the socket is writable");
        }
        channel.draining.set(false);
        mtu::renew_refused(&shared, &channel);
    });
}

/// Receives on a channel as long as it exists.
pub(super) async fn receive(shared: Rc<ServiceState>, channel: Rc<Channel>) {
    let inlet = Rc::clone(&channel.inlet);
    inlet::receive(shared, channel, inlet).await;
}

/// Closes on-demand faces that were not used since the last check, and looks up the path MTU of the others. Runs as
/// long as the channel exists.
pub(super) async fn expire(shared: Rc<ServiceState>, channel: Rc<Channel>) {
    let idle = Duration::from_millis(shared.config.udp_idle_ms.max(1));
    let mut looks = tokio::time::interval_at(Instant::now() + idle, idle);
    loop {
        looks.tick().await;
        let (mut unused, mut used) = (Vec::new(), Vec::new());
        let next_look = std::time::Instant::now() + idle;
        channel.each_peer(|peer| {
            if peer.face.persistency() != FacePersistency::OnDemand {
                used.push(Rc::clone(peer));
            } else if peer.activity.take_use() {
                peer.face.set_expiration(Some(next_look));
                used.push(Rc::clone(peer));
            } else {
                unused.push(peer.face.id());
            }
        });
        for peer in used {
            mtu::renew(&shared, &peer);
        }
        for id in unused {
            shared.close(id);
        }
    }
}
