//! The faces of a port created by unknown senders, and which of them is evicted when their limit is reached.
//!
//! The rules are those for unsolicited peers on sockets: see [`unsolicited`](namehop_face::unsolicited). Faces created
//! by command or configuration do not count, and neither do faces that were made persistent later. Every hardware
//! address can be forged, so only Internet addresses identify an origin.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use namehop_packet::{FaceId, PacketBuffer, Timestamp};

use super::queues::Share;
use super::{FaceRecords, PortId, PortSet, face_params};
use crate::encapsulation::FacePeer;
use namehop_face::counters::LinkDrop;
use namehop_face::log_limit::LogLimit;
use namehop_face::registry::{Face, FacePersistency};
use namehop_face::socket::{FaceEvent, is_worth_a_face};
use namehop_face::unsolicited::{Occupant, Origin, SlotHandle, UnsolicitedPeers};

/// All of them have one share.
const SHARE: usize = 0;

/// A face created by an unknown sender.
struct UnsolicitedSender {
    face: Arc<Face>,
    /// Frames received at the last check.
    frames: u64,
}

impl UnsolicitedSender {
    fn received(&self) -> u64 {
        self.face.counters.sum(|worker| worker.received.frames.get())
    }
}

impl Occupant for UnsolicitedSender {
    fn is_known(&self) -> bool {
        self.face.persistency() != FacePersistency::OnDemand
    }

    fn is_heard(&self) -> bool {
        self.received() > self.frames
    }

    fn forget_heard(&mut self) {
        self.frames = self.received();
    }
}

/// The faces of unknown senders; see the module documentation.
pub(super) struct UnsolicitedSenders {
    unsolicited: UnsolicitedPeers<UnsolicitedSender>,
    slots: HashMap<FaceId, SlotHandle>,
}

impl UnsolicitedSenders {
    /// Creates an empty set for at most `limit` faces, and at most `per_address` from one Internet address.
    pub(super) fn new(limit: usize, per_address: usize) -> UnsolicitedSenders {
        UnsolicitedSenders { unsolicited: UnsolicitedPeers::new(&[limit], per_address), slots: HashMap::new() }
    }

    /// Whether there is space for a face of this peer.
    pub(super) fn has_room(&self, peer: &FacePeer) -> bool {
        self.unsolicited.has_room(SHARE, origin_of(peer))
    }

    /// Evicts a face so that there is space for this peer; returns the evicted face.
    pub(super) fn evict_for(&mut self, peer: &FacePeer, now: Timestamp) -> Option<Arc<Face>> {
        let UnsolicitedSender { face, .. } =
            self.unsolicited.evict_for(SHARE, origin_of(peer), Duration::from_nanos(now.0))?;
        self.slots.remove(&face.id());
        Some(face)
    }

    /// Adds a face created by an unknown sender.
    pub(super) fn add(&mut self, face: &Arc<Face>, peer: &FacePeer) {
        // The frame that created the face is counted later, and does not show that the sender continues.
        let unsolicited = UnsolicitedSender { face: Arc::clone(face), frames: 1 };
        self.slots.insert(face.id(), self.unsolicited.enter(SHARE, origin_of(peer), unsolicited));
    }

    /// Removes a closed face, if it is in the set.
    pub(super) fn remove(&mut self, id: FaceId) {
        if let Some(slot) = self.slots.remove(&id) {
            // A face that was made persistent has left the set already.
            let _ = self.unsolicited.leave(slot);
        }
    }
}

impl PortSet {
    /// Creates a face for the unknown sender of a packet, if that is allowed; evicts another face if necessary.
    #[cold]
    pub(super) fn add_on_demand_face(
        &mut self,
        id: PortId,
        peer: FacePeer,
        packet: &PacketBuffer,
        faces: &mut impl FaceRecords,
    ) -> Result<FaceId, LinkDrop> {
        let now = self.now;
        let port = self.port(id).ok_or(LinkDrop::UnknownSender)?;
        if !port.admits_unsolicited(peer.vlan()) {
            return Err(LinkDrop::UnknownSender);
        }
        if !is_worth_a_face(packet.bytes()) {
            return Err(LinkDrop::NotNdnFrame);
        }
        if !port.unsolicited.has_room(&peer)
            && let Some(face) = port.unsolicited.evict_for(&peer, now)
        {
            self.close_evicted(id, &face, faces);
        }
        let port = self.port(id).filter(|port| port.unsolicited.has_room(&peer));
        let params = port.map(|port| face_params(peer, &port.params.uri, port.params.mtu_bytes));
        let mut params = params.ok_or_else(too_many_faces)?;
        params.persistency = FacePersistency::OnDemand;
        params.flags = self.on_demand_flags;
        params.self_learning = self.self_learning;
        params.idle_timeout = Some(self.idle_timeout);
        params.home_worker = Some(self.worker);
        let face = self.table.insert(params).map_err(|_| too_many_faces())?;
        tracing::debug!(face = %face.id(), remote = %face.remote_uri(), local = %face.local_uri(), "face created");
        let number = face.id();
        self.add_face(id, &face, peer, faces);
        if let Some(port) = self.port(id) {
            port.unsolicited.add(&face, &peer);
            if let Share::First { others } = &port.share {
                others.iter().for_each(|other| other.add_face(id, &face, peer));
            }
        }
        // This fails only when the router is shutting down.
        self.announce(FaceEvent::Created(face));
        Ok(number)
    }

    /// Closes an evicted face.
    fn close_evicted(&mut self, id: PortId, face: &Arc<Face>, faces: &mut impl FaceRecords) {
        self.table.link_drops().add(LinkDrop::FaceEvicted, 1);
        self.remove_face(face.id(), faces);
        if let Some(Share::First { others }) = self.port(id).map(|port| &port.share) {
            others.iter().for_each(|other| other.remove_face(face.id()));
        }
        face.set_up(false);
        self.table.remove(face.id());
        tracing::debug!(face = %face.id(), remote = %face.remote_uri(), "face closed");
        self.announce(FaceEvent::Destroyed(Arc::clone(face)));
    }
}

fn too_many_faces() -> LinkDrop {
    // A flood of frames must not cause a flood of log lines.
    static LINES: LogLimit = LogLimit::new(3);
    if let Some(left_out) = LINES.admit() {
        tracing::warn!(left_out, "limit of on-demand faces on ports reached: new peers are refused");
    }
    LinkDrop::TooManyFaces
}

fn origin_of(peer: &FacePeer) -> Option<Origin> {
    match peer {
        FacePeer::Link(_) => None,
        FacePeer::Internet(peer) => Some(Origin::of(SocketAddr::new(peer.remote, 0))),
    }
}
