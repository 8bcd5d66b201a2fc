//! Memory for tables that are larger than the CPU caches.
//!
//! * [`BucketTable`]: a hash table from 64-bit hashes to 32-bit entry indexes, one cache line per bucket, for one
//!   owner.
//! * [`ConcurrentBucketTable`]: the same for one writer and lock-free readers; it grows without stalling them.
//! * [`Arena`], [`ByteArena`]: fixed-capacity storage for entries and for byte strings, on huge pages if available.
//!   [`SharedArena`]: entry storage that grows in place and is read by other threads.
//! * [`CacheLines`]: a plain array of cache lines on the same pages. [`Pieces`]: memory for pools.
//! * [`make_memory_ready_ahead`]: has another thread touch memory before the owners of these tables use it.
//! * [`HugePages`]: which pages all of these use; [`table_memory`] reports which they got.
//! * [`Qsbr`]: quiescent-state reclamation, which tells a writer when no reader can still see what it unpublished.
//! * [`handover_ring`]: hands items from one thread to another, in bursts.
//! * [`prefetch`]: hints that bring memory into the cache ahead of its use.
//! * [`clock`]: the CPU's time-stamp counter.
//! * [`touched`]: the number of cache lines that each operation accesses.
//! * [`MemorySpeed`]: latency and bandwidth of this host's memory; [`walk`] and [`permutation`]: reading lines in
//!   random order.
//!
//! The tables store indexes, not keys. The caller of a lookup compares the key in the entry; a 32-bit tag beside each
//! index makes comparisons with the wrong entry rare. Hashes must be well mixed in all 64 bits, and keyed so that
//! peers cannot choose names that collide.
//!
//! ```
//! use namehop_table::{Arena, BucketTable, PageRequest};
//!
//! // Entries in an arena; the table finds their indexes by hash.
//! let mut entries: Arena<[u8; 8]> = Arena::new(100, PageRequest::Ordinary)?;
//! let mut table = BucketTable::new(100, PageRequest::Ordinary)?;
//! let hash = 0x1234_5678_9abc_def0;
//! let index = entries.allocate().expect("the arena has room");
//! entries[index] = *b"/example";
//! table.insert(hash, index).expect("the table has room");
//! // Entries with another key can have the same tag, so the caller compares the key.
//! assert_eq!(table.find(hash, |index| &entries[index] == b"/example"), Some(index));
//! # Ok::<(), namehop_table::TableError>(())
//! ```

mod arena;
mod bucket;
mod byte_arena;
pub mod clock;
mod concurrent;
mod handover;
mod lines;
mod pages;
pub mod permutation;
mod pieces;
pub mod prefetch;
mod qsbr;
mod shared_arena;
mod speed;
mod sync;
mod tags;
pub mod touched;
pub mod walk;

pub use arena::Arena;
pub use bucket::{BucketStatistics, BucketTable, Candidates};
pub use byte_arena::{ByteArena, Growth, MAX_SLOT_BYTES, byte_arena_bytes};
pub use concurrent::{
    ConcurrentBucketReader, ConcurrentBucketTable, ConcurrentCandidates, GrowthEntries, RetiredBuckets, WalkCursor,
};
pub use handover::{HandoverReceiver, HandoverSender, handover_ring};
pub use lines::{CacheLine, CacheLines};
pub use pages::{
    HugePages, PageKind, PageRequest, Readiness, TableMemory, UnknownHugePages, is_memory_ready,
    make_memory_ready_ahead, table_memory, table_memory_by_pages, table_memory_in_use,
};
pub use pieces::{PIECE_ALIGNMENT, Pieces};
pub use qsbr::{Qsbr, QsbrReader};
pub use shared_arena::{SharedArena, SharedArenaReader};
pub use speed::MemorySpeed;
pub use tags::{all_bucket_bytes, bucket_bytes};

/// Memory for a table is not available.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// The system refused to reserve the memory.
    #[error("the system refused to reserve {bytes} bytes of memory")]
    OutOfMemory {
        /// Size of the refused request in bytes.
        bytes: usize,
    },
    /// The requested capacity exceeds 32-bit indexes or the address space.
    #[error("table capacity is too large")]
    CapacityTooLarge,
}

/// The table is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("table is full")]
pub struct TableFull;
