//! State that the worker's end of a memif shares with the control socket thread.

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
    /// Counts connections made and lost; never 0. The worker reads it to detect a change.
    generation: AtomicU32,
    /// The connection of this generation, if there is one, until the worker takes it.
    incoming: Mutex<Option<Connection>>,
    /// Connections that the worker has stopped using. The control socket thread unmaps their memory, because that takes
    /// long.
    retired: SegQueue<Connection>,
    is_up: AtomicBool,
    /// A peer uses this link: it is connected or in the handshake.
    is_claimed: AtomicBool,
    /// Generation in which the peer violated the protocol.
    broken: AtomicU32,
    /// The peer has to be woken through its eventfd.
    must_ring: AtomicBool,
    /// Signals a sleeping worker that a connection came or went. Never read.
    news: EventFd,
    pub(super) losses: LossCounters,
    /// Last known reason why the link is not connected, until it is taken.
    trouble: Mutex<Option<String>>,
    mailbox: Arc<Mailbox>,
}

impl Link {
    /// Makes a link that is not connected.
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

    /// True while a peer is connected.
    pub(super) fn is_up(&self) -> bool {
        self.is_up.load(Ordering::Relaxed)
    }

    /// Reserves the link for a peer; `false` if another peer uses it.
    pub(super) fn claim(&self) -> bool {
        !self.is_claimed.swap(true, Ordering::AcqRel)
    }

    /// True if a peer uses the link.
    pub(super) fn is_claimed(&self) -> bool {
        self.is_claimed.load(Ordering::Acquire)
    }

    /// Releases the link when its peer has gone.
    pub(super) fn release(&self) {
        if self.is_up() {
            self.set(None);
        }
        self.is_claimed.store(false, Ordering::Release);
    }

    /// Sets a new connection, or the end of the current one.
    pub(super) fn set(&self, connection: Option<Connection>) {
        self.is_up.store(connection.is_some(), Ordering::Relaxed);
        let mut incoming = self.incoming.lock().unwrap_or_else(PoisonError::into_inner);
        *incoming = connection;
        let next = self.generation.load(Ordering::Relaxed).wrapping_add(1).max(1);
        self.generation.store(next, Ordering::Release);
        drop(incoming);
        self.tell_worker();
    }

    /// Stores the reason why the link is not connected, for the manager of the port.
    pub(super) fn report(&self, trouble: String) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(trouble);
    }

    /// Takes the reason that was reported last, if there is one since the last call.
    pub(super) fn take_trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Wakes the worker if it sleeps beside this link.
    pub(super) fn tell_worker(&self) {
        // The write fails only at 2^64 - 1 signals.
        let _ = self.news.write(1);
    }

    /// The eventfd that wakes the worker.
    pub(super) fn news(&self) -> BorrowedFd<'_> {
        self.news.as_fd()
    }

    /// True if there is a new connection, or the end of one, that the worker has not seen.
    #[inline]
    pub(super) fn has_changed(&self, seen: u32) -> bool {
        self.generation.load(Ordering::Acquire) != seen
    }

    /// Unmaps the memory of connections that the worker has stopped using.
    pub(super) fn clean_up(&self) {
        while self.retired.pop().is_some() {}
    }

    /// True if the peer of the current connection has violated the protocol.
    pub(super) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire) == self.generation.load(Ordering::Relaxed)
    }

    /// True if the peer has to be woken; clears the request.
    pub(super) fn take_ring(&self) -> bool {
        self.must_ring.load(Ordering::Relaxed) && self.must_ring.swap(false, Ordering::AcqRel)
    }

    /// Takes over the current connection, or its end, for the worker.
    #[cold]
    pub(super) fn replace(&self, seen: &mut u32, connection: &mut Option<Connection>) {
        let mut incoming = self.incoming.lock().unwrap_or_else(PoisonError::into_inner);
        // Read under the lock, so that generation and connection match.
        *seen = self.generation.load(Ordering::Acquire);
        if let Some(old) = std::mem::replace(connection, incoming.take()) {
            self.retired.push(old);
        }
    }

    /// Reports that the peer has violated the protocol; the worker stops using the connection.
    #[cold]
    pub(super) fn complain(&self, seen: u32, connection: &mut Option<Connection>) {
        self.losses.malformed.add(1);
        if let Some(old) = connection.take() {
            self.retired.push(old);
        }
        self.broken.store(seen, Ordering::Release);
        self.mailbox.wake();
    }

    /// Asks the control socket thread to wake the peer: a write to a descriptor that a peer provides may block.
    pub(super) fn ring(&self) {
        if !self.must_ring.swap(true, Ordering::AcqRel) {
            self.mailbox.wake();
        }
    }
}
