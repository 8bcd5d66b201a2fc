//! Counters of the disk and of the workers.

use std::ops::AddAssign;

use crate::shared::DiskState;

/// State and counters of the disk thread. Workers count in [`TierCounters`](crate::TierCounters).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiskStatus {
    /// State of the disk.
    pub state: DiskState,
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
    /// Number of requests that the disk answered with an error.
    pub errors: u64,
    /// Number of records with a wrong checksum: torn or changed.
    pub checksum_failures: u64,
    /// Number of times that the disk took too long to answer.
    pub stalls: u64,
    /// Number of workers with erasures that are not on the disk yet. If the router ended now, the erased Data would
    /// be found again after a restart, unless the router remembers its erasures itself.
    pub erasing_workers: u64,
}

/// Counters of one worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TierCounters {
    /// Packets handed to the disk.
    pub stored: u64,
    /// Packets evicted from memory and not handed to the disk, because it is behind or does not work.
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
pub struct DiskReport {
    /// State and counters of the disk.
    pub status: DiskStatus,
    /// Counters of the workers.
    pub counters: TierCounters,
    /// Number of Interests that wait for the disk now.
    pub waiting: u64,
}

impl AddAssign for DiskReport {
    /// Adds the counters of another worker with the same disk.
    fn add_assign(&mut self, other: DiskReport) {
        self.status = other.status;
        self.counters += other.counters;
        self.waiting += other.waiting;
    }
}
