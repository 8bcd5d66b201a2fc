//! The newest Data under each name prefix, so that Interests with CanBePrefix find cached Data with a longer name.
//!
//! A table of fixed size. Every prefix has one bucket, one cache line, in which newer Data overwrites older. Removed
//! Data stays in the index: every result is checked against the entry. A lost index entry costs a cache hit, never
//! correctness.
//!
//! Data is indexed only under prefixes of lengths that Interests lately requested, or of all lengths during the first
//! minute in which the store is used. So traffic that requests full names pays nothing.

use namehop_packet::Timestamp;
use namehop_table::{CacheLine, CacheLines, PageRequest, TableError};
use namehop_wire::MAX_NAME_COMPONENTS;

/// How long a length is indexed after an Interest requested it, and all lengths after the first use, in milliseconds.
const INTEREST_LASTS_MS: u64 = 60_000;
/// Places in a bucket, which is a cache line.
const SLOTS: usize = 8;
const MIN_BUCKETS: usize = 16;
const MAX_BUCKETS: usize = 1 << 22;

/// A slot of a bucket: the tag of a prefix, and an entry. As a word, 0 if it is free.
#[derive(Debug, Clone, Copy)]
struct IndexSlot {
    tag: u32,
    entry: u32,
}

impl IndexSlot {
    fn from_word(word: u64) -> Option<Self> {
        Some(IndexSlot { tag: (word >> 32) as u32, entry: (word as u32).checked_sub(1)? })
    }

    fn to_word(self) -> u64 {
        u64::from(self.tag) << 32 | u64::from(self.entry + 1)
    }
}

/// Returns the number of buckets of an index for `capacity_packets`.
fn buckets_for(capacity_packets: usize) -> usize {
    (capacity_packets / 2).clamp(MIN_BUCKETS, MAX_BUCKETS).next_power_of_two()
}

/// The prefix index.
pub(super) struct PrefixIndex {
    buckets: CacheLines,
    /// The time until which Data is indexed under prefixes of each length.
    wanted_until: [Timestamp; MAX_NAME_COMPONENTS + 1],
    /// The latest of these times.
    last_wanted_until: Timestamp,
    started: bool,
    /// The slot of a full bucket that is overwritten next.
    cursor: usize,
}

impl PrefixIndex {
    /// Creates an index with four slots for each of `capacity_packets`, within limits.
    ///
    /// # Errors
    /// If the memory cannot be allocated.
    pub(super) fn new(capacity_packets: usize) -> Result<Self, TableError> {
        Ok(PrefixIndex {
            buckets: CacheLines::used_anywhere(buckets_for(capacity_packets), PageRequest::Large)?
                .named("index of cached prefixes"),
            wanted_until: [Timestamp(0); MAX_NAME_COMPONENTS + 1],
            last_wanted_until: Timestamp(0),
            started: false,
            cursor: 0,
        })
    }

    /// Returns the size in bytes of an index for `capacity_packets`.
    pub(super) fn bytes_for(capacity_packets: usize) -> usize {
        buckets_for(capacity_packets) * size_of::<CacheLine>()
    }

    /// Records the use of the store: at the first use, all lengths are indexed for a time.
    pub(super) fn start(&mut self, now: Timestamp) {
        if !self.started {
            self.started = true;
            self.last_wanted_until = now.plus_ms(INTEREST_LASTS_MS);
            self.wanted_until.fill(self.last_wanted_until);
        }
    }

    /// Records that an Interest requested a prefix of this length.
    pub(super) fn note_wanted(&mut self, depth: usize, now: Timestamp) {
        self.start(now);
        self.wanted_until[depth] = self.wanted_until[depth].max(now.plus_ms(INTEREST_LASTS_MS));
        self.last_wanted_until = self.last_wanted_until.max(self.wanted_until[depth]);
    }

    /// Returns whether Data is to be indexed under any prefix.
    pub(super) fn is_any_wanted(&self, now: Timestamp) -> bool {
        !self.started || self.last_wanted_until > now
    }

    /// Returns whether Data is to be indexed under its prefix of this length.
    pub(super) fn is_wanted(&self, depth: usize, now: Timestamp) -> bool {
        self.wanted_until[depth] > now
    }

    fn slot_of(&self, hash: u64) -> (usize, u32) {
        (hash as usize & (self.buckets.len() - 1), (hash >> 32) as u32)
    }

    /// Prefetches the bucket of a prefix.
    pub(super) fn prefetch(&self, hash: u64) {
        self.buckets.prefetch(self.slot_of(hash).0);
    }

    /// Makes `entry` the newest under the prefix with this hash.
    pub(super) fn insert(&mut self, hash: u64, entry: u32) {
        self.buckets.note_uses(1);
        let (bucket, tag) = self.slot_of(hash);
        let slots = &mut self.buckets[bucket].0;
        let same = slots.iter().position(|&word| IndexSlot::from_word(word).is_some_and(|slot| slot.tag == tag));
        let slot = same.or_else(|| slots.iter().position(|&word| word == 0)).unwrap_or_else(|| {
            self.cursor = (self.cursor + 1) % SLOTS;
            self.cursor
        });
        slots[slot] = IndexSlot { tag, entry }.to_word();
    }

    /// Returns an entry under the prefix with this hash that `is_it` accepts.
    pub(super) fn find(&self, hash: u64, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let (bucket, tag) = self.slot_of(hash);
        let slots = self.buckets[bucket].0.iter().filter_map(|&word| IndexSlot::from_word(word));
        slots.filter(|slot| slot.tag == tag).map(|slot| slot.entry).find(|&entry| is_it(entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_wins_and_old_ones_are_overwritten() {
        let mut index = PrefixIndex::new(0).expect("memory");
        index.insert(1 << 32, 7);
        index.insert(1 << 32, 8);
        assert_eq!(index.find(1 << 32, |_| true), Some(8));
        assert_eq!(index.find(1 << 32, |entry| entry == 7), None);
        for tag in 2..100u64 {
            index.insert(tag << 32, tag as u32);
        }
        assert_eq!(index.find(99 << 32, |_| true), Some(99));
        assert_eq!(index.find(1 << 32, |_| true), None);
    }

    #[test]
    fn lengths_are_wanted_for_a_minute() {
        let mut index = PrefixIndex::new(100).expect("memory");
        index.start(Timestamp(5));
        index.start(Timestamp(1_000_000));
        assert!(index.is_wanted(3, Timestamp(5)));
        let later = Timestamp(5).plus_ms(60_001);
        assert!(!index.is_wanted(3, later));
        index.note_wanted(3, later);
        assert!(index.is_wanted(3, later.plus_ms(59_999)));
        assert!(!index.is_wanted(2, later));
        assert!(!index.is_wanted(3, later.plus_ms(60_000)));
    }
}
