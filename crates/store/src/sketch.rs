//! How often names were seen lately, roughly: a count-min sketch whose counters of one name lie in one cache line.
//!
//! A line has four rows of fifteen 8-bit counters; a name has one counter in each row, and its estimate is the least of them.
//! Counting increases only those that are at the least (conservative update). After each sample of so many names all counters
//! are halved. A line is halved when it is next touched: it notes how many samples had passed, in the one byte of each row
//! that is no counter. So no operation takes longer than another.

use namehop_table::{CacheLines, PageRequest, TableError};

/// Rows of counters.
const ROWS: usize = 4;
/// Counters of a row; a byte more belongs to the number of the sample.
const ROW_COUNTERS: u64 = 15;
const ROW_BYTES: usize = 16;
/// A line is kept as words, least byte first.
const WORD_BYTES: usize = 8;
/// Bits of a hash that are looked at: those that [`kept`](crate::slots::kept) leaves.
const KEPT_BITS: u32 = 56;
/// Bits of the hash that choose the counter of one row.
const ROW_HASH_BITS: u32 = 8;

/// The sketch.
pub(crate) struct Sketch {
    lines: CacheLines,
    mask: u64,
    /// Names that make a sample.
    sample: u64,
    /// Names counted since the last halving.
    counted: u64,
    /// Samples that have passed.
    samples: u32,
}

impl std::fmt::Debug for Sketch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sketch").field("lines", &self.lines.len()).field("sample", &self.sample).finish()
    }
}

impl Sketch {
    /// A sketch whose counters are halved after every `sample` names. It has a cache line for each `per_line` of them, at least one,
    /// or up to twice as many lines.
    pub(crate) fn new(sample: u64, per_line: u64) -> Result<Self, TableError> {
        let lines = sample.div_ceil(per_line.max(1)).checked_next_power_of_two().ok_or(TableError::CapacityTooLarge)?;
        let count = usize::try_from(lines).map_err(|_| TableError::CapacityTooLarge)?;
        let memory = CacheLines::new(count, PageRequest::Large)?;
        Ok(Sketch { lines: memory, mask: lines - 1, sample: sample.max(1), counted: 0, samples: 0 })
    }

    /// Counts a name.
    #[inline]
    pub(crate) fn count(&mut self, hash: u64) {
        let line = (hash & self.mask) as usize;
        if self.missed(line) > 0 {
            let bytes = self.halved(line);
            self.store(line, &bytes);
        }
        let words = &mut self.lines[line].0;
        let counters = places(hash).map(|place| (place / WORD_BYTES, (place % WORD_BYTES) as u32 * u8::BITS));
        let counts = counters.map(|(word, shift)| (words[word] >> shift) as u8);
        let least = counts.into_iter().min().unwrap_or(0);
        if least < u8::MAX {
            for ((word, shift), count) in counters.into_iter().zip(counts) {
                words[word] += u64::from(count == least) << shift;
            }
        }
        self.counted += 1;
        if self.counted >= self.sample {
            self.counted = 0;
            self.samples = self.samples.wrapping_add(1);
        }
    }

    /// How often a name was counted lately; seldom more than that, never less but for the halving.
    #[inline]
    pub(crate) fn estimate(&self, hash: u64) -> u8 {
        let line = (hash & self.mask) as usize;
        let words = &self.lines[line].0;
        let count = |place: usize| (words[place / WORD_BYTES] >> ((place % WORD_BYTES) as u32 * u8::BITS)) as u8;
        let least = places(hash).map(count).into_iter().min().unwrap_or(0);
        least.checked_shr(self.missed(line)).unwrap_or(0)
    }

    /// Asks for the counters of a name.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        self.lines.prefetch((hash & self.mask) as usize);
    }

    /// Samples that have passed since a line was last halved.
    #[inline]
    fn missed(&self, line: usize) -> u32 {
        let words = &self.lines[line].0;
        // The last byte of each row.
        let noted = std::array::from_fn(|row| (words[2 * row + 1] >> (u64::BITS - u8::BITS)) as u8);
        self.samples.wrapping_sub(u32::from_le_bytes(noted))
    }

    /// A line as it is after all samples that have passed.
    #[cold]
    fn halved(&self, line: usize) -> [u8; ROWS * ROW_BYTES] {
        let mut bytes = [0; ROWS * ROW_BYTES];
        for (bytes, word) in bytes.chunks_exact_mut(8).zip(self.lines[line].0) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        let missed = self.missed(line);
        for byte in &mut bytes {
            *byte = byte.checked_shr(missed).unwrap_or(0);
        }
        bytes
    }

    #[cold]
    fn store(&mut self, line: usize, bytes: &[u8; ROWS * ROW_BYTES]) {
        let mut bytes = *bytes;
        for (row, byte) in self.samples.to_le_bytes().into_iter().enumerate() {
            bytes[row * ROW_BYTES + ROW_COUNTERS as usize] = byte;
        }
        for (word, bytes) in self.lines[line].0.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        }
    }
}

/// Where the counters of a name lie in its line. Lines are chosen by the low bits of the hash, these by higher ones.
#[inline]
fn places(hash: u64) -> [usize; ROWS] {
    std::array::from_fn(|row| {
        let bits = hash >> (KEPT_BITS - ROW_HASH_BITS * (row as u32 + 1)) & ((1 << ROW_HASH_BITS) - 1);
        row * ROW_BYTES + ((bits * ROW_COUNTERS) >> ROW_HASH_BITS) as usize
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use namehop_table::permutation::mix;

    use super::*;

    #[test]
    fn estimates_are_never_too_low_and_seldom_too_high() {
        let names = 20_000;
        let mut sketch = Sketch::new(1 << 20, 16).expect("memory");
        let mut exact = HashMap::new();
        for number in 0..200_000_u64 {
            // The smaller the number of a name, the more often it comes.
            let name = mix(number) % names * (mix(number + 1) % names) / names;
            sketch.count(mix(name));
            *exact.entry(name).or_insert(0_u32) += 1;
        }
        let mut too_high = 0;
        for (&name, &count) in &exact {
            let estimate = u32::from(sketch.estimate(mix(name)));
            assert!(estimate >= count.min(255), "{name}: {estimate} instead of {count}");
            too_high += usize::from(estimate > count.min(255));
        }
        assert!(too_high * 50 < exact.len(), "{too_high} of {}", exact.len());
        assert_eq!(sketch.samples, 0);
    }

    #[test]
    fn every_sample_halves_all_counters() {
        let mut sketch = Sketch::new(64, 16).expect("memory");
        let name = mix(1);
        let others: Vec<u64> = (2..).map(mix).filter(|&other| (other ^ name) & sketch.mask != 0).take(56).collect();
        for _ in 0..7 {
            sketch.count(name);
        }
        others.iter().for_each(|&other| sketch.count(other));
        assert_eq!(sketch.estimate(name), 7);
        sketch.count(others[0]);
        assert_eq!(sketch.estimate(name), 3, "without being touched meanwhile");
        sketch.count(name);
        assert_eq!(sketch.estimate(name), 4);
    }

    #[test]
    fn a_counter_stays_at_its_greatest_value() {
        let mut sketch = Sketch::new(1000, 16).expect("memory");
        for _ in 0..900 {
            sketch.count(7);
        }
        assert_eq!(sketch.estimate(7), 255);
    }
}
