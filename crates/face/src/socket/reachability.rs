//! UDP peers that cannot be reached: their faces are down for a while.
//!
//! UDP has no connection that could break, but the kernel learns from ICMP that nothing listens at an address (connection refused),
//! or that no way leads there, and it refuses to send where it has no route itself. A face whose peer is in this state is down, so
//! that Interests go elsewhere. It is used again after [`DOWN`], or at once when a packet comes from the peer.

use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::rc::Rc;
use std::time::Duration;

use nix::cmsg_space;
use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::sockopt::{Ipv4RecvErr, Ipv6RecvErr};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt};
use socket2::Socket;
use tokio::task::spawn_local;
use tokio::time::{Instant, sleep_until};

use super::datagram_io::to_std;
use super::inlet::Inlet;
use super::shared::{Link, Shared};
use super::udp::{Channel, Peer};

/// How long a peer that cannot be reached is not used. A router restarts within some seconds. To try sooner costs little: the Interest
/// that is refused again goes elsewhere after one round trip.
const DOWN: Duration = Duration::from_secs(3);
/// How long errors are not believed after a packet of the peer has shown them to be wrong: anybody can forge them.
const TRUSTED: Duration = Duration::from_secs(1);
/// Room for what comes with a message of the error queue.
const CONTROL_BYTES: usize = 512;

/// Has the kernel keep errors that concern datagrams of this socket, each with the address that the datagram was sent to.
pub(super) fn subscribe(socket: &Socket) {
    let is_v6 = socket.local_addr().is_ok_and(|local| local.is_ipv6());
    let done = if is_v6 { setsockopt(socket, Ipv6RecvErr, &true) } else { setsockopt(socket, Ipv4RecvErr, &true) };
    if let Err(error) = done {
        tracing::debug!(%error, "refused datagrams go unnoticed");
    }
}

/// Follows the errors of a socket for as long as it is received from.
pub(super) async fn follow(shared: &Rc<Shared>, channel: &Channel, inlet: &Inlet) {
    while inlet.socket.next_error().await.is_ok() {
        take_errors(shared, channel, inlet);
    }
    // The runtime is ending.
    pending().await
}

/// Takes what the kernel has kept of errors. Whether any came from the network: then the one that a call of the socket has just
/// returned says nothing about its own datagram.
pub(super) fn take_errors(shared: &Rc<Shared>, channel: &Channel, inlet: &Inlet) -> bool {
    let mut any = false;
    while let Ok((destination, error)) = next_error(&inlet.socket) {
        let Some(error) = error else { continue };
        any = true;
        if is_unreachable(error)
            && let Some(destination) = destination
        {
            channel.peers_at(destination).iter().for_each(|peer| note_unreachable(shared, peer, error));
        }
    }
    any
}

/// The next error of the queue: where the datagram was to go, and what the network said; `None` when this host said it.
fn next_error(socket: &(impl AsFd + AsRawFd)) -> Result<(Option<SocketAddr>, Option<Errno>), Errno> {
    let mut control = cmsg_space!([u8; CONTROL_BYTES]);
    let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
    let message = recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut [], Some(&mut control), flags)?;
    let mut from_network = None;
    for control in message.cmsgs()? {
        if let ControlMessageOwned::Ipv4RecvErr(error, _) | ControlMessageOwned::Ipv6RecvErr(error, _) = control
            && matches!(error.ee_origin, libc::SO_EE_ORIGIN_ICMP | libc::SO_EE_ORIGIN_ICMP6)
        {
            from_network = i32::try_from(error.ee_errno).ok().map(Errno::from_raw);
        }
    }
    Ok((message.address.as_ref().and_then(to_std), from_network))
}

/// Does this error of sending mean that nothing reaches the peer now? A datagram that is too long, or a full queue, does not.
pub(super) fn is_unreachable(error: Errno) -> bool {
    matches!(
        error,
        Errno::ECONNREFUSED
            | Errno::EHOSTUNREACH
            | Errno::EHOSTDOWN
            | Errno::ENETUNREACH
            | Errno::ENETDOWN
            | Errno::EADDRNOTAVAIL
    )
}

/// The same of an error of a call.
pub(super) fn is_unreachable_by(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(|error| is_unreachable(Errno::from_raw(error)))
}

/// Takes the face of a peer down for a while.
pub(super) fn note_unreachable(shared: &Rc<Shared>, peer: &Rc<Peer>, error: impl std::fmt::Display) {
    let now = Instant::now();
    if peer.trusted_until.get().is_some_and(|until| now < until) {
        return;
    }
    let until = now + DOWN;
    if peer.down_until.replace(Some(until)).is_none() {
        tracing::debug!(face = %peer.face.id(), remote = %peer.face.remote_uri(), %error, "peer cannot be reached");
        shared.set_up(&peer.face, false);
        spawn_local(use_again(Rc::clone(shared), Rc::clone(peer)));
    }
}

async fn use_again(shared: Rc<Shared>, peer: Rc<Peer>) {
    while let Some(until) = peer.down_until.get() {
        if until <= Instant::now() {
            return take_up(&shared, &peer);
        }
        sleep_until(until).await;
    }
}

/// A packet has come from a peer whose face is down.
#[cold]
pub(super) fn note_reachable(shared: &Shared, peer: &Peer) {
    peer.trusted_until.set(Some(Instant::now() + TRUSTED));
    take_up(shared, peer);
}

fn take_up(shared: &Shared, peer: &Peer) {
    peer.down_until.set(None);
    // Meanwhile its face may have been closed, lost its local address, or moved to another one.
    if let Some(entry) = shared.face(peer.face_id())
        && let Link::Datagram(link) = &entry.link
        && link.peer().is_some_and(|current| std::ptr::eq(&*current, peer))
    {
        shared.set_up(&peer.face, true);
    }
}
