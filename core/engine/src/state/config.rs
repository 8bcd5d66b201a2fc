//! Settings of an engine, and the state that it reports about its tables.

use std::fmt;
use std::ops::AddAssign;
use std::str::FromStr;

use namehop_store::PolicyChoice;
use namehop_table::TableError;
use namehop_wire::{MAX_PACKET_SIZE, Name};

use super::cs_counters::CsCountersByPolicy;
use crate::second_tier::TierReport;
use crate::timer::MOST_NEW_TIMERS;

/// Which unsolicited Data is cached. Such Data is never forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum UnsolicitedPolicy {
    /// None.
    #[default]
    DropAll,
    /// From local faces.
    AdmitLocal,
    /// From faces that are not local.
    AdmitNetwork,
    /// All.
    AdmitAll,
}

impl UnsolicitedPolicy {
    /// All policies.
    pub const ALL: [UnsolicitedPolicy; 4] = [
        UnsolicitedPolicy::DropAll,
        UnsolicitedPolicy::AdmitLocal,
        UnsolicitedPolicy::AdmitNetwork,
        UnsolicitedPolicy::AdmitAll,
    ];

    /// Returns the name of the policy in a configuration, as in NFD.
    pub const fn name(self) -> &'static str {
        match self {
            UnsolicitedPolicy::DropAll => "drop-all",
            UnsolicitedPolicy::AdmitLocal => "admit-local",
            UnsolicitedPolicy::AdmitNetwork => "admit-network",
            UnsolicitedPolicy::AdmitAll => "admit-all",
        }
    }
}

impl fmt::Display for UnsolicitedPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The error that no policy for unsolicited Data has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown policy '{0}' for unsolicited Data, expected one of {names}", names = policy_names())]
pub struct UnknownUnsolicitedPolicy(pub String);

fn policy_names() -> String {
    UnsolicitedPolicy::ALL.map(UnsolicitedPolicy::name).join(", ")
}

impl FromStr for UnsolicitedPolicy {
    type Err = UnknownUnsolicitedPolicy;

    fn from_str(text: &str) -> Result<Self, UnknownUnsolicitedPolicy> {
        let found = UnsolicitedPolicy::ALL.into_iter().find(|policy| policy.name() == text);
        found.ok_or_else(|| UnknownUnsolicitedPolicy(text.to_owned()))
    }
}

/// Settings of the Content Store.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CsConfig {
    /// Maximum number of cached packets.
    pub capacity_packets: usize,
    /// Maximum memory for cached packets, in bytes.
    pub capacity_bytes: usize,
    /// The cache policy: admission and eviction.
    pub policy: PolicyChoice,
    /// Whether Data is admitted.
    pub admit: bool,
    /// Whether cached Data is used to answer Interests.
    pub serve: bool,
}

impl CsConfig {
    /// Returns these settings after a change.
    #[must_use]
    pub fn changed(self, change: CsChange) -> Self {
        CsConfig {
            capacity_packets: change.capacity.unwrap_or(self.capacity_packets),
            admit: change.admit.unwrap_or(self.admit),
            serve: change.serve.unwrap_or(self.serve),
            policy: change.policy.unwrap_or(self.policy),
            ..self
        }
    }
}

impl Default for CsConfig {
    fn default() -> Self {
        CsConfig {
            capacity_packets: 65_536,
            capacity_bytes: 512 << 20,
            policy: PolicyChoice::default(),
            admit: true,
            serve: true,
        }
    }
}

/// Settings of one engine.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineConfig {
    /// Number of the worker: the first byte of its PIT tokens.
    pub worker: u8,
    /// Maximum number of PIT entries.
    pub pit_capacity: usize,
    /// Maximum memory, in bytes, for names longer than 128 bytes and for copies of Interests that cannot be rebuilt
    /// from their name.
    pub pit_memory_bytes: usize,
    /// Maximum number of timers set during 2.1 s, about one for each Interest. A PIT entry that gets no timer is kept
    /// until the PIT is full.
    pub new_timers: usize,
    /// Maximum length of the name of an Interest or Data, in bytes of its VALUE.
    pub max_name_bytes: usize,
    /// Name bytes beyond 256 per name that are accepted per second, summed over all names. Each component beyond the
    /// 16th counts as 8 bytes. Names of up to 128 bytes cost nothing.
    pub long_name_bytes_per_s: u64,
    /// Content Store.
    pub cs: CsConfig,
    /// Number of cached packets for which address space is reserved at least, so that the Content Store can be enlarged
    /// later.
    pub reserved_packets: usize,
    /// Which unsolicited Data is cached.
    pub unsolicited: UnsolicitedPolicy,
    /// Whether Data from any non-local face may satisfy an Interest. If `false`, only Data from local faces and from
    /// faces that the Interest was sent to may.
    pub accept_unasked_data: bool,
    /// How long the Dead Nonce List keeps a nonce, in milliseconds.
    pub dead_nonce_lifetime_ms: u64,
    /// Maximum number of nonces in the Dead Nonce List.
    pub dead_nonce_capacity: usize,
    /// HopLimit that is added to Interests without one; 0 adds none.
    pub default_hop_limit: u8,
    /// Names of the regions that this router belongs to. A forwarding hint is removed if one of its names is a prefix
    /// of one of them.
    pub producer_regions: Vec<Name>,
    /// Maximum time that an Interest is pending, in milliseconds, regardless of its InterestLifetime.
    pub max_lifetime_ms: u64,
    /// Maximum number of FIB prefixes for which strategies keep measurements.
    pub measurement_capacity: usize,
    /// Number of packets that the prefetch stages of a burst process together, from 1 to 64. More packets keep more
    /// memory accesses in flight, but prefetched lines must still be cached when their packet is handled.
    /// [`lookahead_for`](crate::schedule::lookahead_for) returns a suitable value for a host.
    pub lookahead: usize,
}

impl Default for EngineConfig {
    fn default() -> Self {
        EngineConfig {
            worker: 0,
            pit_capacity: 131_072,
            pit_memory_bytes: 64 << 20,
            new_timers: MOST_NEW_TIMERS,
            max_name_bytes: MAX_PACKET_SIZE,
            long_name_bytes_per_s: 12_000_000,
            cs: CsConfig::default(),
            reserved_packets: 4 << 20,
            unsolicited: UnsolicitedPolicy::default(),
            accept_unasked_data: false,
            dead_nonce_lifetime_ms: 6_000,
            dead_nonce_capacity: 1 << 20,
            default_hop_limit: 0,
            producer_regions: Vec::new(),
            max_lifetime_ms: 864_000_000,
            measurement_capacity: 65_536,
            lookahead: 32,
        }
    }
}

/// An error from creating an engine or changing a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// The memory for the tables cannot be allocated.
    #[error("cannot allocate the tables: {0}")]
    Table(#[from] TableError),
}

/// State of the Content Store (NFD management protocol, CS information dataset).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CsInfo {
    /// Maximum number of cached packets.
    pub capacity: usize,
    /// Whether Data is admitted.
    pub admit: bool,
    /// Whether cached Data is used to answer Interests.
    pub serve: bool,
    /// Number of cached packets.
    pub entries: usize,
    /// Interests answered from the Content Store.
    pub hits: u64,
    /// Interests that the Content Store could not answer.
    pub misses: u64,
    /// The cache policy: admission and eviction.
    pub policy: PolicyChoice,
    /// Counters of each policy while it was in use.
    pub by_policy: CsCountersByPolicy,
    /// The second tier; `None` if there is none.
    pub second_tier: Option<TierReport>,
}

impl AddAssign for CsInfo {
    /// Adds the Content Store of another engine, which must have the same settings.
    fn add_assign(&mut self, other: CsInfo) {
        let CsInfo { capacity, admit, serve, entries, hits, misses, policy, by_policy, second_tier } = other;
        self.capacity += capacity;
        self.entries += entries;
        self.hits += hits;
        self.misses += misses;
        (self.admit, self.serve, self.policy) = (admit, serve, policy);
        self.by_policy += by_policy;
        match (&mut self.second_tier, second_tier) {
            (Some(sum), Some(other)) => *sum += other,
            (sum, other) => *sum = sum.or(other),
        }
    }
}

/// A change of the Content Store's settings; `None` leaves a setting unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CsChange {
    /// Maximum number of cached packets.
    pub capacity: Option<usize>,
    /// The cache policy: admission and eviction.
    pub policy: Option<PolicyChoice>,
    /// Whether Data is admitted.
    pub admit: Option<bool>,
    /// Whether cached Data is used to answer Interests.
    pub serve: Option<bool>,
}

/// Number of entries in each table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TableSizes {
    /// Pending Interests.
    pub pit: usize,
    /// Cached Data.
    pub cs: usize,
    /// Nonces in the Dead Nonce List.
    pub dead_nonces: usize,
    /// FIB prefixes with measurements.
    pub measurements: usize,
    /// Entries of the PIT-CS composite table.
    pub pcct: usize,
    /// Timers, including stale ones.
    pub timers: usize,
}

impl AddAssign for TableSizes {
    /// Adds the tables of another engine.
    fn add_assign(&mut self, other: TableSizes) {
        let TableSizes { pit, cs, dead_nonces, measurements, pcct, timers } = other;
        self.pit += pit;
        self.cs += cs;
        self.dead_nonces += dead_nonces;
        self.measurements += measurements;
        self.pcct += pcct;
        self.timers += timers;
    }
}
