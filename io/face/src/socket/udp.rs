//! UDP: one unconnected socket (a channel) per address listened on, shared by the faces of all peers.
//!
//! A face is told by its [`Path`]: the address of the peer and the address of this host that the peer uses. What the face sends leaves
//! from that address, and from the NDN port. Datagrams are received and sent in batches; those to different peers leave in one call.
//! A multicast face has a channel of its own, on which everything belongs to that face, and so has a face to a peer that no socket
//! listened on can reach (in `connected`). Some peers have a second socket that only they are received from: see `standing`. How
//! faces follow the addresses of the host is in `follow`.

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
use super::shared::{Link, OpenError, Shared, SocketFace, note_queue};
use super::silence::ANSWER;
use super::standing::Standing;
use crate::counters::LinkDrop;
use crate::peers::{PeerTable, endpoint_number};
use crate::registry::{Face, FaceParams, FacePersistency, FaceUpdate};
use crate::silence::Silence;
use crate::uri::FaceUri;

/// A peer (or group) and the face it belongs to.
pub(super) struct Peer {
    pub(super) face: Arc<Face>,
    pub(super) path: Path,
    pub(super) destination: SockaddrStorage,
    pub(super) outlet: Rc<Outlet>,
    /// Whether its face is down, because it cannot be reached.
    pub(super) reachability: Reachability,
    /// What is known of how it answers.
    pub(super) silence: Silence,
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
    /// A face per path.
    Unicast(PeerTable<Rc<Peer>, Path>),
    /// One face for everybody in the group; `None` before it is made and after it was closed.
    Group(Option<Rc<Peer>>),
}

/// A UDP socket.
pub(super) struct Channel {
    pub(super) inlet: Rc<Inlet>,
    pub(super) local: SocketAddr,
    audience: Audience,
    receivers: RefCell<Receivers>,
    outlets: Outlets,
    /// A task waits until the kernel takes more.
    draining: Cell<bool>,
    /// A look at the standing of all peers is planned.
    pub(super) looks_at_standing: Cell<bool>,
}

/// Transport state of a UDP face.
pub(super) struct DatagramLink {
    /// Another one after a multicast group was joined anew.
    channel: RefCell<Rc<Channel>>,
    /// `None` while the face is down for want of a local address, and after it was closed.
    peer: RefCell<Option<Rc<Peer>>>,
    /// The peer has chosen the local address, by asking there.
    pub(super) is_chosen_by_peer: Cell<bool>,
}

impl DatagramLink {
    /// The link of a face that is about to be made; it is complete when [`Channel::attach`] was called.
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

    /// Whether the face has its socket for itself.
    pub(super) fn has_own_socket(&self) -> bool {
        self.channel.borrow().audience == Audience::OnePeer
    }

    /// Whom it reaches; `None` before it is complete and after the face was closed.
    pub(super) fn peer(&self) -> Option<Rc<Peer>> {
        self.peer.borrow().clone()
    }

    /// Queues a frame on the channel.
    pub(super) fn queue(&self, buffer: PacketBuffer) -> Result<(), LinkDrop> {
        let peer = self.peer().ok_or(LinkDrop::LinkDown)?;
        peer.activity.note_use();
        // An answer calls for no answer: otherwise two routers would ask each other for ever.
        if buffer.bytes() != ANSWER {
            peer.silence.note_sent();
        }
        self.channel.borrow().outlets.push(peer, buffer)
    }

    /// Forgets the peer and what waits for it.
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
        shared: &Shared,
        path: Path,
        mut params: FaceParams,
        update: &FaceUpdate,
    ) -> Result<Rc<Peer>, OpenError> {
        params.is_datagram = true;
        let link = DatagramLink::new(self, params.persistency == FacePersistency::OnDemand);
        let entry = shared.open(params, update, Link::Datagram(link))?;
        // It was made so just now; otherwise there would be no such face.
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
        shared: &Shared,
        path: Path,
        persistency: FacePersistency,
        update: &FaceUpdate,
    ) -> Result<Rc<Peer>, OpenError> {
        let mut params = shared.params(FaceUri::udp(path.remote), FaceUri::udp(path.local));
        params.flags = params.flags.union(shared.marking_flags());
        params.link_mtu_bytes = mtu::of_path(shared, &path);
        params.persistency = persistency;
        params.idle_timeout = Some(Duration::from_millis(shared.config.udp_idle_ms));
        params.allowed_persistencies = match self.audience {
            // Nobody looks whether it is idle.
            Audience::OnePeer => &[FacePersistency::Persistent, FacePersistency::Permanent],
            _ => &[FacePersistency::OnDemand, FacePersistency::Persistent, FacePersistency::Permanent],
        };
        self.open(shared, path, params, update)
    }

    /// The peer a datagram belongs to, made on demand on a unicast channel.
    fn peer_of(
        self: &Rc<Self>,
        shared: &Shared,
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
                        if datagram == ANSWER {
                            peer.silence.note_answered();
                        }
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
        // No answer could leave from a group's address.
        let is_mine = if path.local.ip().is_multicast() { Err(LinkDrop::ForeignFrame) } else { Ok(()) };
        if let Err(reason) = checked.and(is_worth).and(is_mine) {
            // Noise from a stranger.
            shared.table.link_drops().add(reason, 1);
            return None;
        }
        if shared.is_far_ahead() {
            // The others are yet to hear of the strangers that gave way lately.
            shared.table.link_drops().add(LinkDrop::TooManyFaces, 1);
            return None;
        }
        if !shared.make_room(&PermitRequest::of_datagram(path.remote)) {
            return None;
        }
        self.open_unicast(shared, path, FacePersistency::OnDemand, &FaceUpdate::default()).ok()
    }

    /// Gives a datagram to the face of its path.
    pub(super) fn accept(self: &Rc<Self>, shared: &Shared, path: Path, datagram: &[u8]) {
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

    /// The peers with this remote address, of a unicast channel: one for each local address at most.
    pub(super) fn peers_at(&self, remote: SocketAddr) -> Vec<Rc<Peer>> {
        match &*self.receivers.borrow() {
            Receivers::Unicast(peers) => {
                let paths = self.outlets.sources().map(|local| Path { remote, local });
                paths.filter_map(|path| peers.get(&path).cloned()).collect()
            }
            Receivers::Group(_) => Vec::new(),
        }
    }

    /// The face with this path.
    pub(super) fn face_at(&self, path: &Path) -> Option<Arc<Face>> {
        match &*self.receivers.borrow() {
            Receivers::Unicast(peers) => peers.get(path).map(|peer| Arc::clone(&peer.face)),
            Receivers::Group(_) => None,
        }
    }

    /// Whether it has a face per path.
    pub(super) fn is_unicast(&self) -> bool {
        self.audience != Audience::Group
    }

    /// Shows all peers of a unicast channel to `each`.
    pub(super) fn each_peer(&self, each: impl FnMut(&Rc<Peer>)) {
        if let Receivers::Unicast(peers) = &*self.receivers.borrow() {
            peers.values().for_each(each);
        }
    }

    /// Takes the peers to which a datagram was too long for its route since the last call.
    pub(super) fn take_refused(&self) -> Vec<Rc<Peer>> {
        self.outlets.take_refused()
    }

    /// Sends until nothing waits; `false` when the kernel takes no more for now.
    fn send(&self, shared: &Rc<Shared>) -> bool {
        self.outlets.send(shared, self)
    }
}

/// Sends what waits on a channel. What the kernel does not take is left to a task that waits for room.
pub(super) fn flush(shared: &Rc<Shared>, channel: &Rc<Channel>) {
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
            // What waits leaves with the next packet.
            tracing::debug!(local = %channel.local, %error, "cannot wait for room to send");
        }
        channel.draining.set(false);
        mtu::renew_refused(&shared, &channel);
    });
}

/// Receives on a channel for as long as it lives.
pub(super) async fn receive(shared: Rc<Shared>, channel: Rc<Channel>) {
    let inlet = Rc::clone(&channel.inlet);
    inlet::receive(shared, channel, inlet).await;
}

/// Closes on-demand faces that were not used since the last look, and looks up the MTU of the paths of the others, for as long as the
/// channel lives.
pub(super) async fn expire(shared: Rc<Shared>, channel: Rc<Channel>) {
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
