//! UDP peers that cannot be reached: their faces are down for a while.
//!
//! UDP has no connection that could break. But the kernel learns from ICMP that no program listens at an address
//! (connection refused) or that no route leads there. It also refuses to send if it has no route itself. A peer that
//! answers probes can also fall silent (`silence`). The face of a peer in one of these states is down, so that
//! Interests take other next hops.
//!
//! The peer is asked every [`PROBE_INTERVAL`] (`silence::ask`); so no Interest of a consumer is lost to find out
//! whether it can be reached again. The face comes up when a packet of the peer arrives. After a refusal it also comes
//! up if nothing was refused for [`DOWN`], because some peers do not answer. Unsolicited peers are not probed.

use std::cell::Cell;
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
use super::shared::{Link, ServiceState, SocketFace};
use super::silence;
use super::udp::{Channel, Peer};
use crate::registry::FacePersistency;
use crate::silence::PROBE_INTERVAL;

/// Time after the last refusal during which a peer is not used. It is longer than the kernel's search for a hardware
/// address, which takes 3 s, and longer than the interval between two probes. So a host that has left its network stays
/// down.
const DOWN: Duration = Duration::from_secs(4);
/// Time during which errors are ignored after a packet of the peer has disproved one: anyone can forge errors.
const TRUSTED: Duration = Duration::from_secs(1);
/// Space for the control messages of the error queue.
const CONTROL_BYTES: usize = 512;

/// Why a peer is down.
#[derive(Debug, Clone, Copy)]
enum Down {
    /// A datagram was refused. The peer is used again at `until`, unless another datagram is refused.
    Refused { until: Instant },
    /// The peer has stopped answering.
    Silent,
}

/// Whether a peer is known to be unreachable.
#[derive(Debug, Default)]
pub(super) struct Reachability {
    down: Cell<Option<Down>>,
    /// Errors are ignored until this time, because a packet has shown that the peer is reachable.
    trusted_until: Cell<Option<Instant>>,
}

impl Reachability {
    /// Whether the peer is considered unreachable.
    pub(super) fn is_down(&self) -> bool {
        self.down.get().is_some()
    }
}

/// Makes the kernel queue errors about datagrams of this socket, each with the destination of the datagram.
pub(super) fn subscribe(socket: &Socket) {
    let is_v6 = socket.local_addr().is_ok_and(|local| local.is_ipv6());
    let done = if is_v6 { setsockopt(socket, Ipv6RecvErr, &true) } else { setsockopt(socket, Ipv4RecvErr, &true) };
    if let Err(error) = done {
        tracing::debug!(%error, "cannot detect refused datagrams");
    }
}

/// Handles the errors of a socket as long as it is in use.
pub(super) async fn follow(shared: &Rc<ServiceState>, channel: &Channel, inlet: &Inlet) {
    while inlet.socket.next_error().await.is_ok() {
        take_errors(shared, channel, inlet);
    }
    // The runtime is shutting down.
    pending().await
}

/// Reads the error queue of the socket. Returns whether any error came from the network; then the error that a call on
/// the socket has just returned does not concern its own datagram.
pub(super) fn take_errors(shared: &Rc<ServiceState>, channel: &Channel, inlet: &Inlet) -> bool {
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

/// Reads the next error of the queue: the destination of the datagram, and the error that the network reported; `None`
/// if this host reported it.
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

/// Whether this send error means that the peer is unreachable now. A datagram that is too long, or a full queue, does
/// not.
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

/// The same for an error of a system call.
pub(super) fn is_unreachable_by(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(|error| is_unreachable(Errno::from_raw(error)))
}

/// Takes the face of a peer down because a datagram was refused.
pub(super) fn note_unreachable(shared: &Rc<ServiceState>, peer: &Rc<Peer>, error: impl std::fmt::Display) {
    let now = Instant::now();
    if peer.reachability.trusted_until.get().is_some_and(|until| now < until) {
        return;
    }
    // The next program at this address may be another one, which does not answer.
    peer.silence.forget_answers();
    peer.face.take_answered();
    take_down(shared, peer, Down::Refused { until: now + DOWN }, &error);
}

/// Takes the face of a peer down because the peer has stopped answering.
pub(super) fn note_silent(shared: &Rc<ServiceState>, peer: &Rc<Peer>) {
    take_down(shared, peer, Down::Silent, &"the peer does not reply");
}

fn take_down(shared: &Rc<ServiceState>, peer: &Rc<Peer>, down: Down, reason: &dyn std::fmt::Display) {
    if peer.reachability.down.replace(Some(down)).is_none() {
        tracing::debug!(face = %peer.face.id(), remote = %peer.face.remote_uri(), %reason, "peer is unreachable");
        shared.set_up(&peer.face, false);
        spawn_local(probe(Rc::clone(shared), Rc::clone(peer)));
    }
}

/// Probes a peer until it can be reached, or until its face has another peer.
async fn probe(shared: Rc<ServiceState>, peer: Rc<Peer>) {
    loop {
        let next = Instant::now() + PROBE_INTERVAL;
        sleep_until(next).await;
        let Some(down) = peer.reachability.down.get() else { return };
        let Some(entry) = entry_of(&shared, &peer) else { return };
        if matches!(down, Down::Refused { until } if until <= next) {
            return take_up(&shared, &peer);
        }
        if peer.face.persistency() != FacePersistency::OnDemand {
            silence::ask(&shared, &entry);
        }
    }
}

/// Brings the face of a peer up again, because a packet of the peer has arrived.
#[cold]
pub(super) fn note_reachable(shared: &ServiceState, peer: &Peer) {
    peer.reachability.trusted_until.set(Some(Instant::now() + TRUSTED));
    take_up(shared, peer);
}

fn take_up(shared: &ServiceState, peer: &Peer) {
    peer.reachability.down.set(None);
    if entry_of(shared, peer).is_some() {
        shared.set_up(&peer.face, true);
    }
}

/// Returns the entry of a peer's face; `None` if the face was closed, has lost its local address, or has moved to
/// another one.
fn entry_of(shared: &ServiceState, peer: &Peer) -> Option<Rc<SocketFace>> {
    let entry = shared.face(peer.face_id())?;
    let Link::Datagram(link) = &entry.link else { return None };
    let is_current = link.peer().is_some_and(|current| std::ptr::eq(&*current, peer));
    is_current.then_some(entry)
}
