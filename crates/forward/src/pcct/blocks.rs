//! Byte blocks with owners and a limit on their total memory: cached Data, long names, copies of Interests.
//!
//! A thin layer over [`ByteArena`] that remembers who owns each block. The arena dedicates chunks of memory to block
//! sizes, so a store full of small Data may have no room for a large one however much is free in total. Then
//! [`BlockStore::starved_chunk`] names the owners of all blocks of one chunk: when they are released, any size fits.
//!
//! May assume: owners release every block exactly once and before they forget its handle.

use namehop_table::{ByteArena, PageRequest, TableError};

/// Bytes of a chunk of the arena, and of the units that its handles count.
const CHUNK_BYTES: usize = 64 * 1024;
const UNIT_BYTES: usize = 64;
const UNITS_PER_CHUNK: usize = CHUNK_BYTES / UNIT_BYTES;

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
}

/// The store of blocks.
pub(crate) struct BlockStore {
    arena: ByteArena,
    /// By handle: owner plus 1, and 0 where no block starts.
    owners: Vec<u32>,
    /// Chunks used so far, and where the search for one to give up continues.
    chunks_used: usize,
    cursor: usize,
    live: usize,
}

impl BlockStore {
    /// A store of `capacity_bytes`, rounded up to whole chunks of 64 KiB. Memory that is never used costs nothing.
    pub(crate) fn new(capacity_bytes: usize) -> Result<Self, TableError> {
        let arena = ByteArena::new(capacity_bytes, PageRequest::Large)?;
        let units = arena.capacity_bytes() / UNIT_BYTES;
        Ok(BlockStore { arena, owners: vec![0; units], chunks_used: 0, cursor: 0, live: 0 })
    }

    /// Blocks in use.
    pub(crate) fn live(&self) -> usize {
        self.live
    }

    /// A block of at least `length` bytes; `None` when there is no room for that size.
    pub(crate) fn allocate(&mut self, length: usize, owner: u32) -> Option<Block> {
        let handle = self.arena.allocate(length)?;
        self.owners[handle as usize] = owner.wrapping_add(1);
        self.chunks_used = self.chunks_used.max(handle as usize / UNITS_PER_CHUNK + 1);
        self.live += 1;
        Some(Block(handle))
    }

    /// Returns a block.
    pub(crate) fn release(&mut self, block: Block) {
        self.arena.free(block.0);
        self.owners[block.0 as usize] = 0;
        self.live -= 1;
    }

    /// The first `length` bytes of a block.
    pub(crate) fn bytes(&self, block: Block, length: usize) -> &[u8] {
        self.arena.get(block.0, length)
    }

    /// The first `length` bytes of a block, writable.
    pub(crate) fn bytes_mut(&mut self, block: Block, length: usize) -> &mut [u8] {
        self.arena.get_mut(block.0, length)
    }

    /// Asks for the first `lines` cache lines of a block.
    pub(crate) fn prefetch(&self, block: Block, lines: usize) {
        for line in 0..lines {
            self.arena.prefetch_line(block.0, line);
        }
    }

    /// Names the owner of a block anew.
    pub(crate) fn set_owner(&mut self, block: Block, owner: u32) {
        self.owners[block.0 as usize] = owner.wrapping_add(1);
    }

    /// Fills `owners` with the owners of all blocks of one chunk, a different one each time.
    pub(crate) fn starved_chunk(&mut self, owners: &mut Vec<u32>) {
        owners.clear();
        if self.chunks_used == 0 {
            return;
        }
        self.cursor = (self.cursor + 1) % self.chunks_used;
        let units = &self.owners[self.cursor * UNITS_PER_CHUNK..][..UNITS_PER_CHUNK];
        owners.extend(units.iter().filter(|&&owner| owner != 0).map(|owner| owner - 1));
    }

    /// Compares the owners with the count.
    pub(crate) fn check_invariants(&self) -> Result<(), String> {
        let owned = self.owners[..self.chunks_used * UNITS_PER_CHUNK].iter().filter(|&&owner| owner != 0).count();
        if owned == self.live { Ok(()) } else { Err(format!("{owned} blocks have owners, {} counted", self.live)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releasing_a_starved_chunk_makes_room_for_another_size() {
        let mut store = BlockStore::new(2 * CHUNK_BYTES).expect("memory");
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
        let mut store = BlockStore::new(0).expect("memory");
        assert_eq!(store.allocate(1, 1), None);
        let mut owners = vec![1];
        store.starved_chunk(&mut owners);
        assert!(owners.is_empty());
    }
}
