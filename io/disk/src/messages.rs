//! Messages between a worker and the disk thread. Buffers move back and forth, so their number is fixed at the start.

use std::ops::Range;

use namehop_engine::second_tier::ReadId;
use namehop_packet::Timestamp;

use crate::erased::Erased;
use crate::index::Index;

/// Number of write buffers, of 128 KiB each.
pub(crate) const RUNS: usize = 32;
/// Maximum number of reads of a worker in flight.
pub(crate) const READS: usize = ReadId::COUNT;
/// Capacity of each ring: room for all buffers and the message that is sent once.
pub(crate) const RING_SLOTS: usize = RUNS + READS + 8;

/// Consecutive records of the log, to be written.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) position: u64,
    pub(crate) bytes: Vec<u8>,
    /// True if one of them is an erasure.
    pub(crate) has_erasure: bool,
}

/// A record to be read.
#[derive(Debug)]
pub(crate) struct ReadRequest {
    pub(crate) id: ReadId,
    pub(crate) position: u64,
    pub(crate) slots: usize,
    pub(crate) buffer: Vec<u8>,
}

/// Message from a worker to the disk thread.
#[derive(Debug)]
pub(crate) enum ToDisk {
    Write(Run),
    Read(ReadRequest),
}

/// Range of the Data in the buffer that was read, and the end of its freshness.
pub(crate) type Body = Option<(Range<usize>, Timestamp)>;

/// Message from the disk thread to a worker.
pub(crate) enum FromDisk {
    /// The contents of the disk; sent once.
    Ready(Box<(Index, Erased)>),
    /// A write buffer comes back. `is_written` tells whether its records were written.
    Written { buffer: Vec<u8>, has_erasure: bool, is_written: bool },
    /// A read has ended.
    Read { id: ReadId, buffer: Vec<u8>, body: Body },
}
