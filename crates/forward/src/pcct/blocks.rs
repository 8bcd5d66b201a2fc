//! Byte blocks with owners and a limit on their total memory: cached Data, long names, copies of Interests.
//!
//! A thin layer over [`ByteArena`] that writes down in front of each block who owns it. The arena dedicates chunks of memory to block
//! sizes, so a store full of small Data may have no room for a large one however much is free in total. Then
//! [`BlockStore::starved_chunk`] names the owners of all blocks of one chunk: when they are released, any size fits.
//!
//! May assume: owners release every block exactly once and before they forget its handle.

use namehop_table::prefetch::CACHE_LINE_BYTES;
use namehop_table::{ByteArena, Growth, PageRequest, TableError};

use super::entry::NONE;

/// Bytes in front of a block: its owner.
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
    pub(crate) fn allocate(&mut self, length: usize, owner: u32) -> Option<Block> {
        let block = Block(self.arena.allocate(OWNER_BYTES + length)?);
        self.set_owner(block, owner);
        self.live += 1;
        Some(block)
    }

    /// Bytes that a block of `length` bytes takes.
    pub(crate) fn taken(length: usize) -> usize {
        ByteArena::slot_bytes(OWNER_BYTES + length).unwrap_or(OWNER_BYTES + length)
    }

    /// Bytes that a block of `length` bytes has room for.
    pub(crate) fn room(length: usize) -> usize {
        ByteArena::slot_bytes(OWNER_BYTES + length).map_or(length, |bytes| bytes - OWNER_BYTES)
    }

    /// Copies the first `length` bytes of a block to another.
    pub(crate) fn copy(&mut self, from: Block, to: Block, length: usize) {
        self.arena.copy(from.0, to.0, OWNER_BYTES..OWNER_BYTES + length);
    }

    /// Returns a block.
    pub(crate) fn release(&mut self, block: Block) {
        self.arena.free(block.0);
        self.live -= 1;
    }

    /// The first `length` bytes of a block.
    pub(crate) fn bytes(&self, block: Block, length: usize) -> &[u8] {
        &self.arena.get(block.0, OWNER_BYTES + length)[OWNER_BYTES..]
    }

    /// The first `length` bytes of a block, writable.
    pub(crate) fn bytes_mut(&mut self, block: Block, length: usize) -> &mut [u8] {
        &mut self.arena.get_mut(block.0, OWNER_BYTES + length)[OWNER_BYTES..]
    }

    /// Asks for the cache lines of the first `length` bytes of a block, but not for more than `lines`.
    #[inline]
    pub(crate) fn prefetch(&self, block: Block, length: usize, lines: usize) {
        for line in 0..(OWNER_BYTES + length).div_ceil(CACHE_LINE_BYTES).min(lines) {
            self.arena.prefetch_line(block.0, line);
        }
    }

    /// Names the owner of a block anew.
    pub(crate) fn set_owner(&mut self, block: Block, owner: u32) {
        self.arena.get_mut(block.0, OWNER_BYTES).copy_from_slice(&owner.to_ne_bytes());
    }

    fn owner(&self, handle: u32) -> u32 {
        self.arena.get(handle, OWNER_BYTES).first_chunk().map_or(NONE, |owner| u32::from_ne_bytes(*owner))
    }

    /// Fills `owners` with the owners of all blocks of one chunk, a different one each time.
    pub(crate) fn starved_chunk(&mut self, owners: &mut Vec<u32>) {
        owners.clear();
        if self.arena.chunks_used() == 0 {
            return;
        }
        self.cursor = (self.cursor + 1) % self.arena.chunks_used();
        owners.extend(self.arena.slots_of_chunk(self.cursor).map(|handle| self.owner(handle)));
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

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNK_BYTES: usize = 64 * 1024;

    #[test]
    fn releasing_a_starved_chunk_makes_room_for_another_size() {
        let mut store = BlockStore::new(2 * CHUNK_BYTES, Growth::AtOnce).expect("memory");
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
        assert_eq!(store.allocate(1, 1), None);
        let mut owners = vec![1];
        store.starved_chunk(&mut owners);
        assert!(owners.is_empty());
    }
}
