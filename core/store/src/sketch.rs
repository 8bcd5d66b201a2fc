//! Approximate counts of recent requests per name: a count-min sketch with all counters of a name in one cache line.
//!
//! A line has four rows of thirty 4-bit counters. A name has one counter in each row, and its estimate is the least
//! of them. Counting increases only the counters with the least value (conservative update). After each sample, a
//! fixed number of names, all counters are halved. A line is halved when it is next touched: each row has one byte
//! without counters, and together these bytes record the number of samples at the last halving. So every operation
//! takes constant time.
//!
//! Counts above 15 are not distinguished. This matters little: names are compared with the next victim, and a store
//! holds packets that are requested a few times per sample.

use namehop_table::{CacheLines, PageRequest, TableError};

/// Rows of counters.
const ROWS: usize = 4;
/// Counters of a row; the remaining byte is a part of the sample number.
const ROW_COUNTERS: u64 = 30;
const COUNTER_BITS: u32 = 4;
/// Maximum of a counter.
const MOST: u8 = 15;
const WORDS: usize = 8;
/// Cache lines of a page of 2 MiB.
const HUGE_PAGE_LINES: u64 = (2 << 20) / (WORDS * size_of::<u64>()) as u64;
/// A row takes two words, lowest counter first.
const ROW_WORDS: usize = WORDS / ROWS;
const WORD_COUNTERS: usize = (u64::BITS / COUNTER_BITS) as usize;
/// High bits of a hash that are ignored, because [`kept`](crate::slots::kept) clears them.
const NOT_KEPT_BITS: u32 = 8;
/// Bits of the hash that choose the counter of one row.
const ROW_HASH_BITS: u32 = 8;
/// Shift of the byte in a row's last word that stores one byte of the sample number.
const NOTE_SHIFT: u32 = u64::BITS - u8::BITS;

/// A count-min sketch; see the module's description.
pub(crate) struct Sketch {
    lines: CacheLines,
    /// Number of names in a sample.
    sample: u64,
    /// Number of names counted since the last halving.
    counted: u64,
    /// Number of samples that have passed.
    samples: u32,
}

impl std::fmt::Debug for Sketch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sketch").field("lines", &self.lines.len()).field("sample", &self.sample).finish()
    }
}

impl Sketch {
    /// Makes a sketch that halves its counters after every `sample` names. It has one cache line for every `per_line`
    /// of them, at least one, and above 2 MiB whole pages of 2 MiB.
    pub(crate) fn new(sample: u64, per_line: u64) -> Result<Self, TableError> {
        let mut lines = sample.div_ceil(per_line.max(1)).max(1);
        // Any line may be used from the first name on: lines on small pages behind a huge one would cost a page fault
        // each.
        if lines > HUGE_PAGE_LINES {
            lines = lines.next_multiple_of(HUGE_PAGE_LINES);
        }
        let count = usize::try_from(lines).map_err(|_| TableError::CapacityTooLarge)?;
        let lines = CacheLines::used_anywhere(count, PageRequest::Large)?.named("request counters of the cache policy");
        Ok(Sketch { lines, sample: sample.max(1), counted: 0, samples: 0 })
    }

    /// Counts a name.
    #[inline]
    pub(crate) fn count(&mut self, hash: u64) {
        self.lines.note_uses(1);
        let line = self.line_of(hash);
        if self.missed(line) > 0 {
            self.halve(line);
        }
        let words = &mut self.lines[line].0;
        let counters = places(hash);
        let counts = counters.map(|(word, shift)| (words[word] >> shift) as u8 & MOST);
        let least = counts.into_iter().min().unwrap_or(0);
        if least < MOST {
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

    /// Returns how often a name was counted recently, up to 15. Rarely too high; too low only because of halving.
    #[inline]
    pub(crate) fn estimate(&self, hash: u64) -> u8 {
        let line = self.line_of(hash);
        let words = &self.lines[line].0;
        let count = |(word, shift): (usize, u32)| (words[word] >> shift) as u8 & MOST;
        let least = places(hash).map(count).into_iter().min().unwrap_or(0);
        least.checked_shr(self.missed(line)).unwrap_or(0)
    }

    /// Prefetches the counters of a name.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        self.lines.prefetch(self.line_of(hash));
    }

    /// Returns the line of a name, chosen by the high bits of its hash.
    #[inline]
    fn line_of(&self, hash: u64) -> usize {
        ((u128::from(hash << NOT_KEPT_BITS) * self.lines.len() as u128) >> u64::BITS) as usize
    }

    /// Returns the number of samples that have passed since a line was last halved.
    #[inline]
    fn missed(&self, line: usize) -> u32 {
        let words = &self.lines[line].0;
        // The last byte of each row.
        let noted = std::array::from_fn(|row| (words[ROW_WORDS * row + 1] >> NOTE_SHIFT) as u8);
        self.samples.wrapping_sub(u32::from_le_bytes(noted))
    }

    /// Halves the counters of a line once for each sample that it missed.
    #[cold]
    fn halve(&mut self, line: usize) {
        let missed = self.missed(line);
        // Mask of the bits that remain of each counter.
        let left = u64::from(MOST.checked_shr(missed).unwrap_or(0)) * (u64::MAX / u64::from(MOST));
        let words = &mut self.lines[line].0;
        for word in words.iter_mut() {
            *word = word.checked_shr(missed).unwrap_or(0) & left;
        }
        for (row, byte) in self.samples.to_le_bytes().into_iter().enumerate() {
            let word = &mut words[ROW_WORDS * row + 1];
            *word = *word & !(u64::MAX << NOTE_SHIFT) | u64::from(byte) << NOTE_SHIFT;
        }
    }
}

/// Returns the counters of a name in its line as word and shift, chosen by the low bits of the hash.
#[inline]
fn places(hash: u64) -> [(usize, u32); ROWS] {
    std::array::from_fn(|row| {
        let bits = hash >> (ROW_HASH_BITS * row as u32) & ((1 << ROW_HASH_BITS) - 1);
        let counter = ((bits * ROW_COUNTERS) >> ROW_HASH_BITS) as usize;
        (row * ROW_WORDS + counter / WORD_COUNTERS, (counter % WORD_COUNTERS) as u32 * COUNTER_BITS)
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
        let mut sketch = Sketch::new(1 << 20, 32).expect("memory");
        let mut exact = HashMap::new();
        for number in 0..200_000_u64 {
            // Names with smaller numbers occur more often.
            let name = mix(number) % names * (mix(number + 1) % names) / names;
            sketch.count(mix(name));
            *exact.entry(name).or_insert(0_u32) += 1;
        }
        let mut too_high = 0;
        for (&name, &count) in &exact {
            let estimate = u32::from(sketch.estimate(mix(name)));
            assert!(estimate >= count.min(MOST.into()), "{name}: estimate {estimate} is below the count {count}");
            too_high += usize::from(estimate > count.min(MOST.into()));
        }
        assert!(too_high * 50 < exact.len(), "{too_high} of {} estimates are too high", exact.len());
        assert_eq!(sketch.samples, 0);
    }

    #[test]
    fn every_sample_halves_all_counters() {
        let mut sketch = Sketch::new(64, 16).expect("memory");
        let name = mix(1);
        let others: Vec<u64> =
            (2..).map(mix).filter(|&other| sketch.line_of(other) != sketch.line_of(name)).take(56).collect();
        for _ in 0..7 {
            sketch.count(name);
        }
        others.iter().for_each(|&other| sketch.count(other));
        assert_eq!(sketch.estimate(name), 7);
        sketch.count(others[0]);
        assert_eq!(sketch.estimate(name), 3, "a sample must halve counters that were not touched meanwhile");
        sketch.count(name);
        assert_eq!(sketch.estimate(name), 4);
    }

    /// Each counter is halved independently, for any number of missed samples.
    #[test]
    fn halving_moves_nothing_into_other_counters() {
        for missed in [1, 2, 3, 4, 63, 64, 300] {
            let mut sketch = Sketch::new(1, 1).expect("memory");
            (sketch.sample, sketch.samples) = (u64::MAX, 0x0102_0304);
            sketch.lines[0].0 = [0xfedc_ba98_7654_3210; WORDS];
            sketch.halve(0);
            let before = sketch.lines[0].0;
            assert_eq!(sketch.missed(0), 0);
            sketch.samples += missed;
            sketch.halve(0);
            for counter in 0..ROWS as u64 * ROW_COUNTERS {
                let (row, place) = (counter / ROW_COUNTERS, counter % ROW_COUNTERS);
                let word = row as usize * ROW_WORDS + place as usize / WORD_COUNTERS;
                let value = |words: [u64; WORDS]| words[word] >> (place as usize % WORD_COUNTERS * 4) & 15;
                let expected = value(before).checked_shr(missed).unwrap_or(0);
                assert_eq!(value(sketch.lines[0].0), expected, "counter {counter} after {missed} missed samples");
            }
        }
    }

    #[test]
    fn a_counter_stays_at_its_greatest_value() {
        let mut sketch = Sketch::new(1000, 16).expect("memory");
        for _ in 0..900 {
            sketch.count(7);
        }
        assert_eq!(sketch.estimate(7), MOST);
    }
}
