//! Arrays of integers for policies: initially zero, on the pages that tables use, and touched only where they are
//! used.

use std::fmt;

use namehop_table::{CacheLines, PageRequest, TableError};

/// 64-bit words in a cache line.
const LINE_WORDS: usize = 8;

/// An array of words, initially zero.
pub(crate) struct Words {
    lines: CacheLines,
}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Words").field("lines", &self.lines.len()).finish()
    }
}

impl Words {
    /// Makes at least `count` words.
    pub(crate) fn new(count: usize) -> Result<Self, TableError> {
        let lines = CacheLines::new(count.div_ceil(LINE_WORDS), PageRequest::Large)?;
        Ok(Words { lines: lines.named("notes of the cache policy") })
    }

    /// Number of words.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.lines.len() * LINE_WORDS
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> u64 {
        self.lines[index / LINE_WORDS].0[index % LINE_WORDS]
    }

    #[inline]
    pub(crate) fn set(&mut self, index: usize, value: u64) {
        self.lines[index / LINE_WORDS].0[index % LINE_WORDS] = value;
    }

    /// Returns integer `index` of an array of integers of `BITS` bits each, a power of two below 64, packed in the
    /// words.
    #[inline]
    pub(crate) fn get_part<const BITS: u32>(&self, index: usize) -> u64 {
        let (word, shift) = part::<BITS>(index);
        self.get(word) >> shift & mask::<BITS>()
    }

    /// Sets such an integer.
    #[inline]
    pub(crate) fn set_part<const BITS: u32>(&mut self, index: usize, value: u64) {
        debug_assert!(value <= mask::<BITS>());
        let (word, shift) = part::<BITS>(index);
        let word = &mut self.lines[word / LINE_WORDS].0[word % LINE_WORDS];
        *word = *word & !(mask::<BITS>() << shift) | value << shift;
    }

    /// Prefetches the line of a word. Any index may be given.
    #[inline]
    pub(crate) fn prefetch(&self, index: usize) {
        self.lines.prefetch(index / LINE_WORDS);
    }
}

#[inline]
fn part<const BITS: u32>(index: usize) -> (usize, u32) {
    let of_word = (u64::BITS / BITS) as usize;
    (index / of_word, (index % of_word) as u32 * BITS)
}

#[inline]
const fn mask<const BITS: u32>() -> u64 {
    (1 << BITS) - 1
}
