//! The second tier of the Content Store: Data that policy evicts from memory goes to a file or a block device, is found again
//! without a worker ever waiting, and survives a restart when asked.
//!
//! The file is a ring of slots of 1 KiB, written from front to back and then over again: a *log*. A packet takes as many slots
//! as it needs, behind a header with its position in the log and a checksum over everything. So small packets waste little, the
//! disk sees long writes, and what is overwritten next is always the oldest.
//!
//! Each worker has a [`DiskTier`]: an index in memory from the hashes of names to positions, buffers in which packets are
//! gathered that are to be written, and rings to the one thread that owns the file (`server`). All that a worker does is
//! bounded, allocates nothing and makes no system call but to wake that thread, once a turn at most. When the disk is slow,
//! buffers run out, and then packets are not written and not looked for, which is counted.
//!
//! What is read is believed only if checksum, position and life of the file agree, and its reader compares the name. Whatever
//! a disk does wrong is therefore a miss, and never a wrong Data.
//!
//! | file | what |
//! |---|---|
//! | `format` | bytes of the file |
//! | `index` | from hashes of names to positions |
//! | `erased` | prefixes whose Data is erased |
//! | `shared` | what workers and the disk's thread have in common: positions, state, counters |
//! | `tier`, `tier::reads`, `tier::erasures` | the workers' side |
//! | `messages`, `report` | what the two sides send each other; what they count |
//! | `file`, `device` | opening the file: whose it is, its size, its lock; what is on a block device that is not ours |
//! | `storage` | reading and writing by io_uring, or by threads where that is not allowed |
//! | `server`, `lateness`, `scan` | the thread: requests, faults, a slow disk, what is there after a restart |

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
