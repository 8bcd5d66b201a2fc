//! Connected stream sockets (Unix and TCP), listeners that accept them, and the backoff between connection attempts.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::task::{Context, Poll};
use std::time::Duration;

use nix::sys::socket::{MsgFlags, Shutdown, recv, send, shutdown};
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use super::config::SocketConfig;
use super::locality;
use super::permits::{PermitRequest, Transport};
use super::shared::ServiceState;
use super::watch::{Read, Watched};
use crate::registry::Face;

/// A connected stream socket.
#[derive(Debug)]
pub(super) struct Connection {
    socket: Watched,
}

impl Connection {
    /// Wraps a connected Unix socket.
    pub(super) fn unix(stream: UnixStream) -> io::Result<Connection> {
        Ok(Connection { socket: Watched::new(stream.into_std()?.into())? })
    }

    /// Wraps a connected TCP socket.
    pub(super) fn tcp(stream: TcpStream) -> io::Result<Connection> {
        Ok(Connection { socket: Watched::new(stream.into_std()?.into())? })
    }

    /// Reads into `memory`; returns 0 at the end of the stream.
    pub(super) fn poll_read(&self, cx: &mut Context<'_>, memory: &mut [u8]) -> Poll<io::Result<usize>> {
        self.socket.poll_read(cx, |descriptor| {
            let count = recv(descriptor, memory, MsgFlags::MSG_DONTWAIT)?;
            // A short read emptied the socket. A read of 0 bytes is the end of the stream, which stays readable.
            Ok(Read { value: count, is_drained: count > 0 && count < memory.len() })
        })
    }

    /// Writes what the kernel takes at once, without checking readiness with the runtime first.
    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(self.socket.as_raw_fd(), bytes, MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT)?)
    }

    /// Calls `attempt` whenever the socket becomes writable, until the result is not `WouldBlock`.
    pub(super) async fn write_when_possible(&self, attempt: impl FnMut() -> io::Result<()>) -> io::Result<()> {
        self.socket.write_when_possible(attempt).await
    }

    /// Closes both directions at once and discards unsent data in the kernel; the reader sees the end of the stream.
    pub(super) fn abort(&self) {
        // Fails if the peer has closed first, which is just as good.
        let _ = SockRef::from(&self.socket).set_linger(Some(Duration::ZERO));
        self.shut_down();
    }

    /// Closes both directions; the reader sees the end of the stream.
    pub(super) fn shut_down(&self) {
        // Fails if the peer has closed first, which is just as good.
        let _ = shutdown(self.socket.as_raw_fd(), Shutdown::Both);
    }
}

/// A listening socket.
pub(super) trait Listener {
    /// The accepted connection.
    type Accepted;

    /// Accepts the next connection.
    async fn next(&self) -> io::Result<Self::Accepted>;

    /// Returns the request for the permit that the face of the connection needs.
    fn request(&self, accepted: &Self::Accepted) -> io::Result<PermitRequest>;
}

impl Listener for UnixListener {
    type Accepted = UnixStream;

    async fn next(&self) -> io::Result<UnixStream> {
        self.accept().await.map(|(stream, _unnamed)| stream)
    }

    fn request(&self, _: &UnixStream) -> io::Result<PermitRequest> {
        Ok(PermitRequest::known(Transport::Connection))
    }
}

/// A TCP listener, also for WebSocket.
pub(super) struct InternetListener {
    pub(super) socket: TcpListener,
    /// Whether peers at loopback addresses are applications of this host.
    pub(super) loopback_is_local: bool,
}

impl Listener for InternetListener {
    type Accepted = (TcpStream, SocketAddr);

    async fn next(&self) -> io::Result<(TcpStream, SocketAddr)> {
        self.socket.accept().await
    }

    fn request(&self, (stream, peer): &(TcpStream, SocketAddr)) -> io::Result<PermitRequest> {
        let scope = locality::scope(self.loopback_is_local, *peer, stream.local_addr()?);
        Ok(PermitRequest::of_connection(scope, *peer))
    }
}

/// Retries to connect until an attempt succeeds. When the addresses of this host change, the next attempt is made at
/// once.
pub(super) async fn dial<C>(
    shared: &ServiceState,
    face: &Face,
    mut backoff: Backoff,
    attempt: impl AsyncFn() -> io::Result<C>,
) -> C {
    let mut changes = shared.addresses_changed.subscribe();
    loop {
        tokio::select! {
            () = tokio::time::sleep(backoff.pause()) => {}
            Ok(()) = changes.changed() => backoff = Backoff::of(&shared.config, true),
        }
        match attempt().await {
            Ok(connected) => return connected,
            Err(error) => {
                tracing::debug!(face = %face.id(), remote = %face.remote_uri(), %error, "connecting failed");
            }
        }
    }
}

/// Pauses that double from an initial to a maximum value.
#[derive(Debug, Clone)]
pub(super) struct Backoff {
    first_at_once: bool,
    next: Duration,
    longest: Duration,
}

impl Backoff {
    /// Starts at `initial_ms` and never exceeds `longest_ms`.
    fn new(initial_ms: u64, longest_ms: u64) -> Self {
        let longest = Duration::from_millis(longest_ms.max(1));
        Backoff { first_at_once: false, next: Duration::from_millis(initial_ms.max(1)).min(longest), longest }
    }

    /// Returns the configured backoff. If there was no connection yet, the first pause is 0.
    pub(super) fn of(config: &SocketConfig, was_connected: bool) -> Self {
        let backoff = Backoff::new(config.reconnect_initial_ms, config.reconnect_max_ms);
        Backoff { first_at_once: !was_connected, ..backoff }
    }

    /// Returns the pause before the next attempt.
    pub(super) fn pause(&mut self) -> Duration {
        if std::mem::take(&mut self.first_at_once) {
            return Duration::ZERO;
        }
        let pause = self.next;
        self.next = pause.saturating_mul(2).min(self.longest);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_doubles_up_to_the_longest() {
        let mut backoff = Backoff::new(1000, 300_000);
        let seconds: Vec<u64> = (0..11).map(|_| backoff.pause().as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
    }

    #[test]
    fn a_connection_that_there_never_was_is_attempted_at_once() {
        let config = SocketConfig::without_listeners();
        let seconds = |was_connected| {
            let mut backoff = Backoff::of(&config, was_connected);
            [(); 3].map(|()| backoff.pause().as_secs())
        };
        assert_eq!(seconds(false), [0, 1, 2]);
        assert_eq!(seconds(true), [1, 2, 4]);
    }

    #[test]
    fn zero_never_spins() {
        assert_eq!(Backoff::new(0, 0).pause(), Duration::from_millis(1));
    }
}
