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
/// Names of a sample for each line: a row has then few names for each counter.
const SAMPLE_PER_LINE: u64 = 16;
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
    /// A sketch whose counters are halved after every `sample` names. It takes 4 to 8 bytes for each name of a sample.
    pub(crate) fn new(sample: u64) -> Result<Self, TableError> {
        let lines = sample.div_ceil(SAMPLE_PER_LINE).checked_next_power_of_two().ok_or(TableError::CapacityTooLarge)?;
        let count = usize::try_from(lines).map_err(|_| TableError::CapacityTooLarge)?;
        let memory = CacheLines::new(count, PageRequest::Large)?;
        Ok(Sketch { lines: memory, mask: lines - 1, sample: sample.max(1), counted: 0, samples: 0 })
    }

    /// Counts a name.
    #[inline]
    pub(crate) fn count(&mut self, hash: u64) {
        let (line, mut bytes) = self.halved(hash);
        let least = places(hash).map(|place| bytes[place]).into_iter().min().unwrap_or(0);
        if least < u8::MAX {
            for place in places(hash) {
                bytes[place] = bytes[place].max(least + 1);
            }
        }
        self.store(line, &bytes);
        self.counted += 1;
        if self.counted >= self.sample {
            self.counted = 0;
            self.samples = self.samples.wrapping_add(1);
        }
    }

    /// How often a name was counted lately; seldom more than that, never less but for the halving.
    #[inline]
    pub(crate) fn estimate(&self, hash: u64) -> u8 {
        let (_, bytes) = self.halved(hash);
        places(hash).map(|place| bytes[place]).into_iter().min().unwrap_or(0)
    }

    /// Asks for the counters of a name.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        self.lines.prefetch((hash & self.mask) as usize);
    }

    /// The line of a name as it is after all samples that have passed.
    #[inline]
    fn halved(&self, hash: u64) -> (usize, [u8; ROWS * ROW_BYTES]) {
        let line = (hash & self.mask) as usize;
        let mut bytes = [0; ROWS * ROW_BYTES];
        for (bytes, word) in bytes.chunks_exact_mut(8).zip(self.lines[line].0) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        let noted = u32::from_le_bytes(std::array::from_fn(|row| bytes[row * ROW_BYTES + ROW_COUNTERS as usize]));
        let missed = self.samples.wrapping_sub(noted);
        if missed > 0 {
            for byte in &mut bytes {
                *byte = byte.checked_shr(missed).unwrap_or(0);
            }
        }
        (line, bytes)
    }

    #[inline]
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
        let mut sketch = Sketch::new(1 << 20).expect("memory");
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
        let mut sketch = Sketch::new(64).expect("memory");
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
        let mut sketch = Sketch::new(1000).expect("memory");
        for _ in 0..900 {
            sketch.count(7);
        }
        assert_eq!(sketch.estimate(7), 255);
    }
}
