//! What the socket service listens on and the limits it keeps.
//!
//! The defaults are those of the NDN testbed: the ports, groups and time-outs every NDN forwarder uses.

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
    /// Exactly these; one that does not exist yet is waited for.
    Named(Vec<String>),
}

/// UDP multicast faces: one per interface and address family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MulticastConfig {
    /// The interfaces.
    pub interfaces: MulticastInterfaces,
    /// IPv4 group and port; `None` turns IPv4 multicast off.
    pub group_v4: Option<SocketAddrV4>,
    /// IPv6 group and port; `None` turns IPv6 multicast off.
    pub group_v6: Option<SocketAddrV6>,
    /// The members of a group may not all hear each other, as on a wireless ad hoc network: what comes in on a face may go out
    /// there again.
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
    /// Whether TCP peers at loopback addresses are applications of this host, also where this router connects. A proxy or tunnel that ends
    /// at a loopback address cannot be seen, so where there is one this has to be false.
    pub tcp_is_local: bool,
    /// UDP channels: one unconnected socket each, shared by all faces of that local address. On a wildcard address, answers leave
    /// from the address that was asked.
    pub udp: Vec<SocketAddr>,
    /// WebSocket listeners.
    pub websocket: Vec<SocketAddr>,
    /// The same for WebSocket. A peer whose handshake shows a proxy never is an application.
    pub websocket_is_local: bool,
    /// Origins of web pages that may connect to the WebSocket listeners, as `https://example.org`; `*` stands for any.
    /// Pages of this computer and programs that are not browsers always may.
    pub allowed_origins: Vec<String>,
    /// UDP multicast.
    pub multicast: MulticastConfig,
    /// Most faces over sockets at one time. A quarter (at least 16, at most half) is kept for applications on this computer
    /// and for faces made by configuration or command; strangers that send datagrams have one half of the rest, those that
    /// connect the other. When theirs are taken, the one that has been idle longest gives way to a new one.
    pub max_faces: usize,
    /// Of those, places of strangers that are left to faces on ports.
    pub max_strangers_on_ports: usize,
    /// Most connections at one time, for want of file descriptors; strangers have at most half of them. A connection takes one
    /// descriptor, and another one while it waits for a slow peer.
    pub max_connections: usize,
    /// Most faces of strangers of one address (IPv6: of one network of 64 bits); beyond it they replace each other.
    pub strangers_per_address: usize,
    /// While strangers have more than half of their connections, those close that have sent no packet for so long.
    pub silent_timeout_ms: u64,
    /// Connections the kernel keeps waiting per listener.
    pub backlog: u32,
    /// An on-demand UDP face without traffic is closed after one to two times this.
    pub udp_idle_ms: u64,
    /// Bytes one stream or WebSocket face may have waiting; packets beyond it are dropped.
    pub stream_queue_bytes: usize,
    /// Memory for the queues of all stream and WebSocket faces together: strangers have at most half of it, and a queue may
    /// grow to half of what the others have left, beyond which packets are dropped. 16 KiB for each face come on top.
    pub all_stream_queues_bytes: usize,
    /// A connection is closed whose peer has taken nothing for so long while packets wait for it; where this router connects,
    /// it connects again.
    pub blocked_timeout_ms: u64,
    /// Bytes one UDP socket may have waiting; packets beyond it are dropped.
    pub datagram_queue_bytes: usize,
    /// Largest frame on unicast UDP; larger packets are fragmented by NDNLPv2. `None`: what the route of a face carries without IP fragments.
    pub datagram_mtu_bytes: Option<usize>,
    /// Kernel buffer asked for to receive on UDP sockets, and at most a small part of it to send; the kernel may give less.
    pub datagram_kernel_bytes: usize,
    /// Pause between two keep-alives of a UDP face that sends them.
    pub keep_alive_ms: u64,
    /// A connection attempt (with its WebSocket handshake) that takes longer has failed.
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
    /// No listeners, default limits: a start for tests and for explicit configurations.
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
            max_strangers_on_ports: 0,
            max_connections: 16_384,
            strangers_per_address: 256,
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
