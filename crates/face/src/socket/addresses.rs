//! Keeps faces on local addresses that this host has, as addresses come and go.
//!
//! A UDP face made by configuration or command sends from the address that routes prefer: it moves when they prefer another, and is down
//! while there is none. A face whose peer has chosen the local address, by asking there, stays with it; when the address goes, the face
//! closes if it is on-demand, and otherwise moves as well. `face list` shows the local address that is in use.
//!
//! Sockets that listen on an address that no interface had yet work as soon as one has; the log says when.
//!
//! A connection ends when its local address goes: nothing can come back there, and the kernel would take minutes to give up. Those that
//! wait to connect again do so when addresses have changed.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::connected;
use super::datagram_path::Path;
use super::interfaces::{Changes, RETRY, SETTLING};
use super::listen::{is_own_address, source_towards};
use super::mtu;
use super::shared::{Link, Shared, SocketFace};
use super::udp::{Channel, DatagramLink};
use crate::registry::FacePersistency;
use crate::uri::FaceUri;

/// Follows the addresses of this host for as long as the service lives.
pub(super) async fn follow(shared: Rc<Shared>) {
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
        let is_complete = follow_now(&shared);
        // A route may come without a new address.
        let limit = if is_complete { Duration::MAX } else { RETRY };
        let has_changed = timeout(limit, changes.next()).await.is_ok();
        sleep(SETTLING).await;
        if has_changed {
            shared.addresses_changed.send_replace(());
        }
    }
}

/// Moves all faces as the addresses are now; `false` when some found no address to send from.
fn follow_now(shared: &Rc<Shared>) -> bool {
    let mut own = OwnAddresses::default();
    let mut is_complete = true;
    for entry in shared.entries() {
        match &entry.link {
            Link::Datagram(link) if link.channel().is_unicast() => {
                is_complete &= follow_datagrams(shared, &mut own, &entry, link);
            }
            // Groups follow their interfaces.
            Link::Datagram(_) => {}
            Link::Stream(_) | Link::WebSocket(_) => end_dead_connection(&mut own, &entry),
        }
    }
    is_complete
}

/// Which addresses this host has, each looked up once.
#[derive(Default)]
struct OwnAddresses(HashMap<SocketAddr, bool>);

impl OwnAddresses {
    fn has(&mut self, local: SocketAddr) -> bool {
        local.ip().is_unspecified() || *self.0.entry(local).or_insert_with(|| is_own_address(local))
    }
}

/// Ends the connection of a face whose local address is gone.
fn end_dead_connection(own: &mut OwnAddresses, entry: &SocketFace) {
    // Without a connection a face has no local address.
    let Some(local) = entry.face.local_uri().socket_address() else { return };
    if own.has(local) {
        return;
    }
    tracing::info!(face = %entry.face.id(), remote = %entry.face.remote_uri(), %local, "local address gone: closing the connection");
    match &entry.link {
        Link::Stream(link) => link.abort(),
        Link::WebSocket(link) => link.abort(),
        Link::Datagram(_) => {}
    }
}

/// Moves a UDP face if need be; `false` when it found no address to send from.
fn follow_datagrams(shared: &Rc<Shared>, own: &mut OwnAddresses, entry: &Rc<SocketFace>, link: &DatagramLink) -> bool {
    let current = link.peer().map(|peer| peer.path.local);
    let is_usable = current.is_some_and(|local| own.has(local));
    if is_usable && link.is_chosen_by_peer.get() {
        return true;
    }
    if !is_usable && entry.face.persistency() == FacePersistency::OnDemand {
        tracing::debug!(face = %entry.face.id(), "the local address of the face is gone: closing");
        shared.close(entry.face.id());
        return true;
    }
    let Some(remote) = entry.face.remote_uri().socket_address() else { return false };
    match choose(shared, own, link, remote) {
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
        // Its address works as long as it is there.
        Err(_) if is_usable => true,
        Err(error) => {
            if current.is_some() {
                tracing::info!(face = %entry.face.id(), %remote, %error, "no address to send from: the face is down");
                link.disconnect(&entry.face);
                entry.face.set_local_uri(FaceUri::Null);
                shared.set_up(&entry.face, false);
            }
            false
        }
    }
}

/// The channel that reaches `remote` now, and the address that it sends from.
fn choose(
    shared: &Shared,
    own: &mut OwnAddresses,
    link: &DatagramLink,
    remote: SocketAddr,
) -> io::Result<(Rc<Channel>, SocketAddr)> {
    if link.has_own_socket() {
        let channel = connected::towards(shared, remote)?;
        let local = channel.local;
        // The same address does not need the new socket.
        return Ok(match link.peer() {
            Some(peer) if peer.path.local.ip() == local.ip() => (link.channel(), peer.path.local),
            _ => (channel, local),
        });
    }
    let channel = link.channel();
    let local = source_towards(remote, channel.local)?;
    if own.has(local) { Ok((channel, local)) } else { Err(io::ErrorKind::AddrNotAvailable.into()) }
}

fn move_to(shared: &Rc<Shared>, entry: &Rc<SocketFace>, link: &DatagramLink, channel: Rc<Channel>, path: Path) {
    let face = &entry.face;
    if let Some(other) = channel.face_at(&path) {
        if other.persistency() != FacePersistency::OnDemand {
            return tracing::debug!(face = %face.id(), other = %other.id(), "another face sends to this peer from this address");
        }
        // The peer made a face when it asked there.
        shared.close(other.id());
    }
    tracing::info!(face = %face.id(), remote = %path.remote, local = %path.local, "another address to send from");
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
