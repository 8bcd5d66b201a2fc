//! What wakes a worker that sleeps beside a memif: the eventfd that the peer writes to, and one by which the thread that serves control
//! sockets tells of connections.
//!
//! The peer has the same eventfd, may have made it one that blocks, and may write to it whenever it likes. So nothing is read from it and
//! nothing written to it: an epoll descriptor tells of every new ring once (`EPOLLET`), whatever the counter says.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

/// Rings of a worker's memif, those that it has not seen yet.
pub(super) struct Bell(Epoll);

impl Bell {
    /// Of these eventfds.
    ///
    /// # Errors
    /// When the system has no descriptor or memory for it.
    pub(super) fn new<'fd>(events: impl IntoIterator<Item = BorrowedFd<'fd>>) -> io::Result<Bell> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        for event in events {
            epoll.add(event, EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLET, 0))?;
        }
        Ok(Bell(epoll))
    }

    /// What rang until now has been seen.
    pub(super) fn silence(&self) {
        let mut rung = [EpollEvent::empty(); 4];
        // An error leaves it ringing, which costs a turn and no more.
        let _ = self.0.wait(&mut rung, EpollTimeout::ZERO);
    }

    /// Readable when something rang since.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.0.as_fd()
    }
}
