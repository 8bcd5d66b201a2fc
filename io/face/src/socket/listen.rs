//! Opening the sockets the service listens on, in two steps. Sockets are bound first, so that a router learns of a taken port before it
//! starts anything. They listen when the router can answer: until then the kernel refuses connections, and peers need not wait.
//!
//! Nothing here needs a runtime.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, TcpKeepalive, Type};

use super::config::SocketConfig;
use super::datagram_path::request_destinations;
use super::error::ListenError;
use super::mtu;

/// Silence on a TCP connection after which the kernel asks whether the peer still lives.
const KEEPALIVE: Duration = Duration::from_secs(20);
/// Pause between such questions. When none is answered, the connection fails with the first that follows the user time-out.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// Longest user time-out that the kernel takes.
const LONGEST_USER_TIMEOUT_MS: u64 = i32::MAX as u64;

/// Connections that wait to be accepted by a server that is not part of the socket service.
const SERVER_BACKLOG: u32 = 1024;

/// Bytes beyond those on their way that the kernel takes on a stranger's connection.
const UNSENT_BYTES: u32 = 128 * 1024;

/// A bound socket and the address it got.
#[derive(Debug)]
pub(super) struct Bound {
    pub(super) socket: Socket,
    pub(super) local: SocketAddr,
}

/// A bound TCP socket of a server that is not part of the socket service.
#[derive(Debug)]
pub struct BoundTcp(Bound);

impl BoundTcp {
    /// Binds a socket. If no interface has the address yet, the server is reached as soon as one has.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn new(address: SocketAddr) -> io::Result<Self> {
        bound_tcp("metrics", address).map(BoundTcp)
    }

    /// The address that it got.
    pub fn local_address(&self) -> SocketAddr {
        self.0.local
    }

    /// Begins to take connections.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn listen(self) -> io::Result<std::net::TcpListener> {
        self.0.listen(SERVER_BACKLOG)?;
        Ok(self.0.socket.into())
    }
}

impl Bound {
    /// Begins to take connections.
    pub(super) fn listen(&self, backlog: u32) -> io::Result<()> {
        self.socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX))
    }
}

fn bound_tcp(protocol: &'static str, address: SocketAddr) -> io::Result<Bound> {
    let socket = internet_socket(address, Type::STREAM, Protocol::TCP)?;
    // Without this a restarted router would have to wait for old connections to time out.
    socket.set_reuse_address(true)?;
    bind(&socket, protocol, address)?;
    with_local(socket)
}

/// Binds a socket that listens. If no interface has the address yet, the socket works as soon as one has (`IP_FREEBIND`, ip(7)).
fn bind(socket: &Socket, protocol: &'static str, address: SocketAddr) -> io::Result<()> {
    match socket.bind(&address.into()) {
        Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable && !comes_with_ipv6(address) => {
            if address.is_ipv4() {
                socket.set_freebind_v4(true)?
            } else {
                socket.set_freebind_v6(true)?
            }
            socket.bind(&address.into())?;
            tracing::warn!(protocol, %address, "no network interface has this address yet: listening on it as soon as one has");
            Ok(())
        }
        bound => bound,
    }
}

/// Binds a TCP socket (also for WebSocket). `Ok(None)` when this host has no IPv6 and its wildcard or loopback address was asked for.
pub(super) fn tcp(protocol: &'static str, address: SocketAddr) -> Result<Option<Bound>, ListenError> {
    unless_family_is_missing(protocol, address, bound_tcp(protocol, address))
}

/// Opens a unicast UDP socket.
pub(super) fn udp(address: SocketAddr, config: &SocketConfig) -> Result<Option<Bound>, ListenError> {
    let open = || -> io::Result<Bound> {
        let socket = internet_socket(address, Type::DGRAM, Protocol::UDP)?;
        size_buffers(&socket, config.datagram_kernel_bytes);
        if address.ip().is_unspecified() {
            receive_for_all_addresses(&socket, address);
        }
        if config.datagram_mtu_bytes.is_none() {
            mtu::refuse_fragments(&socket, address.is_ipv4());
        }
        bind(&socket, "UDP", address)?;
        // From now on this program, and others of the same user that ask for it, can bind sockets to this address that get the
        // datagrams of single peers (`standing`). Allowed earlier, a second router would be let in without a word.
        if let Err(error) = socket.set_reuse_port(true) {
            tracing::debug!(%error, "no receive queues of their own for peers on UDP");
        }
        with_local(socket)
    };
    unless_family_is_missing("UDP", address, open())
}

/// Has the kernel report the destination of each datagram on a wildcard socket, and keep datagrams to groups away from it.
fn receive_for_all_addresses(socket: &Socket, address: SocketAddr) {
    if let Err(error) = request_destinations(socket, address) {
        tracing::warn!(
            %address,
            %error,
            "UDP answers leave from the address that routes prefer, which need not be the one that was asked: listen on \
             single addresses if this host has several"
        );
    }
    let refused =
        if address.is_ipv4() { socket.set_multicast_all_v4(false) } else { socket.set_multicast_all_v6(false) };
    if let Err(error) = refused {
        tracing::debug!(%address, %error, "datagrams to multicast groups are dropped one by one");
    }
}

/// Opens a UDP socket for one peer, from the address and a port that the kernel chooses. Nobody else's datagrams come to it.
pub(super) fn udp_towards(peer: SocketAddr, config: &SocketConfig) -> io::Result<Bound> {
    let socket = internet_socket(peer, Type::DGRAM, Protocol::UDP)?;
    size_buffers(&socket, config.datagram_kernel_bytes);
    if config.datagram_mtu_bytes.is_none() {
        mtu::refuse_fragments(&socket, peer.is_ipv4());
    }
    socket.connect(&peer.into())?;
    with_local(socket)
}

/// A non-blocking socket for the family of `address` that leaves IPv4 to IPv4 sockets.
pub(super) fn internet_socket(address: SocketAddr, kind: Type, protocol: Protocol) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), kind.nonblocking().cloexec(), Some(protocol))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    Ok(socket)
}

/// What the kernel may have of datagrams that have not left yet. What waits beyond it is in the channel's queue, whose length decides
/// about congestion marks: the kernel's own queue would fill before there was a mark. It is a millisecond at some gigabits a second.
const UNSENT_DATAGRAM_BYTES: usize = 256 << 10;

/// Asks for a larger receive buffer in the kernel, and limits what it may have to send. Less than asked for costs packets under load, not
/// correctness.
pub(super) fn size_buffers(socket: &Socket, receive_bytes: usize) {
    let send_bytes = receive_bytes.min(UNSENT_DATAGRAM_BYTES);
    for result in [socket.set_recv_buffer_size(receive_bytes), socket.set_send_buffer_size(send_bytes)] {
        if let Err(error) = result {
            tracing::debug!(%error, "kernel socket buffers keep their size");
        }
    }
}

/// Sets the options of every TCP connection: no delay for small packets, and an end to connections whose path is dead.
///
/// A connection fails when what was sent is not acknowledged, or not taken, for the time that a peer may be blocked (`TCP_USER_TIMEOUT`,
/// RFC 5482). One without traffic fails by keep-alive, within 40 s or that time, if it is longer.
pub(super) fn tune_connection(socket: &Socket, config: &SocketConfig) {
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE_INTERVAL);
    let user_timeout = Duration::from_millis(config.blocked_timeout_ms.min(LONGEST_USER_TIMEOUT_MS));
    let results = [
        socket.set_tcp_nodelay(true),
        socket.set_tcp_keepalive(&keepalive),
        socket.set_tcp_user_timeout(Some(user_timeout)),
    ];
    for result in results {
        if let Err(error) = result {
            tracing::debug!(%error, "TCP option not set");
        }
    }
}

/// Limits what the kernel takes beyond what it may send at once, on a connection of a stranger: otherwise one that reads
/// nothing would have megabytes of the kernel's memory. What is on its way is not limited, so speed is the same.
pub(super) fn limit_unsent(socket: &Socket) {
    if let Err(error) = socket.set_tcp_notsent_lowat(UNSENT_BYTES) {
        tracing::debug!(%error, "TCP option not set");
    }
}

/// The Internet address of a socket address, without an IPv6 flow label.
pub(super) fn internet_address(address: &socket2::SockAddr) -> io::Result<SocketAddr> {
    let mut address = address.as_socket().ok_or(io::ErrorKind::AddrNotAvailable)?;
    if let SocketAddr::V6(v6) = &mut address {
        v6.set_flowinfo(0);
    }
    Ok(address)
}

/// The address that datagrams to `peer` leave from when sent on a socket bound to `bound`. Asks the routing table by
/// connecting a socket, which sends nothing.
pub(super) fn source_towards(peer: SocketAddr, bound: SocketAddr) -> io::Result<SocketAddr> {
    if !bound.ip().is_unspecified() {
        return Ok(bound);
    }
    let probe = internet_socket(peer, Type::DGRAM, Protocol::UDP)?;
    probe.connect(&peer.into())?;
    let mut source = internet_address(&probe.local_addr()?)?;
    source.set_port(bound.port());
    Ok(source)
}

/// The wildcard address of the family of `peer`, with port 0.
pub(super) fn any_of_family(peer: SocketAddr) -> SocketAddr {
    if peer.is_ipv4() { SocketAddr::from(([0, 0, 0, 0], 0)) } else { SocketAddr::from(([0_u16; 8], 0)) }
}

/// Whether this host has an address, so that a socket can be bound to it.
pub(super) fn is_own_address(mut address: SocketAddr) -> bool {
    address.set_port(0);
    let bound = internet_socket(address, Type::DGRAM, Protocol::UDP).and_then(|probe| probe.bind(&address.into()));
    let Err(error) = bound else { return true };
    // Anything else, such as a want of descriptors, says nothing about the address.
    let is_interface_gone = error.raw_os_error() == Some(nix::errno::Errno::ENODEV as i32);
    error.kind() != io::ErrorKind::AddrNotAvailable && !is_interface_gone
}

fn with_local(socket: Socket) -> io::Result<Bound> {
    let local = internet_address(&socket.local_addr()?)?;
    Ok(Bound { socket, local })
}

/// Whether every host with IPv6 has this address.
fn comes_with_ipv6(address: SocketAddr) -> bool {
    address.is_ipv6() && (address.ip().is_unspecified() || address.ip().is_loopback())
}

fn unless_family_is_missing(
    protocol: &'static str,
    address: SocketAddr,
    opened: io::Result<Bound>,
) -> Result<Option<Bound>, ListenError> {
    let error = match opened {
        Ok(bound) => return Ok(Some(bound)),
        Err(error) => error,
    };
    let no_family = error.raw_os_error() == Some(nix::errno::Errno::EAFNOSUPPORT as i32)
        || error.kind() == io::ErrorKind::AddrNotAvailable;
    if no_family && comes_with_ipv6(address) {
        tracing::info!(protocol, %address, "this host has no IPv6: listening on IPv4 only");
        return Ok(None);
    }
    Err(ListenError::internet(protocol, address, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn a_taken_port_is_named_and_a_missing_address_is_waited_for() {
        let config = SocketConfig::without_listeners();
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listening = |address| {
            let bound = tcp("TCP", address).expect("bound").expect("family");
            bound.listen(1).expect("listens");
            bound
        };
        let first = listening(any);
        let error = tcp("TCP", first.local).expect_err("taken");
        assert!(matches!(error, ListenError::PortInUse { .. }));
        assert!(error.to_string().contains("is in use by another program"), "{error}");
        let first = udp(any, &config).expect("first").expect("IPv4");
        assert!(matches!(udp(first.local, &config), Err(ListenError::PortInUse { .. })));
        for missing in ["203.0.113.9:0", "[2001:db8::9]:0"] {
            let missing: SocketAddr = missing.parse().expect("address");
            let first = listening(missing);
            assert_eq!((first.local.ip(), is_own_address(first.local)), (missing.ip(), false));
            assert!(matches!(tcp("TCP", first.local), Err(ListenError::PortInUse { .. })));
            let first = udp(missing, &config).expect("waits").expect("family");
            assert_eq!(first.local.ip(), missing.ip());
            assert!(matches!(udp(first.local, &config), Err(ListenError::PortInUse { .. })));
        }
        assert!(is_own_address(any));
    }

    #[test]
    fn a_computer_without_ipv6_listens_on_ipv4_only() {
        use nix::errno::Errno;
        let open = |address: &str, errno: Errno| {
            let address = address.parse().expect("address");
            unless_family_is_missing("TCP", address, Err(io::Error::from_raw_os_error(errno as i32)))
        };
        for errno in [Errno::EAFNOSUPPORT, Errno::EADDRNOTAVAIL] {
            for address in ["[::]:6363", "[::1]:6363"] {
                assert!(matches!(open(address, errno), Ok(None)), "{address} {errno}");
            }
            for address in ["[2001:db8::1]:6363", "127.0.0.1:6363", "0.0.0.0:6363"] {
                assert!(open(address, errno).is_err(), "{address} {errno}");
            }
        }
        for errno in [Errno::EADDRINUSE, Errno::EACCES] {
            assert!(open("[::1]:6363", errno).is_err(), "{errno}");
        }
    }
}
