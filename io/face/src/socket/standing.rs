//! UDP peers in good standing have a receive queue of their own, so that nobody who floods the socket listened on takes it from
//! them.
//!
//! The kernel keeps what comes to a socket in one queue, and when that is full it drops whatever comes next, whoever sent it. A
//! second socket, bound to the same address and connected to one peer, gets the datagrams of this peer alone, and this thread
//! reads all its sockets in turn. What is sent still leaves from the socket listened on.
//!
//! In good standing are peers that this router was told of, and strangers whose packets are part of exchanges: for a second
//! they were sent about as many Data and Interests as came from them. Packets that nobody answers, and Data that
//! nobody asked for, give no standing, and nor does a Nack. The number of such sockets is small, because for each datagram to a
//! port the kernel goes through all of its sockets, and strangers of one address have a part of it at most.

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
use super::shared::Shared;
use super::udp::{Channel, Peer};
use crate::counters::{FaceCounters, WorkerCounters};
use crate::registry::FacePersistency;
use crate::strangers::Origin;

/// Most peers of a channel that have a queue of their own.
const MOST: usize = 32;
/// Most of them that are strangers of one address (IPv6: of one network of 64 bits).
const MOST_PER_ORIGIN: usize = 8;
/// Least time between two looks at all peers.
const LOOK: Duration = Duration::from_millis(500);
/// Good looks that a stranger needs, less one for each look that was not.
const GOOD: u8 = 2;
/// No more of them are remembered: a stranger that stops loses its queue after so many looks.
const BEST: u8 = 20;

/// What is known of how a peer behaves, and its queue.
#[derive(Debug, Default)]
pub(super) struct Standing {
    /// Good looks, less others.
    looks: Cell<u8>,
    /// Packets received from it at the last look.
    received: Cell<u64>,
    /// Data and Interests sent to it at the last look.
    sent: Cell<u64>,
    /// The task that receives from its own socket.
    queue: RefCell<Option<AbortHandle>>,
}

impl Standing {
    /// Judges what happened since the last look.
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

    /// A task receives from a socket that is the peer's alone.
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

/// Looks at the peers of a channel after a while, unless that is planned already, and gives and takes their queues. Called when
/// something was received, so that an idle router is not woken.
pub(super) fn look_later(shared: &Rc<Shared>, channel: &Rc<Channel>) {
    if channel.is_unicast() && !channel.looks_at_standing.replace(true) {
        let (shared, channel) = (Rc::clone(shared), Rc::clone(channel));
        spawn_local(async move {
            tokio::time::sleep(LOOK).await;
            channel.looks_at_standing.set(false);
            if let Err(error) = look_at_all(&shared, &channel) {
                // The peer is received from the socket listened on, as before; the next look tries again.
                tracing::debug!(local = %channel.local, %error, "no receive queue of its own for a peer");
            }
        });
    }
}

fn look_at_all(shared: &Rc<Shared>, channel: &Rc<Channel>) -> io::Result<()> {
    let (mut known, mut strangers, mut holders) = (Vec::new(), Vec::new(), Vec::new());
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
        } else if !is_known && standing.looks.get() >= GOOD && strangers.len() < MOST {
            strangers.push(Rc::clone(peer));
        }
    });
    if known.is_empty() && strangers.is_empty() {
        return Ok(());
    }
    let mut of_origin: HashMap<Origin, usize> = HashMap::new();
    for (peer, _) in holders.iter().filter(|(_, is_known)| !is_known) {
        *of_origin.entry(Origin::of(peer.path.remote)).or_default() += 1;
    }
    let mut held = holders.len();
    // Strangers give way to peers that the router was told of.
    let mut to_displace = holders.iter().filter(|(_, is_known)| !is_known);
    for peer in known {
        if held == MOST {
            let Some((stranger, _)) = to_displace.next() else { break };
            stranger.standing.give_up_queue();
            held -= 1;
        }
        give_queue(shared, channel, &peer)?;
        held += 1;
    }
    for peer in strangers {
        let of_same = of_origin.entry(Origin::of(peer.path.remote)).or_default();
        if held < MOST && *of_same < MOST_PER_ORIGIN {
            give_queue(shared, channel, &peer)?;
            held += 1;
            *of_same += 1;
        }
    }
    Ok(())
}

fn give_queue(shared: &Rc<Shared>, channel: &Rc<Channel>, peer: &Peer) -> io::Result<()> {
    let inlet = connected(peer.path, shared.config.datagram_kernel_bytes)?;
    let task = spawn_local(inlet::receive(Rc::clone(shared), Rc::clone(channel), inlet));
    peer.standing.set_queue(task.abort_handle());
    Ok(())
}

/// A socket for the datagrams of one path, at whose local end another socket listens that allows it.
fn connected(path: Path, kernel_bytes: usize) -> io::Result<Rc<Inlet>> {
    let Path { remote, local } = path;
    let socket = internet_socket(remote, Type::DGRAM, Protocol::UDP)?;
    socket.set_reuse_port(true)?;
    size_buffers(&socket, kernel_bytes);
    // Between these two calls it gets what is for everybody. That does no harm: the path of a datagram says whom it belongs to.
    socket.bind(&local.into())?;
    socket.connect(&remote.into())?;
    Inlet::new(socket, local)
}
