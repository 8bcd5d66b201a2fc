//! State and counters of a second tier, for management and metrics.

use std::fmt;
use std::ops::AddAssign;

/// State of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum TierState {
    /// The device is being scanned for contents from before the start.
    #[default]
    Starting = 0,
    /// Data is written and looked up.
    Working = 1,
    /// A request takes too long; no further request is made until it ends.
    Stalled = 2,
    /// The device reported an error; it is retried after a pause.
    Failed = 3,
}

impl TierState {
    /// All states, indexed by their number.
    pub const ALL: [TierState; 4] = [TierState::Starting, TierState::Working, TierState::Stalled, TierState::Failed];

    /// Returns the name of the state, one word.
    pub const fn name(self) -> &'static str {
        match self {
            TierState::Starting => "starting",
            TierState::Working => "working",
            TierState::Stalled => "stalled",
            TierState::Failed => "failed",
        }
    }
}

impl fmt::Display for TierState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// State and counters of the device of a second tier, which all workers share. Each worker counts in [`TierCounters`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TierStatus {
    /// State of the device.
    pub state: TierState,
    /// Bytes of all slots.
    pub capacity_bytes: u64,
    /// Bytes of the slots that were written at least once.
    pub used_bytes: u64,
    /// Number of read requests.
    pub reads: u64,
    /// Number of write requests; each holds the packets gathered so far.
    pub writes: u64,
    /// Bytes written, including headers and padding.
    pub written_bytes: u64,
    /// Number of requests that the device answered with an error.
    pub errors: u64,
    /// Number of records with a wrong checksum: torn or changed.
    pub checksum_failures: u64,
    /// Number of times that the device took too long to answer.
    pub stalls: u64,
    /// Number of workers with erasures that are not on the device yet. If the router ended now, the erased Data would
    /// be found again after a restart, unless the router remembers its erasures itself.
    pub erasing_workers: u64,
}

/// Counters of one worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TierCounters {
    /// Packets handed to the device.
    pub stored: u64,
    /// Packets evicted from memory and not handed to the device, because it is behind or does not work.
    pub not_stored: u64,
    /// Reads that returned the requested Data.
    pub found: u64,
    /// Reads that returned nothing: overwritten, erased, or another name.
    pub not_found: u64,
    /// Reads that took too long.
    pub timed_out: u64,
    /// Lookups that were skipped, because too many were in flight.
    pub busy: u64,
}

impl AddAssign for TierCounters {
    fn add_assign(&mut self, other: TierCounters) {
        let TierCounters { stored, not_stored, found, not_found, timed_out, busy } = other;
        self.stored += stored;
        self.not_stored += not_stored;
        self.found += found;
        self.not_found += not_found;
        self.timed_out += timed_out;
        self.busy += busy;
    }
}

/// State and counters of the second tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TierReport {
    /// State and counters of the device.
    pub status: TierStatus,
    /// Counters of the workers.
    pub counters: TierCounters,
    /// Number of Interests that wait for a read now.
    pub waiting: u64,
}

impl AddAssign for TierReport {
    /// Adds the counters of another worker with the same device.
    fn add_assign(&mut self, other: TierReport) {
        self.status = other.status;
        self.counters += other.counters;
        self.waiting += other.waiting;
    }
}
