//! A connected stream socket, Unix or TCP, and how both are accepted.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::task::{Context, Poll};
use std::time::Duration;

use nix::sys::socket::{MsgFlags, Shutdown, recv, send, shutdown};
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use super::places::{Guest, Transport};
use super::tcp;
use super::watch::{Read, Watched};

/// A connected stream socket.
#[derive(Debug)]
pub(super) struct Connection {
    socket: Watched,
}

impl Connection {
    /// Takes over a connected Unix socket.
    pub(super) fn unix(stream: UnixStream) -> io::Result<Connection> {
        Ok(Connection { socket: Watched::new(stream.into_std()?.into())? })
    }

    /// Takes over a connected TCP socket.
    pub(super) fn tcp(stream: TcpStream) -> io::Result<Connection> {
        Ok(Connection { socket: Watched::new(stream.into_std()?.into())? })
    }

    /// Reads into `memory`; 0 at the end of the stream.
    pub(super) fn poll_read(&self, cx: &mut Context<'_>, memory: &mut [u8]) -> Poll<io::Result<usize>> {
        self.socket.poll_read(cx, |descriptor| {
            let count = recv(descriptor, memory, MsgFlags::MSG_DONTWAIT)?;
            // A read that comes back short emptied the socket; but the end of the stream stays readable.
            Ok(Read { value: count, is_drained: count > 0 && count < memory.len() })
        })
    }

    /// Writes what the kernel takes at once, without asking the runtime whether it takes anything.
    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(self.socket.as_raw_fd(), bytes, MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT)?)
    }

    /// Makes `attempt` whenever the kernel takes more, until it does not answer `WouldBlock`.
    pub(super) async fn write_when_possible(&self, attempt: impl FnMut() -> io::Result<()>) -> io::Result<()> {
        self.socket.write_when_possible(attempt).await
    }

    /// Ends both directions at once, giving up what the kernel has yet to send; the reader finds the end of the stream.
    pub(super) fn abort(&self) {
        // It fails when the peer was faster, which is as good.
        let _ = SockRef::from(&self.socket).set_linger(Some(Duration::ZERO));
        self.shut_down();
    }

    /// Ends both directions; the reader finds the end of the stream.
    pub(super) fn shut_down(&self) {
        // It fails when the peer was faster, which is as good.
        let _ = shutdown(self.socket.as_raw_fd(), Shutdown::Both);
    }
}

/// A listening socket.
pub(super) trait Listener {
    /// What it accepts.
    type Accepted;

    /// The next connection.
    async fn next(&self) -> io::Result<Self::Accepted>;

    /// For whom its place would be.
    fn guest(accepted: &Self::Accepted) -> io::Result<Guest>;
}

impl Listener for UnixListener {
    type Accepted = UnixStream;

    async fn next(&self) -> io::Result<UnixStream> {
        self.accept().await.map(|(stream, _unnamed)| stream)
    }

    fn guest(_: &UnixStream) -> io::Result<Guest> {
        Ok(Guest::known(Transport::Connection))
    }
}

impl Listener for TcpListener {
    type Accepted = (TcpStream, SocketAddr);

    async fn next(&self) -> io::Result<(TcpStream, SocketAddr)> {
        self.accept().await
    }

    fn guest((stream, peer): &(TcpStream, SocketAddr)) -> io::Result<Guest> {
        Ok(Guest::of_connection(tcp::scope(*peer, stream.local_addr()?), *peer))
    }
}
