//! What a worker and the disk's thread send each other. Buffers go back and forth, so there are never more than at the start.

use std::ops::Range;

use namehop_packet::Timestamp;

use crate::erased::Erased;
use crate::index::Index;

/// Buffers for what is to be written, of 128 KiB each.
pub(crate) const RUNS: usize = 32;
/// Reads that a worker may have under way.
pub(crate) const READS: usize = 256;
/// Places of each ring: room for all buffers there are and what comes once.
pub(crate) const RING_PLACES: usize = RUNS + READS + 8;
/// A read under way, by a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReadId(pub(crate) u16);

impl ReadId {
    /// Most reads under way; numbers are below it.
    pub const COUNT: usize = READS;

    /// The number, as an index.
    pub fn index(self) -> usize {
        self.0.into()
    }
}

/// Records that follow each other in the log, to be written.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) position: u64,
    pub(crate) bytes: Vec<u8>,
    /// Is there an erasure among them?
    pub(crate) has_erasure: bool,
}

/// A record to be read.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) id: ReadId,
    pub(crate) position: u64,
    pub(crate) slots: usize,
    pub(crate) buffer: Vec<u8>,
}

/// From a worker to the disk's thread.
#[derive(Debug)]
pub(crate) enum ToDisk {
    Write(Run),
    Read(Request),
}

/// Where Data lies in the buffer that was read, and until when it is fresh.
pub(crate) type Body = Option<(Range<usize>, Timestamp)>;

/// From the disk's thread to a worker.
pub(crate) enum FromDisk {
    /// What the disk holds; comes once.
    Ready(Box<(Index, Erased)>),
    /// A buffer for what is to be written comes back. Were its records written?
    Written { buffer: Vec<u8>, has_erasure: bool, is_written: bool },
    /// A read has ended.
    Read { id: ReadId, buffer: Vec<u8>, body: Body },
}
