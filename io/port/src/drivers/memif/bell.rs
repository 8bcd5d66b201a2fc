//! Wakes a worker that sleeps beside a memif: by the eventfd that the peer writes to, and by an eventfd with which the
//! control socket thread announces connections.
//!
//! The peer holds the same eventfd, may have made it blocking, and may write to it at any time. So this end neither
//! reads nor writes it: an edge-triggered epoll descriptor (`EPOLLET`) reports each new signal once, independently of
//! the counter.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

/// Signals of a worker's memif that the worker has not seen yet.
pub(super) struct Bell(Epoll);

impl Bell {
    /// Makes a bell for these eventfds.
    ///
    /// # Errors
    /// Fails if the system has no descriptor or memory for it.
    pub(super) fn new<'fd>(events: impl IntoIterator<Item = BorrowedFd<'fd>>) -> io::Result<Bell> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        for event in events {
            epoll.add(event, EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLET, 0))?;
        }
        Ok(Bell(epoll))
    }

    /// Marks all signals so far as seen.
    pub(super) fn silence(&self) {
        let mut rung = [EpollEvent::empty(); 4];
        // After an error the bell stays readable, which costs one poll iteration.
        let _ = self.0.wait(&mut rung, EpollTimeout::ZERO);
    }

    /// Readable if there is a signal that was not seen.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.0.as_fd()
    }
}
