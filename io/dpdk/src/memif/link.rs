//! What the worker's end of a memif and the thread that serves control sockets have in common.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crossbeam_queue::SegQueue;
use nix::sys::eventfd::{EfdFlags, EventFd};

use super::connection::Connection;
use super::service::Mailbox;
use crate::losses::LossCounters;

/// One link, connected or not.
pub(super) struct Link {
    /// Counts connections made and lost; never 0. The worker looks here whether anything has changed.
    generation: AtomicU32,
    /// The connection of this generation, if it is one, until the worker takes it.
    incoming: Mutex<Option<Connection>>,
    /// Connections that the worker uses no more. The other thread gives their memory back, because that takes long.
    retired: SegQueue<Connection>,
    is_up: AtomicBool,
    /// A peer uses this link: it is connected or about to be.
    is_claimed: AtomicBool,
    /// The generation whose peer has broken the rules.
    broken: AtomicU32,
    /// The peer has to be woken by its eventfd.
    must_ring: AtomicBool,
    /// Rings when a connection comes or goes, for a worker that sleeps. Never read.
    news: EventFd,
    pub(super) losses: LossCounters,
    /// Why it is not connected, as far as is known, until somebody asks.
    trouble: Mutex<Option<String>>,
    mailbox: Arc<Mailbox>,
}

impl Link {
    /// Not connected yet.
    pub(super) fn new(mailbox: Arc<Mailbox>) -> io::Result<Link> {
        Ok(Link {
            generation: AtomicU32::new(1),
            incoming: Mutex::new(None),
            retired: SegQueue::new(),
            is_up: AtomicBool::new(false),
            is_claimed: AtomicBool::new(false),
            broken: AtomicU32::new(0),
            must_ring: AtomicBool::new(false),
            news: EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?,
            losses: LossCounters::default(),
            trouble: Mutex::new(None),
            mailbox,
        })
    }

    /// Whether it is connected.
    pub(super) fn is_up(&self) -> bool {
        self.is_up.load(Ordering::Relaxed)
    }

    /// Reserves the link for a peer; `false` when another peer uses it.
    pub(super) fn claim(&self) -> bool {
        !self.is_claimed.swap(true, Ordering::AcqRel)
    }

    /// Whether a peer uses it.
    pub(super) fn is_claimed(&self) -> bool {
        self.is_claimed.load(Ordering::Acquire)
    }

    /// The peer that used it has gone.
    pub(super) fn release(&self) {
        if self.is_up() {
            self.set(None);
        }
        self.is_claimed.store(false, Ordering::Release);
    }

    /// A new connection, or the end of one.
    pub(super) fn set(&self, connection: Option<Connection>) {
        self.is_up.store(connection.is_some(), Ordering::Relaxed);
        let mut incoming = self.incoming.lock().unwrap_or_else(PoisonError::into_inner);
        *incoming = connection;
        let next = self.generation.load(Ordering::Relaxed).wrapping_add(1).max(1);
        self.generation.store(next, Ordering::Release);
        drop(incoming);
        self.tell_worker();
    }

    /// Notes why it is not connected, for whoever looks after it.
    pub(super) fn report(&self, trouble: String) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(trouble);
    }

    /// What was reported last since the last call.
    pub(super) fn take_trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Wakes the worker if it sleeps beside this link.
    pub(super) fn tell_worker(&self) {
        // Nobody counts so far that it could fail.
        let _ = self.news.write(1);
    }

    /// What rings for that.
    pub(super) fn news(&self) -> BorrowedFd<'_> {
        self.news.as_fd()
    }

    /// Whether there is a connection, or the end of one, that the worker has not seen.
    #[inline]
    pub(super) fn has_changed(&self, seen: u32) -> bool {
        self.generation.load(Ordering::Acquire) != seen
    }

    /// Gives the memory of connections back that the worker uses no more.
    pub(super) fn clean_up(&self) {
        while self.retired.pop().is_some() {}
    }

    /// Whether the peer of the present connection has broken the rules.
    pub(super) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire) == self.generation.load(Ordering::Relaxed)
    }

    /// Whether the peer has to be woken; it counts as woken then.
    pub(super) fn take_ring(&self) -> bool {
        self.must_ring.load(Ordering::Relaxed) && self.must_ring.swap(false, Ordering::AcqRel)
    }

    /// What is new, for the worker.
    #[cold]
    pub(super) fn replace(&self, seen: &mut u32, connection: &mut Option<Connection>) {
        let mut incoming = self.incoming.lock().unwrap_or_else(PoisonError::into_inner);
        // Under the lock, so that both belong together.
        *seen = self.generation.load(Ordering::Acquire);
        if let Some(old) = std::mem::replace(connection, incoming.take()) {
            self.retired.push(old);
        }
    }

    /// The worker reports that the peer of a connection has broken the rules; it stops using the connection.
    #[cold]
    pub(super) fn complain(&self, seen: u32, connection: &mut Option<Connection>) {
        self.losses.malformed.add(1);
        if let Some(old) = connection.take() {
            self.retired.push(old);
        }
        self.broken.store(seen, Ordering::Release);
        self.mailbox.wake();
    }

    /// Has the other thread wake the peer: writing to a descriptor that comes from a peer may block.
    pub(super) fn ring(&self) {
        if !self.must_ring.swap(true, Ordering::AcqRel) {
            self.mailbox.wake();
        }
    }
}
