//! Faces to other hosts follow the network interface that leads to their peer.
//!
//! The kernel says nothing to a socket when a cable is pulled: it keeps the routes of an interface without carrier, and a
//! connection over it waits. So whenever interfaces or addresses change, the way to each peer is looked up: a face is down
//! while no route leads to its peer, or while the interface with the address that it sends from is down or has no
//! carrier. Faces that peers have made by themselves are left alone, because there can be many of them.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use nix::net::if_::InterfaceFlags;
use tokio::time::sleep;

use super::interfaces::{Changes, SETTLING};
use super::listen::source_towards;
use super::shared::{Link, Shared, SocketFace};
use crate::registry::FacePersistency;

/// Follows the interfaces for as long as the service lives.
pub(super) async fn follow(shared: Rc<Shared>) {
    let changes = Changes::subscribe("faces to other hosts").await;
    loop {
        changes.next().await;
        // A link that is cut is to be known at once, and addresses come after their interface.
        check_all(&shared);
        sleep(SETTLING).await;
        check_all(&shared);
    }
}

fn check_all(shared: &Rc<Shared>) {
    let addresses = match addresses() {
        Ok(addresses) => addresses,
        Err(error) => return tracing::debug!(%error, "the addresses of interfaces are not known"),
    };
    for entry in shared.entries() {
        if entry.face.persistency() != FacePersistency::OnDemand
            && let Some((peer, local)) = ends(&entry)
        {
            shared.set_way(&entry, has_way(peer, local, &addresses));
        }
    }
}

/// The addresses of this host, each with the state of its interface.
fn addresses() -> io::Result<Vec<(IpAddr, InterfaceFlags)>> {
    let all = nix::ifaddrs::getifaddrs()?;
    let address = |one: nix::ifaddrs::InterfaceAddress| {
        let address = one.address?;
        let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
        let ip = v4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))?;
        Some((ip, one.flags))
    };
    Ok(all.filter_map(address).collect())
}

/// The peer of a face over the Internet, and the address that is sent from, unless the kernel chooses it for each packet.
fn ends(entry: &SocketFace) -> Option<(SocketAddr, Option<IpAddr>)> {
    let (peer, local) = match &entry.link {
        Link::Datagram(link) => {
            let channel = link.channel();
            let peer = link.peer().filter(|_| channel.is_unicast())?;
            (peer.path.remote, Some(peer.path.local))
        }
        // A connection keeps its address; one that is to be made has none yet.
        Link::Stream(_) | Link::WebSocket(_) => {
            (entry.face.remote_uri().socket_address()?, entry.face.local_uri().socket_address())
        }
    };
    Some((peer, local.map(|local| local.ip()).filter(|local| !local.is_unspecified())))
}

/// Does a route lead to the peer, over an interface that works?
fn has_way(peer: SocketAddr, local: Option<IpAddr>, addresses: &[(IpAddr, InterfaceFlags)]) -> bool {
    // This host reaches itself without any link.
    if peer.ip().is_loopback() || addresses.iter().any(|(own, _)| *own == peer.ip()) {
        return true;
    }
    let any: IpAddr = if peer.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
    let Ok(source) = source_towards(peer, SocketAddr::new(any, 0)) else { return false };
    let local = local.unwrap_or(source.ip());
    let works = InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING;
    let mut of_local = addresses.iter().filter(|(own, _)| *own == local).peekable();
    // A connection from an address that no interface has any more ends by itself.
    of_local.peek().is_none() || of_local.any(|(_, flags)| flags.contains(works))
}
