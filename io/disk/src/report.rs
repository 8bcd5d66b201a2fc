//! What is counted, of the disk and of workers.

use std::ops::AddAssign;

use crate::shared::DiskState;

/// What the thread of the disk reports. What workers count is in [`TierCounters`](crate::TierCounters).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiskStatus {
    /// What it is doing.
    pub state: DiskState,
    /// Bytes of all slots.
    pub capacity_bytes: u64,
    /// Bytes of the slots that were written at some time.
    pub used_bytes: u64,
    /// Requests to read.
    pub reads: u64,
    /// Requests to write; each has as many packets as came together.
    pub writes: u64,
    /// Bytes written, headers and padding included.
    pub written_bytes: u64,
    /// Requests that the disk answered with an error.
    pub errors: u64,
    /// Records that were not what had been written: torn or changed.
    pub checksum_failures: u64,
    /// Times that the disk did not answer for too long.
    pub stalls: u64,
    /// Workers that have erased Data of which the disk does not say so yet: a router that ended now would find it again, if it
    /// did not remember itself what was erased.
    pub erasing_workers: u64,
}

/// What one worker counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TierCounters {
    /// Packets given to the disk.
    pub stored: u64,
    /// Packets that left memory and were not given to the disk, because it is behind or does not work.
    pub not_stored: u64,
    /// Reads that gave the Data looked for.
    pub found: u64,
    /// Reads that gave nothing: written over, erased, another name.
    pub not_found: u64,
    /// Reads that took too long.
    pub timed_out: u64,
    /// Lookups that were not made, because too many were under way.
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
    /// Of the disk.
    pub status: DiskStatus,
    /// Of the workers.
    pub counters: TierCounters,
    /// Interests that wait for the disk now.
    pub waiting: u64,
}

impl AddAssign for DiskReport {
    /// Adds another worker, which has the same disk.
    fn add_assign(&mut self, other: DiskReport) {
        self.status = other.status;
        self.counters += other.counters;
        self.waiting += other.waiting;
    }
}
