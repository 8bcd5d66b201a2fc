//! Section `[faces]` and its subsections: faces over sockets, and resource limits of all faces.

use std::net::SocketAddr;
use std::path::PathBuf;

use namehop_face::FaceFlags;
use namehop_face::registry::PitTokenMode;
use namehop_manage::requests::PitTokens;
use serde::{Deserialize, Serialize};

use namehop_face::socket::is_loopback_origin;

use super::automatic::Auto;
use super::values::{ByteSize, addresses};

/// `[faces]`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Faces {
    /// Maximum number of faces of all kinds together.
    pub max_faces: Auto<usize>,
    /// Maximum number of unsolicited faces from one address (IPv6: from one /64).
    pub strangers_per_address: usize,
    /// While unsolicited connections take more than half of their limit, connections that have sent no packet close
    /// after this many seconds.
    pub silent_timeout_s: u64,
    /// Most bytes queued for one slow stream peer.
    pub send_queue_bytes: ByteSize,
    /// Most bytes queued for all slow stream peers together.
    pub all_send_queues_bytes: Auto<ByteSize>,
    /// A connection closes when its peer has read nothing for this many seconds while packets are queued for it.
    pub blocked_timeout_s: u64,
    /// NDNLPv2 congestion marking on new Unix, TCP and UDP faces.
    pub congestion_marking: bool,
    /// NDNLPv2 headers of self-learning on new faces.
    pub self_learning: bool,
    /// When Interests on new faces carry this router's PIT token.
    pub pit_tokens: PitTokens,
    /// Unix stream socket.
    pub unix: Unix,
    /// TCP.
    pub tcp: Tcp,
    /// UDP unicast.
    pub udp: Udp,
    /// UDP multicast.
    pub multicast: Multicast,
    /// WebSocket.
    pub websocket: WebSocket,
}

impl Default for Faces {
    fn default() -> Self {
        Faces {
            max_faces: Auto::Auto,
            strangers_per_address: 256,
            silent_timeout_s: 10,
            send_queue_bytes: ByteSize(4 << 20),
            all_send_queues_bytes: Auto::Auto,
            blocked_timeout_s: 15,
            congestion_marking: true,
            self_learning: true,
            pit_tokens: PitTokens::Auto,
            unix: Unix::default(),
            tcp: Tcp::default(),
            udp: Udp::default(),
            multicast: Multicast::default(),
            websocket: WebSocket::default(),
        }
    }
}

impl Faces {
    /// Returns the flags of new faces on ports.
    pub(crate) fn port_flags(&self) -> FaceFlags {
        let marking = if self.congestion_marking { FaceFlags::CONGESTION_MARKING } else { FaceFlags::default() };
        PitTokenMode::from(self.pit_tokens).flags().union(marking)
    }
}

/// Returns both loopback addresses with this port.
fn loopback(port: u16) -> Vec<SocketAddr> {
    vec![SocketAddr::from(([127, 0, 0, 1], port)), SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], port))]
}

/// `[faces.unix]`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Unix {
    /// Whether the router listens on a Unix socket.
    pub enabled: bool,
    /// Path of the socket file.
    pub path: Auto<PathBuf>,
    /// Permissions of the socket file, octal text.
    pub mode: String,
}

impl Default for Unix {
    fn default() -> Self {
        Unix { enabled: true, path: Auto::Auto, mode: "0666".to_owned() }
    }
}

/// `[faces.websocket]`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WebSocket {
    /// Addresses to listen on; none = off.
    #[serde(deserialize_with = "addresses")]
    pub listen: Vec<SocketAddr>,
    /// Whether loopback peers are applications of this host; `auto` = unless `allowed_origins` names other sites.
    pub local: Auto<bool>,
    /// Origins of web pages, other than this host's, that may connect; `*` = all.
    pub allowed_origins: Vec<String>,
}

impl Default for WebSocket {
    fn default() -> Self {
        WebSocket { listen: loopback(9696), local: Auto::Auto, allowed_origins: Vec::new() }
    }
}

impl WebSocket {
    /// Returns whether peers at loopback addresses are applications of this host, unless their handshake shows a proxy.
    pub fn is_local(&self) -> bool {
        match self.local {
            Auto::Auto => self.allowed_origins.iter().all(|origin| is_loopback_origin(origin.trim_end_matches('/'))),
            Auto::Value(is_local) => is_local,
        }
    }
}

/// `[faces.tcp]`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tcp {
    /// Addresses to listen on; none = off.
    #[serde(deserialize_with = "addresses")]
    pub listen: Vec<SocketAddr>,
    /// Whether loopback peers are applications of this host.
    pub local: bool,
}

impl Default for Tcp {
    fn default() -> Self {
        Tcp { listen: loopback(6363), local: true }
    }
}

/// `[faces.udp]`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Udp {
    /// Addresses to listen on; none = off.
    #[serde(deserialize_with = "addresses")]
    pub listen: Vec<SocketAddr>,
    /// On-demand faces close after this many seconds without a packet.
    pub idle_timeout_s: u64,
    /// Largest datagram to send, in bytes; `auto` = the MTU of the route to the peer.
    pub mtu: Auto<usize>,
}

impl Default for Udp {
    fn default() -> Self {
        Udp { listen: loopback(6363), idle_timeout_s: 600, mtu: Auto::Auto }
    }
}

/// `[faces.multicast]`
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Multicast {
    /// Interfaces on which to join the NDN multicast group, or `all`; none = off.
    pub interfaces: Vec<String>,
    /// Whether the link is ad hoc: members of a group may not all hear each other.
    pub ad_hoc: bool,
}
