//! Configuration of the socket service: listeners and limits.
//!
//! The default ports, groups and time-outs are the ones of the NDN testbed, which every NDN forwarder uses.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::path::PathBuf;

use crate::registry::PitTokenMode;
use crate::uri::{DEFAULT_MULTICAST_PORT, DEFAULT_PORT, DEFAULT_WEBSOCKET_PORT};

/// Group of NDN over IPv4 multicast.
pub const NDN_MULTICAST_V4: Ipv4Addr = Ipv4Addr::new(224, 0, 23, 170);
/// Group of NDN over IPv6 multicast.
pub const NDN_MULTICAST_V6: Ipv6Addr = Ipv6Addr::new(0xFF02, 0, 0, 0, 0, 0, 0, 0x1234);

/// A Unix stream listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnixListenerConfig {
    /// Path of the socket file; missing parent directories are created.
    pub path: PathBuf,
    /// Permission bits of the socket file. 0666 lets applications of every user connect.
    pub mode: u32,
}

/// Which interfaces get a multicast face.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MulticastInterfaces {
    /// None.
    Off,
    /// Every interface that is up, can do multicast and is not the loopback.
    All,
    /// Exactly these interfaces. An interface that does not exist yet is joined as soon as it appears.
    Named(Vec<String>),
}

/// UDP multicast faces: one per interface and address family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MulticastConfig {
    /// The interfaces.
    pub interfaces: MulticastInterfaces,
    /// IPv4 group and port; `None` disables IPv4 multicast.
    pub group_v4: Option<SocketAddrV4>,
    /// IPv6 group and port; `None` disables IPv6 multicast.
    pub group_v6: Option<SocketAddrV6>,
    /// Set if the members of a group may not all hear each other, as on a wireless ad hoc network. Then a packet
    /// received on a face may be sent on the same face again.
    pub is_ad_hoc: bool,
}

impl Default for MulticastConfig {
    fn default() -> Self {
        MulticastConfig {
            interfaces: MulticastInterfaces::All,
            group_v4: Some(SocketAddrV4::new(NDN_MULTICAST_V4, DEFAULT_MULTICAST_PORT)),
            group_v6: Some(SocketAddrV6::new(NDN_MULTICAST_V6, DEFAULT_MULTICAST_PORT, 0, 0)),
            is_ad_hoc: false,
        }
    }
}

/// Listeners and limits of the socket service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocketConfig {
    /// Unix stream listeners.
    pub unix: Vec<UnixListenerConfig>,
    /// TCP listeners. Port 0 lets the kernel choose.
    pub tcp: Vec<SocketAddr>,
    /// Whether TCP peers at loopback addresses are applications of this host; this holds for accepted and for outgoing
    /// connections. The router cannot detect a proxy or tunnel that ends at a loopback address, so set it to false if
    /// there is one.
    pub tcp_is_local: bool,
    /// UDP channels: one unconnected socket each, shared by all faces of that local address. On a wildcard address, an
    /// answer uses the address that its peer sent to as source.
    pub udp: Vec<SocketAddr>,
    /// WebSocket listeners.
    pub websocket: Vec<SocketAddr>,
    /// Whether WebSocket peers at loopback addresses are applications of this host. A peer is never an application if
    /// its handshake has the header fields of a proxy.
    pub websocket_is_local: bool,
    /// Origins of web pages that may connect to the WebSocket listeners, as `https://example.org`; `*` allows every
    /// origin. Pages of this host, and programs that are not browsers, are always allowed.
    pub allowed_origins: Vec<String>,
    /// UDP multicast.
    pub multicast: MulticastConfig,
    /// Maximum number of faces over sockets. A quarter (at least 16, at most half of all) is reserved for applications
    /// on this host and for faces created by configuration or command. The rest is for unsolicited remote peers: one
    /// half for peers that send datagrams, the other for peers that connect. When such a half is full, a new peer
    /// evicts the one that has been idle longest.
    pub max_faces: usize,
    /// The part of `max_faces` that is left to unsolicited peers on ports.
    pub max_unsolicited_on_ports: usize,
    /// Maximum number of connections, limited by the file descriptors; unsolicited peers get at most half of it. A
    /// connection takes one descriptor, and a second one while it waits for a slow peer.
    pub max_connections: usize,
    /// Maximum number of faces of unsolicited peers with the same address (IPv6: the same /64 network). Beyond it, a
    /// new peer of that address evicts the one that has been idle longest.
    pub max_unsolicited_per_address: usize,
    /// While unsolicited peers hold more than half of their connections, a connection that has sent no packet for this
    /// time is closed.
    pub silent_timeout_ms: u64,
    /// Connections that the kernel queues per listener until they are accepted.
    pub backlog: u32,
    /// An on-demand UDP face without traffic is closed after one to two times this.
    pub udp_idle_ms: u64,
    /// Maximum number of bytes queued for one stream or WebSocket face; packets beyond it are dropped.
    pub stream_queue_bytes: usize,
    /// Memory for the send queues of all stream and WebSocket faces together. Unsolicited peers get at most half of it.
    /// A queue may grow to half of what is left; packets beyond that are dropped. In addition, each face may always use
    /// 16 KiB.
    pub all_stream_queues_bytes: usize,
    /// A connection is closed if its peer has read nothing for this time while packets were queued for it. If this
    /// router made the connection, it reconnects.
    pub blocked_timeout_ms: u64,
    /// Maximum number of bytes queued for one UDP socket; packets beyond it are dropped.
    pub datagram_queue_bytes: usize,
    /// Largest frame on unicast UDP in bytes; larger packets are fragmented by NDNLPv2. `None`: the MTU of the route of
    /// each face, so that no IP fragments are needed.
    pub datagram_mtu_bytes: Option<usize>,
    /// Kernel receive buffer requested for each UDP socket; the kernel may grant less. The send buffer is smaller: at
    /// most 256 KiB.
    pub datagram_kernel_bytes: usize,
    /// Interval between keep-alives of a UDP face with the keep-alive flag.
    pub keep_alive_ms: u64,
    /// Time-out of a connection attempt, the WebSocket handshake included.
    pub connect_timeout_ms: u64,
    /// First pause before reconnecting a persistent or permanent connection; it doubles with each failure.
    pub reconnect_initial_ms: u64,
    /// Longest pause before reconnecting.
    pub reconnect_max_ms: u64,
    /// New Unix, TCP and unicast UDP faces mark packets when their send queue grows (NDNLPv2 congestion marking).
    pub congestion_marking: bool,
    /// New faces honour the headers of self-learning.
    pub self_learning: bool,
    /// When Interests on new faces carry this router's PIT token.
    pub pit_tokens: PitTokenMode,
}

impl SocketConfig {
    /// Returns a configuration without listeners and with default limits, for tests and explicit configurations.
    pub fn without_listeners() -> Self {
        SocketConfig {
            unix: Vec::new(),
            tcp: Vec::new(),
            tcp_is_local: true,
            udp: Vec::new(),
            websocket: Vec::new(),
            websocket_is_local: true,
            allowed_origins: Vec::new(),
            multicast: MulticastConfig { interfaces: MulticastInterfaces::Off, ..MulticastConfig::default() },
            max_faces: 16_384,
            max_unsolicited_on_ports: 0,
            max_connections: 16_384,
            max_unsolicited_per_address: 256,
            silent_timeout_ms: 10_000,
            backlog: 1024,
            udp_idle_ms: 600_000,
            stream_queue_bytes: 1 << 20,
            all_stream_queues_bytes: 256 << 20,
            blocked_timeout_ms: 15_000,
            datagram_queue_bytes: 4 << 20,
            datagram_mtu_bytes: None,
            datagram_kernel_bytes: 4 << 20,
            keep_alive_ms: 25_000,
            connect_timeout_ms: 4000,
            reconnect_initial_ms: 1000,
            reconnect_max_ms: 300_000,
            congestion_marking: true,
            self_learning: true,
            pit_tokens: PitTokenMode::Auto,
        }
    }
}

impl Default for SocketConfig {
    fn default() -> Self {
        let any = |port| {
            vec![SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)), SocketAddr::from((Ipv6Addr::UNSPECIFIED, port))]
        };
        SocketConfig {
            unix: vec![UnixListenerConfig { path: PathBuf::from("/run/nfd/nfd.sock"), mode: 0o666 }],
            tcp: any(DEFAULT_PORT),
            udp: any(DEFAULT_PORT),
            websocket: any(DEFAULT_WEBSOCKET_PORT),
            multicast: MulticastConfig::default(),
            ..SocketConfig::without_listeners()
        }
    }
}
