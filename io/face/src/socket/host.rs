//! Snapshot of what faces depend on in this host: its addresses, the state of their interfaces, its routes.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};

use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::net::if_::InterfaceFlags;

use super::listen::{any_of_family, is_own_address, source_towards};
use crate::registry::FacePersistency;
use crate::uri::FaceUri;

/// A snapshot of this host. Each lookup is made once and cached.
pub(super) struct Host {
    /// All addresses with their interfaces.
    addresses: io::Result<Vec<InterfaceAddress>>,
    own: HashMap<SocketAddr, bool>,
    /// By peer: the address that the kernel prefers as source.
    sources: HashMap<SocketAddr, Result<SocketAddr, io::ErrorKind>>,
}

impl Host {
    /// Takes a snapshot of addresses and interfaces.
    pub(super) fn now() -> Host {
        let addresses = getifaddrs().map(Iterator::collect).map_err(io::Error::from);
        if let Err(error) = &addresses {
            tracing::debug!(%error, "cannot list the addresses of network interfaces");
        }
        Host { addresses, own: HashMap::new(), sources: HashMap::new() }
    }

    /// Whether sockets can be bound to this address.
    pub(super) fn has(&mut self, local: SocketAddr) -> bool {
        local.ip().is_unspecified() || *self.own.entry(local).or_insert_with(|| is_own_address(local))
    }

    /// Returns the source address of datagrams to `peer` that are sent on a socket bound to `bound`.
    pub(super) fn source_towards(&mut self, peer: SocketAddr, bound: SocketAddr) -> io::Result<SocketAddr> {
        if !bound.ip().is_unspecified() {
            return Ok(bound);
        }
        let look_up = || source_towards(peer, any_of_family(peer)).map_err(|error| error.kind());
        let mut source = (*self.sources.entry(peer).or_insert_with(look_up))?;
        source.set_port(bound.port());
        Ok(source)
    }

    /// Whether a link carries the packets of a face; `None` if that cannot be determined now.
    pub(super) fn carries(&mut self, dependence: &Dependence) -> Option<bool> {
        let works = |one: &InterfaceAddress| one.flags.contains(InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING);
        match dependence {
            Dependence::Nothing => Some(true),
            Dependence::Interface(name) => {
                let addresses = self.addresses.as_ref().ok()?;
                Some(addresses.iter().any(|one| one.interface_name == *name && works(one)))
            }
            Dependence::Route { peer, local } => {
                let source = self.source_towards(*peer, any_of_family(*peer));
                let addresses = self.addresses.as_ref().ok()?;
                // This host reaches itself without a link.
                if addresses.iter().any(|one| ip_of(one) == Some(peer.ip())) {
                    return Some(true);
                }
                let Ok(source) = source else { return Some(false) };
                let local = local.unwrap_or(source.ip());
                let mut of_local = addresses.iter().filter(|one| ip_of(one) == Some(local)).peekable();
                // If no interface has the local address, the connection ends in another way (`follow`).
                Some(of_local.peek().is_none() || of_local.any(works))
            }
        }
    }
}

fn ip_of(one: &InterfaceAddress) -> Option<IpAddr> {
    let address = one.address?;
    let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
    v4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
}

/// What the packets of a face need from this host.
pub(super) enum Dependence {
    /// Nothing that is checked: the peer is on this host, or it is unsolicited, and there can be many such peers.
    Nothing,
    /// The interface with this name, for a multicast group.
    Interface(String),
    /// A route to the peer, and the interface with the local address. Without `local` the kernel chooses the local
    /// address.
    Route { peer: SocketAddr, local: Option<IpAddr> },
}

impl Dependence {
    /// Returns the dependence of a face with these URIs. A connection that is not established has no local address yet.
    pub(super) fn of(persistency: FacePersistency, remote: &FaceUri, local: &FaceUri) -> Dependence {
        if persistency == FacePersistency::OnDemand {
            return Dependence::Nothing;
        }
        if let FaceUri::UdpDevice { device, .. } = local {
            return Dependence::Interface(device.clone());
        }
        match remote.socket_address() {
            Some(peer) if !peer.ip().is_loopback() => {
                let local = local.socket_address().map(|local| local.ip());
                Dependence::Route { peer, local: local.filter(|local| !local.is_unspecified()) }
            }
            _ => Dependence::Nothing,
        }
    }

    /// Whether a link carries the packets of the face; `true` if that cannot be determined now.
    pub(super) fn is_met(&self) -> bool {
        matches!(self, Dependence::Nothing) || Host::now().carries(self).unwrap_or(true)
    }
}
