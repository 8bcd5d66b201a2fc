//! The peer of a face on a port, as the control side specifies it, and its URIs.

use std::net::IpAddr;

use super::ip::to_v6;
use super::tunnel::{TunnelKind, TunnelPeer};
use super::udp::{Ends, Header};
use super::{Framing, Peer, entropy};
use namehop_face::address::{MacAddress, VlanId};
use namehop_face::peers::{PeerAddress, mix};
use namehop_face::registry::{BASE_PACKET_BYTES, udp_header_bytes};
use namehop_face::uri::{DEFAULT_PORT, FaceUri, Host, HostPort, IpFamily, PortOptions, PortUri, TunnelUri, is_zone};

/// The peer of a face on a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FacePeer {
    /// Directly over Ethernet, or at the end of a bare link.
    Link(Peer),
    /// Over UDP, or an encapsulation in UDP.
    Internet(InternetPeer),
}

/// The two ends of a face over UDP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InternetPeer {
    /// The VLAN of the frames; `None` if untagged.
    pub vlan: Option<VlanId>,
    /// The port's address in that network.
    pub local: IpAddr,
    /// The peer's address, of the same family.
    pub remote: IpAddr,
    /// The encapsulation between them.
    pub tunnel: Tunnel,
    /// Hardware address of the next hop, if it is configured.
    pub next_hop: Option<MacAddress>,
}

/// How packets travel between two addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tunnel {
    /// In UDP.
    Udp {
        /// UDP port on which this end receives.
        local_port: u16,
        /// UDP port on which the other end receives.
        remote_port: u16,
        /// How source ports are chosen.
        source_port: SourcePort,
    },
    /// In an encapsulation in UDP.
    Inside(TunnelPeer),
}

/// Source ports of sent UDP packets, and the accepted ones of received packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourcePort {
    /// The ports on which the ends receive. NFD requires this, because it treats another source port as another peer.
    Fixed,
    /// Ports that encode names; any source port is accepted.
    Name,
}

/// Identifies a face over UDP among the faces of one port in one VLAN, from the headers of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InternetKey {
    pub(crate) local: IpAddr,
    pub(crate) remote: IpAddr,
    pub(crate) flow: Flow,
}

/// The part of an [`InternetKey`] besides the addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    /// Ports of both ends; `remote` is `None` if any port is accepted.
    Udp { local: u16, remote: Option<u16> },
    /// UDP port of the encapsulation, network and inner sender; `inner` is `None` if any sender is accepted.
    Inside { port: u16, network: u32, inner: Option<MacAddress> },
}

impl From<Peer> for FacePeer {
    fn from(peer: Peer) -> FacePeer {
        FacePeer::Link(peer)
    }
}

impl From<InternetPeer> for FacePeer {
    fn from(peer: InternetPeer) -> FacePeer {
        FacePeer::Internet(peer)
    }
}

impl FacePeer {
    /// Returns the peer of the face with these URIs; `None` if a face on a port cannot have them. The local URI of a
    /// face over UDP contains an address of the port.
    pub fn of(remote: &FaceUri, local: &FaceUri) -> Option<FacePeer> {
        if let Some(peer) = Peer::of(remote, local) {
            return Some(FacePeer::Link(peer));
        }
        let PortOptions { vlan, address: Some(local), port, source_port_by_name, next_hop } = *local.options()? else {
            return None;
        };
        let (remote, tunnel) = match remote {
            FaceUri::Udp { at: HostPort { host, port: Some(remote_port) }, .. } => {
                let remote = match host {
                    Host::V4(address) => IpAddr::V4(*address),
                    Host::V6 { address, .. } => IpAddr::V6(*address),
                    Host::Name(_) => return None,
                };
                let local_port = port.unwrap_or(DEFAULT_PORT);
                let source_port = if source_port_by_name { SourcePort::Name } else { SourcePort::Fixed };
                let is_usable =
                    TunnelKind::at(local_port).is_none() && !remote.is_unspecified() && !remote.is_multicast();
                is_usable.then_some((remote, Tunnel::Udp { local_port, remote_port: *remote_port, source_port }))?
            }
            FaceUri::Tunnel(uri) if port.is_none() && !source_port_by_name => {
                (uri.address, Tunnel::Inside(TunnelPeer::of(uri)?))
            }
            _ => return None,
        };
        let is_one_family = local.is_ipv4() == remote.is_ipv4() && remote.to_canonical() == remote;
        is_one_family.then_some(FacePeer::Internet(InternetPeer { vlan, local, remote, tunnel, next_hop }))
    }

    /// Returns the frame format of a port with a face to this peer.
    pub const fn framing(&self) -> Framing {
        match self {
            FacePeer::Link(peer) => peer.framing(),
            FacePeer::Internet(_) => Framing::Ethernet,
        }
    }

    /// Returns the largest NDN frame to this peer in bytes, on a link with this MTU.
    pub fn mtu_bytes(&self, mtu_bytes: usize) -> usize {
        match self {
            FacePeer::Link(_) => mtu_bytes,
            FacePeer::Internet(peer) => mtu_bytes.saturating_sub(peer.header_bytes()),
        }
    }

    /// Returns the largest NDN frame that every path to this peer carries, in bytes; `None` for a peer on the link.
    pub fn base_mtu_bytes(&self) -> Option<usize> {
        match self {
            FacePeer::Link(_) => None,
            FacePeer::Internet(_) => Some(self.mtu_bytes(BASE_PACKET_BYTES)),
        }
    }

    /// Returns the remote and local URI of its face, on a port with this URI.
    pub(crate) fn uris(&self, port: &FaceUri) -> (FaceUri, FaceUri) {
        match self {
            FacePeer::Link(peer) => (peer.remote_uri(port), peer.local_uri(port)),
            FacePeer::Internet(peer) => peer.uris(port),
        }
    }

    /// Returns the VLAN of the peer.
    pub const fn vlan(&self) -> Option<VlanId> {
        match self {
            FacePeer::Link(peer) => peer.vlan(),
            FacePeer::Internet(peer) => peer.vlan,
        }
    }

    /// Whether the peer is a multicast group.
    pub const fn is_group(&self) -> bool {
        match self {
            FacePeer::Link(peer) => peer.is_group(),
            FacePeer::Internet(_) => false,
        }
    }
}

impl InternetPeer {
    /// Returns the length of the headers that count in the MTU: all but the Ethernet header.
    fn header_bytes(&self) -> usize {
        let inside_bytes = match self.tunnel {
            Tunnel::Udp { .. } => 0,
            Tunnel::Inside(peer) => peer.kind.header_bytes,
        };
        udp_header_bytes(self.remote) + inside_bytes
    }

    fn uris(&self, port: &FaceUri) -> (FaceUri, FaceUri) {
        let (vlan, address) = (self.vlan, Some(self.local));
        let mut options = PortOptions { vlan, address, next_hop: self.next_hop, ..PortOptions::default() };
        let zone = port.as_port().map(PortUri::device).filter(|device| is_zone(device));
        let remote = match self.tunnel {
            Tunnel::Udp { local_port, remote_port, source_port } => {
                options.port = Some(local_port);
                options.source_port_by_name = source_port == SourcePort::Name;
                let (family, host) = match self.remote {
                    IpAddr::V4(address) => (IpFamily::V4, Host::V4(address)),
                    IpAddr::V6(address) => {
                        let zone = zone.filter(|_| address.is_unicast_link_local()).map(str::to_owned);
                        (IpFamily::V6, Host::V6 { address, zone })
                    }
                };
                FaceUri::Udp { family: Some(family), at: HostPort { host, port: Some(remote_port) } }
            }
            Tunnel::Inside(TunnelPeer { kind, network, inner }) => {
                FaceUri::Tunnel(TunnelUri { scheme: &kind.scheme, address: self.remote, network, inner })
            }
        };
        (remote, port.with_options(options))
    }

    /// Returns the key that identifies its datagrams.
    pub(crate) fn key(&self) -> InternetKey {
        let flow = match self.tunnel {
            Tunnel::Udp { local_port, remote_port, source_port } => {
                let remote = (source_port == SourcePort::Fixed).then_some(remote_port);
                Flow::Udp { local: local_port, remote }
            }
            Tunnel::Inside(TunnelPeer { kind, network, inner }) => Flow::Inside { port: kind.port, network, inner },
        };
        InternetKey { local: self.local, remote: self.remote, flow }
    }

    /// Whether two faces of one port would get the same datagrams.
    pub fn is_same_as(&self, other: &InternetPeer) -> bool {
        self.vlan == other.vlan && self.key() == other.key()
    }

    /// Whether the source ports of sent packets encode names. In an encapsulation they always do.
    pub(crate) fn has_ports_by_name(&self) -> bool {
        !matches!(self.tunnel, Tunnel::Udp { source_port: SourcePort::Fixed, .. })
    }

    /// Returns the header of its packets from this hardware address, without the address of the next hop.
    pub(crate) fn header(&self, local: &MacAddress) -> Header {
        let (source_port, destination_port) = match self.tunnel {
            Tunnel::Udp { local_port, remote_port, source_port: SourcePort::Fixed } => (local_port, remote_port),
            Tunnel::Udp { remote_port, .. } => (entropy::FIRST_PORT, remote_port),
            Tunnel::Inside(peer) => (entropy::FIRST_PORT, peer.kind.port),
        };
        let ends = Ends { source: self.local, destination: self.remote, source_port, destination_port };
        match &self.tunnel {
            Tunnel::Udp { .. } => Header::new(&ends, local, self.vlan, &[], None),
            Tunnel::Inside(peer) => {
                let (kind, header) = (peer.kind, (peer.kind.write)(peer, local));
                Header::new(&ends, local, self.vlan, &header[..kind.header_bytes], kind.source_at)
            }
        }
    }
}

impl InternetKey {
    /// Returns the key of the face that accepts any remote port, or any inner sender, and is the same otherwise.
    pub(crate) fn of_any_sender(&self) -> InternetKey {
        let flow = match self.flow {
            Flow::Udp { local, .. } => Flow::Udp { local, remote: None },
            Flow::Inside { port, network, .. } => Flow::Inside { port, network, inner: None },
        };
        InternetKey { flow, ..*self }
    }
}

impl PeerAddress for InternetKey {
    fn hash(&self, key: (u64, u64)) -> u64 {
        let [local, remote] = [self.local, self.remote].map(|address| to_v6(address).to_bits());
        // Ports have 16 bits, networks at most 32.
        let (flow, inner) = match self.flow {
            Flow::Udp { local, remote } => (u64::from(local) << 16 | u64::from(remote.unwrap_or(0)), None),
            Flow::Inside { port, network, inner } => (u64::from(port) << 32 | u64::from(network), inner),
        };
        let inner = inner.map_or(0, |[a, b, c, d, e, f]| u64::from_be_bytes([0, 1, a, b, c, d, e, f]));
        [local, remote]
            .into_iter()
            .flat_map(|bits| [(bits >> 64) as u64, bits as u64])
            .chain([flow, inner])
            .fold(key.0, |state, word| mix(state ^ word, key.1))
    }
}
