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
    /// Its counters.
    pub counters: DeviceCounters,
    /// Number of workers with erasures that are not on the device yet. If the router ended now, the erased Data would
    /// be found again after a restart, unless the router remembers its erasures itself.
    pub erasing_workers: u64,
}

namehop_packet::counters! {
    /// Counters of one worker.
    pub struct TierCounters {
        stored = "cs_disk_stored": "Data moved from memory to the disk";
        not_stored = "cs_disk_not_stored":
            "Data evicted from memory but not stored, because the disk was busy or failed";
        found = "cs_disk_hits": "Disk lookups that found their Data";
        not_found = "cs_disk_misses":
            "Disk lookups that found no Data although the index had the name: overwritten, erased, or another name";
        timed_out = "cs_disk_timeouts": "Disk lookups that timed out";
        busy = "cs_disk_busy": "Disk lookups skipped because too many were in progress";
    }
}

namehop_packet::counters! {
    /// Counters of the device, which all workers share.
    pub struct DeviceCounters {
        reads = "cs_disk_reads": "Read requests to the disk";
        writes = "cs_disk_writes": "Write requests to the disk, each with the packets gathered so far";
        written_bytes = "cs_disk_written_bytes": "Bytes written to the disk, including headers and padding";
        errors = "cs_disk_errors": "Disk requests that failed";
        checksum_failures = "cs_disk_checksum_failures": "Packets found damaged on the disk";
        stalls = "cs_disk_stalls": "Times that the disk did not respond for a second";
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
