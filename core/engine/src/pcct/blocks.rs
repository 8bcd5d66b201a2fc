//! Byte blocks with a limit on their total memory: cached Data in a [`BlockStore`]; long names and copies of Interests in
//! [`OwnedBlocks`].
//!
//! A thin layer over [`ByteArena`], which dedicates chunks of memory to block sizes, so a store full of small Data may have no room for a
//! large one however much is free in total. Then [`BlockStore::starved_chunk`] names all blocks of one chunk: when they are released,
//! any size fits. Whose they are, Data says itself by its name; in front of other blocks it is written down.
//!
//! May assume: owners release every block exactly once and before they forget its handle.

use namehop_table::prefetch::CACHE_LINE_BYTES;
use namehop_table::{ByteArena, Growth, PageRequest, TableError};

use super::entry::NONE;

/// Bytes in front of a block with an owner.
const OWNER_BYTES: usize = 4;

/// Handle of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Block(u32);

impl Block {
    /// No block.
    pub(crate) const NONE: Block = Block(u32::MAX);

    pub(crate) const fn is_none(self) -> bool {
        self.0 == u32::MAX
    }

    /// For one that is kept among other bytes.
    pub(crate) const fn to_bytes(self) -> [u8; 4] {
        self.0.to_ne_bytes()
    }

    /// What [`to_bytes`](Self::to_bytes) gave.
    pub(crate) const fn from_bytes(bytes: [u8; 4]) -> Self {
        Block(u32::from_ne_bytes(bytes))
    }
}

/// The store of blocks.
pub(crate) struct BlockStore {
    arena: ByteArena,
    /// Where the search for a chunk to give up continues.
    cursor: usize,
    live: usize,
}

impl BlockStore {
    /// A store of `capacity_bytes`, rounded up to whole chunks of 64 KiB. Memory that is never used costs nothing.
    pub(crate) fn new(capacity_bytes: usize, growth: Growth) -> Result<Self, TableError> {
        Ok(BlockStore { arena: ByteArena::new(capacity_bytes, growth, PageRequest::Large)?, cursor: 0, live: 0 })
    }

    /// Blocks in use.
    pub(crate) fn live(&self) -> usize {
        self.live
    }

    /// A block of at least `length` bytes; `None` when there is no room for that size.
    pub(crate) fn allocate(&mut self, length: usize) -> Option<Block> {
        let block = Block(self.arena.allocate(length)?);
        self.live += 1;
        Some(block)
    }

    /// Bytes that a block of `length` bytes has room for, which is what it takes.
    pub(crate) fn room(length: usize) -> usize {
        ByteArena::slot_bytes(length).unwrap_or(length)
    }

    /// Copies the first `length` bytes of a block to another.
    pub(crate) fn copy(&mut self, from: Block, to: Block, length: usize) {
        self.arena.copy(from.0, to.0, 0..length);
    }

    /// Returns a block.
    pub(crate) fn release(&mut self, block: Block) {
        self.arena.free(block.0);
        self.live -= 1;
    }

    /// The first `length` bytes of a block.
    pub(crate) fn bytes(&self, block: Block, length: usize) -> &[u8] {
        self.arena.get(block.0, length)
    }

    /// All bytes of a block.
    pub(crate) fn all_bytes(&self, block: Block) -> &[u8] {
        self.arena.get(block.0, self.arena.slot_bytes_of(block.0))
    }

    /// The first `length` bytes of a block, writable.
    pub(crate) fn bytes_mut(&mut self, block: Block, length: usize) -> &mut [u8] {
        self.arena.get_mut(block.0, length)
    }

    /// Asks for the cache lines of the first `length` bytes of a block, but not for more than `lines`.
    #[inline]
    pub(crate) fn prefetch(&self, block: Block, length: usize, lines: usize) {
        for line in 0..length.div_ceil(CACHE_LINE_BYTES).min(lines) {
            self.arena.prefetch_line(block.0, line);
        }
    }

    /// All blocks of one chunk, a different one each time.
    pub(crate) fn starved_chunk(&mut self) -> impl Iterator<Item = Block> + '_ {
        self.go_on();
        self.chunk_at_cursor()
    }

    fn go_on(&mut self) {
        self.cursor = (self.cursor + 1) % self.arena.chunks_used().max(1);
    }

    fn chunk_at_cursor(&self) -> impl Iterator<Item = Block> + '_ {
        let chunk = (self.arena.chunks_used() > 0).then_some(self.cursor);
        chunk.into_iter().flat_map(|chunk| self.arena.slots_of_chunk(chunk)).map(Block)
    }

    /// Compares the arena's blocks with the count.
    pub(crate) fn check_invariants(&self) -> Result<(), String> {
        let given_out: usize =
            (0..self.arena.chunks_used()).map(|chunk| self.arena.slots_of_chunk(chunk).count()).sum();
        if given_out == self.live {
            Ok(())
        } else {
            Err(format!("{given_out} blocks are given out, {} counted", self.live))
        }
    }
}

/// A store of blocks that know whose they are.
pub(crate) struct OwnedBlocks {
    blocks: BlockStore,
}

impl OwnedBlocks {
    /// See [`BlockStore::new`].
    pub(crate) fn new(capacity_bytes: usize, growth: Growth) -> Result<Self, TableError> {
        Ok(OwnedBlocks { blocks: BlockStore::new(capacity_bytes, growth)? })
    }

    /// Blocks in use.
    pub(crate) fn live(&self) -> usize {
        self.blocks.live()
    }

    /// A block of at least `length` bytes; `None` when there is no room for that size.
    pub(crate) fn allocate(&mut self, length: usize, owner: u32) -> Option<Block> {
        let block = self.blocks.allocate(OWNER_BYTES + length)?;
        self.set_owner(block, owner);
        Some(block)
    }

    /// Bytes that a block of `length` bytes takes.
    pub(crate) fn taken(length: usize) -> usize {
        BlockStore::room(OWNER_BYTES + length)
    }

    /// Returns a block.
    pub(crate) fn release(&mut self, block: Block) {
        self.blocks.release(block);
    }

    /// The first `length` bytes of a block.
    pub(crate) fn bytes(&self, block: Block, length: usize) -> &[u8] {
        &self.blocks.bytes(block, OWNER_BYTES + length)[OWNER_BYTES..]
    }

    /// The first `length` bytes of a block, writable.
    pub(crate) fn bytes_mut(&mut self, block: Block, length: usize) -> &mut [u8] {
        &mut self.blocks.bytes_mut(block, OWNER_BYTES + length)[OWNER_BYTES..]
    }

    /// See [`BlockStore::prefetch`].
    #[inline]
    pub(crate) fn prefetch(&self, block: Block, length: usize, lines: usize) {
        self.blocks.prefetch(block, OWNER_BYTES + length, lines);
    }

    /// Names the owner of a block anew.
    pub(crate) fn set_owner(&mut self, block: Block, owner: u32) {
        self.blocks.bytes_mut(block, OWNER_BYTES).copy_from_slice(&owner.to_ne_bytes());
    }

    fn owner(&self, block: Block) -> u32 {
        self.blocks.bytes(block, OWNER_BYTES).first_chunk().map_or(NONE, |owner| u32::from_ne_bytes(*owner))
    }

    /// Fills `owners` with the owners of all blocks of one chunk, a different one each time.
    pub(crate) fn starved_chunk(&mut self, owners: &mut Vec<u32>) {
        owners.clear();
        self.blocks.go_on();
        owners.extend(self.blocks.chunk_at_cursor().map(|block| self.owner(block)));
    }

    /// See [`BlockStore::check_invariants`].
    pub(crate) fn check_invariants(&self) -> Result<(), String> {
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

    /// Nothing is beside them.
    #[test]
    fn packets_of_whole_cache_lines_fill_their_memory() {
        let mut store = BlockStore::new(CHUNK_BYTES, Growth::AtOnce).expect("memory");
        let blocks = std::iter::from_fn(|| store.allocate(1024));
        assert_eq!(blocks.count(), CHUNK_BYTES / 1024);
    }
}
