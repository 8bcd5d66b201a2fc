//! Adapts faces when interfaces, addresses and routes of this host change.
//!
//! The kernel does not notify a socket when a cable is pulled: it keeps the routes of an interface without carrier, and
//! a connection over it waits. So the route to each peer is looked up after each change. A face is down while no route
//! leads to its peer, or while the interface with its local address is down or has no carrier. The same check is made
//! when a face is created. Faces of unsolicited peers are not checked, because there can be many of them.
//!
//! A UDP face created by configuration or command sends from the address that the routes prefer. It moves when the
//! routes prefer another address, and is down while there is none. If the peer has chosen the local address, by sending
//! to it, the face keeps that address. When the address goes away, the face closes if it is on-demand; otherwise it
//! moves as well. `face list` shows the current local address.
//!
//! A socket that listens on an address that no interface has yet works as soon as an interface has it; the log reports
//! this.
//!
//! A connection ends when its local address goes away: no answer can arrive there, and the kernel would notice only
//! after minutes. A face that waits to reconnect tries at once when addresses have changed.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::connected;
use super::datagram_path::Path;
use super::host::{Dependence, Host};
use super::interfaces::{Changes, RETRY, SETTLING};
use super::listen::{any_of_family, is_own_address};
use super::mtu;
use super::shared::{Link, ServiceState, SocketFace};
use super::udp::{Channel, DatagramLink};
use crate::registry::FacePersistency;
use crate::uri::FaceUri;

/// Follows the changes of this host as long as the service runs.
pub(super) async fn follow(shared: Rc<ServiceState>) {
    let changes = Changes::subscribe("faces over Internet sockets").await;
    let mut awaited = shared.listened_on.clone();
    awaited.retain(|(_, address)| !is_own_address(*address));
    loop {
        awaited.retain(|(protocol, address)| {
            let is_there = is_own_address(*address);
            if is_there {
                tracing::info!(protocol, %address, "a network interface has this address now: listening on it");
            }
            !is_there
        });
        let is_complete = follow_all(&shared);
        // A route may appear without a new address.
        let limit = if is_complete { Duration::MAX } else { RETRY };
        let has_changed = timeout(limit, changes.next()).await.is_ok();
        if has_changed {
            // Link failures are handled at once. New addresses appear some time after their interface.
            follow_links(&shared);
        }
        sleep(SETTLING).await;
        if has_changed {
            shared.addresses_changed.send_replace(());
        }
    }
}

/// Updates for every face whether a link carries its packets.
fn follow_links(shared: &ServiceState) {
    let mut host = Host::now();
    for entry in shared.entries() {
        note_link(shared, &mut host, &entry);
    }
}

/// Updates whether a link carries the packets of a face; returns `false` if none does.
fn note_link(shared: &ServiceState, host: &mut Host, entry: &SocketFace) -> bool {
    let face = &entry.face;
    let dependence = Dependence::of(face.persistency(), face.remote_uri(), &face.local_uri());
    let has_way = host.carries(&dependence);
    if let Some(has_way) = has_way {
        shared.set_way(entry, has_way);
    }
    has_way != Some(false)
}

/// Moves, disconnects or closes each face according to the present addresses, and updates its link state. Returns
/// `false` if a face has no source address or no route.
fn follow_all(shared: &Rc<ServiceState>) -> bool {
    let mut host = Host::now();
    let mut is_complete = true;
    for entry in shared.entries() {
        match &entry.link {
            Link::Datagram(link) if link.channel().is_unicast() => {
                is_complete &= follow_datagrams(shared, &mut host, &entry, link);
            }
            // `multicast` joins groups as interfaces come and go.
            Link::Datagram(_) => {}
            Link::Stream(_) | Link::WebSocket(_) => end_dead_connection(&mut host, &entry),
        }
        is_complete &= note_link(shared, &mut host, &entry);
    }
    is_complete
}

/// Closes the connection of a face if its local address is gone.
fn end_dead_connection(host: &mut Host, entry: &SocketFace) {
    // A face without a connection has no local address.
    let Some(local) = entry.face.local_uri().socket_address() else { return };
    if host.has(local) {
        return;
    }
    tracing::info!(
        face = %entry.face.id(),
        remote = %entry.face.remote_uri(),
        %local,
        "local address removed: closing the connection"
    );
    match &entry.link {
        Link::Stream(link) => link.abort(),
        Link::WebSocket(link) => link.abort(),
        Link::Datagram(_) => {}
    }
}

/// Moves a UDP face if necessary; returns `false` if it has no source address.
fn follow_datagrams(shared: &Rc<ServiceState>, host: &mut Host, entry: &Rc<SocketFace>, link: &DatagramLink) -> bool {
    let current = link.peer().map(|peer| peer.path.local);
    let is_usable = current.is_some_and(|local| host.has(local));
    if is_usable && link.is_chosen_by_peer.get() {
        return true;
    }
    if !is_usable && entry.face.persistency() == FacePersistency::OnDemand {
        tracing::debug!(face = %entry.face.id(), "local address removed: closing the face");
        shared.close(entry.face.id());
        return true;
    }
    let Some(remote) = entry.face.remote_uri().socket_address() else { return false };
    match choose(shared, host, link, remote) {
        Ok((_, local)) if current == Some(local) => {
            // The interface may have another MTU now.
            if let Some(peer) = link.peer() {
                mtu::renew(shared, &peer);
            }
            true
        }
        Ok((channel, local)) => {
            move_to(shared, entry, link, channel, Path { remote, local });
            true
        }
        // The face keeps its address while that address exists.
        Err(_) if is_usable => true,
        Err(error) => {
            if current.is_some() {
                tracing::info!(face = %entry.face.id(), %remote, %error, "no source address: the face is down");
                link.disconnect(&entry.face);
                entry.face.set_local_uri(FaceUri::Null);
                shared.set_up(&entry.face, false);
            }
            false
        }
    }
}

/// Returns the channel that reaches `remote` now, and the source address.
fn choose(
    shared: &ServiceState,
    host: &mut Host,
    link: &DatagramLink,
    remote: SocketAddr,
) -> io::Result<(Rc<Channel>, SocketAddr)> {
    if link.has_own_socket() {
        let source = host.source_towards(remote, any_of_family(remote))?;
        // An unchanged source address needs no new socket.
        if let Some(peer) = link.peer()
            && peer.path.local.ip() == source.ip()
        {
            return Ok((link.channel(), peer.path.local));
        }
        let channel = connected::towards(shared, remote)?;
        let local = channel.local;
        return Ok((channel, local));
    }
    let channel = link.channel();
    let local = host.source_towards(remote, channel.local)?;
    if host.has(local) { Ok((channel, local)) } else { Err(io::ErrorKind::AddrNotAvailable.into()) }
}

fn move_to(shared: &Rc<ServiceState>, entry: &Rc<SocketFace>, link: &DatagramLink, channel: Rc<Channel>, path: Path) {
    let face = &entry.face;
    if let Some(other) = channel.face_at(&path) {
        if other.persistency() != FacePersistency::OnDemand {
            return tracing::debug!(
                face = %face.id(),
                other = %other.id(),
                "another face has this peer and local address"
            );
        }
        // This is the on-demand face that the peer opened by sending to this address.
        shared.close(other.id());
    }
    tracing::info!(face = %face.id(), remote = %path.remote, local = %path.local, "the face has a new source address");
    link.disconnect(face);
    link.is_chosen_by_peer.set(false);
    face.set_local_uri(FaceUri::udp(path.local));
    if link.has_own_socket() {
        connected::use_socket(shared, entry, link, channel, path.remote);
    } else {
        channel.attach(entry, link, path);
    }
    if let Some(peer) = link.peer() {
        mtu::renew(shared, &peer);
    }
    shared.set_up(face, true);
}
