//! Byte blocks with a limit on their total memory: cached Data in a [`BlockStore`]; long names and copies of Interests
//! in [`OwnedBlocks`].
//!
//! This is a thin layer over [`ByteArena`], which dedicates chunks of memory to block sizes. So a store full of small
//! Data may have no room for a large one, however much memory is free in total. Then [`BlockStore::starved_chunk`]
//! returns all blocks of one chunk: after they are released, any size fits. The owner of a Data block is found by the
//! name in the Data; other blocks store their owner in front of their bytes.
//!
//! Assumes that owners release every block exactly once, before they drop its handle.

use namehop_table::prefetch::CACHE_LINE_BYTES;
use namehop_table::{ByteArena, Growth, PageRequest, TableError};

use super::entry::NONE;
use super::{InvariantError, agree};

/// Number of lines of a block that are prefetched; the hardware prefetcher detects the sequence and fetches the rest.
pub(super) const PREFETCHED_LINES: usize = 8;
/// Bytes in front of an owned block that store its owner.
const OWNER_BYTES: usize = 4;

/// Handle of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Block(u32);

impl Block {
    /// The handle that refers to no block.
    pub(crate) const NONE: Block = Block(u32::MAX);

    pub(crate) const fn is_none(self) -> bool {
        self.0 == u32::MAX
    }

    /// Returns the handle as bytes, to be stored among other bytes.
    pub(crate) const fn to_bytes(self) -> [u8; 4] {
        self.0.to_ne_bytes()
    }

    /// Reads a handle written by [`to_bytes`](Self::to_bytes).
    pub(crate) const fn from_bytes(bytes: [u8; 4]) -> Self {
        Block(u32::from_ne_bytes(bytes))
    }
}

/// A store of blocks.
pub(crate) struct BlockStore {
    arena: ByteArena,
    /// The last chunk returned by `starved_chunk`; the search continues behind it.
    cursor: usize,
    live: usize,
}

impl BlockStore {
    /// Creates a store of `capacity_bytes`, rounded up to whole chunks of 64 KiB. Memory that is never used costs
    /// nothing.
    pub(crate) fn new(capacity_bytes: usize, growth: Growth) -> Result<Self, TableError> {
        Ok(BlockStore { arena: ByteArena::new(capacity_bytes, growth, PageRequest::Large)?, cursor: 0, live: 0 })
    }

    /// Returns the number of blocks in use.
    pub(crate) fn live(&self) -> usize {
        self.live
    }

    /// Allocates a block of at least `length` bytes. Returns `None` if there is no room for that size.
    pub(crate) fn allocate(&mut self, length: usize) -> Option<Block> {
        let block = Block(self.arena.allocate(length)?);
        self.live += 1;
        Some(block)
    }

    /// Returns the size of the block that `allocate` returns for `length` bytes.
    pub(crate) fn room(length: usize) -> usize {
        ByteArena::slot_bytes(length).unwrap_or(length)
    }

    /// Copies the first `length` bytes of a block to another.
    pub(crate) fn copy(&mut self, from: Block, to: Block, length: usize) {
        self.arena.copy(from.0, to.0, 0..length);
    }

    /// Frees a block.
    pub(crate) fn release(&mut self, block: Block) {
        self.arena.free(block.0);
        self.live -= 1;
    }

    /// Returns the first `length` bytes of a block.
    pub(crate) fn bytes(&self, block: Block, length: usize) -> &[u8] {
        self.arena.get(block.0, length)
    }

    /// Returns all bytes of a block.
    pub(crate) fn all_bytes(&self, block: Block) -> &[u8] {
        self.arena.get(block.0, self.arena.slot_bytes_of(block.0))
    }

    /// Returns the first `length` bytes of a block, writable.
    pub(crate) fn bytes_mut(&mut self, block: Block, length: usize) -> &mut [u8] {
        self.arena.get_mut(block.0, length)
    }

    /// Prefetches the first `length` bytes of a block, but at most `lines` cache lines.
    #[inline]
    pub(crate) fn prefetch(&self, block: Block, length: usize, lines: usize) {
        for line in 0..length.div_ceil(CACHE_LINE_BYTES).min(lines) {
            self.arena.prefetch_line(block.0, line);
        }
    }

    /// Returns all blocks of one chunk, of another chunk in each call.
    pub(crate) fn starved_chunk(&mut self) -> impl Iterator<Item = Block> + '_ {
        self.advance();
        self.chunk_at_cursor()
    }

    fn advance(&mut self) {
        self.cursor = (self.cursor + 1) % self.arena.chunks_used().max(1);
    }

    fn chunk_at_cursor(&self) -> impl Iterator<Item = Block> + '_ {
        let chunk = (self.arena.chunks_used() > 0).then_some(self.cursor);
        chunk.into_iter().flat_map(|chunk| self.arena.slots_of_chunk(chunk)).map(Block)
    }

    /// Compares the arena's blocks with the count.
    pub(crate) fn check_invariants(&self) -> Result<(), InvariantError> {
        let given_out: usize =
            (0..self.arena.chunks_used()).map(|chunk| self.arena.slots_of_chunk(chunk).count()).sum();
        agree("memory blocks", self.live, given_out)
    }
}

/// A store of blocks that record their owner, the index of an entry.
pub(crate) struct OwnedBlocks {
    blocks: BlockStore,
}

impl OwnedBlocks {
    /// See [`BlockStore::new`].
    pub(crate) fn new(capacity_bytes: usize, growth: Growth) -> Result<Self, TableError> {
        Ok(OwnedBlocks { blocks: BlockStore::new(capacity_bytes, growth)? })
    }

    /// Returns the number of blocks in use.
    pub(crate) fn live(&self) -> usize {
        self.blocks.live()
    }

    /// Allocates a block of at least `length` bytes. Returns `None` if there is no room for that size.
    pub(crate) fn allocate(&mut self, length: usize, owner: u32) -> Option<Block> {
        let block = self.blocks.allocate(OWNER_BYTES + length)?;
        self.set_owner(block, owner);
        Some(block)
    }

    /// Returns the memory that a block of `length` bytes takes.
    pub(crate) fn taken(length: usize) -> usize {
        BlockStore::room(OWNER_BYTES + length)
    }

    /// Frees a block.
    pub(crate) fn release(&mut self, block: Block) {
        self.blocks.release(block);
    }

    /// Returns the first `length` bytes of a block.
    pub(crate) fn bytes(&self, block: Block, length: usize) -> &[u8] {
        &self.blocks.bytes(block, OWNER_BYTES + length)[OWNER_BYTES..]
    }

    /// Returns the first `length` bytes of a block, writable.
    pub(crate) fn bytes_mut(&mut self, block: Block, length: usize) -> &mut [u8] {
        &mut self.blocks.bytes_mut(block, OWNER_BYTES + length)[OWNER_BYTES..]
    }

    /// See [`BlockStore::prefetch`].
    #[inline]
    pub(crate) fn prefetch(&self, block: Block, length: usize, lines: usize) {
        self.blocks.prefetch(block, OWNER_BYTES + length, lines);
    }

    /// Changes the owner of a block.
    pub(crate) fn set_owner(&mut self, block: Block, owner: u32) {
        self.blocks.bytes_mut(block, OWNER_BYTES).copy_from_slice(&owner.to_ne_bytes());
    }

    fn owner(&self, block: Block) -> u32 {
        self.blocks.bytes(block, OWNER_BYTES).first_chunk().map_or(NONE, |owner| u32::from_ne_bytes(*owner))
    }

    /// Fills `owners` with the owners of all blocks of one chunk, of another chunk in each call.
    pub(crate) fn starved_chunk(&mut self, owners: &mut Vec<u32>) {
        owners.clear();
        self.blocks.advance();
        owners.extend(self.blocks.chunk_at_cursor().map(|block| self.owner(block)));
    }

    /// See [`BlockStore::check_invariants`].
    pub(crate) fn check_invariants(&self) -> Result<(), InvariantError> {
        self.blocks.check_invariants()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNK_BYTES: usize = 64 * 1024;

    #[test]
    fn releasing_a_starved_chunk_makes_room_for_another_size() {
        let mut store = OwnedBlocks::new(2 * CHUNK_BYTES, Growth::AtOnce).expect("memory");
        let mut small = Vec::new();
        while let Some(block) = store.allocate(200, small.len() as u32) {
            small.push(block);
        }
        assert_eq!(small.len(), 2 * CHUNK_BYTES / 256);
        assert_eq!(store.allocate(8800, 0), None);
        store.check_invariants().expect("invariants");

        let mut owners = Vec::new();
        store.starved_chunk(&mut owners);
        assert_eq!(owners.len(), CHUNK_BYTES / 256);
        for owner in owners {
            store.release(small[owner as usize]);
        }
        assert!(store.allocate(8800, 7).is_some());
        store.check_invariants().expect("invariants");
    }

    #[test]
    fn a_store_without_memory_refuses() {
        let mut store = BlockStore::new(0, Growth::AtOnce).expect("memory");
        assert_eq!(store.allocate(1), None);
        assert_eq!(store.starved_chunk().count(), 0);
    }

    /// Blocks have no overhead beside the packets.
    #[test]
    fn packets_of_whole_cache_lines_fill_their_memory() {
        let mut store = BlockStore::new(CHUNK_BYTES, Growth::AtOnce).expect("memory");
        let blocks = std::iter::from_fn(|| store.allocate(1024));
        assert_eq!(blocks.count(), CHUNK_BYTES / 1024);
    }
}
