//! The sections of the configuration file. Ports, faces, routing and strategies have files of their own.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use namehop_disk::{DiskSettings, MAX_CAPACITY_BYTES, MIN_CAPACITY_BYTES};
use namehop_engine::dispatch::{self, MAX_COMPONENTS, MAX_WORKERS};
use namehop_engine::engine::{CsConfig, EngineConfig, UnsolicitedPolicy};
use namehop_engine::schedule::MAX_LOOKAHEAD;
use namehop_face::FacePersistency;
use namehop_face::registry::MIN_MTU_BYTES;
use namehop_manage::requests::PitTokens;
use namehop_manage::rib::RouteLimits;
use namehop_store::PolicyChoice;
use namehop_table::HugePages;
use namehop_wire::MAX_PACKET_SIZE;

use crate::automatic::Auto;
use crate::settings::settings;
use crate::trust::TrustAnchor;
use crate::values::{ByteSize, NameText, PortText, UriText, address, as_text, persistency};

settings! {
    /// Log output.
    pub section Log {
        /// Log filter: a level (error, warn, info, debug, trace, off), then levels of single modules, for example
        /// "info,namehop_face=debug,namehop_manage=trace". The modules are Namehop's, and the WebSocket libraries
        /// tokio_tungstenite and tungstenite. The environment variable NAMEHOP_LOG overrides this key.
        pub level: String = "info".to_owned();
        /// "text" for people, or "json" for log collectors: one object a line.
        pub format: LogFormat = LogFormat::Text;
    }
}

/// Format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// Readable text.
    Text,
    /// One JSON object per line.
    Json,
}

settings! {
    /// Workers, the threads that forward packets, and limits of the forwarding engine. The limits apply to all workers
    /// together.
    pub section Forwarding {
        /// Number of workers. "auto" is 1 if the file names no ports (`[[port]]` and `[[face]]`); that worker shares a
        /// thread with the sockets. With ports, "auto" is the number of CPUs that this process may use less one, at
        /// least 1 and at most 8.
        pub workers: Auto<usize> = Auto::Auto, in 1..=MAX_WORKERS as u64;
        /// CPU numbers, one per worker. Workers without an entry are pinned to the remaining CPUs, highest number
        /// first. Workers share CPUs only when there are not enough of them.
        pub processors: Vec<usize> = Vec::new();
        /// Busy-poll time in microseconds before an idle worker sleeps. A packet, a timer or a command wakes the
        /// worker, which takes some tens of microseconds. Larger values lower the latency and use more CPU. A single
        /// worker without ports shares a thread with the sockets; it adapts its busy-poll time by itself, up to 120.
        pub poll_us: u64 = 20, in 0..=1_000_000;
        /// If true, workers never sleep. Each worker then uses a whole CPU, and no packet waits for a wake-up.
        pub always_poll: bool = false;
        /// Longest sleep in microseconds of a worker with ports that cannot wake it: network cards without the kernel
        /// (pci://), and a memif with a peer that has no eventfd. Sleeps grow to this value, so the first packet after
        /// a silence may wait that long. Each poll takes some microseconds of CPU time, in virtual machines tens of
        /// them.
        pub longest_pause_us: u64 = 5_000, in 50..=100_000;
        /// Number of leading name components that select the worker of a name. More components spread names better if
        /// many begin alike. With fewer components, the names under a prefix stay with one worker.
        pub dispatch_components: usize = dispatch::DEFAULT_COMPONENTS, in 1..=MAX_COMPONENTS as u64;
        /// If true, the router moves names from a worker with a high load, or a full cache, to another worker, every 5
        /// seconds if needed. If most names begin alike, it divides them by more components, up to 8. Cached Data is
        /// not moved. `namehop ndt` lists and moves names, too.
        pub rebalance: bool = true;
        /// Maximum number of pending Interests. When the PIT is full, the router evicts old ones of the faces that hold
        /// most. "auto" is 131072, or less on hosts with little memory. The same applies to every "auto" limit below;
        /// see `limit` in `[memory]`.
        pub pit_capacity: Auto<usize> = Auto::Auto, in 64..=1 << 28;
        /// Time in milliseconds for which the router remembers the nonces of finished Interests, to detect loops.
        pub dead_nonce_list_lifetime_ms: u64 = EngineConfig::default().dead_nonce_lifetime_ms, in 50..=600_000;
        /// HopLimit that the router adds to Interests without one; 0 adds none.
        pub default_hop_limit: u8 = EngineConfig::default().default_hop_limit;
        /// Longest name in bytes. Packets with longer names are dropped (name-too-long). No packet has a name longer
        /// than 8800.
        pub max_name_bytes: usize = EngineConfig::default().max_name_bytes, in 255..=MAX_PACKET_SIZE as u64;
        /// Budget for long names, in bytes per second for all packets together. A name counts its bytes beyond the
        /// first 256, and 8 bytes for each component beyond 16. Names of up to 128 bytes count nothing. Packets beyond
        /// the budget are dropped (too-many-long-names). Faces that send long names at the same time share the budget
        /// equally. The default allows 16,000 names of 1,000 bytes per second; a flood of long names then takes some
        /// 3 % of a CPU.
        pub long_name_bytes_per_s: u64 = EngineConfig::default().long_name_bytes_per_s, in 0..=1 << 40;
        /// Longest InterestLifetime in milliseconds; longer ones are shortened to this. The default is ten days.
        pub max_interest_lifetime_ms: u64 = EngineConfig::default().max_lifetime_ms, in 1..=864_000_000;
        /// If true, Data from a remote face may satisfy an Interest that was not forwarded to that face, as in NFD. If
        /// false, such Data is dropped (unasked-data). A peer that guesses names can then neither answer in place of
        /// the producer nor fill the cache.
        pub accept_unasked_data: bool = EngineConfig::default().accept_unasked_data;
        /// Names of the regions that this router belongs to. A forwarding hint that points into one of them is removed.
        pub producer_regions: Vec<NameText> = Vec::new(), example "[\"/example/site\"]";
        /// Maximum number of FIB prefixes with strategy measurements (round-trip times and the like). "auto" is 65536
        /// or less.
        pub measurement_capacity: Auto<usize> = Auto::Auto, in 64..=1 << 24;
        /// Number of packets of a burst that are prefetched together. "auto" measures the memory of the host at
        /// start, which takes some 20 ms, and logs the chosen number.
        pub lookahead: Auto<usize> = Auto::Auto, in 1..=MAX_LOOKAHEAD as u64;
        /// Number of packet buffers of 2 KiB. Memory is allocated shortly before it is first needed. Each thread may
        /// hold 64 of these buffers in reserve. "auto" is 32768 or less.
        pub small_buffers: Auto<usize> = Auto::Auto, in 256..=1 << 24;
        /// Number of packet buffers of 9 KiB. "auto" is 8192 or less.
        pub large_buffers: Auto<usize> = Auto::Auto, in 64..=1 << 24;
    }
}

settings! {
    /// The forwarding information base (FIB), which holds the routes.
    pub section Fib {
        /// File of FIB entries, for more routes than commands can add. The router loads it while it starts to forward.
        /// The file is a snapshot made by `namehop fib save FILE`, or text with one `PREFIX FACE [COST]` a line. FACE
        /// is the URI of a peer.
        pub file: Option<PathBuf> = None, example "\"/etc/namehop/fib.txt\"",
            serde(skip_serializing_if = "Option::is_none");
    }
}

settings! {
    /// The Content Store, the cache of Data.
    pub section ContentStore {
        /// Maximum number of cached Data packets; 0 disables the cache. "auto" is 65536 or less. Commands can raise it
        /// within the available memory.
        pub capacity_packets: Auto<usize> = Auto::Auto, in 0..=1 << 28;
        /// Maximum memory for cached Data, for example "2 GiB". "auto" is 512 MiB or less.
        pub capacity_bytes: Auto<ByteSize> = Auto::Auto;
        /// Admission and eviction policy: [`namehop_store::PolicyKind::ALL`]. "tinylfu-clock" keeps popular Data, "lru"
        /// evicts the least recently used Data, "fifo" the oldest; docs/caching.md compares all. Policies can have
        /// settings, for example "filter:threshold=3".
        pub policy: PolicyChoice = CsConfig::default().policy, serde(with = "as_text");
        /// Whether the store admits Data.
        pub admit: bool = CsConfig::default().admit;
        /// Whether the store answers Interests.
        pub serve: bool = CsConfig::default().serve;
        /// Unsolicited Data, which no pending Interest asked for: "drop-all", or cached if it comes from local
        /// applications ("admit-local"), from remote faces ("admit-network") or from any face ("admit-all"). It is
        /// never forwarded.
        pub unsolicited: UnsolicitedPolicy = UnsolicitedPolicy::default(), serde(with = "as_text");
        maybe disk: ContentStoreDisk;
    }
}

impl ContentStore {
    /// Returns the settings of the engine's Content Store with this capacity.
    pub fn cs_config(&self, capacity_packets: usize, capacity_bytes: usize) -> CsConfig {
        CsConfig { capacity_packets, capacity_bytes, policy: self.policy, admit: self.admit, serve: self.serve }
    }
}

settings! {
    /// Disk cache, the second tier of the Content Store: Data evicted from memory is written to a file or a block
    /// device.
    pub element ContentStoreDisk {
        /// The file or block device. The router creates a missing file, readable by its own user only. A block device
        /// must be empty (see `namehop cs format`).
        pub path: PathBuf, example "\"/var/lib/namehop/cache\"";
        /// Space used there. Each GiB takes 5 MiB of memory.
        pub capacity_bytes: ByteSize, in MIN_CAPACITY_BYTES..=MAX_CAPACITY_BYTES, example "\"100 GiB\"";
        /// Whether the content survives a restart.
        pub keep: bool, serde(default);
        /// Longest time in milliseconds that an Interest waits for the disk; then the router forwards it.
        pub read_timeout_ms: u64, in 1..=10_000, serde(default = "read_timeout_ms");
    }
}

fn read_timeout_ms() -> u64 {
    50
}

impl ContentStoreDisk {
    /// Returns the settings of the second tier.
    pub fn settings(&self) -> DiskSettings {
        DiskSettings {
            path: self.path.clone(),
            capacity_bytes: self.capacity_bytes.0,
            keep: self.keep,
            read_timeout_ms: self.read_timeout_ms,
        }
    }
}

settings! {
    /// Memory of the tables, buffers and caches.
    pub section Memory {
        /// Maximum memory for all settings together, for example "200 MiB". The router reduces "auto" settings until
        /// everything fits. It keeps the values written here, and warns in the log if they need more. "auto" is three
        /// quarters of the available memory at start: the least of what the system has available and what the control
        /// groups of this process leave. The log names each reduced setting, and `namehop config check` prints the
        /// maximum of each setting.
        pub limit: Auto<ByteSize> = Auto::Auto, in 1 << 20..=1 << 50;
        /// Page size of large tables. "auto" uses reserved pages of 1 GiB or 2 MiB, if enough are free for the settings
        /// above (see `namehop setup`); else transparent huge pages; else ordinary pages. "1GiB" and "2MiB" try only
        /// that size of reserved pages first. "transparent" uses no reserved pages. "off" uses ordinary pages only.
        pub huge_pages: HugePages = HugePages::Auto, serde(with = "as_text");
    }
}

settings! {
    /// A face to create at start.
    pub element StaticFace {
        /// URI of the peer:
        /// - udp4, udp6, tcp4, tcp6 or ws with a numeric address and a port;
        /// - the same, or udp and tcp for either family, with a host name, which the router resolves again every 30 s;
        /// - ether with a MAC address;
        /// - memif with a socket and a number;
        /// - vxlan4 or vxlan6 with an address and a network.
        pub uri: UriText, example "\"udp4://192.0.2.1:6363\"";
        /// The port of the face. For ether: the port, or a VLAN on it, "dev://eth1?vlan=7"; memif is possible, too. For
        /// vxlan, and udp without the kernel: a port with `addresses`, followed by any of these, in this order:
        /// "?vlan=7&ip=192.0.2.1&port=6363&source_port=name&mac=08:00:27:01:01:01".
        pub local: Option<PortText>, example "\"dev://eth1\"", serde(default, skip_serializing_if = "Option::is_none");
        /// "permanent", or "persistent": reconnects as well, but is not kept in the saved state.
        pub persistency: FacePersistency, serde(default = "permanent", with = "persistency");
        /// MTU in bytes, of faces over UDP, ether, memif and VXLAN. By default that of `[faces.udp]` or of the link.
        pub mtu: Option<u64>, in MIN_MTU_BYTES as u64..=MAX_PACKET_SIZE as u64, example "1400",
            serde(default, skip_serializing_if = "Option::is_none");
        /// NDNLPv2 link reliability.
        pub reliability: bool, serde(default);
        /// NDNLPv2 congestion marking. By default that of `[faces]`.
        pub congestion_marking: Option<bool>, example "true",
            serde(default, skip_serializing_if = "Option::is_none");
        /// UDP: an IDLE packet every 25 s, so that gateways and firewalls keep the path open. By default on if the face
        /// is permanent.
        pub keep_alive: Option<bool>, example "true", serde(default, skip_serializing_if = "Option::is_none");
        /// "auto", "on" or "off". By default that of `[faces]`.
        pub pit_tokens: Option<PitTokens>, example "\"auto\"",
            serde(default, skip_serializing_if = "Option::is_none");
    }
}

fn permanent() -> FacePersistency {
    FacePersistency::Permanent
}

settings! {
    /// A route to add at start. The router creates the face if no `[[face]]` has this URI. An ether or vxlan next hop
    /// needs a `[[face]]`.
    pub element StaticRoute {
        /// Names under this prefix …
        pub prefix: NameText, example "\"/example\"";
        /// … are sent to this peer.
        pub nexthop: UriText, example "\"udp4://192.0.2.1:6363\"";
        /// Cost of the route; lower is preferred.
        pub cost: u64, serde(default);
        /// RIB flag ChildInherit: longer prefixes inherit the route.
        pub child_inherit: bool, serde(default = "yes");
        /// RIB flag Capture: the prefix and longer ones inherit no route of a shorter prefix.
        pub capture: bool, serde(default);
    }
}

fn yes() -> bool {
    true
}

settings! {
    /// Who may command this router, and how much. With an empty list of `[[management.authorizations]]`, every local
    /// application may do everything except load strategies, and remote peers may do nothing. With rules, the router
    /// accepts only commands signed with one of the certificates.
    pub section Management {
        /// Maximum number of routes registered by remote peers, per face; the router refuses more with 507. Routes
        /// registered through `[management.localhop]` count, and routes that self-learning has learned. A route takes
        /// some 4 KB.
        pub max_remote_routes_per_face: usize = RouteLimits::default().per_face, in 1..=1 << 24;
        /// The same for all faces together. "auto" is 10000 or less.
        pub max_remote_routes: Auto<usize> = Auto::Auto, in 1..=1 << 24;
        /// Maximum number of routes of all kinds, 1 KB each; the router refuses more with 507. "auto" is as many as fit
        /// into memory. Entries of a FIB file (`[fib]`) do not count.
        pub max_routes: Auto<usize> = Auto::Auto, in 1..=1 << 28;
        one localhop: Trust, "Trust in keys of remote commands to /localhop/nfd/rib. Without anchors the router does \
            not serve this prefix.";
        one prefix_announcements: Trust, "Trust in keys of prefix announcements. Without anchors the router rejects \
            all.";
        many authorizations: Authorization;
    }
}

settings! {
    /// A key that may command this router.
    pub element Authorization {
        /// Certificate file of the key, or "any".
        pub certificate: String, example "\"/etc/namehop/operator.ndncert\"";
        /// Management modules that the key may command.
        pub modules: Vec<String>,
            example r#"["faces", "fib", "cs", "strategy-choice", "rib", "ndt", "trace", "latency", "capture"]"#;
    }
}

settings! {
    /// Trust in keys.
    pub section Trust {
        /// Trust anchors, certificates that are trusted as such. A key may register routes, or announce names, under
        /// its own identity (the certificate's name before /KEY). `prefixes` of an anchor add names for all keys below
        /// that anchor.
        pub anchors: Vec<TrustAnchor> = Vec::new(),
            example r#"["/etc/namehop/a.ndncert", { certificate = "/etc/namehop/b.ndncert", prefixes = ["/b"] }]"#;
        /// Folder of certificates issued by the anchors, or by keys below them for identities under their own.
        pub certificates: Option<PathBuf> = None, example "\"/etc/namehop/certificates\"",
            serde(skip_serializing_if = "Option::is_none");
    }
}

settings! {
    /// Prometheus metrics at http://LISTEN/metrics.
    pub section Metrics {
        /// If false, the router has no HTTP server and no API.
        pub enabled: bool = true;
        /// Address of the server.
        pub listen: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 9697)), serde(deserialize_with = "address");
        /// Host names that clients may use besides `localhost` and IP addresses; `["*"]` allows all. The check stops a
        /// web page that gives this host a name of its own from reading the metrics or the API.
        pub allowed_hosts: Vec<String> = Vec::new(), example "[\"router.example\"]";
        /// Latency sampling: one in this many packets is measured for `namehop latency` and the metrics; 0 measures
        /// none. `namehop latency --sample N` changes it until the next start.
        pub latency_sample: u32 = 0;
    }
}

settings! {
    /// The HTTP API at http://LISTEN/api/v1, on the address of `[metrics]`. Reading needs no token if that is a
    /// loopback address. Changes always need the token, which carries the rights of a certificate of
    /// `[[management.authorizations]]`.
    pub section Api {
        /// Whether the HTTP server of `[metrics]` serves the API.
        pub enabled: bool = true;
        /// Whether requests over loopback come from this host. A request that shows a proxy, or names a host other than
        /// a loopback address, needs the token in any case. Set false if a proxy adds no such field; reading then
        /// always needs the token.
        pub local: bool = true;
        /// File with the token, of 16 characters or more. With "auto" the router makes one that only its own user can
        /// read: the path of the state file (`[state]`) followed by ".api-token".
        pub token_file: Auto<PathBuf> = Auto::Auto;
    }
}

settings! {
    /// The router shows the power of this host if the CPUs count energy and the router may read the counters. Otherwise
    /// it estimates the power from a server description.
    pub section Power {
        /// The server description: a published one (`namehop power server` lists them), or a file made by
        /// `namehop power fit`.
        pub server: Option<String> = None, example "\"/etc/namehop/server.toml\"",
            serde(skip_serializing_if = "Option::is_none");
    }
}

settings! {
    /// The state that survives a restart.
    pub section State {
        /// Whether to save permanent faces, static routes, strategy choices and Content Store settings made at run
        /// time, so that they survive a restart. If true, the router refuses changes that it cannot save.
        pub enabled: bool = true;
        /// File of the state. "auto" is $XDG_STATE_HOME/namehop/state.json if that variable is set, else
        /// /var/lib/namehop/state.json, or ~/.local/state/namehop/state.json if the router cannot write there. At start
        /// the router prints what it restored and from which file.
        pub file: Auto<PathBuf> = Auto::Auto;
    }
}
