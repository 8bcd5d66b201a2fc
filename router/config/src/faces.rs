//! Section `[faces]` and its subsections: faces over sockets, and resource limits of all faces.

use std::net::SocketAddr;
use std::path::PathBuf;

use namehop_face::FaceFlags;
use namehop_face::registry::{MIN_MTU_BYTES, PitTokenMode};
use namehop_face::socket::is_loopback_origin;
use namehop_manage::requests::PitTokens;
use namehop_wire::MAX_PACKET_SIZE;

use crate::automatic::Auto;
use crate::settings::settings;
use crate::values::{ByteSize, addresses};

settings! {
    /// Faces of all kinds, and their limits.
    pub section Faces {
        /// Maximum number of faces of all kinds. "auto" is 16384 or less. The router reserves a quarter (at least 16,
        /// at most half) for local applications and for faces made by command or configuration. The rest is for
        /// unsolicited peers: remote peers that connect or send a datagram by themselves. If a `[[port]]` has
        /// `on_demand`, a third of the rest is for such ports. What remains is divided equally: half for UDP, half for
        /// TCP and WebSocket, which the file descriptor limit may reduce further. When a share is used up, a new
        /// unsolicited peer replaces the one that has been idle longest.
        pub max_faces: Auto<usize> = Auto::Auto, in 4..=65_280;
        /// Maximum number of faces of unsolicited peers per IP address (IPv6: per /64 network). Beyond it they replace
        /// each other.
        pub strangers_per_address: usize = 256, in 1..=65_280;
        /// If unsolicited peers hold more than half of their connections, the router closes each of these that has
        /// brought no packet within this many seconds.
        pub silent_timeout_s: u64 = 10, in 1..=1 << 32;
        /// Send queue limit in bytes of one TCP, Unix or WebSocket face. Packets beyond it are dropped and counted.
        pub send_queue_bytes: ByteSize = ByteSize(4 << 20), in 16_384..=1 << 30;
        /// Send queue limit in bytes of all such faces together. The more slow peers there are, the less each one gets.
        /// Unsolicited peers get at most half. 16 KiB per face come on top. "auto" is 256 MiB or less.
        pub all_send_queues_bytes: Auto<ByteSize> = Auto::Auto, in 1 << 20..=1 << 40;
        /// The router closes a connection when packets are queued and the peer has read nothing for this many seconds.
        /// If this router made the connection, it reconnects. The timeout also applies to faces that this router made
        /// over UDP and on ports, if the peer answers probes, as Namehop and NFD do. Such a face goes down when its
        /// peer answers nothing for this long.
        pub blocked_timeout_s: u64 = 15, in 1..=1 << 32;
        /// Whether new Unix, TCP and UDP faces mark packets as congested when their send queue grows, so that
        /// applications slow down.
        pub congestion_marking: bool = true;
        /// Whether new faces accept the headers of the self-learning strategy (discovery and prefix announcements).
        pub self_learning: bool = true;
        /// When Interests on new faces carry a PIT token of this router. A token saves the router work for the Data,
        /// but libraries from before 2020 do not understand it. "auto": once the peer has shown that it understands PIT
        /// tokens; "on": always; "off": never. Multicast faces never use them.
        pub pit_tokens: PitTokens = PitTokens::Auto;
        one unix: Unix;
        one tcp: Tcp;
        one udp: Udp;
        one multicast: Multicast;
        one websocket: WebSocket;
    }
}

impl Faces {
    /// Returns the flags of new faces on ports.
    pub fn port_flags(&self) -> FaceFlags {
        let marking = if self.congestion_marking { FaceFlags::CONGESTION_MARKING } else { FaceFlags::default() };
        PitTokenMode::from(self.pit_tokens).flags().union(marking)
    }
}

/// Returns both loopback addresses with this port.
fn loopback(port: u16) -> Vec<SocketAddr> {
    vec![SocketAddr::from(([127, 0, 0, 1], port)), SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], port))]
}

settings! {
    /// The Unix socket for local applications.
    pub section Unix {
        /// Whether the router listens on it.
        pub enabled: bool = true;
        /// Path of the socket file. "auto" is /run/nfd/nfd.sock, the default path of NDN applications, or
        /// $XDG_RUNTIME_DIR/nfd/nfd.sock if the first cannot be created.
        pub path: Auto<PathBuf> = Auto::Auto;
        /// Permissions of the socket file, in octal digits.
        pub mode: String = "0666".to_owned();
    }
}

settings! {
    /// Faces over WebSocket, for applications in web browsers.
    pub section WebSocket {
        /// Addresses to listen on; `[]` disables WebSocket.
        pub listen: Vec<SocketAddr> = loopback(9696), serde(deserialize_with = "addresses");
        /// Whether peers at loopback addresses are applications of this host, with their rights: true, false, or
        /// "auto", which is true unless `allowed_origins` names other sites. A connection through a visible proxy is
        /// never an application: its handshake has a field such as Forwarded, X-Forwarded-For or Via, or a Host that is
        /// not a loopback address. Set false if a proxy adds none of these.
        pub local: Auto<bool> = Auto::Auto;
        /// Origins of web pages that may connect besides pages of this host; `["*"]` allows all.
        pub allowed_origins: Vec<String> = Vec::new(), example "[\"https://app.example\"]";
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

settings! {
    /// Faces over TCP.
    pub section Tcp {
        /// Addresses to listen on; `[]` disables TCP. If no network interface has an address yet, the router waits for
        /// it. The example accepts other hosts.
        pub listen: Vec<SocketAddr> = loopback(6363),
            example "[\"0.0.0.0:6363\", \"[::]:6363\"]", serde(deserialize_with = "addresses");
        /// Whether TCP peers at loopback addresses are applications of this host, with their rights. This includes
        /// peers that the router connects to. A proxy or tunnel on this host (nginx, ssh -L) connects from a loopback
        /// address; the router cannot tell it apart. Set false if there is one.
        pub local: bool = true;
    }
}

settings! {
    /// Faces over UDP.
    pub section Udp {
        /// Addresses to listen on. A face to a host that none of these addresses can reach uses its own socket, which
        /// receives from its peer only.
        pub listen: Vec<SocketAddr> = loopback(6363), serde(deserialize_with = "addresses");
        /// On-demand UDP faces close after this many seconds without a datagram (they may live up to twice as long).
        pub idle_timeout_s: u64 = 600, in 1..=1 << 32;
        /// Maximum size of a sent datagram in bytes. NDNLPv2 fragments larger packets. "auto" is the size that the
        /// route to the peer carries without IP fragments, because many firewalls drop those. With a number, the kernel
        /// makes IP fragments of longer datagrams, as it always does for multicast groups: these do not leave the link,
        /// and some of their members cannot reassemble NDNLPv2 fragments.
        pub mtu: Auto<usize> = Auto::Auto, in MIN_MTU_BYTES as u64..=MAX_PACKET_SIZE as u64;
    }
}

settings! {
    /// Faces to the NDN multicast groups `224.0.23.170:56363` and `[ff02::1234]:56363`.
    pub section Multicast {
        /// Network interfaces on which to join the groups; `["all"]` is all of them. When an interface disappears, its
        /// faces are down until it is back. The router waits for an interface that does not exist yet.
        pub interfaces: Vec<String> = Vec::new(), example "[\"eth0\"]";
        /// Whether some neighbours cannot hear each other, as on a wireless ad hoc network. The router may then send an
        /// Interest out of the face that it came in on.
        pub ad_hoc: bool = false;
    }
}
