//! Parameters of ports, and of faces on ports.

use std::fmt;

use namehop_packet::{LinkType, PortQueue};

use super::PortNetwork;
use crate::address::MacAddress;
use crate::encapsulation::{FacePeer, Framing, Peer};
use crate::registry::{FaceParams, FacePersistency};
use crate::uri::FaceUri;

/// Number of a port in its [`PortSet`](super::PortSet); small, assigned by the control side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PortId(pub u16);

/// Parameters of a new port.
pub struct PortParams {
    /// Receives and sends its frames; `None` while the link is being restarted.
    pub queue: Option<Box<dyn PortQueue>>,
    /// The format of its frames.
    pub framing: Framing,
    /// Its hardware address, the source of sent frames.
    pub address: MacAddress,
    /// The configured networks: VLANs, and the untagged one. Without any, the port has no UDP and VXLAN faces, and no
    /// faces for unknown senders.
    pub networks: Vec<PortNetwork>,
    /// Its own URI, without the options that distinguish encapsulations on it.
    pub uri: FaceUri,
    /// Largest NDN frame it carries, in bytes, after the header of its [`Framing`].
    pub mtu_bytes: usize,
    /// Maximum number of faces that unknown senders may create by sending a packet, in the networks that admit them.
    pub max_on_demand_faces: usize,
    /// Maximum number of such faces from one Internet address (IPv6: one /64 network).
    pub max_unsolicited_per_address: usize,
    /// Whether the link works.
    pub is_up: bool,
}

impl PortParams {
    /// Returns the parameters of the same port for a worker with another queue.
    pub(super) fn with_queue(&self, queue: Option<Box<dyn PortQueue>>) -> PortParams {
        PortParams { queue, networks: self.networks.clone(), uri: self.uri.clone(), ..*self }
    }
}

impl fmt::Debug for PortParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PortParams").field("uri", &self.uri).field("framing", &self.framing).finish()
    }
}

/// Returns the default parameters of the face to `peer` on the port with URI `port`. `mtu_bytes` is the MTU of the
/// link.
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
