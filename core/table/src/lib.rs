//! Memory for tables that are too large for the processor's caches.
//!
//! * [`BucketTable`]: a hash table from 64-bit hashes to 32-bit entry indexes, one cache line per bucket, for one owner.
//! * [`ConcurrentBucketTable`]: the same idea for one writer and lock-free readers; it grows without stalling them.
//! * [`Arena`], [`ByteArena`]: fixed-capacity storage for entries and for byte strings, on huge pages where the machine
//!   has them. [`SharedArena`]: entry storage that grows in place and is read by other threads.
//! * [`CacheLines`]: a plain array of cache lines on the same pages. [`Pieces`]: memory for pools.
//! * [`make_memory_ready_ahead`]: another thread touches memory before it is needed, ahead of whoever fills these.
//! * [`HugePages`]: which pages all of these use; [`table_memory`] tells which they got.
//! * [`Qsbr`]: quiescent-state reclamation, which tells a writer when no reader can still see what it unpublished.
//! * [`handover_ring`]: hands items from one thread to another, in bursts.
//! * [`prefetch`]: hints that bring memory into the cache ahead of its use.
//! * [`clock`]: the processor's time-stamp counter.
//! * [`touched`]: how many cache lines each operation needs.
//! * [`MemorySpeed`]: latency and rate of this machine's memory; [`walk`] and [`permutation`]: reading lines in random order.
//!
//! The tables store indexes, not keys. Whoever looks something up compares the key in the entry; a 32-bit tag beside each
//! index makes a useless comparison rare. Hashes must be well mixed in all 64 bits, and keyed against chosen names.

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

/// Memory for a table could not be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// The system refused to reserve the memory.
    #[error("the system refused to reserve {bytes} bytes of memory")]
    OutOfMemory {
        /// How much was asked for.
        bytes: usize,
    },
    /// More entries were asked for than 32-bit indexes or the address space allow.
    #[error("table capacity is too large")]
    CapacityTooLarge,
}

/// The table holds as many entries as it has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("table is full")]
pub struct TableFull;
