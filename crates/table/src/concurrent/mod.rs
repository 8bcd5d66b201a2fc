//! The bucket table for one writer and lock-free readers.
//!
//! As in the table for one owner, a bucket is one cache line of eight (tag, index) slots and a full bucket's last slot
//! becomes a link to an overflow bucket. Here each slot is one atomic word, so that every change is published by one
//! store. Entries that readers may be looking for never move towards the start of a chain, where a reader may have
//! passed already: a removed entry leaves a hole that the next insertion fills.
//!
//! Growth builds a larger array beside the old one and publishes it by its pointer. The old array is handed to the
//! caller, who keeps it until all readers have passed a quiescent state.

mod array;
mod reader;

#[cfg(all(test, loom))]
mod model;
#[cfg(all(test, not(loom)))]
mod tests;

use std::ptr::NonNull;

use crate::pages::PageRequest;
use crate::sync::{Arc, AtomicPtr, Ordering};
use crate::tags::{LINK_SLOT, tag_of};
use crate::{BucketStatistics, TableError, TableFull};

use array::{BucketArray, FREE, Overflow, index_in, link_in, load, pack, tag_in};

pub use reader::{ConcurrentBucketReader, ConcurrentCandidates};

struct Shared {
    current: AtomicPtr<BucketArray>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: `current` always comes from a box, and the last handle is gone.
        drop(unsafe { Box::from_raw(self.current.load(Ordering::Relaxed)) });
    }
}

/// An array that growth replaced. Its memory is freed on drop: keep it until no reader can be looking at it.
pub struct RetiredBuckets {
    // Not a box, because a box claims that nobody else is looking.
    array: NonNull<BucketArray>,
}

impl Drop for RetiredBuckets {
    fn drop(&mut self) {
        // SAFETY: the pointer comes from a box and this is its only owner.
        drop(unsafe { Box::from_raw(self.array.as_ptr()) });
    }
}

// SAFETY: it owns an array of atomics, which may be freed on any thread, and gives no access to it.
unsafe impl Send for RetiredBuckets {}
// SAFETY: as above.
unsafe impl Sync for RetiredBuckets {}

/// The writer's side of a concurrent bucket table; see the module's description.
pub struct ConcurrentBucketTable {
    shared: Arc<Shared>,
    pages: PageRequest,
    overflow: Overflow,
    entries: usize,
}

impl ConcurrentBucketTable {
    /// A table with room for about `capacity` entries before it has to grow.
    pub fn new(capacity: usize, pages: PageRequest) -> Result<Self, TableError> {
        let array = BucketArray::new(capacity, pages)?;
        Ok(ConcurrentBucketTable {
            pages,
            overflow: Overflow::new(&array),
            entries: 0,
            shared: Arc::new(Shared { current: AtomicPtr::new(Box::into_raw(Box::new(array))) }),
        })
    }

    /// A handle for readers.
    pub fn reader(&self) -> ConcurrentBucketReader {
        ConcurrentBucketReader { shared: Arc::clone(&self.shared) }
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries
    }

    /// Is there no entry?
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Entries for which the current array was sized: time to [`grow`](Self::grow) when there are as many.
    pub fn capacity(&self) -> usize {
        self.array().capacity()
    }

    /// All indexes whose hash may be `hash`.
    pub fn candidates(&self, hash: u64) -> ConcurrentCandidates<'_> {
        ConcurrentCandidates::new(self.array(), hash)
    }

    /// All indexes, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.array().words().map(index_in)
    }

    /// Adds an entry whose contents are complete, and publishes it. The same pair may be added more than once. When it
    /// is full, growing makes room.
    pub fn insert(&mut self, hash: u64, index: u32) -> Result<(), TableFull> {
        // SAFETY: the current array lives until it is replaced, which needs `&mut self` and is not done here.
        let array = unsafe { &*self.shared.current.load(Ordering::Relaxed) };
        array.insert(&mut self.overflow, hash, index)?;
        self.entries += 1;
        Ok(())
    }

    /// Removes one entry with this hash and index. `false` if there is none. Readers may still hold the index until they
    /// pass a quiescent state.
    pub fn remove(&mut self, hash: u64, index: u32) -> bool {
        let Some((bucket, slot)) = self.position(hash, index) else {
            return false;
        };
        self.array().bucket(bucket).slots[slot].store(FREE, Ordering::Release);
        self.entries -= 1;
        if bucket != self.array().home(hash) {
            while let Some(unlinked) = self.array().unlink_empty_tail(hash) {
                self.overflow.unlinked.push(unlinked);
            }
        }
        true
    }

    /// Changes the index of one entry in one step. `false` if there is no entry with this hash and `old` index. Readers
    /// may still hold the old index until they pass a quiescent state.
    pub fn replace(&mut self, hash: u64, old: u32, new: u32) -> bool {
        let position = self.position(hash, old);
        if let Some((bucket, slot)) = position {
            let word = pack(tag_of(hash), new);
            self.array().bucket(bucket).slots[slot].store(word, Ordering::Release);
        }
        position.is_some()
    }

    /// Moves all entries to a new array for at least `capacity` entries (and not less than there are), without holes.
    /// `low_bits_of` gives the low 32 bits of the hash with which an index was inserted.
    ///
    /// Readers may be looking at the old array, which is returned, until they pass a quiescent state.
    pub fn grow(
        &mut self,
        capacity: usize,
        mut low_bits_of: impl FnMut(u32) -> u32,
    ) -> Result<RetiredBuckets, TableError> {
        let array = BucketArray::new(capacity.max(self.entries), self.pages)?;
        let mut overflow = Overflow::new(&array);
        for word in self.array().words() {
            let hash = u64::from(tag_in(word)) << 32 | u64::from(low_bits_of(index_in(word)));
            // An array filled for the first time has room for its capacity however the hashes are spread.
            array.insert(&mut overflow, hash, index_in(word)).map_err(|TableFull| TableError::CapacityTooLarge)?;
        }
        let new = Box::into_raw(Box::new(array));
        let old = self.shared.current.swap(new, Ordering::AcqRel);
        self.overflow = overflow;
        // SAFETY: `current` is never null.
        let array = unsafe { NonNull::new_unchecked(old) };
        Ok(RetiredBuckets { array })
    }

    /// How full it is.
    pub fn statistics(&self) -> BucketStatistics {
        let array = self.array();
        BucketStatistics {
            entries: self.entries,
            capacity: array.capacity(),
            home_buckets: array.home_buckets(),
            overflow_buckets: self.overflow.in_use(array),
            overflow_capacity: array.overflow_buckets(),
            pages: array.pages(),
        }
    }

    fn array(&self) -> &BucketArray {
        // SAFETY: the current array lives until it is replaced, which needs `&mut self`.
        unsafe { &*self.shared.current.load(Ordering::Relaxed) }
    }

    /// Bucket and slot of an entry.
    fn position(&self, hash: u64, index: u32) -> Option<(usize, usize)> {
        let entry = pack(tag_of(hash), index);
        let mut number = self.array().home(hash);
        loop {
            let slots = &self.array().bucket(number).slots;
            if let Some(slot) = slots.iter().position(|slot| load(slot) == entry) {
                return Some((number, slot));
            }
            number = link_in(load(&slots[LINK_SLOT]))?;
        }
    }
}
