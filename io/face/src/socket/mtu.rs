//! The largest datagram that reaches the peer of a UDP face without IP fragments, which many firewalls drop.
//!
//! It is the MTU of the route minus the headers: the MTU of the interface, or less if path MTU discovery has found less
//! (RFC 1191, RFC 8201). The kernel refuses to send larger datagrams, and the face then learns its new MTU. NDNLPv2
//! makes fragments that fit. Routes within this host carry the largest packet.

use std::io;
use std::net::IpAddr;

use nix::libc;
use nix::sys::socket::sockopt::{GetUsize, IpMtu, SetUsize};
use nix::sys::socket::{getsockopt, setsockopt};
use nix::{getsockopt_impl, setsockopt_impl};
use socket2::{Protocol, Socket, Type};

use super::FaceEvent;
use super::datagram_path::Path;
use super::listen::internet_socket;
use super::shared::ServiceState;
use super::udp::{Channel, Peer};
use crate::registry::{BASE_PACKET_BYTES, udp_header_bytes};

/// `IPV6_MTU` (ipv6(7)).
#[derive(Debug, Clone, Copy)]
struct Ipv6Mtu;
getsockopt_impl!(Ipv6Mtu, libc::IPPROTO_IPV6, libc::IPV6_MTU, usize, GetUsize);

/// `IP_MTU_DISCOVER` (ip(7)).
#[derive(Debug, Clone, Copy)]
struct IpMtuDiscover;
setsockopt_impl!(IpMtuDiscover, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, usize, SetUsize);

/// `IPV6_MTU_DISCOVER` (ipv6(7)).
#[derive(Debug, Clone, Copy)]
struct Ipv6MtuDiscover;
setsockopt_impl!(Ipv6MtuDiscover, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, usize, SetUsize);

/// `IPV6_DONTFRAG` (RFC 3542).
#[derive(Debug, Clone, Copy)]
struct Ipv6DoNotFragment;
setsockopt_impl!(Ipv6DoNotFragment, libc::IPPROTO_IPV6, libc::IPV6_DONTFRAG, usize, SetUsize);

/// Makes the kernel refuse datagrams that are longer than the MTU of their route, instead of fragmenting them.
pub(super) fn refuse_fragments(socket: &Socket, is_v4: bool) {
    let refused = if is_v4 {
        setsockopt(socket, IpMtuDiscover, &(libc::IP_PMTUDISC_DO as usize))
    } else {
        setsockopt(socket, Ipv6MtuDiscover, &(libc::IPV6_PMTUDISC_DO as usize))
            .and_then(|()| setsockopt(socket, Ipv6DoNotFragment, &1))
    };
    if let Err(error) = refused {
        tracing::debug!(
            %error,
            "cannot disable fragmentation: the kernel fragments datagrams that exceed the path MTU"
        );
    }
}

/// Returns the largest NDN frame that every path to this address carries, in bytes; `None` for paths within this host,
/// on which nothing is narrower than the route.
pub(super) fn base_bytes(remote: IpAddr) -> Option<usize> {
    (!remote.is_loopback()).then(|| BASE_PACKET_BYTES - udp_header_bytes(remote))
}

/// Returns the largest NDN frame on this path in bytes: as configured, or as the route allows.
pub(super) fn of_path(shared: &ServiceState, path: &Path) -> usize {
    let of_route = || of_route(path).ok().map(|bytes| bytes.saturating_sub(udp_header_bytes(path.remote.ip())));
    // The face clamps larger values to the largest packet.
    shared.config.datagram_mtu_bytes.or_else(of_route).unwrap_or(usize::MAX)
}

/// Returns the MTU of the route in bytes, headers included. Queries the routing table by connecting a socket, which
/// sends nothing.
fn of_route(path: &Path) -> io::Result<usize> {
    let probe = internet_socket(path.remote, Type::DGRAM, Protocol::UDP)?;
    let mut local = path.local;
    local.set_port(0);
    probe.bind(&local.into())?;
    probe.connect(&path.remote.into())?;
    Ok(match path.remote.is_ipv4() {
        true => usize::try_from(getsockopt(&probe, IpMtu)?).unwrap_or(usize::MAX),
        false => getsockopt(&probe, Ipv6Mtu)?,
    })
}

/// Looks up the MTU of a peer's path again, and announces a change.
pub(super) fn renew(shared: &ServiceState, peer: &Peer) {
    let bytes = of_path(shared, &peer.path);
    if peer.face.set_link_mtu_bytes(bytes) {
        tracing::debug!(
            face = %peer.face.id(),
            remote = %peer.path.remote,
            mtu_bytes = peer.face.mtu_bytes(),
            "the path MTU has changed"
        );
        shared.announce(FaceEvent::Changed(std::sync::Arc::clone(&peer.face)));
    }
}

/// Calls [`renew`] for each peer of a channel to which a datagram was refused as too long.
pub(super) fn renew_refused(shared: &ServiceState, channel: &Channel) {
    for peer in channel.take_refused() {
        renew(shared, &peer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_to_other_hosts_carry_1280_bytes_with_headers() {
        for (remote, bytes) in
            [("192.0.2.1", Some(1280 - 28)), ("2001:db8::1", Some(1280 - 48)), ("127.0.0.1", None), ("::1", None)]
        {
            assert_eq!(base_bytes(remote.parse().expect("an address")), bytes, "{remote}");
        }
    }
}
