//! UDP faces with a socket of their own, for peers that none of the sockets listened on reaches: one that listens on a loopback address reaches
//! no other computer.
//!
//! The socket is connected, so it hears its peer alone: what the router listens on stays what the configuration says. The kernel chooses the
//! address that it sends from, once. When this computer has got another one since, the face gets another socket.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use tokio::task::spawn_local;
use tokio::time::sleep;

use super::error::CreateError;
use super::interfaces::{Changes, SETTLING};
use super::listen::{Bound, udp_towards};
use super::shared::{Link, Shared, SocketFace};
use super::udp::{self, Audience, Channel, DatagramLink, Peer};
use crate::registry::{Face, FacePersistency, FaceUpdate};

/// Makes a face to `peer`.
pub(super) fn create(shared: &Rc<Shared>, peer: SocketAddr, update: &FaceUpdate) -> Result<Arc<Face>, CreateError> {
    let channel = towards(shared, peer)
        .map_err(|error| CreateError::Unreachable(format!("no UDP socket towards {peer}: {error}")))?;
    let peer = channel
        .open_unicast(shared, peer, channel.local, FacePersistency::Persistent, update)
        .map_err(|error| CreateError::NotAcceptable(error.to_string()))?;
    receive(shared, channel, &peer);
    Ok(Arc::clone(&peer.face))
}

fn towards(shared: &Shared, peer: SocketAddr) -> std::io::Result<Rc<Channel>> {
    let Bound { socket, local } = udp_towards(peer, &shared.config)?;
    Channel::new(socket, local, Audience::OnePeer, shared.config.datagram_queue_bytes)
}

/// Receives from the peer until its face is closed, or gets another socket.
fn receive(shared: &Rc<Shared>, channel: Rc<Channel>, peer: &Peer) {
    let task = spawn_local(udp::receive(Rc::clone(shared), channel));
    peer.standing.set_queue(task.abort_handle());
}

/// Follows the addresses of this computer for as long as the service lives.
pub(super) async fn follow_addresses(shared: Rc<Shared>) {
    let changes = Changes::subscribe("UDP faces to other computers").await;
    loop {
        changes.next().await;
        sleep(SETTLING).await;
        for entry in shared.entries() {
            if let Link::Datagram(link) = &entry.link
                && link.has_own_socket()
            {
                renew(&shared, &entry, link);
            }
        }
    }
}

/// Gives the face another socket if that would send from another address.
fn renew(shared: &Rc<Shared>, entry: &SocketFace, link: &DatagramLink) {
    let Some(peer) = link.peer() else { return };
    let channel = match towards(shared, peer.address) {
        Ok(channel) if channel.local.ip() != link.channel().local.ip() => channel,
        Ok(_) => return,
        Err(error) => return tracing::debug!(face = %entry.face.id(), %error, "no way to the peer now"),
    };
    tracing::info!(face = %entry.face.id(), remote = %peer.address, local = %channel.local, "another address to send from");
    peer.standing.give_up_queue();
    let peer = channel.attach(entry, link, peer.address);
    receive(shared, channel, &peer);
}
