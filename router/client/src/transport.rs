//! Opens connections to forwarders: Unix, TCP, UDP and WebSocket.
//!
//! A connection comes in one of three framings: a byte stream of concatenated TLV elements, one
//! element per datagram, or one element per binary WebSocket message.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UdpSocket, UnixStream, lookup_host};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;

use crate::client_conf::{self, Candidate, ClientConfError};
use crate::target::{Family, HostPort, TransportUri};

/// Time limit of a TCP or WebSocket connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Receive buffer of UDP connections, in bytes.
const DATAGRAM_BUFFER_BYTES: usize = 4 << 20;

/// Reading half of a stream connection.
pub type StreamReader = Box<dyn AsyncRead + Send + Unpin>;
/// Writing half of a stream connection.
pub type StreamWriter = Box<dyn AsyncWrite + Send + Unpin>;

/// An open connection, by framing.
pub enum Connection {
    /// Concatenated TLV elements (Unix, TCP).
    Stream(StreamReader, StreamWriter),
    /// One element per datagram (UDP).
    Datagram(UdpSocket),
    /// One element per binary message.
    WebSocket(Box<WebSocketStream<TcpStream>>),
}

/// An open connection and its properties.
pub struct Connected {
    /// The connection.
    pub connection: Connection,
    /// Address of the forwarder.
    pub uri: TransportUri,
    /// Whether the forwarder treats the connection as a local face: Unix sockets, and TCP or WebSocket to a loopback
    /// address. UDP faces are never local (NFD face management).
    pub local: bool,
}

/// A failed connection attempt.
#[derive(Debug)]
pub struct Attempt {
    /// The candidate tried.
    pub candidate: Candidate,
    /// Error of the system.
    pub error: io::Error,
}

/// Reason why no connection could be opened.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The client's configuration is wrong.
    #[error(transparent)]
    Configuration(#[from] ClientConfError),
    /// No candidate could be connected to.
    #[error("no forwarder is reachable: {}; start one with 'namehop run'", Attempts(.0))]
    NoForwarder(Vec<Attempt>),
}

struct Attempts<'a>(&'a [Attempt]);

impl fmt::Display for Attempts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("no transport is configured");
        }
        f.write_str("tried ")?;
        for (index, attempt) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{} [{}: {}]", attempt.candidate.uri, attempt.candidate.origin, plain(&attempt.error))?;
        }
        Ok(())
    }
}

/// Returns the message of an error without the operating system's error number.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

/// Connects to the first candidate of [`client_conf::candidates`] that accepts a connection.
///
/// # Errors
/// See [`ConnectError`].
pub async fn connect(argument: Option<&str>) -> Result<(Connected, Candidate), ConnectError> {
    connect_first(client_conf::candidates(argument)?).await
}

/// Connects to the first of `candidates` that accepts a connection.
///
/// # Errors
/// Returns [`ConnectError::NoForwarder`] with every attempt.
pub async fn connect_first(candidates: Vec<Candidate>) -> Result<(Connected, Candidate), ConnectError> {
    let mut attempts = Vec::new();
    for candidate in candidates {
        match open(&candidate.uri).await {
            Ok(connected) => return Ok((connected, candidate)),
            Err(error) => attempts.push(Attempt { candidate, error }),
        }
    }
    Err(ConnectError::NoForwarder(attempts))
}

/// Opens a connection to one address.
///
/// # Errors
/// Returns the operating system's error. UDP has no handshake, so it succeeds even without a listener.
pub async fn open(uri: &TransportUri) -> io::Result<Connected> {
    let uri_copy = uri.clone();
    match uri {
        TransportUri::Unix(path) => {
            let (reader, writer) = UnixStream::connect(path).await?.into_split();
            Ok(Connected {
                connection: Connection::Stream(Box::new(reader), Box::new(writer)),
                uri: uri_copy,
                local: true,
            })
        }
        TransportUri::Tcp(to) => {
            let stream = connect_tcp(to).await?;
            let local = stream.peer_addr()?.ip().is_loopback();
            let (reader, writer) = stream.into_split();
            Ok(Connected { connection: Connection::Stream(Box::new(reader), Box::new(writer)), uri: uri_copy, local })
        }
        TransportUri::Udp(to) => {
            // Connecting a UDP socket does not fail, so only the first address is tried.
            let remote = resolve(to).await?[0];
            let any: SocketAddr = if remote.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0u16; 8], 0).into() };
            let socket = UdpSocket::bind(any).await?;
            // Answers arrive in bursts of large packets. Best effort: the system may allow less.
            let _ = setsockopt(&socket, sockopt::RcvBuf, &DATAGRAM_BUFFER_BYTES);
            socket.connect(remote).await?;
            Ok(Connected { connection: Connection::Datagram(socket), uri: uri_copy, local: false })
        }
        TransportUri::WebSocket(to, path) => {
            let stream = connect_tcp(to).await?;
            let local = stream.peer_addr()?.ip().is_loopback();
            let url = format!("ws://{to}/{path}");
            let handshake = timeout(CONNECT_TIMEOUT, tokio_tungstenite::client_async(url, stream));
            let (socket, _) = handshake.await.map_err(|_| io::ErrorKind::TimedOut)?.map_err(io::Error::other)?;
            Ok(Connected { connection: Connection::WebSocket(Box::new(socket)), uri: uri_copy, local })
        }
    }
}

async fn connect_tcp(to: &HostPort) -> io::Result<TcpStream> {
    let attempt = async { TcpStream::connect(&resolve(to).await?[..]).await };
    let stream = timeout(CONNECT_TIMEOUT, attempt).await.map_err(|_| io::ErrorKind::TimedOut)??;
    // Packets are already written in batches; waiting for more would only add delay.
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Returns the host's addresses of the required family; at least one.
async fn resolve(to: &HostPort) -> io::Result<Vec<SocketAddr>> {
    of_family(to, lookup_host((to.host.as_str(), to.port)).await?)
}

/// Returns the addresses of the family that the URI requires, in their order; at least one.
pub fn of_family(to: &HostPort, addresses: impl Iterator<Item = SocketAddr>) -> io::Result<Vec<SocketAddr>> {
    let wanted: Vec<SocketAddr> = addresses
        .filter(|address| match to.family {
            Family::Any => true,
            Family::V4 => address.is_ipv4(),
            Family::V6 => address.is_ipv6(),
        })
        .collect();
    if wanted.is_empty() {
        let text = format!("'{}' has no address of this family", to.host);
        return Err(io::Error::new(io::ErrorKind::NotFound, text));
    }
    Ok(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client_conf::Origin;

    #[tokio::test]
    async fn the_error_says_where_it_looked_and_what_to_do() {
        let directory = tempfile::tempdir().unwrap();
        let candidates = ["a.sock", "b.sock"]
            .map(|name| Candidate { uri: TransportUri::Unix(directory.path().join(name)), origin: Origin::Default });
        let error = connect_first(candidates.to_vec()).await.err().unwrap().to_string();
        assert!(error.contains("a.sock") && error.contains("b.sock"), "{error}");
        assert!(error.contains("start one with 'namehop run'") && error.contains("No such file"), "{error}");
    }

    #[tokio::test]
    async fn a_later_candidate_is_used_when_the_first_is_absent() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("b.sock");
        let _listener = tokio::net::UnixListener::bind(&path).unwrap();
        let candidates = [directory.path().join("a.sock"), path.clone()]
            .map(|path| Candidate { uri: TransportUri::Unix(path), origin: Origin::Default });
        let (connected, used) = connect_first(candidates.to_vec()).await.unwrap();
        assert_eq!(used.uri, TransportUri::Unix(path));
        assert!(connected.local);
    }

    #[tokio::test]
    async fn every_address_of_a_host_is_tried() {
        // On most systems `localhost` resolves to ::1 before 127.0.0.1.
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(open(&format!("tcp://localhost:{port}").parse().unwrap()).await.is_ok());
        let both = || ["[::1]:1".parse().unwrap(), "127.0.0.1:1".parse().unwrap()].into_iter();
        let to = |family| HostPort { host: "h".to_owned(), port: 1, family };
        assert_eq!(of_family(&to(Family::Any), both()).unwrap().len(), 2);
        assert_eq!(of_family(&to(Family::V4), both()).unwrap(), ["127.0.0.1:1".parse().unwrap()]);
        assert!(of_family(&to(Family::V6), both().skip(1)).is_err());
    }

    #[tokio::test]
    async fn udp_is_not_local_and_tcp_to_loopback_is() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(open(&format!("tcp4://127.0.0.1:{port}").parse().unwrap()).await.unwrap().local);
        assert!(!open(&format!("udp4://127.0.0.1:{port}").parse().unwrap()).await.unwrap().local);
        assert!(open(&format!("tcp6://127.0.0.1:{port}").parse().unwrap()).await.is_err());
    }
}
