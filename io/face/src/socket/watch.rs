//! A socket registered with the runtime for input only, and for output only while the kernel takes no more.
//!
//! The runtime's own socket types are always registered for both. But a Unix socket becomes writable each time its peer
//! reads, and a UDP socket each time a datagram has left; these events would wake this thread once per packet for
//! nothing.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::task::{Context, Poll, ready};

use tokio::io::unix::AsyncFd;
use tokio::io::{Interest, Ready};

/// Result of a read attempt.
pub(super) struct Read<T> {
    /// The value read.
    pub(super) value: T,
    /// The socket is empty; this saves the call that would find that out.
    pub(super) is_drained: bool,
}

/// A socket registered for input.
#[derive(Debug)]
pub(super) struct Watched {
    socket: AsyncFd<OwnedFd>,
}

impl Watched {
    /// Registers a non-blocking socket. Needs a runtime.
    pub(super) fn new(socket: OwnedFd) -> io::Result<Watched> {
        Ok(Watched { socket: watch(socket, Interest::READABLE)? })
    }

    /// Calls `attempt` when the socket is readable; waits if the result is `WouldBlock`.
    pub(super) fn poll_read<T>(
        &self,
        cx: &mut Context<'_>,
        mut attempt: impl FnMut(RawFd) -> io::Result<Read<T>>,
    ) -> Poll<io::Result<T>> {
        loop {
            let mut readable = ready!(self.socket.poll_read_ready(cx))?;
            match attempt(self.as_raw_fd()) {
                Ok(read) => {
                    if read.is_drained {
                        readable.clear_ready();
                    }
                    return Poll::Ready(Ok(read.value));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => readable.clear_ready(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    /// Waits until the socket has an error in its error queue.
    ///
    /// # Errors
    /// The runtime is shutting down.
    pub(super) async fn next_error(&self) -> io::Result<()> {
        self.socket.ready(Interest::ERROR).await?.clear_ready_matching(Ready::ERROR);
        Ok(())
    }

    /// Calls `attempt` whenever the socket becomes writable, until the result is not `WouldBlock`.
    ///
    /// # Errors
    /// The error of the attempt, or no file descriptor is left to wait with.
    pub(super) async fn write_when_possible(&self, mut attempt: impl FnMut() -> io::Result<()>) -> io::Result<()> {
        // A duplicate descriptor of the same socket can be registered for other events.
        let room = watch(self.socket.get_ref().try_clone()?, Interest::WRITABLE)?;
        loop {
            if let Ok(result) = room.writable().await?.try_io(|_| attempt()) {
                return result;
            }
        }
    }
}

impl AsFd for Watched {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.get_ref().as_fd()
    }
}

impl AsRawFd for Watched {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

#[expect(deprecated, reason = "unsafe for types that may close their descriptor early, which `OwnedFd` does not")]
fn watch(socket: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(socket, interest)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read as _;
    use std::os::unix::net::UnixStream;

    use super::*;

    /// epoll_ctl(2).
    const EPOLLIN: u32 = 1;
    const EPOLLOUT: u32 = 4;

    /// Returns the events for which any epoll instance of this process watches a descriptor (`/proc/PID/fdinfo`,
    /// proc(5)).
    fn watched_for(descriptor: RawFd) -> u32 {
        let mut all = 0;
        for entry in fs::read_dir("/proc/self/fdinfo").expect("fdinfo").flatten() {
            // Descriptors of other tests come and go.
            let text = fs::read_to_string(entry.path()).unwrap_or_default();
            for line in text.lines().filter(|line| line.starts_with("tfd:")) {
                let mut words = line.split_whitespace().skip(1).step_by(2);
                if words.next().and_then(|word| word.parse().ok()) == Some(descriptor) {
                    all |= words.next().and_then(|word| u32::from_str_radix(word, 16).ok()).expect("events");
                }
            }
        }
        all
    }

    #[tokio::test]
    async fn room_to_write_is_watched_only_while_there_is_none() {
        let (mine, mut peer) = UnixStream::pair().expect("pair");
        mine.set_nonblocking(true).expect("not blocking");
        let watched = Watched::new(mine.into()).expect("watched");
        let descriptor = watched.as_raw_fd();
        assert_eq!(watched_for(descriptor) & (EPOLLIN | EPOLLOUT), EPOLLIN);
        let write = || Ok(nix::unistd::write(&watched.socket, &[7; 4096])?);
        let mut filled = 0;
        let full = loop {
            match write() {
                Ok(count) => filled += count,
                Err(error) => break io::Error::kind(&error),
            }
        };
        assert_eq!(full, io::ErrorKind::WouldBlock);
        let reading = std::thread::spawn(move || {
            let mut memory = vec![0; filled];
            peer.read_exact(&mut memory).expect("read");
            peer
        });
        watched.write_when_possible(|| write().map(drop)).await.expect("written");
        let _peer = reading.join().expect("read");
        assert_eq!(watched_for(descriptor) & EPOLLOUT, 0);
    }
}
