//! A connected stream socket, Unix or TCP, and how both are accepted.
//!
//! Reading tells the runtime that the socket is empty as soon as a read comes back short. Otherwise each turn would end
//! with one more system call that only finds out that nothing is there.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::task::{Context, Poll, ready};

use namehop_forward::face::FaceScope;
use nix::sys::socket::{MsgFlags, Shutdown, recv, send, shutdown};
use tokio::io::Interest;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use super::tcp;

/// A connected stream socket.
#[derive(Debug)]
pub(super) enum Connection {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Connection {
    /// Reads into `memory`; 0 at the end of the stream.
    pub(super) fn poll_read(&self, cx: &mut Context<'_>, memory: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            match self {
                Connection::Unix(stream) => ready!(stream.poll_read_ready(cx))?,
                Connection::Tcp(stream) => ready!(stream.poll_read_ready(cx))?,
            }
            let mut received = None;
            let attempt = self.attempt(Interest::READABLE, || {
                let count = recv(self.as_raw_fd(), memory, MsgFlags::MSG_DONTWAIT)?;
                received = Some(count);
                // The end of the stream stays readable.
                if count > 0 && count < memory.len() { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
            });
            if let Some(count) = received {
                return Poll::Ready(Ok(count));
            }
            if let Err(error) = attempt
                && !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
            {
                return Poll::Ready(Err(error));
            }
        }
    }

    /// Writes what the kernel takes at once, without asking the runtime whether it takes anything.
    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(self.as_raw_fd(), bytes, MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT)?)
    }

    /// Waits until the kernel takes more. `attempt` answers `WouldBlock` when it did not take everything.
    pub(super) async fn when_writable(&self, attempt: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        match self {
            Connection::Unix(stream) => stream.writable().await?,
            Connection::Tcp(stream) => stream.writable().await?,
        }
        self.attempt(Interest::WRITABLE, attempt)
    }

    /// Ends both directions; the reader finds the end of the stream.
    pub(super) fn shut_down(&self) {
        // It fails when the peer was faster, which is as good.
        let _ = shutdown(self.as_raw_fd(), Shutdown::Both);
    }

    fn attempt(&self, interest: Interest, operation: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        match self {
            Connection::Unix(stream) => stream.try_io(interest, operation),
            Connection::Tcp(stream) => stream.try_io(interest, operation),
        }
    }
}

impl AsRawFd for Connection {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Connection::Unix(stream) => stream.as_raw_fd(),
            Connection::Tcp(stream) => stream.as_raw_fd(),
        }
    }
}

/// A listening socket.
pub(super) trait Listener {
    /// What it accepts.
    type Accepted;

    /// The next connection.
    async fn next(&self) -> io::Result<Self::Accepted>;

    /// Whether its peer is on this computer.
    fn scope(accepted: &Self::Accepted) -> io::Result<FaceScope>;
}

impl Listener for UnixListener {
    type Accepted = UnixStream;

    async fn next(&self) -> io::Result<UnixStream> {
        self.accept().await.map(|(stream, _unnamed)| stream)
    }

    fn scope(_: &UnixStream) -> io::Result<FaceScope> {
        Ok(FaceScope::Local)
    }
}

impl Listener for TcpListener {
    type Accepted = (TcpStream, SocketAddr);

    async fn next(&self) -> io::Result<(TcpStream, SocketAddr)> {
        self.accept().await
    }

    fn scope((stream, peer): &(TcpStream, SocketAddr)) -> io::Result<FaceScope> {
        Ok(tcp::scope(*peer, stream.local_addr()?))
    }
}
