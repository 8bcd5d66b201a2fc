//! The sections of the configuration file and their defaults.
//!
//! `default.toml` in this folder documents the keys; a test compares the two.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use namehop_disk::DiskSettings;
use namehop_engine::dispatch;
use namehop_engine::engine::{CsConfig, EngineConfig, UnsolicitedPolicy};
use namehop_face::FacePersistency;
use namehop_manage::requests::PitTokens;
use namehop_manage::rib::RouteLimits;
use namehop_store::PolicyChoice;
use namehop_table::HugePages;

use super::automatic::Auto;
use super::trust::TrustAnchor;
use super::values::{ByteSize, NameText, PortText, UriText, address, as_text, persistency};

/// `[log]`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    /// Filter directives, `level` or `level,module=level,…`.
    pub level: String,
    /// Format of the lines.
    pub format: LogFormat,
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

impl Default for Log {
    fn default() -> Self {
        Log { level: "info".to_owned(), format: LogFormat::Text }
    }
}

/// `[forwarding]`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Forwarding {
    /// Number of forwarding threads.
    pub workers: Auto<usize>,
    /// CPUs for the first workers, by number.
    pub processors: Vec<usize>,
    /// Time in microseconds for which an idle worker polls before it sleeps.
    pub poll_us: u64,
    /// Whether workers never sleep (always poll).
    pub always_poll: bool,
    /// Longest sleep of a worker with ports that cannot wake it, in microseconds.
    pub longest_pause_us: u64,
    /// Number of name components by which packets are dispatched to workers.
    pub dispatch_components: usize,
    /// Whether names are moved between workers to balance their load.
    pub rebalance: bool,
    /// Maximum number of pending Interests.
    pub pit_capacity: Auto<usize>,
    /// Time for which nonces of finished Interests are remembered, in milliseconds.
    pub dead_nonce_list_lifetime_ms: u64,
    /// HopLimit for Interests without one; 0 = add none.
    pub default_hop_limit: u8,
    /// Longest name of a packet, in bytes.
    pub max_name_bytes: usize,
    /// Limit in bytes per second for the parts of names beyond 256 bytes, all names together.
    pub long_name_bytes_per_s: u64,
    /// Longest InterestLifetime that is honoured, in milliseconds.
    pub max_interest_lifetime_ms: u64,
    /// Whether unsolicited Data from another host may answer an Interest.
    pub accept_unasked_data: bool,
    /// Names of the regions that this router is in, for forwarding hints.
    pub producer_regions: Vec<NameText>,
    /// Maximum number of FIB prefixes for which strategies keep measurements.
    pub measurement_capacity: Auto<usize>,
    /// Number of packets that are prefetched together.
    pub lookahead: Auto<usize>,
    /// Maximum number of packet buffers of 2 KiB.
    pub small_buffers: Auto<usize>,
    /// Maximum number of packet buffers of 9 KiB.
    pub large_buffers: Auto<usize>,
}

impl Default for Forwarding {
    fn default() -> Self {
        let engine = EngineConfig::default();
        Forwarding {
            workers: Auto::Auto,
            processors: Vec::new(),
            poll_us: 20,
            always_poll: false,
            longest_pause_us: 5_000,
            dispatch_components: dispatch::DEFAULT_COMPONENTS,
            rebalance: true,
            pit_capacity: Auto::Auto,
            dead_nonce_list_lifetime_ms: engine.dead_nonce_lifetime_ms,
            default_hop_limit: engine.default_hop_limit,
            max_name_bytes: engine.max_name_bytes,
            long_name_bytes_per_s: engine.long_name_bytes_per_s,
            max_interest_lifetime_ms: engine.max_lifetime_ms,
            accept_unasked_data: engine.accept_unasked_data,
            producer_regions: Vec::new(),
            measurement_capacity: Auto::Auto,
            lookahead: Auto::Auto,
            small_buffers: Auto::Auto,
            large_buffers: Auto::Auto,
        }
    }
}

/// `[fib]`
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Fib {
    /// File of entries to load at start: text or snapshot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
}

/// `[content_store]`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ContentStore {
    /// Maximum number of Data packets.
    pub capacity_packets: Auto<usize>,
    /// Maximum memory for Data packets.
    pub capacity_bytes: Auto<ByteSize>,
    /// Cache policy: which packet is admitted, and which one is evicted when the store is full.
    #[serde(with = "as_text")]
    pub policy: PolicyChoice,
    /// Whether Data is admitted.
    pub admit: bool,
    /// Whether Interests are answered from the store.
    pub serve: bool,
    /// How unsolicited Data is handled.
    #[serde(with = "as_text")]
    pub unsolicited: UnsolicitedPolicy,
    /// The second tier on disk; none = off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<ContentStoreDisk>,
}

/// `[content_store.disk]`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContentStoreDisk {
    /// File or block device.
    pub path: PathBuf,
    /// Size of the file or device.
    pub capacity_bytes: ByteSize,
    /// Whether cached Data on the disk survives a restart.
    #[serde(default)]
    pub keep: bool,
    /// Longest time that an Interest waits for the disk, in milliseconds.
    #[serde(default = "read_timeout_ms")]
    pub read_timeout_ms: u64,
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

/// `[memory]`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Memory {
    /// Memory to which all sizes set to "auto" are fitted.
    pub limit: Auto<ByteSize>,
    /// Page size of the large tables.
    #[serde(with = "as_text")]
    pub huge_pages: HugePages,
}

impl Default for Memory {
    fn default() -> Self {
        Memory { limit: Auto::Auto, huge_pages: HugePages::Auto }
    }
}

impl ContentStore {
    /// Returns the settings of the engine's Content Store with this capacity.
    pub fn cs_config(&self, capacity_packets: usize, capacity_bytes: usize) -> CsConfig {
        CsConfig { capacity_packets, capacity_bytes, policy: self.policy, admit: self.admit, serve: self.serve }
    }
}

impl Default for ContentStore {
    fn default() -> Self {
        let CsConfig { policy, admit, serve, .. } = CsConfig::default();
        ContentStore {
            capacity_packets: Auto::Auto,
            capacity_bytes: Auto::Auto,
            policy,
            admit,
            serve,
            unsolicited: UnsolicitedPolicy::default(),
            disk: None,
        }
    }
}

/// `[[face]]`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StaticFace {
    /// URI of the peer.
    pub uri: UriText,
    /// The port of the face, for Ethernet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<PortText>,
    /// Default: permanent. On-demand is an error.
    #[serde(default = "permanent", with = "persistency")]
    pub persistency: FacePersistency,
    /// MTU in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u64>,
    /// NDNLPv2 link reliability.
    #[serde(default)]
    pub reliability: bool,
    /// NDNLPv2 congestion marking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion_marking: Option<bool>,
    /// IDLE packets of NDNLPv2; by default permanent UDP faces send them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_alive: Option<bool>,
    /// When Interests carry this router's PIT token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pit_tokens: Option<PitTokens>,
}

fn permanent() -> FacePersistency {
    FacePersistency::Permanent
}

/// `[[route]]`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StaticRoute {
    /// Names under this prefix …
    pub prefix: NameText,
    /// … are sent to this peer. A permanent face is created if no `[[face]]` names the peer.
    pub nexthop: UriText,
    /// Cost of the route; lower is preferred.
    #[serde(default)]
    pub cost: u64,
    /// RIB flag ChildInherit.
    #[serde(default = "yes")]
    pub child_inherit: bool,
    /// RIB flag Capture.
    #[serde(default)]
    pub capture: bool,
}

fn yes() -> bool {
    true
}

/// `[management]`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Management {
    /// Clients that may send commands; empty = every local application.
    pub authorizations: Vec<Authorization>,
    /// Maximum number of routes that other hosts can register on one face.
    pub max_remote_routes_per_face: usize,
    /// Maximum number of routes that other hosts can register in total.
    pub max_remote_routes: Auto<usize>,
    /// Maximum number of routes in total.
    pub max_routes: Auto<usize>,
    /// Trust for commands under `/localhop/nfd/rib`; without anchors the prefix is not served.
    pub localhop: Trust,
    /// Trust for prefix announcements; without anchors all are rejected.
    pub prefix_announcements: Trust,
}

impl Default for Management {
    fn default() -> Self {
        let RouteLimits { per_face, .. } = RouteLimits::default();
        Management {
            authorizations: Vec::new(),
            max_remote_routes_per_face: per_face,
            max_remote_routes: Auto::Auto,
            max_routes: Auto::Auto,
            localhop: Trust::default(),
            prefix_announcements: Trust::default(),
        }
    }
}

/// `[[management.authorizations]]`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Authorization {
    /// Certificate file of the client, or `"any"`.
    pub certificate: String,
    /// Management modules that the client may command.
    pub modules: Vec<String>,
}

/// Trust anchors and certificates below them.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Trust {
    /// Certificates that are trusted as such.
    pub anchors: Vec<TrustAnchor>,
    /// Folder of certificates that the anchors have issued.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificates: Option<PathBuf>,
}

/// `[metrics]`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Metrics {
    /// Whether the HTTP server for metrics runs.
    pub enabled: bool,
    /// Address of the server.
    #[serde(deserialize_with = "address")]
    pub listen: SocketAddr,
    /// Host names that clients may use, besides `localhost` and addresses; `*` = all.
    pub allowed_hosts: Vec<String>,
    /// One in this many packets is measured for its time in the router; 0 = none.
    pub latency_sample: u32,
}

impl Default for Metrics {
    fn default() -> Self {
        Metrics {
            enabled: true,
            listen: SocketAddr::from(([127, 0, 0, 1], 9697)),
            allowed_hosts: Vec::new(),
            latency_sample: 0,
        }
    }
}

/// `[api]`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Api {
    /// Whether the HTTP server of `[metrics]` serves the API.
    pub enabled: bool,
    /// Whether requests over loopback come from this host; if not, reading needs the token too.
    pub local: bool,
    /// File with the token that changes require.
    pub token_file: Auto<PathBuf>,
}

impl Default for Api {
    fn default() -> Self {
        Api { enabled: true, local: true, token_file: Auto::Auto }
    }
}

/// `[power]`
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Power {
    /// Server model for estimating power where it cannot be measured: a published model, or a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
}

/// `[state]`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct State {
    /// Whether settings made at run time survive a restart.
    pub enabled: bool,
    /// File for these settings.
    pub file: Auto<PathBuf>,
}

impl Default for State {
    fn default() -> Self {
        State { enabled: true, file: Auto::Auto }
    }
}
