//! Settings of the second tier.

use std::path::PathBuf;

use crate::format::SLOT_BYTES;
use crate::index::MAX_SLOTS;

/// The smallest capacity, in bytes.
pub const MIN_CAPACITY_BYTES: u64 = 16 << 20;
/// The largest capacity, in bytes: 4 TiB.
pub const MAX_CAPACITY_BYTES: u64 = MAX_SLOTS * SLOT_BYTES as u64;

/// Settings of the second tier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskSettings {
    /// File or block device.
    pub path: PathBuf,
    /// Size in bytes.
    pub capacity_bytes: u64,
    /// True if the contents survive a restart.
    pub keep: bool,
    /// How long an Interest waits for the disk, in milliseconds.
    pub read_timeout_ms: u64,
}
