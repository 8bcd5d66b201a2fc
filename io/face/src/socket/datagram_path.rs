//! The two ends of a datagram, and the control messages that carry the local one: `IP_PKTINFO` (ip(7)) and
//! `IPV6_PKTINFO` (ipv6(7)).
//!
//! A socket bound to a wildcard address receives for every address of the host. The kernel reports the destination
//! address of each datagram, and an answer uses it as its source. Otherwise the answer would leave from the address
//! that the routing table prefers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use nix::libc::{in_addr, in_pktinfo, in6_addr, in6_pktinfo};
use nix::sys::socket::sockopt::{Ipv4PacketInfo, Ipv6RecvPacketInfo};
use nix::sys::socket::{ControlMessage, ControlMessageOwned, cmsg_space, getsockopt, setsockopt};
use socket2::Socket;

use crate::peers::{PeerAddress, mix};

/// Space for one control message: IPv4, IPv6.
pub(super) const CONTROL_BYTES: [usize; 2] = [cmsg_space::<in_pktinfo>(), cmsg_space::<in6_pktinfo>()];

/// The two ends of a datagram; together they identify a face of a UDP socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Path {
    /// The peer.
    pub(super) remote: SocketAddr,
    /// The address of this host that the peer uses, with the port of the socket. It has an IPv6 scope only if it is
    /// link-local.
    pub(super) local: SocketAddr,
}

impl PeerAddress for Path {
    fn hash(&self, key: (u64, u64)) -> u64 {
        let remote = self.remote.hash(key);
        match self.local.ip() {
            IpAddr::V4(local) => mix(remote ^ u64::from(local.to_bits()), key.1),
            IpAddr::V6(local) => {
                let bits = local.to_bits();
                mix(mix(remote ^ (bits >> 64) as u64, key.1) ^ bits as u64, key.1)
            }
        }
    }
}

/// The source address of outgoing datagrams.
#[derive(Debug, Clone, Copy)]
pub(super) enum Source {
    V4(in_pktinfo),
    V6(in6_pktinfo),
}

impl Source {
    /// Returns the source `local`; `None` for a wildcard address, where the kernel chooses.
    pub(super) fn of(local: SocketAddr) -> Option<Source> {
        if local.ip().is_unspecified() {
            return None;
        }
        let zero = in_addr { s_addr: 0 };
        Some(match local {
            // The route determines the interface.
            SocketAddr::V4(local) => {
                let ipi_spec_dst = in_addr { s_addr: u32::from_ne_bytes(local.ip().octets()) };
                Source::V4(in_pktinfo { ipi_ifindex: 0, ipi_spec_dst, ipi_addr: zero })
            }
            // The route determines the interface here too, except for a link-local address, which needs its interface.
            SocketAddr::V6(local) => Source::V6(in6_pktinfo {
                ipi6_addr: in6_addr { s6_addr: local.ip().octets() },
                ipi6_ifindex: local.scope_id(),
            }),
        })
    }

    /// Returns the control message that sets this source.
    pub(super) fn message(&self) -> ControlMessage<'_> {
        match self {
            Source::V4(info) => ControlMessage::Ipv4PacketInfo(info),
            Source::V6(info) => ControlMessage::Ipv6PacketInfo(info),
        }
    }
}

/// Requests that the kernel reports the destination address of each datagram. Call it before `bind`: the kernel records
/// the address when a datagram arrives.
pub(super) fn request_destinations(socket: &Socket, family: SocketAddr) -> nix::Result<()> {
    match family {
        SocketAddr::V4(_) => setsockopt(socket, Ipv4PacketInfo, &true),
        SocketAddr::V6(_) => setsockopt(socket, Ipv6RecvPacketInfo, &true),
    }
}

/// Whether the kernel reports destination addresses on this socket.
pub(super) fn reports_destinations(socket: &Socket, family: SocketAddr) -> bool {
    let set = match family {
        SocketAddr::V4(_) => getsockopt(socket, Ipv4PacketInfo),
        SocketAddr::V6(_) => getsockopt(socket, Ipv6RecvPacketInfo),
    };
    set.unwrap_or(false)
}

/// Returns the destination in a control message, with `port`.
pub(super) fn destination(message: &ControlMessageOwned, port: u16) -> Option<SocketAddr> {
    match message {
        // For a broadcast this is the address of the interface, which an answer can use as source.
        ControlMessageOwned::Ipv4PacketInfo(info) => {
            Some(SocketAddr::from((Ipv4Addr::from(info.ipi_spec_dst.s_addr.to_ne_bytes()), port)))
        }
        ControlMessageOwned::Ipv6PacketInfo(info) => {
            let address = Ipv6Addr::from(info.ipi6_addr.s6_addr);
            let scope = if address.is_unicast_link_local() { info.ipi6_ifindex } else { 0 };
            Some(SocketAddr::V6(SocketAddrV6::new(address, port, 0, scope)))
        }
        _ => None,
    }
}
