//! The second tier of the Content Store: Data that the policy evicts from memory goes to a file or a block device.
//! Lookups never block a worker, and the contents survive a restart if configured.
//!
//! The file is a ring of slots of 1 KiB, written from front to back and then over again: a *log*. A packet takes as
//! many slots as it needs, after a header with its position in the log and a checksum. So small packets waste little,
//! the disk gets long writes, and the oldest record is always overwritten next.
//!
//! Each worker has a [`DiskTier`], which implements the engine's interface of a second tier
//! ([`SecondTier`](namehop_engine::second_tier::SecondTier)): an index in memory from the hashes of names to positions,
//! buffers that gather packets to write, and rings to the one thread that owns the file (`server`). All work of a
//! worker is bounded, allocates nothing and makes no system call except to wake that thread, at most once per poll
//! iteration. When the disk is slow, the buffers run out; then packets are neither written nor looked up, which is
//! counted.
//!
//! A record that was read is accepted only if checksum, position and life of the file match, and the reader compares
//! the name. So a fault of a disk leads to a miss, never to wrong Data.
//!
//! | file | contents |
//! |---|---|
//! | `format` | format of the file |
//! | `index` | from hashes of names to positions |
//! | `erased` | prefixes with erased Data |
//! | `shared` | state that workers and the disk thread share: positions, state, counters |
//! | `tier` | the workers' side: reads, the log, erasures |
//! | `messages` | messages between the two sides |
//! | `settings`, `open_error` | settings; errors of opening the file |
//! | `file`, `lock`, `device` | opening the file: ownership and size; its lock; foreign contents of a block device |
//! | `storage` | reading and writing by io_uring, or by threads where that is not allowed |
//! | `start` | starting and stopping the disk thread |
//! | `server`, `lateness`, `scan` | the disk thread: requests, faults, a slow disk, the contents after a restart |
//!
//! ```
//! use namehop_disk::{DiskCache, DiskSettings, MIN_CAPACITY_BYTES};
//! use namehop_hash::HashKey;
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("cache");
//! let settings = DiskSettings { path, capacity_bytes: MIN_CAPACITY_BYTES, keep: false, read_timeout_ms: 20 };
//! // No worker here; a router passes one handle for each of its workers, and gives each engine its tier.
//! let (cache, tiers) = DiskCache::start(settings, HashKey::random(), Vec::new(), |_| 0)?;
//! assert!(tiers.is_empty());
//! cache.stop();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod device;
mod erased;
mod file;
mod format;
mod index;
mod lateness;
mod lock;
mod messages;
mod open_error;
mod scan;
mod server;
mod settings;
mod shared;
mod start;
mod storage;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
mod tier;

pub use device::{DeviceContents, clear_device, inspect_device};
pub use format::SLOT_BYTES;
pub use open_error::OpenError;
pub use server::Worker;
pub use settings::{DiskSettings, MAX_CAPACITY_BYTES, MIN_CAPACITY_BYTES};
pub use start::{DiskCache, ErasureWatch};
pub use tier::DiskTier;
