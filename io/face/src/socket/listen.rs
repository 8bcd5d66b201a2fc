//! Opens the listening sockets in two steps. First they are bound, so that a port in use is reported before the router
//! starts anything. They listen when the router can answer: until then the kernel refuses connections, and peers need
//! not wait.
//!
//! Nothing in this module needs a runtime.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, TcpKeepalive, Type};

use super::config::SocketConfig;
use super::datagram_path::request_destinations;
use super::error::ListenError;
use super::mtu;

/// Idle time of a TCP connection after which the kernel sends a keep-alive probe.
const KEEPALIVE: Duration = Duration::from_secs(20);
/// Interval between keep-alive probes. If none is answered, the connection fails at the first probe after the user
/// time-out.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// Largest user time-out that the kernel accepts.
const LONGEST_USER_TIMEOUT_MS: u64 = i32::MAX as u64;

/// Backlog of servers that are not part of the socket service.
const SERVER_BACKLOG: u32 = 1024;

/// Unsent bytes that the kernel accepts on the connection of an unsolicited peer; bytes in flight do not count.
const UNSENT_BYTES: u32 = 128 * 1024;

/// A bound socket and its local address.
#[derive(Debug)]
pub(super) struct Bound {
    pub(super) socket: Socket,
    pub(super) local: SocketAddr,
}

/// A bound TCP socket of a server that is not part of the socket service.
#[derive(Debug)]
pub struct BoundTcp(Bound);

impl BoundTcp {
    /// Binds a socket. If no interface has the address yet, the socket works as soon as one has it.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn new(address: SocketAddr) -> io::Result<Self> {
        bound_tcp("metrics", address).map(BoundTcp)
    }

    /// The local address, with the port that the kernel chose.
    pub fn local_address(&self) -> SocketAddr {
        self.0.local
    }

    /// Starts to listen.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn listen(self) -> io::Result<std::net::TcpListener> {
        self.0.listen(SERVER_BACKLOG)?;
        Ok(self.0.socket.into())
    }
}

impl Bound {
    /// Starts to listen.
    pub(super) fn listen(&self, backlog: u32) -> io::Result<()> {
        self.socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX))
    }
}

fn bound_tcp(protocol: &'static str, address: SocketAddr) -> io::Result<Bound> {
    let socket = internet_socket(address, Type::STREAM, Protocol::TCP)?;
    // Without this option a restarted router would have to wait until old connections time out.
    socket.set_reuse_address(true)?;
    bind(&socket, protocol, address)?;
    with_local(socket)
}

/// Binds a listening socket. If no interface has the address yet, the socket works as soon as one has it
/// (`IP_FREEBIND`, ip(7)).
fn bind(socket: &Socket, protocol: &'static str, address: SocketAddr) -> io::Result<()> {
    match socket.bind(&address.into()) {
        Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable && !comes_with_ipv6(address) => {
            if address.is_ipv4() {
                socket.set_freebind_v4(true)?
            } else {
                socket.set_freebind_v6(true)?
            }
            socket.bind(&address.into())?;
            tracing::warn!(
                protocol,
                %address,
                "no network interface has this address yet: listening on it as soon as one does"
            );
            Ok(())
        }
        bound => bound,
    }
}

/// Binds a TCP socket (also for WebSocket). Returns `Ok(None)` if `address` is the IPv6 wildcard or loopback address
/// and this host has no IPv6.
pub(super) fn tcp(protocol: &'static str, address: SocketAddr) -> Result<Option<Bound>, ListenError> {
    unless_family_is_missing(protocol, address, bound_tcp(protocol, address))
}

/// Opens a unicast UDP socket. Returns `Ok(None)` in the same case as [`tcp`].
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
        // From now on, sockets of the same user that also set this option can bind to this address; `standing` uses
        // this for the sockets of single peers. If the option were set before `bind`, a second router could bind the
        // port unnoticed.
        if let Err(error) = socket.set_reuse_port(true) {
            tracing::debug!(%error, "cannot set SO_REUSEPORT: UDP peers get no receive queues of their own");
        }
        with_local(socket)
    };
    unless_family_is_missing("UDP", address, open())
}

/// Makes the kernel report the destination of each datagram on a wildcard socket, and not deliver multicast datagrams
/// to it.
fn receive_for_all_addresses(socket: &Socket, address: SocketAddr) {
    if let Err(error) = request_destinations(socket, address) {
        tracing::warn!(
            %address,
            %error,
            "UDP replies use the source address that the routing table prefers, which may differ from the requested \
             one: if this host has several addresses, listen on each of them"
        );
    }
    let refused =
        if address.is_ipv4() { socket.set_multicast_all_v4(false) } else { socket.set_multicast_all_v6(false) };
    if let Err(error) = refused {
        tracing::debug!(
            %address,
            %error,
            "the kernel cannot filter datagrams to multicast groups: the router drops each of them"
        );
    }
}

/// Opens a UDP socket connected to one peer, with an address and port that the kernel chooses. It receives datagrams of
/// that peer only.
pub(super) fn udp_towards(peer: SocketAddr, config: &SocketConfig) -> io::Result<Bound> {
    let socket = internet_socket(peer, Type::DGRAM, Protocol::UDP)?;
    size_buffers(&socket, config.datagram_kernel_bytes);
    if config.datagram_mtu_bytes.is_none() {
        mtu::refuse_fragments(&socket, peer.is_ipv4());
    }
    socket.connect(&peer.into())?;
    with_local(socket)
}

/// Creates a non-blocking socket for the family of `address`; an IPv6 socket does not accept IPv4.
pub(super) fn internet_socket(address: SocketAddr, kind: Type, protocol: Protocol) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), kind.nonblocking().cloexec(), Some(protocol))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    Ok(socket)
}

/// Bytes of unsent datagrams that the kernel may hold: about a millisecond at some gigabits per second. Further
/// datagrams wait in the channel's queue, and the length of that queue triggers congestion marks. A larger kernel queue
/// would fill before any packet is marked.
const UNSENT_DATAGRAM_BYTES: usize = 256 << 10;

/// Requests a larger receive buffer in the kernel, and limits the send buffer. If the kernel grants less, packets may
/// be lost under load; nothing else changes.
pub(super) fn size_buffers(socket: &Socket, receive_bytes: usize) {
    let send_bytes = receive_bytes.min(UNSENT_DATAGRAM_BYTES);
    for result in [socket.set_recv_buffer_size(receive_bytes), socket.set_send_buffer_size(send_bytes)] {
        if let Err(error) = result {
            tracing::debug!(%error, "cannot set the size of a kernel socket buffer");
        }
    }
}

/// Sets the options of every TCP connection: no delay for small packets, and time-outs that end connections over a dead
/// path.
///
/// A connection fails if sent data is not acknowledged, or not read, for `blocked_timeout_ms` (`TCP_USER_TIMEOUT`, RFC
/// 5482). An idle connection fails by keep-alive within 40 s or that time, whichever is longer.
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
            tracing::debug!(%error, "cannot set a TCP option");
        }
    }
}

/// Limits the unsent bytes that the kernel accepts on the connection of an unsolicited peer. Otherwise a peer that
/// reads nothing would occupy megabytes of kernel memory. Bytes in flight are not limited, so throughput is not
/// affected.
pub(super) fn limit_unsent(socket: &Socket) {
    if let Err(error) = socket.set_tcp_notsent_lowat(UNSENT_BYTES) {
        tracing::debug!(%error, "cannot set a TCP option");
    }
}

/// Returns the Internet address of a socket address, without an IPv6 flow label.
pub(super) fn internet_address(address: &socket2::SockAddr) -> io::Result<SocketAddr> {
    let mut address = address.as_socket().ok_or(io::ErrorKind::AddrNotAvailable)?;
    if let SocketAddr::V6(v6) = &mut address {
        v6.set_flowinfo(0);
    }
    Ok(address)
}

/// Returns the source address of datagrams to `peer` that are sent on a socket bound to `bound`. Queries the routing
/// table by connecting a socket, which sends nothing.
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

/// Returns the wildcard address of the family of `peer`, with port 0.
pub(super) fn any_of_family(peer: SocketAddr) -> SocketAddr {
    if peer.is_ipv4() { SocketAddr::from(([0, 0, 0, 0], 0)) } else { SocketAddr::from(([0_u16; 8], 0)) }
}

/// Whether this host has the address, so that a socket can be bound to it.
pub(super) fn is_own_address(mut address: SocketAddr) -> bool {
    address.set_port(0);
    let bound = internet_socket(address, Type::DGRAM, Protocol::UDP).and_then(|probe| probe.bind(&address.into()));
    let Err(error) = bound else { return true };
    // Other errors, such as missing file descriptors, say nothing about the address.
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
            let first = udp(missing, &config).expect("the listener waits").expect("the address family is available");
            assert_eq!(first.local.ip(), missing.ip());
            assert!(matches!(udp(first.local, &config), Err(ListenError::PortInUse { .. })));
        }
        assert!(is_own_address(any));
    }

    #[test]
    fn a_host_without_ipv6_listens_on_ipv4_only() {
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
