//! Parameters of ports, and of faces on ports.

use std::fmt;

use namehop_packet::{LinkType, PortQueue};

use super::PortNetwork;
use crate::encapsulation::{FacePeer, Framing, Peer};
use namehop_face::address::MacAddress;
use namehop_face::registry::{FaceParams, FacePersistency};
use namehop_face::uri::FaceUri;

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
    params.base_mtu_bytes = peer.base_mtu_bytes();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faces_over_ip_know_what_every_path_carries() {
        let uri = |text: &str| crate::drivers::parse_uri(text).expect("URI");
        for (remote, local, bytes) in [
            ("udp4://192.0.2.1:6363", "dev://eth0?ip=192.0.2.2&port=6363", Some(1280 - 28)),
            ("udp6://[2001:db8::1]:6363", "dev://eth0?ip=2001:db8::2&port=6363", Some(1280 - 48)),
            ("vxlan4://192.0.2.1?vni=7", "dev://eth0?ip=192.0.2.2", Some(1280 - 50)),
            ("ether://[02:00:00:00:00:01]", "dev://eth0", None),
            ("ether://[01:00:5e:00:17:aa]", "dev://eth0", None),
            ("memif:///run/memif.sock?id=1", "memif:///run/memif.sock?id=1", None),
        ] {
            let (remote, local) = (uri(remote), uri(local));
            let peer = FacePeer::of(&remote, &local).expect("a peer");
            let params = face_params(peer, &local.port(), 1500);
            assert_eq!((params.base_mtu_bytes, &params.remote_uri, &params.local_uri), (bytes, &remote, &local));
        }
    }
}
