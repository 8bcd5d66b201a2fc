//! What a port is made from, and what faces on it are made from.

use std::fmt;

use namehop_packet::{LinkType, PortQueue};

use super::PortNetwork;
use crate::encapsulation::{FacePeer, Framing, MacAddress, Peer};
use crate::registry::{FaceParams, FacePersistency};
use crate::uri::FaceUri;

/// Number of a port in its [`PortSet`](super::PortSet); small, given out by the control side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PortId(pub u16);

/// What a new port is.
pub struct PortParams {
    /// What receives and sends its frames; `None` while the link is being restarted.
    pub queue: Option<Box<dyn PortQueue>>,
    /// What its frames look like.
    pub framing: Framing,
    /// Its hardware address, the source of what it sends.
    pub address: MacAddress,
    /// The networks that something is said of: VLANs, and the one without a tag. Without any it has no UDP and VXLAN faces, and none
    /// for unknown senders.
    pub networks: Vec<PortNetwork>,
    /// Its own URI, without what tells encapsulations on it apart.
    pub uri: FaceUri,
    /// Largest NDN frame it carries, in bytes, behind the header that its [`Framing`] has.
    pub mtu_bytes: usize,
    /// How many faces unknown senders may make by sending a packet, in the networks that admit them.
    pub max_on_demand_faces: usize,
    /// How many of them from one Internet address (IPv6: from one network of 64 bits).
    pub strangers_per_address: usize,
    /// Whether the link works.
    pub is_up: bool,
}

impl PortParams {
    /// The same port for the worker that has this queue of it.
    pub(super) fn with_queue(&self, queue: Option<Box<dyn PortQueue>>) -> PortParams {
        PortParams { queue, networks: self.networks.clone(), uri: self.uri.clone(), ..*self }
    }
}

impl fmt::Debug for PortParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PortParams").field("uri", &self.uri).field("framing", &self.framing).finish()
    }
}

/// The usual parameters of the face to a peer on the port with this URI, whose link carries at most `mtu_bytes`.
pub fn face_params(peer: impl Into<FacePeer>, port: &FaceUri, mtu_bytes: usize) -> FaceParams {
    let peer = peer.into();
    let (remote, local) = peer.uris(port);
    let mut params = FaceParams::new(remote, local);
    params.is_datagram = true;
    params.link_mtu_bytes = peer.mtu_bytes(mtu_bytes);
    match peer {
        FacePeer::Link(Peer::Bare) => {
            params.allowed_persistencies = &[FacePersistency::Persistent, FacePersistency::Permanent]
        }
        peer if peer.is_group() => {
            params.link_type = LinkType::MultiAccess;
            params.persistency = FacePersistency::Permanent;
            params.allowed_persistencies = &[FacePersistency::Permanent];
        }
        FacePeer::Link(Peer::Ethernet(_) | Peer::Vlan(..)) | FacePeer::Internet(_) => {
            params.allowed_persistencies =
                &[FacePersistency::OnDemand, FacePersistency::Persistent, FacePersistency::Permanent];
        }
    }
    params
}
