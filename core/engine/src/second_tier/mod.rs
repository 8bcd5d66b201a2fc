//! The interface of a second tier of the Content Store: a larger and slower store below memory, such as a disk.
//!
//! The engine has no second tier of its own. The program that makes the engine gives it one with
//! [`Engine::use_second_tier`](crate::Engine::use_second_tier).
//!
//! ```text
//! Data is evicted from memory            takes_data, offer
//! newer Data of a name arrives           prefetch_forget, forget
//! an Interest misses in memory           prefetch_lookup, find, start_read
//! start of a poll iteration              set_now, next_finished + end_read, next_expired
//! an operator erases Data                erase
//! end of a poll iteration                flush
//! ```
//!
//! Names are identified by the hash of their VALUE. Two names may have the same hash, so the engine compares the name
//! of all Data that it reads.

mod report;

use std::fmt::Debug;
use std::ops::Range;

use namehop_packet::Timestamp;

pub use report::{DeviceCounters, TierCounters, TierReport, TierState, TierStatus};

/// A second tier of the Content Store, for one engine.
///
/// The worker that owns the engine makes all calls. Each call does a bounded amount of work: it does not block, and it
/// neither allocates per packet nor makes a system call. Only [`flush`](Self::flush) may make one, to wake another
/// thread. Work on the device is done elsewhere, and its results are polled with
/// [`next_finished`](Self::next_finished).
///
/// No call returns an error. A tier that fails stores nothing and finds nothing, and says so in its
/// [report](Self::report).
pub trait SecondTier: Debug + Send {
    /// Sets the current time, on the engine's clock, for all following calls.
    fn set_now(&mut self, now: Timestamp);

    /// Prefetches the index entry of a name to be [found](Self::find) or [offered](Self::offer). Called for each
    /// Interest and each victim, some packets ahead.
    fn prefetch_lookup(&self, name_hash: u64);

    /// Prefetches the index entry of a name with arriving Data, which is to be [forgotten](Self::forget). Called for
    /// each Data, some packets ahead.
    fn prefetch_forget(&self, name_hash: u64);

    /// Returns true if Data [offered](Self::offer) now would be stored. If not, the engine need not read the victim's
    /// memory.
    fn takes_data(&self) -> bool;

    /// Counts Data that was evicted from memory while the tier [takes none](Self::takes_data).
    fn note_not_stored(&mut self);

    /// Stores a copy of Data that is evicted from memory, unless the tier already holds it. Called only for Data
    /// without a forwarding hint that may outlive this run of the router.
    fn offer(&mut self, name_hash: u64, fresh_until: Timestamp, packet: &[u8]);

    /// Removes the record of a name, because memory got newer Data of this name, or its Data is erased.
    fn forget(&mut self, name_hash: u64);

    /// Returns the probable location of the Data with a name. With `must_be_fresh`, returns `None` if that Data is
    /// known to be stale.
    fn find(&self, name_hash: u64, must_be_fresh: bool) -> Option<RecordLocation>;

    /// Starts to read a record that was [found](Self::find). [`next_finished`](Self::next_finished) or
    /// [`next_expired`](Self::next_expired) returns the read's id once.
    ///
    /// Unsolicited remote peers get at most half of the reads, so that the others always have the rest.
    fn start_read(&mut self, name_hash: u64, location: RecordLocation, is_unsolicited_peer: bool) -> ReadStart;

    /// Counts a lookup that was skipped, because too many Interests wait.
    fn note_busy(&mut self);

    /// Returns true if [`next_finished`](Self::next_finished) has work to do. Called before the worker sleeps. The tier
    /// wakes a sleeping worker when this becomes true.
    fn has_completions(&self) -> bool;

    /// Returns the next read that has ended before its deadline. The engine passes it to [`end_read`](Self::end_read)
    /// before the next call.
    fn next_finished(&mut self) -> Option<FinishedRead>;

    /// Ends a read and frees its id. `is_found`: it returned the requested Data. If it did not, the tier removes the
    /// index entry.
    fn end_read(&mut self, finished: FinishedRead, is_found: bool);

    /// Returns the next read whose deadline has passed. No Interest waits for it from now on. The tier frees its id
    /// when the device is done with it.
    fn next_expired(&mut self) -> Option<ReadId>;

    /// Returns the time when [`next_expired`](Self::next_expired) must be called at the latest; `None` if no Interest
    /// waits.
    fn next_deadline(&self) -> Option<Timestamp>;

    /// Returns true if the Data with this name VALUE, read from this position, is erased.
    fn is_erased(&self, name: &[u8], position: u64) -> bool;

    /// Erases all Data under a prefix, given as the VALUE of its name. The number of erased packets is unknown.
    fn erase(&mut self, prefix: &[u8]);

    /// Returns a position above that of every record stored so far. The engine treats records below it as stale when
    /// names return to it from another engine. So a record that is stored later and lies below it costs a miss.
    fn position(&self) -> u64;

    /// Hands the records and reads of this poll iteration to the device. Called at the end of each iteration.
    fn flush(&mut self);

    /// Returns the state of the device and the counters of this tier. The engine adds the number of waiting Interests.
    fn report(&self) -> TierReport;
}

/// Id of a read in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReadId(u16);

impl ReadId {
    /// Maximum number of reads of one tier in flight; indexes are below it.
    pub const COUNT: usize = 256;

    /// Iterates over all ids, by index.
    pub fn all() -> impl DoubleEndedIterator<Item = ReadId> {
        (0..Self::COUNT as u16).map(ReadId)
    }

    /// Returns the id as an index.
    #[inline]
    pub fn index(self) -> usize {
        self.0.into()
    }
}

/// Location of a record in a tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordLocation {
    /// Position of the record. A record stored later has a higher position.
    pub position: u64,
    /// Size of the record, in the tier's unit of storage.
    pub slots: usize,
    /// False if the Data is known to be stale.
    pub may_be_fresh: bool,
}

/// Outcome of the start of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadStart {
    /// The read was started.
    Started(ReadId),
    /// This record is already being read.
    Joined(ReadId),
    /// Too many reads are in flight.
    Busy,
}

/// A read that has ended before its deadline.
#[derive(Debug)]
pub struct FinishedRead {
    /// Id of the read.
    pub id: ReadId,
    /// Position of the record.
    pub position: u64,
    /// Hash of the requested name.
    pub name_hash: u64,
    /// Buffer of the tier, with the Data in it.
    pub buffer: Vec<u8>,
    /// Range of the Data in the buffer, and the end of its freshness on the engine's clock; `None` if the record was
    /// overwritten or damaged.
    pub body: Option<(Range<usize>, Timestamp)>,
}

impl FinishedRead {
    /// Returns the Data that was read and the end of its freshness; `None` if there is none.
    pub fn data(&self) -> Option<(&[u8], Timestamp)> {
        let (range, fresh_until) = self.body.as_ref()?;
        Some((self.buffer.get(range.clone())?, *fresh_until))
    }
}
