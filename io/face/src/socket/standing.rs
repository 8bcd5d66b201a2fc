//! Gives each UDP peer in good standing its own receive queue, so that a flood on the listening socket does not
//! displace its packets.
//!
//! The kernel keeps the datagrams of a socket in one queue. When that queue is full, it drops every further datagram,
//! from any sender. A second socket, bound to the same address and connected to one peer, receives the datagrams of
//! that peer only. This thread reads all its sockets in turn. Sent datagrams still leave from the listening socket.
//!
//! In good standing are configured peers, and unsolicited peers that take part in exchanges: in two checks they
//! received at least half as many Data and Interests as they sent packets. Unanswered packets, unsolicited Data and
//! Nacks give no standing. The number of such sockets is small, because the kernel searches all sockets of a port for
//! each datagram. Unsolicited peers of one address get at most a part of them.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use socket2::{Protocol, Type};
use tokio::task::{AbortHandle, spawn_local};

use super::datagram_path::Path;
use super::inlet::{self, Inlet};
use super::listen::{internet_socket, size_buffers};
use super::shared::ServiceState;
use super::udp::{Channel, Peer};
use crate::counters::{FaceCounters, WorkerCounters};
use crate::registry::FacePersistency;
use crate::unsolicited::Origin;

/// Maximum number of peers of a channel with a queue of their own.
const MOST: usize = 32;
/// Maximum number of them that are unsolicited peers of one address (IPv6: of one /64 network).
const MOST_PER_ORIGIN: usize = 8;
/// Minimum time between two checks of all peers.
const LOOK: Duration = Duration::from_millis(500);
/// Score that an unsolicited peer needs. A good check adds one, any other check subtracts one.
const GOOD: u8 = 2;
/// Maximum score: a peer that stops exchanging packets loses its queue after this number of checks.
const BEST: u8 = 20;

/// How a peer behaves, and its own receive queue.
#[derive(Debug, Default)]
pub(super) struct Standing {
    /// Score: the number of good checks minus the number of others.
    looks: Cell<u8>,
    /// Packets received from the peer at the last check.
    received: Cell<u64>,
    /// Data and Interests sent to the peer at the last check.
    sent: Cell<u64>,
    /// The task that receives from the peer's own socket.
    queue: RefCell<Option<AbortHandle>>,
}

impl Standing {
    /// Updates the score from the packets since the last check.
    fn look(&self, counters: &FaceCounters) {
        let received = counters.sum(|WorkerCounters { received: from, .. }| {
            from.interests.packets.get() + from.data.packets.get() + from.nacks.packets.get()
        });
        let sent = counters.sum(|WorkerCounters { sent: to, .. }| to.interests.packets.get() + to.data.packets.get());
        let new_received = received - self.received.replace(received);
        let new_sent = sent - self.sent.replace(sent);
        let is_good = new_received > 0 && new_sent >= new_received / 2;
        let looks = self.looks.get();
        self.looks.set(if is_good { (looks + 1).min(BEST) } else { looks.saturating_sub(1) });
    }

    /// Sets the task that receives from the peer's own socket.
    pub(super) fn set_queue(&self, task: AbortHandle) {
        *self.queue.borrow_mut() = Some(task);
    }

    fn has_queue(&self) -> bool {
        self.queue.borrow().is_some()
    }

    /// Closes the peer's own socket, if it has one.
    pub(super) fn give_up_queue(&self) {
        if let Some(task) = self.queue.take() {
            task.abort();
        }
    }
}

/// Schedules a check of the peers of a channel, unless one is scheduled; the check opens and closes their own sockets.
/// Called when something was received, so that an idle router is not woken.
pub(super) fn look_later(shared: &Rc<ServiceState>, channel: &Rc<Channel>) {
    if channel.is_unicast() && !channel.looks_at_standing.replace(true) {
        let (shared, channel) = (Rc::clone(shared), Rc::clone(channel));
        spawn_local(async move {
            tokio::time::sleep(LOOK).await;
            channel.looks_at_standing.set(false);
            if let Err(error) = look_at_all(&shared, &channel) {
                // The listening socket still receives the peer's datagrams; the next check tries again.
                tracing::debug!(local = %channel.local, %error, "cannot create a receive queue for a peer");
            }
        });
    }
}

fn look_at_all(shared: &Rc<ServiceState>, channel: &Rc<Channel>) -> io::Result<()> {
    let (mut known, mut unsolicited, mut holders) = (Vec::new(), Vec::new(), Vec::new());
    channel.each_peer(|peer| {
        let standing = &peer.standing;
        let is_known = peer.face.persistency() != FacePersistency::OnDemand;
        standing.look(&peer.face.counters);
        if !is_known && standing.looks.get() == 0 {
            standing.give_up_queue();
        } else if standing.has_queue() {
            holders.push((Rc::clone(peer), is_known));
        } else if is_known && known.len() < MOST {
            known.push(Rc::clone(peer));
        } else if !is_known && standing.looks.get() >= GOOD && unsolicited.len() < MOST {
            unsolicited.push(Rc::clone(peer));
        }
    });
    if known.is_empty() && unsolicited.is_empty() {
        return Ok(());
    }
    let mut of_origin: HashMap<Origin, usize> = HashMap::new();
    for (peer, _) in holders.iter().filter(|(_, is_known)| !is_known) {
        *of_origin.entry(Origin::of(peer.path.remote)).or_default() += 1;
    }
    let mut held = holders.len();
    // Configured peers displace unsolicited ones.
    let mut to_displace = holders.iter().filter(|(_, is_known)| !is_known);
    for peer in known {
        if held == MOST {
            let Some((unsolicited, _)) = to_displace.next() else { break };
            unsolicited.standing.give_up_queue();
            held -= 1;
        }
        give_queue(shared, channel, &peer)?;
        held += 1;
    }
    for peer in unsolicited {
        let of_same = of_origin.entry(Origin::of(peer.path.remote)).or_default();
        if held < MOST && *of_same < MOST_PER_ORIGIN {
            give_queue(shared, channel, &peer)?;
            held += 1;
            *of_same += 1;
        }
    }
    Ok(())
}

fn give_queue(shared: &Rc<ServiceState>, channel: &Rc<Channel>, peer: &Peer) -> io::Result<()> {
    let inlet = connected(peer.path, shared.config.datagram_kernel_bytes)?;
    let task = spawn_local(inlet::receive(Rc::clone(shared), Rc::clone(channel), inlet));
    peer.standing.set_queue(task.abort_handle());
    Ok(())
}

/// Opens a socket for the datagrams of one path. The listening socket at its local end must allow it (`SO_REUSEPORT`).
fn connected(path: Path, kernel_bytes: usize) -> io::Result<Rc<Inlet>> {
    let Path { remote, local } = path;
    let socket = internet_socket(remote, Type::DGRAM, Protocol::UDP)?;
    socket.set_reuse_port(true)?;
    size_buffers(&socket, kernel_bytes);
    // Between these two calls the socket receives datagrams of any peer. This is harmless: each datagram is assigned to
    // a face by its path.
    socket.bind(&local.into())?;
    socket.connect(&remote.into())?;
    Inlet::new(socket, local)
}
