//! View of the second tier of the Content Store.

use namehop_disk::DiskReport;
use serde::Serialize;
use utoipa::ToSchema;

use crate::nfd::CsDisk;

/// The second tier of the Content Store, on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct CsDiskView {
    /// `starting`, `working`, `stalled` or `failed`.
    pub state: String,
    /// Bytes for packets.
    pub capacity_bytes: u64,
    /// Of these, those that were written at some time.
    pub used_bytes: u64,
    /// Data that left memory for the disk.
    pub stored: u64,
    /// Data that left memory and did not go to the disk, because that was behind or did not work.
    pub not_stored: u64,
    /// Lookups that found their Data.
    pub hits: u64,
    /// Lookups that did not, although the index had the name.
    pub misses: u64,
    /// Lookups that took longer than `read_timeout_ms`.
    pub timeouts: u64,
    /// Lookups that were not made, because too many were under way.
    pub busy: u64,
    /// Interests that wait for the disk now.
    pub waiting: u64,
    /// Requests to read.
    pub reads: u64,
    /// Requests to write, each with the packets that came together.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Requests that ended with an error.
    pub errors: u64,
    /// Packets that were damaged on the disk.
    pub checksum_failures: u64,
    /// Times that the disk did not answer for a second.
    pub stalls: u64,
    /// Workers that have erased Data of which the disk does not know yet; the state file does until then.
    pub erasing_workers: u64,
}

impl From<CsDisk> for CsDiskView {
    fn from(CsDisk(DiskReport { status, counters, waiting }): CsDisk) -> Self {
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
