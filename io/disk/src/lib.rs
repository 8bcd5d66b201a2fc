//! The second tier of the Content Store: Data that the policy evicts from memory goes to a file or a block device.
//! Lookups never block a worker, and the contents survive a restart if configured.
//!
//! The file is a ring of slots of 1 KiB, written from front to back and then over again: a *log*. A packet takes as
//! many slots as it needs, after a header with its position in the log and a checksum. So small packets waste little,
//! the disk gets long writes, and the oldest record is always overwritten next.
//!
//! Each worker has a [`DiskTier`]: an index in memory from the hashes of names to positions, buffers that gather
//! packets to write, and rings to the one thread that owns the file (`server`). All work of a worker is bounded,
//! allocates nothing and makes no system call except to wake that thread, at most once per poll iteration. When the
//! disk is slow, the buffers run out; then packets are neither written nor looked up, which is counted.
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
//! | `tier`, `tier::reads`, `tier::erasures` | the workers' side |
//! | `messages`, `report` | messages between the two sides; counters |
//! | `file`, `device` | opening the file: ownership, size, lock; foreign contents of a block device |
//! | `storage` | reading and writing by io_uring, or by threads where that is not allowed |
//! | `server`, `lateness`, `scan` | the disk thread: requests, faults, a slow disk, the contents after a restart |

#![forbid(unsafe_code)]

mod device;
mod erased;
mod file;
mod format;
mod index;
mod lateness;
mod messages;
mod report;
mod scan;
mod server;
mod shared;
mod start;
mod storage;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
mod tier;

pub use device::{DeviceContents, clear_device, inspect_device};
pub use file::OpenError;
pub use format::SLOT_BYTES;
pub use messages::ReadId;
pub use report::{DiskReport, DiskStatus, TierCounters};
pub use server::Worker;
pub use shared::DiskState;
pub use start::{DiskCache, DiskSettings, ErasureWatch, MAX_CAPACITY_BYTES, MIN_CAPACITY_BYTES};
pub use tier::{DiskTier, Finished, Located, Reading};
