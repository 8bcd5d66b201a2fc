//! View of the second tier of the Content Store.

use namehop_client::nfd::CsDisk;
use namehop_engine::second_tier::TierReport;
use serde::Serialize;
use utoipa::ToSchema;

/// The second tier of the Content Store, on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct CsDiskView {
    /// `starting`, `working`, `stalled` or `failed`.
    pub state: String,
    /// Capacity for packets.
    pub capacity_bytes: u64,
    /// Part of the capacity that was ever written.
    pub used_bytes: u64,
    /// Data moved from memory to the disk.
    pub stored: u64,
    /// Data evicted from memory without being written, because the disk was behind or did not work.
    pub not_stored: u64,
    /// Lookups that found their Data.
    pub hits: u64,
    /// Lookups that did not find their Data, although the index had the name.
    pub misses: u64,
    /// Lookups that took longer than `read_timeout_ms`.
    pub timeouts: u64,
    /// Lookups skipped because too many were in progress.
    pub busy: u64,
    /// Interests that are waiting for the disk.
    pub waiting: u64,
    /// Read requests.
    pub reads: u64,
    /// Write requests, each with a batch of packets.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Requests that ended with an error.
    pub errors: u64,
    /// Packets found damaged on the disk.
    pub checksum_failures: u64,
    /// Number of times that the disk did not answer for one second.
    pub stalls: u64,
    /// Workers with erasures of Data that the disk has not recorded yet; the state file records them until then.
    pub erasing_workers: u64,
}

impl From<CsDisk> for CsDiskView {
    fn from(CsDisk(TierReport { status, counters, waiting }): CsDisk) -> Self {
        CsDiskView {
            state: status.state.name().to_owned(),
            capacity_bytes: status.capacity_bytes,
            used_bytes: status.used_bytes,
            stored: counters.stored,
            not_stored: counters.not_stored,
            hits: counters.found,
            misses: counters.not_found,
            timeouts: counters.timed_out,
            busy: counters.busy,
            waiting,
            reads: status.reads,
            writes: status.writes,
            written_bytes: status.written_bytes,
            errors: status.errors,
            checksum_failures: status.checksum_failures,
            stalls: status.stalls,
            erasing_workers: status.erasing_workers,
        }
    }
}
