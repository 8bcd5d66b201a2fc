//! Growth in steps: a larger array is filled beside the current one, a few chains at a time, and then replaces it.
//!
//! Readers see the current array only, which stays complete. A change to an entry whose chain was already moved is
//! made in both arrays. Any other change is made in the current array alone and moves with its chain later.

use super::array::{BucketArray, Overflow, index_in, tag_in};
use crate::pages::PageRequest;
use crate::{TableError, TableFull};

/// Number of home buckets with chains that are moved together, so that their cache misses overlap.
const GROUP: usize = 16;
/// Maximum number of entries of a group that are moved together. A group with more is moved one entry at a time,
/// without overlap.
const GROUP_ENTRIES: usize = 128;

/// Access to the entries, which the table needs while it grows.
pub trait GrowthEntries {
    /// Prefetches the memory that [`low_bits`](Self::low_bits) will read.
    fn prefetch(&self, index: u32);

    /// Returns the low 32 bits of the hash with which the index was inserted.
    fn low_bits(&self, index: u32) -> u32;
}

/// A growth in progress.
pub(super) struct Growth {
    array: Box<BucketArray>,
    overflow: Overflow,
    /// First home bucket of the current array with a chain that was not moved yet.
    next: usize,
}

impl Growth {
    pub(super) fn new(capacity: usize, pages: PageRequest) -> Result<Self, TableError> {
        let array = Box::new(BucketArray::new(capacity, pages)?);
        Ok(Growth { overflow: Overflow::new(&array), array, next: 0 })
    }

    /// Number of entries that the new array is sized for.
    pub(super) fn capacity(&self) -> usize {
        self.array.capacity()
    }

    fn has_moved(&self, current: &BucketArray, hash: u64) -> bool {
        current.home(hash) < self.next
    }

    pub(super) fn prefetch(&self, current: &BucketArray, hash: u64) {
        if self.has_moved(current, hash) {
            self.array.prefetch(hash);
        }
    }

    pub(super) fn insert(&mut self, current: &BucketArray, hash: u64, index: u32) -> Result<(), TableFull> {
        if self.has_moved(current, hash) { self.overflow.insert(&self.array, hash, index) } else { Ok(()) }
    }

    pub(super) fn remove(&mut self, current: &BucketArray, hash: u64, index: u32) {
        if self.has_moved(current, hash) {
            self.overflow.remove(&self.array, hash, index);
        }
    }

    pub(super) fn replace(&self, current: &BucketArray, hash: u64, old: u32, new: u32) {
        if self.has_moved(current, hash) {
            self.array.replace(hash, old, new);
        }
    }

    /// Moves up to `chains` chains. Returns `true` when all are moved.
    pub(super) fn step(
        &mut self,
        current: &BucketArray,
        chains: usize,
        entries: &impl GrowthEntries,
    ) -> Result<bool, TableFull> {
        let end = current.home_buckets().min(self.next.saturating_add(chains));
        while self.next < end {
            let group = self.next..end.min(self.next + GROUP);
            // Prefetch the next group's buckets while this group's entries are in flight.
            for ahead in group.end..current.home_buckets().min(group.end + GROUP) {
                current.prefetch_bucket(ahead);
            }
            let mut words = [0; GROUP_ENTRIES];
            let mut count = 0;
            for word in group.clone().flat_map(|home| current.chain(home)) {
                entries.prefetch(index_in(word));
                if let Some(target) = words.get_mut(count) {
                    *target = word;
                }
                count += 1;
            }
            if count <= GROUP_ENTRIES {
                self.move_group(&words[..count], entries)?;
            } else {
                for word in group.clone().flat_map(|home| current.chain(home)) {
                    self.move_group(&[word], entries)?;
                }
            }
            self.next = group.end;
        }
        Ok(self.next == current.home_buckets())
    }

    fn move_group(&mut self, words: &[u64], entries: &impl GrowthEntries) -> Result<(), TableFull> {
        let mut hashes = [0; GROUP_ENTRIES];
        for (hash, &word) in hashes.iter_mut().zip(words) {
            *hash = u64::from(tag_in(word)) << 32 | u64::from(entries.low_bits(index_in(word)));
            self.array.prefetch(*hash);
        }
        for (&hash, &word) in hashes.iter().zip(words) {
            self.overflow.insert(&self.array, hash, index_in(word))?;
        }
        Ok(())
    }

    /// Returns the new array, once all chains are moved.
    pub(super) fn finish(self) -> (Box<BucketArray>, Overflow) {
        (self.array, self.overflow)
    }
}
