//! The bucket table for one owner: 64-bit hash to 32-bit entry indexes.
//!
//! A bucket is one cache line of eight slots. A lookup compares the eight tags at once and returns the indexes with a
//! matching tag, as candidates for a full comparison. When a bucket is full, its last slot becomes a link to a bucket
//! of the overflow pool. The occupied slots of a bucket are always its first ones, and every bucket of a chain but
//! the last is full. So the lookup of an absent key reads no unnecessary line. Memory is reserved when the table is
//! made; nothing is allocated afterwards.

use crate::pages::{FillMark, Mapping, MemoryNeed, PageKind, PageRequest};
use crate::prefetch::prefetch_read;
use crate::tags::{EMPTY, LINK, LINK_SLOT, SLOTS, home_buckets, matching, overflow_buckets, tag_of};
use crate::{TableError, TableFull, touched};

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Bucket {
    tags: [u32; SLOTS],
    indexes: [u32; SLOTS],
}

impl Bucket {
    /// Number of occupied slots, including a link. They are the first slots of the bucket.
    fn occupied(&self) -> usize {
        SLOTS - matching(&self.tags, EMPTY).count_ones() as usize
    }

    /// Next bucket of the chain.
    #[inline(always)]
    fn next(&self) -> Option<usize> {
        (self.tags[LINK_SLOT] == LINK).then_some(self.indexes[LINK_SLOT] as usize)
    }

    fn set(&mut self, slot: usize, tag: u32, index: u32) {
        self.tags[slot] = tag;
        self.indexes[slot] = index;
    }
}

/// The memory of a table. All accesses go through these functions.
struct Buckets {
    memory: Mapping,
    count: usize,
}

impl Buckets {
    /// # Panics
    /// If `number` is out of range.
    #[inline(always)]
    fn get(&self, number: usize) -> &Bucket {
        assert!(number < self.count, "no such bucket");
        // SAFETY: the mapping has `count` buckets of initialised (at first zeroed) plain integers, is aligned to a
        // page, and is only changed through `&mut self`.
        let bucket = unsafe { self.memory.base().cast::<Bucket>().add(number).as_ref() };
        touched::note(bucket);
        bucket
    }

    /// # Panics
    /// If `number` is out of range.
    #[inline(always)]
    fn get_mut(&mut self, number: usize) -> &mut Bucket {
        assert!(number < self.count, "no such bucket");
        // SAFETY: as in `get`, and `&mut self` is exclusive.
        let bucket = unsafe { self.memory.base().cast::<Bucket>().add(number).as_mut() };
        touched::note(bucket);
        bucket
    }

    /// Prefetches a bucket.
    #[inline(always)]
    fn prefetch(&self, number: usize) {
        prefetch_read(self.memory.base().cast::<Bucket>().as_ptr().wrapping_add(number));
    }
}

/// End marker of the list of free overflow buckets.
const NO_BUCKET: u32 = u32::MAX;

/// Fill level of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BucketStatistics {
    /// Entries in the table.
    pub entries: usize,
    /// Number of entries that fit for any hashes.
    pub capacity: usize,
    /// Home buckets.
    pub home_buckets: usize,
    /// Overflow buckets in use.
    pub overflow_buckets: usize,
    /// Overflow buckets in total.
    pub overflow_capacity: usize,
    /// Kind of pages that the table lies on.
    pub pages: PageKind,
}

/// A hash table from 64-bit hashes to 32-bit indexes; see the module's description.
pub struct BucketTable {
    /// Home buckets, then the overflow pool.
    buckets: Buckets,
    home_mask: usize,
    /// First overflow bucket that was never used.
    fresh_overflow: usize,
    free_overflow: u32,
    overflow_in_use: usize,
    entries: usize,
    capacity: usize,
    /// Counts entries, so that all buckets are made ready before there are many.
    mark: FillMark,
}

impl BucketTable {
    /// Makes a table with room for at least `capacity` entries (more fit if their hashes spread well).
    pub fn new(capacity: usize, pages: PageRequest) -> Result<Self, TableError> {
        if capacity >= NO_BUCKET as usize {
            return Err(TableError::CapacityTooLarge);
        }
        let home_count = home_buckets(capacity);
        let bucket_count = home_count + overflow_buckets(capacity);
        let memory = Mapping::new(MemoryNeed::all("buckets", bucket_count * size_of::<Bucket>()), pages)?;
        let mut mark = FillMark::new(size_of::<Bucket>());
        // Any home bucket may be the first to be used.
        memory.make_ready_as_a_whole(&mut mark, home_count * size_of::<Bucket>());
        Ok(BucketTable {
            mark,
            buckets: Buckets { memory, count: bucket_count },
            home_mask: home_count - 1,
            fresh_overflow: home_count,
            free_overflow: NO_BUCKET,
            overflow_in_use: 0,
            entries: 0,
            capacity,
        })
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries
    }

    /// Returns true if the table has no entries.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Prefetches the home bucket of `hash`.
    #[inline(always)]
    pub fn prefetch(&self, hash: u64) {
        self.buckets.prefetch(self.home(hash));
    }

    /// Returns the first candidate in the home bucket of `hash`: a guess that reads one cache line.
    #[inline]
    pub fn guess(&self, hash: u64) -> Option<u32> {
        let bucket = self.buckets.get(self.home(hash));
        let matches = matching(&bucket.tags, tag_of(hash));
        (matches != 0).then(|| bucket.indexes[matches.trailing_zeros() as usize])
    }

    /// Iterates over all indexes with a matching tag in the chain of `hash`.
    #[inline]
    pub fn candidates(&self, hash: u64) -> Candidates<'_> {
        let bucket = self.buckets.get(self.home(hash));
        let tag = tag_of(hash);
        Candidates { buckets: &self.buckets, bucket, matches: matching(&bucket.tags, tag), tag }
    }

    /// Returns the first candidate for `hash` that `is_it` accepts.
    #[inline]
    pub fn find(&self, hash: u64, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        self.candidates(hash).find(|&index| is_it(index))
    }

    /// Adds an entry. The same hash, and even the same pair, may be added more than once.
    pub fn insert(&mut self, hash: u64, index: u32) -> Result<(), TableFull> {
        let tail = self.tail_of(hash).0;
        let slot = self.buckets.get(tail).occupied();
        if slot < SLOTS {
            self.buckets.get_mut(tail).set(slot, tag_of(hash), index);
        } else {
            let overflow = self.take_overflow()?;
            let Bucket { tags, indexes } = *self.buckets.get(tail);
            let added = self.buckets.get_mut(overflow);
            added.set(0, tags[LINK_SLOT], indexes[LINK_SLOT]);
            added.set(1, tag_of(hash), index);
            self.buckets.get_mut(tail).set(LINK_SLOT, LINK, overflow as u32);
        }
        self.entries += 1;
        if self.mark.note(self.entries) {
            self.buckets.memory.took_few_uses();
        }
        Ok(())
    }

    /// Removes one entry with this hash and index. Returns `false` if there is none.
    pub fn remove(&mut self, hash: u64, index: u32) -> bool {
        let Some((bucket, slot)) = self.position(hash, index) else {
            return false;
        };
        // The last entry of the chain fills the gap.
        let (tail, before_tail) = self.tail_of(hash);
        let last = self.buckets.get(tail).occupied() - 1;
        let Bucket { tags, indexes } = *self.buckets.get(tail);
        self.buckets.get_mut(bucket).set(slot, tags[last], indexes[last]);
        self.buckets.get_mut(tail).set(last, EMPTY, 0);
        if let Some(before_tail) = before_tail
            && last == 1
        {
            // One entry is left in the tail. It moves to the link's slot.
            let Bucket { tags, indexes } = *self.buckets.get(tail);
            self.buckets.get_mut(before_tail).set(LINK_SLOT, tags[0], indexes[0]);
            self.return_overflow(tail);
        }
        self.entries -= 1;
        true
    }

    /// Changes the index of one entry. Returns `false` if there is no entry with this hash and the index `old`.
    pub fn replace(&mut self, hash: u64, old: u32, new: u32) -> bool {
        match self.position(hash, old) {
            Some((bucket, slot)) => {
                self.buckets.get_mut(bucket).indexes[slot] = new;
                true
            }
            None => false,
        }
    }

    /// Iterates over all indexes, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..=self.home_mask).flat_map(move |home| {
            let mut next = Some(home);
            std::iter::from_fn(move || {
                let bucket = self.buckets.get(next?);
                next = bucket.next();
                Some(bucket)
            })
            .flat_map(|bucket| {
                (0..SLOTS)
                    .filter(|&slot| bucket.tags[slot] != EMPTY && bucket.tags[slot] != LINK)
                    .map(|slot| bucket.indexes[slot])
            })
        })
    }

    /// Returns the fill level of the table.
    pub fn statistics(&self) -> BucketStatistics {
        BucketStatistics {
            entries: self.entries,
            capacity: self.capacity,
            home_buckets: self.home_mask + 1,
            overflow_buckets: self.overflow_in_use,
            overflow_capacity: self.buckets.count - self.home_mask - 1,
            pages: self.buckets.memory.kind(),
        }
    }

    #[inline(always)]
    fn home(&self, hash: u64) -> usize {
        hash as usize & self.home_mask
    }

    /// Returns the last bucket of the chain of `hash`, and its predecessor if it has one.
    fn tail_of(&self, hash: u64) -> (usize, Option<usize>) {
        let (mut tail, mut before) = (self.home(hash), None);
        while let Some(next) = self.buckets.get(tail).next() {
            before = Some(tail);
            tail = next;
        }
        (tail, before)
    }

    /// Returns the bucket and slot of an entry.
    fn position(&self, hash: u64, index: u32) -> Option<(usize, usize)> {
        let tag = tag_of(hash);
        let mut number = self.home(hash);
        loop {
            let bucket = self.buckets.get(number);
            // A link slot's tag is never an entry's, so only entries match.
            let matches = matching(&bucket.tags, tag) & matching(&bucket.indexes, index);
            if matches != 0 {
                return Some((number, matches.trailing_zeros() as usize));
            }
            number = bucket.next()?;
        }
    }

    fn take_overflow(&mut self) -> Result<usize, TableFull> {
        let number = if self.free_overflow != NO_BUCKET {
            let number = self.free_overflow as usize;
            let bucket = self.buckets.get_mut(number);
            let next_free = bucket.indexes[0];
            bucket.set(0, EMPTY, 0);
            self.free_overflow = next_free;
            number
        } else if self.fresh_overflow < self.buckets.count {
            self.fresh_overflow += 1;
            self.fresh_overflow - 1
        } else {
            return Err(TableFull);
        };
        self.overflow_in_use += 1;
        Ok(number)
    }

    fn return_overflow(&mut self, number: usize) {
        let next_free = self.free_overflow;
        // Free buckets are chained through their first index.
        self.buckets.get_mut(number).set(0, EMPTY, next_free);
        self.free_overflow = number as u32;
        self.overflow_in_use -= 1;
    }
}

impl std::fmt::Debug for BucketTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.statistics().fmt(f)
    }
}

/// Iterator over the indexes with a matching tag in one chain.
#[derive(Clone)]
pub struct Candidates<'a> {
    buckets: &'a Buckets,
    bucket: &'a Bucket,
    matches: u32,
    tag: u32,
}

impl Iterator for Candidates<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        while self.matches == 0 {
            self.bucket = self.buckets.get(self.bucket.next()?);
            self.matches = matching(&self.bucket.tags, self.tag);
        }
        let slot = self.matches.trailing_zeros() as usize;
        self.matches &= self.matches - 1;
        Some(self.bucket.indexes[slot])
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
