//! The send queues of a UDP socket: one for each local source address.
//!
//! The datagrams of one system call share their source address, so each source has its own queue. The queues take
//! turns, one batch at a time. If all peers of a socket use one address, it has one queue.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::rc::{Rc, Weak};
use std::sync::atomic::Ordering;

use namehop_packet::PacketBuffer;
use nix::errno::Errno;

use super::datagram_path::Source;
use super::reachability;
use super::shared::{ServiceState, note_queue};
use super::udp::{Channel, Peer};
use crate::counters::LinkDrop;

/// Maximum number of datagrams queued on one socket. Each occupies a buffer of the router's pool, and small ones must
/// not use up all of it.
const MAX_WAITING: usize = 4096;

struct Waiting {
    peer: Rc<Peer>,
    buffer: PacketBuffer,
}

/// The queue of datagrams that leave from one local address.
pub(super) struct Outlet {
    local: SocketAddr,
    source: Option<Source>,
    waiting: RefCell<VecDeque<Waiting>>,
}

/// The outlets of one socket.
pub(super) struct Outlets {
    /// The outlets in use; an outlet exists as long as one of its peers.
    all: RefCell<Vec<Weak<Outlet>>>,
    /// The outlets with queued datagrams, each once.
    busy: RefCell<VecDeque<Rc<Outlet>>>,
    waiting: Cell<usize>,
    waiting_bytes: Cell<usize>,
    limit_bytes: usize,
    /// Peers to which a datagram was too long for its route.
    refused: RefCell<Vec<Rc<Peer>>>,
}

impl Outlets {
    /// Creates an empty set. `limit_bytes` bounds the queued bytes of all outlets together.
    pub(super) fn new(limit_bytes: usize) -> Outlets {
        Outlets {
            all: RefCell::default(),
            busy: RefCell::default(),
            waiting: Cell::new(0),
            waiting_bytes: Cell::new(0),
            limit_bytes,
            refused: RefCell::default(),
        }
    }

    /// Returns and clears the list of peers to which a datagram was too long for its route.
    pub(super) fn take_refused(&self) -> Vec<Rc<Peer>> {
        self.refused.take()
    }

    /// Returns the outlet for `local`. If `is_named`, its datagrams set that address as their source.
    pub(super) fn at(&self, local: SocketAddr, is_named: bool) -> Rc<Outlet> {
        let mut all = self.all.borrow_mut();
        all.retain(|outlet| outlet.strong_count() > 0);
        if let Some(outlet) = all.iter().filter_map(Weak::upgrade).find(|outlet| outlet.local == local) {
            return outlet;
        }
        let source = if is_named { Source::of(local) } else { None };
        let outlet = Rc::new(Outlet { local, source, waiting: RefCell::default() });
        all.push(Rc::downgrade(&outlet));
        outlet
    }

    /// Queues a datagram for `peer`.
    pub(super) fn push(&self, peer: Rc<Peer>, buffer: PacketBuffer) -> Result<(), LinkDrop> {
        let bytes = buffer.bytes().len();
        let total = self.waiting_bytes.get() + bytes;
        if total > self.limit_bytes || self.waiting.get() == MAX_WAITING {
            return Err(LinkDrop::SendQueueFull);
        }
        self.waiting.set(self.waiting.get() + 1);
        self.waiting_bytes.set(total);
        note_queue(&peer.face, peer.face.send_queue_bytes.load(Ordering::Relaxed) + bytes);
        let outlet = Rc::clone(&peer.outlet);
        let mut waiting = outlet.waiting.borrow_mut();
        if waiting.is_empty() {
            self.busy.borrow_mut().push_back(Rc::clone(&outlet));
        }
        waiting.push_back(Waiting { peer, buffer });
        Ok(())
    }

    /// Drops and counts the datagrams queued for `peer`.
    pub(super) fn forget(&self, peer: &Rc<Peer>) {
        let mut waiting = peer.outlet.waiting.borrow_mut();
        if waiting.is_empty() {
            return;
        }
        waiting.retain(|one| {
            let stays = !Rc::ptr_eq(&one.peer, peer);
            if !stays {
                self.take_off(one);
                peer.face.counters.count_transport_drop(LinkDrop::LinkDown);
            }
            stays
        });
        if waiting.is_empty() {
            self.busy.borrow_mut().retain(|outlet| !Rc::ptr_eq(outlet, &peer.outlet));
        }
    }

    /// Returns the local addresses that peers use.
    pub(super) fn sources(&self) -> impl Iterator<Item = SocketAddr> {
        let locals: Vec<SocketAddr> =
            self.all.borrow().iter().filter_map(Weak::upgrade).map(|outlet| outlet.local).collect();
        locals.into_iter()
    }

    /// Sends the queued datagrams on `channel`, to which the outlets belong; returns `false` if the kernel takes no
    /// more for now.
    pub(super) fn send(&self, shared: &Rc<ServiceState>, channel: &Channel) -> bool {
        let mut busy = self.busy.borrow_mut();
        while let Some(outlet) = busy.pop_front() {
            let has_room = self.send_batch(shared, channel, &outlet);
            if !outlet.waiting.borrow().is_empty() {
                busy.push_back(outlet);
            }
            if !has_room {
                return false;
            }
        }
        true
    }

    /// Sends one batch of an outlet; returns `false` if the kernel takes no more for now.
    fn send_batch(&self, shared: &Rc<ServiceState>, channel: &Channel, outlet: &Outlet) -> bool {
        let mut waiting = outlet.waiting.borrow_mut();
        let batch = waiting.iter().map(|one| (&one.peer.destination, one.buffer.bytes()));
        let (done, failure) = match channel.inlet.send(outlet.source.as_ref(), batch) {
            Ok(count) => (count, None),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return true,
            // The error concerns a datagram that was sent earlier.
            Err(_) if reachability::take_errors(shared, channel, &channel.inlet) => return true,
            // The error concerns the first datagram only: no route, a local firewall, too long for the link.
            Err(error) => (1, Some(error)),
        };
        for one in waiting.drain(..done) {
            self.take_off(&one);
            if let Some(error) = &failure {
                tracing::trace!(face = %one.peer.face.id(), %error, "cannot send a datagram");
                one.peer.face.counters.count_transport_drop(LinkDrop::SendFailed);
                if error.raw_os_error() == Some(Errno::EMSGSIZE as i32) {
                    self.refuse(one.peer);
                } else if channel.is_unicast() && reachability::is_unreachable_by(error) {
                    reachability::note_unreachable(shared, &one.peer, error);
                }
            }
        }
        true
    }

    /// Notes once per peer that a datagram was too long for its route; several of them may be queued.
    fn refuse(&self, peer: Rc<Peer>) {
        let mut refused = self.refused.borrow_mut();
        if refused.iter().all(|known| !Rc::ptr_eq(known, &peer)) {
            refused.push(peer);
        }
    }

    /// Subtracts a datagram from the counts of queued datagrams.
    fn take_off(&self, one: &Waiting) {
        let (bytes, face) = (one.buffer.bytes().len(), &one.peer.face);
        self.waiting.set(self.waiting.get() - 1);
        self.waiting_bytes.set(self.waiting_bytes.get() - bytes);
        note_queue(face, face.send_queue_bytes.load(Ordering::Relaxed).saturating_sub(bytes));
    }
}
