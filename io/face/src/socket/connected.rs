//! UDP faces with a socket of their own, for peers that no listening socket can reach. For example, a socket that
//! listens on a loopback address reaches no other host.
//!
//! The socket is connected, so it receives from its peer only: the router listens only where the configuration says.
//! The kernel chooses the source address once, at connect. When the addresses of this host change, the face gets
//! another socket (`follow`).

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use tokio::task::spawn_local;

use super::datagram_path::Path;
use super::error::CreateError;
use super::listen::{Bound, udp_towards};
use super::shared::{ServiceState, SocketFace};
use super::udp::{self, Audience, Channel, DatagramLink, Peer};
use crate::registry::{Face, FacePersistency, FaceUpdate};

/// Creates a face to `remote`.
pub(super) fn create(
    shared: &Rc<ServiceState>,
    remote: SocketAddr,
    update: &FaceUpdate,
) -> Result<Arc<Face>, CreateError> {
    let channel = towards(shared, remote)
        .map_err(|error| CreateError::Unreachable(format!("cannot open a UDP socket to {remote}: {error}")))?;
    let path = Path { remote, local: channel.local };
    let peer = channel
        .open_unicast(shared, path, FacePersistency::Persistent, update)
        .map_err(|error| CreateError::NotAcceptable(error.to_string()))?;
    receive(shared, channel, &peer);
    Ok(Arc::clone(&peer.face))
}

/// Opens a socket connected to `remote`.
pub(super) fn towards(shared: &ServiceState, remote: SocketAddr) -> io::Result<Rc<Channel>> {
    let Bound { socket, local } = udp_towards(remote, &shared.config)?;
    Channel::new(socket, local, Audience::OnePeer, shared.config.datagram_queue_bytes)
}

/// Attaches this socket to a face; its link has no peer at that time.
pub(super) fn use_socket(
    shared: &Rc<ServiceState>,
    entry: &SocketFace,
    link: &DatagramLink,
    channel: Rc<Channel>,
    remote: SocketAddr,
) {
    let peer = channel.attach(entry, link, Path { remote, local: channel.local });
    receive(shared, channel, &peer);
}

/// Receives from the peer until its face is closed or gets another socket.
fn receive(shared: &Rc<ServiceState>, channel: Rc<Channel>, peer: &Peer) {
    let task = spawn_local(udp::receive(Rc::clone(shared), channel));
    peer.standing.set_queue(task.abort_handle());
}
