//! Settings of an engine, and what it reports of its tables.

use std::fmt;
use std::ops::AddAssign;
use std::str::FromStr;

use namehop_disk::DiskReport;
use namehop_store::PolicyChoice;
use namehop_table::TableError;
use namehop_wire::{MAX_PACKET_SIZE, Name};

use super::cs_counters::CsCountersByPolicy;
use crate::timer::MOST_NEW_TIMERS;

/// Which Data enters the Content Store although no PIT entry asked for it. Such Data is never forwarded.
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

    /// How it is written in a configuration, as in NFD.
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

/// There is no policy for unsolicited Data with this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown policy '{0}' for unsolicited Data, expected {names}", names = UnsolicitedPolicy::ALL.map(UnsolicitedPolicy::name).join(", "))]
pub struct UnknownUnsolicitedPolicy(pub String);

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
    /// Most cached packets.
    pub capacity_packets: usize,
    /// Most memory for cached packets.
    pub capacity_bytes: usize,
    /// What enters, and what leaves when it is full.
    pub policy: PolicyChoice,
    /// May Data enter?
    pub admit: bool,
    /// May Interests be answered from it?
    pub serve: bool,
}

impl CsConfig {
    /// These settings after a change.
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
    /// Number of the worker: first byte of its PIT tokens.
    pub worker: u8,
    /// Most PIT entries.
    pub pit_capacity: usize,
    /// Most memory for names longer than 128 bytes and for copies of Interests that cannot be rebuilt from their name.
    pub pit_memory_bytes: usize,
    /// Most timers that may be set during 2.1 s, about one for each Interest. A PIT entry that finds no room for its timer is kept until
    /// the PIT is full.
    pub new_timers: usize,
    /// Longest name of an Interest or Data, in bytes of its VALUE.
    pub max_name_bytes: usize,
    /// Bytes beyond 256 that all names together may have in a second; of deeper names than 16 components, each further one
    /// counts as 8 bytes. Names of up to 128 bytes count nothing.
    pub long_name_bytes_per_s: u64,
    /// Content Store.
    pub cs: CsConfig,
    /// Address space is set aside for at least so many cached packets, so that the Content Store can be enlarged later.
    pub reserved_packets: usize,
    /// Data that nobody asked for.
    pub unsolicited: UnsolicitedPolicy,
    /// May Data from any other computer satisfy an Interest? If not, only Data from a face that the Interest was sent to may,
    /// and Data from local faces.
    pub accept_unasked_data: bool,
    /// How long the Dead Nonce List remembers, in milliseconds.
    pub dead_nonce_lifetime_ms: u64,
    /// Most nonces that the Dead Nonce List remembers.
    pub dead_nonce_capacity: usize,
    /// HopLimit for Interests that come without; 0 leaves them without.
    pub default_hop_limit: u8,
    /// Names of the regions that this router belongs to: a forwarding hint that leads here has done its work.
    pub producer_regions: Vec<Name>,
    /// Longest time that a PIT entry is kept, in milliseconds, whatever lifetime its Interest asks for.
    pub max_lifetime_ms: u64,
    /// FIB prefixes for which strategies keep measurements.
    pub measurement_capacity: usize,
    /// Packets of a burst that are looked at together ahead of their turn, from 1 to 64. More of them keep more memory
    /// accesses under way, but what was fetched must still be in the cache when its packet has its turn.
    /// [`lookahead_for`](crate::schedule::lookahead_for) says what suits a machine.
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

/// Why there is no engine, or a setting cannot be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// Memory for the tables cannot be had.
    #[error("memory for the tables: {0}")]
    Table(#[from] TableError),
}

/// State of the Content Store (NFD management protocol, CS information dataset).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CsInfo {
    /// Most cached packets.
    pub capacity: usize,
    /// May Data enter?
    pub admit: bool,
    /// May Interests be answered from it?
    pub serve: bool,
    /// Cached packets.
    pub entries: usize,
    /// Interests answered.
    pub hits: u64,
    /// Interests that found nothing.
    pub misses: u64,
    /// Which packet enters, and which goes when the store is full.
    pub policy: PolicyChoice,
    /// What each policy did as long as it was in use.
    pub by_policy: CsCountersByPolicy,
    /// The second tier, on disk; `None` when there is none.
    pub disk: Option<DiskReport>,
}

impl AddAssign for CsInfo {
    /// Adds the Content Store of another engine, which has the same settings.
    fn add_assign(&mut self, other: CsInfo) {
        let CsInfo { capacity, admit, serve, entries, hits, misses, policy, by_policy, disk } = other;
        self.capacity += capacity;
        self.entries += entries;
        self.hits += hits;
        self.misses += misses;
        (self.admit, self.serve, self.policy) = (admit, serve, policy);
        self.by_policy += by_policy;
        match (&mut self.disk, disk) {
            (Some(sum), Some(disk)) => *sum += disk,
            (sum, disk) => *sum = sum.or(disk),
        }
    }
}

/// A change of the Content Store's settings; `None` leaves a setting as it is.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CsChange {
    /// Most cached packets.
    pub capacity: Option<usize>,
    /// What enters, and what leaves when it is full.
    pub policy: Option<PolicyChoice>,
    /// May Data enter?
    pub admit: Option<bool>,
    /// May Interests be answered from it?
    pub serve: Option<bool>,
}

/// Number of entries in each table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TableSizes {
    /// Pending Interests.
    pub pit: usize,
    /// Cached Data.
    pub cs: usize,
    /// Remembered nonces.
    pub dead_nonces: usize,
    /// FIB prefixes with measurements.
    pub measurements: usize,
    /// Entries of the PIT-CS composite table.
    pub pcct: usize,
    /// Timers, with those that mean nothing any more.
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
