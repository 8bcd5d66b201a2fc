//! A prefix and its number in the comparison structures. Records have the layout of a FIB entry, so that entry size
//! favours no structure.
//!
//! A record is one cache line. It holds a name of up to 44 bytes inline; a longer name is in a heap block, as in the
//! FIB.

use namehop_table::prefetch::{CACHE_LINE_BYTES, prefetch_lines};

/// Maximum size of an inline name: as in a FIB entry with one next hop.
pub(super) const INLINE_BYTES: usize = 44;

/// A record; see the module documentation.
#[derive(Default)]
#[repr(C, align(64))]
pub(super) struct Record {
    pub(super) number: Option<u32>,
    name_bytes: u16,
    /// Number of components of the longest prefix that begins with this one; used by the 2-stage search.
    pub(super) longest: u8,
    name: Text,
}

const _: () = assert!(size_of::<Record>() == CACHE_LINE_BYTES);

enum Text {
    Inline([u8; INLINE_BYTES]),
    Block(Box<[u8]>),
}

impl Default for Text {
    fn default() -> Self {
        Text::Inline([0; INLINE_BYTES])
    }
}

impl Record {
    /// Stores a name of at most [`MAX_PREFIX_BYTES`](super::MAX_PREFIX_BYTES) bytes.
    pub(super) fn set_name(&mut self, name: &[u8]) {
        self.name_bytes = name.len() as u16;
        self.name = match name.len() {
            0..=INLINE_BYTES => {
                let mut inline = [0; INLINE_BYTES];
                inline[..name.len()].copy_from_slice(name);
                Text::Inline(inline)
            }
            _ => Text::Block(name.into()),
        };
    }

    /// Returns the name.
    #[inline(always)]
    pub(super) fn name(&self) -> &[u8] {
        match &self.name {
            Text::Inline(inline) => &inline[..usize::from(self.name_bytes)],
            Text::Block(block) => block,
        }
    }

    /// Prefetches the heap block, if there is one. The record should be in the cache.
    #[inline(always)]
    pub(super) fn prefetch_block(&self) {
        if let Text::Block(block) = &self.name {
            prefetch_lines(block.as_ptr(), block.len());
        }
    }

    /// Cache lines that reading the whole name takes, and the length of their chain of dependent reads: the record,
    /// then the block.
    pub(super) fn lines(&self) -> (usize, usize) {
        match &self.name {
            Text::Inline(_) => (1, 1),
            Text::Block(block) => (1 + lines_of(block.as_ptr().addr(), block.len()), 2),
        }
    }
}

/// Number of cache lines that `bytes` bytes from the address `start` on occupy.
pub(super) fn lines_of(start: usize, bytes: usize) -> usize {
    (start + bytes).div_ceil(CACHE_LINE_BYTES) - start / CACHE_LINE_BYTES
}

/// Heap bytes of a name of `name_bytes` bytes, besides its record; 0 for an inline name.
pub(super) fn block_bytes(name_bytes: usize) -> usize {
    if name_bytes <= INLINE_BYTES { 0 } else { name_bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_any_length_come_back() {
        for length in [0, 1, INLINE_BYTES, INLINE_BYTES + 1, 112] {
            let name: Vec<u8> = (0..length as u8).collect();
            let mut record = Record::default();
            record.set_name(&name);
            assert_eq!(record.name(), name);
            record.prefetch_block();
            let (lines, dependent) = record.lines();
            if length <= INLINE_BYTES {
                assert_eq!((lines, dependent, block_bytes(length)), (1, 1, 0));
            } else {
                assert!((2..=4).contains(&lines) && dependent == 2 && block_bytes(length) == length);
            }
        }
    }
}
