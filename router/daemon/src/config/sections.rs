//! The sections of the configuration file and their defaults.
//!
//! `default.toml` beside this file says what each key means; a test holds the two together.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use namehop_disk::DiskSettings;
use namehop_engine::dispatch;
use namehop_engine::engine::{CsConfig, EngineConfig, UnsolicitedPolicy};
use namehop_face::FacePersistency;
use namehop_manage::requests::PitTokens;
use namehop_manage::rib::RouteLimits;
use namehop_store::PolicyChoice;
use namehop_table::HugePages;

use super::automatic::{AutoNumber, AutoPath, AutoSize};
use super::trust::TrustAnchor;
use super::values::{ByteSize, NameText, PortText, UriText, address, as_text, persistency};
use crate::worker::Idling;

/// `[log]`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    /// Filter directives, `level` or `level,module=level,…`.
    pub level: String,
    /// Form of the lines.
    pub format: LogFormat,
}

/// Form of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
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
    /// Threads that forward.
    pub workers: AutoNumber,
    /// Processors for the first workers, by number.
    pub processors: Vec<usize>,
    /// How long a worker goes on looking for packets before it sleeps, in microseconds.
    pub poll_us: u64,
    /// Whether workers never sleep.
    pub always_poll: bool,
    /// How long a worker sleeps at most beside ports that cannot wake it, in microseconds.
    pub longest_pause_us: u64,
    /// Components of names by which packets are divided among workers.
    pub dispatch_components: usize,
    /// Whether names are moved between workers so that all have the same load.
    pub rebalance: bool,
    /// Pending Interests at most.
    pub pit_capacity: AutoNumber,
    /// Nonces of finished Interests are remembered so long, in milliseconds.
    pub dead_nonce_list_lifetime_ms: u64,
    /// HopLimit for Interests that have none; 0 = leave them without.
    pub default_hop_limit: u8,
    /// Longest name of a packet, in bytes.
    pub max_name_bytes: usize,
    /// Bytes beyond 256 that all names together may have in a second.
    pub long_name_bytes_per_s: u64,
    /// Longest InterestLifetime honoured, in milliseconds.
    pub max_interest_lifetime_ms: u64,
    /// Whether Data from another computer that was not asked may answer an Interest.
    pub accept_unasked_data: bool,
    /// Names of the regions this router is in, for forwarding hints.
    pub producer_regions: Vec<NameText>,
    /// FIB prefixes for which strategies keep measurements, at most.
    pub measurement_capacity: AutoNumber,
    /// Packets that are looked at together ahead of their turn.
    pub lookahead: AutoNumber,
    /// Packet buffers of 2 KiB, at most.
    pub small_buffers: AutoNumber,
    /// Packet buffers of 9 KiB, at most.
    pub large_buffers: AutoNumber,
}

impl Default for Forwarding {
    fn default() -> Self {
        let engine = EngineConfig::default();
        Forwarding {
            workers: AutoNumber::Auto,
            processors: Vec::new(),
            poll_us: 20,
            always_poll: false,
            longest_pause_us: 5_000,
            dispatch_components: dispatch::DEFAULT_COMPONENTS,
            rebalance: true,
            pit_capacity: AutoNumber::Auto,
            dead_nonce_list_lifetime_ms: engine.dead_nonce_lifetime_ms,
            default_hop_limit: engine.default_hop_limit,
            max_name_bytes: engine.max_name_bytes,
            long_name_bytes_per_s: engine.long_name_bytes_per_s,
            max_interest_lifetime_ms: engine.max_lifetime_ms,
            accept_unasked_data: engine.accept_unasked_data,
            producer_regions: Vec::new(),
            measurement_capacity: AutoNumber::Auto,
            lookahead: AutoNumber::Auto,
            small_buffers: AutoNumber::Auto,
            large_buffers: AutoNumber::Auto,
        }
    }
}

impl Forwarding {
    /// What workers do while there is nothing to do.
    pub fn idling(&self) -> Idling {
        Idling {
            always_polls: self.always_poll,
            poll_for: Duration::from_micros(self.poll_us),
            longest_pause: Duration::from_micros(self.longest_pause_us),
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
    /// Data packets at most.
    pub capacity_packets: AutoNumber,
    /// Memory for them at most.
    pub capacity_bytes: AutoSize,
    /// Which packet enters, and which goes when the store is full.
    #[serde(with = "as_text")]
    pub policy: PolicyChoice,
    /// Whether Data is taken in.
    pub admit: bool,
    /// Whether Interests are answered from the store.
    pub serve: bool,
    /// What happens to Data nobody asked for.
    #[serde(with = "as_text")]
    pub unsolicited: UnsolicitedPolicy,
    /// The second tier, if there is to be one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<ContentStoreDisk>,
}

/// `[content_store.disk]`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContentStoreDisk {
    /// File or block device.
    pub path: PathBuf,
    /// Its size.
    pub capacity_bytes: ByteSize,
    /// Whether what is in it survives a restart.
    #[serde(default)]
    pub keep: bool,
    /// How long an Interest waits for the disk, in milliseconds.
    #[serde(default = "read_timeout_ms")]
    pub read_timeout_ms: u64,
}

fn read_timeout_ms() -> u64 {
    50
}

impl ContentStoreDisk {
    /// The settings of the second tier.
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
    /// Memory to which all that is "auto" is fitted.
    pub limit: AutoSize,
    /// Pages of the large tables.
    #[serde(with = "as_text")]
    pub huge_pages: HugePages,
}

impl Default for Memory {
    fn default() -> Self {
        Memory { limit: AutoSize::Auto, huge_pages: HugePages::Auto }
    }
}

impl ContentStore {
    /// The settings of the engine's Content Store, with this room.
    pub fn cs_config(&self, capacity_packets: usize, capacity_bytes: usize) -> CsConfig {
        CsConfig { capacity_packets, capacity_bytes, policy: self.policy, admit: self.admit, serve: self.serve }
    }
}

impl Default for ContentStore {
    fn default() -> Self {
        let CsConfig { policy, admit, serve, .. } = CsConfig::default();
        ContentStore {
            capacity_packets: AutoNumber::Auto,
            capacity_bytes: AutoSize::Auto,
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
    /// Peer.
    pub uri: UriText,
    /// The port it is on, for Ethernet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<PortText>,
    /// Permanent unless said otherwise; on-demand is refused.
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
    /// IDLE packets of NDNLPv2; sent by permanent UDP faces unless said otherwise.
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
    /// … go to this peer; the face is made (permanent) when no `[[face]]` names it.
    pub nexthop: UriText,
    /// Lower is preferred.
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
    /// Who may command; empty = every local application.
    pub authorizations: Vec<Authorization>,
    /// Most routes that other computers may register for one face.
    pub max_remote_routes_per_face: usize,
    /// Most routes that other computers may register together.
    pub max_remote_routes: AutoNumber,
    /// Most routes of all, whoever registered them.
    pub max_routes: AutoNumber,
    /// Trust for `/localhop/nfd/rib`; without anchors it does not exist.
    pub localhop: Trust,
    /// Trust for prefix announcements; without anchors they are refused.
    pub prefix_announcements: Trust,
}

impl Default for Management {
    fn default() -> Self {
        let RouteLimits { per_face, .. } = RouteLimits::default();
        Management {
            authorizations: Vec::new(),
            max_remote_routes_per_face: per_face,
            max_remote_routes: AutoNumber::Auto,
            max_routes: AutoNumber::Auto,
            localhop: Trust::default(),
            prefix_announcements: Trust::default(),
        }
    }
}

/// `[[management.authorizations]]`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Authorization {
    /// Certificate file of the commander, or `"any"`.
    pub certificate: String,
    /// Modules it may command.
    pub modules: Vec<String>,
}

/// Trust anchors and certificates below them.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Trust {
    /// Certificates that are trusted as they are.
    pub anchors: Vec<TrustAnchor>,
    /// Folder of certificates that the anchors have issued.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificates: Option<PathBuf>,
}

/// `[metrics]`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Metrics {
    /// Whether there is an HTTP server for them.
    pub enabled: bool,
    /// Its address.
    #[serde(deserialize_with = "address")]
    pub listen: SocketAddr,
    /// Names that clients may ask for, besides `localhost` and addresses; `*` = all.
    pub allowed_hosts: Vec<String>,
    /// One in so many packets is measured for its time in the router; 0 = none.
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
    /// Whether the HTTP server of `[metrics]` answers requests to the API.
    pub enabled: bool,
    /// Whether requests over loopback come from this host; if not, reading needs the token, too.
    pub local: bool,
    /// The file with the token that changes need.
    pub token_file: AutoPath,
}

impl Default for Api {
    fn default() -> Self {
        Api { enabled: true, local: true, token_file: AutoPath::Auto }
    }
}

/// `[power]`
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Power {
    /// The server that power is estimated with where it cannot be measured: a published one, or a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
}

/// `[state]`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct State {
    /// Whether settings made at run time outlive a restart.
    pub enabled: bool,
    /// Their file.
    pub file: AutoPath,
}

impl Default for State {
    fn default() -> Self {
        State { enabled: true, file: AutoPath::Auto }
    }
}
