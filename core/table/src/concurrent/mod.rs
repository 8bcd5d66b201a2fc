//! The bucket table for one writer and lock-free readers.
//!
//! As in the single-owner table, a bucket is one cache line of eight (tag, index) slots, and a full bucket's last
//! slot becomes a link to an overflow bucket. Here each slot is one atomic word, so that every change is published
//! with one store. An entry never moves towards the start of a chain, which a reader may have passed already:
//! removing an entry leaves a hole, and the next insertion fills it.
//!
//! Growth builds a larger array beside the old one, in steps between which the table can be changed, and publishes it
//! by storing its pointer. The old array is returned to the caller, who keeps it until all readers have passed a
//! quiescent state.

mod array;
mod growth;
mod reader;
mod walk;

#[cfg(all(test, loom))]
mod model;
#[cfg(all(test, not(loom)))]
mod tests;

use std::ptr::NonNull;

use crate::pages::PageRequest;
use crate::sync::{Arc, AtomicPtr, Ordering};
use crate::{BucketStatistics, TableError, TableFull};

use array::{BucketArray, Overflow, index_in};
use growth::Growth;

pub use growth::GrowthEntries;
pub use reader::{ConcurrentBucketReader, ConcurrentCandidates};
pub use walk::WalkCursor;

struct Shared {
    current: AtomicPtr<BucketArray>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: `current` always comes from a box, and the last handle is being dropped.
        drop(unsafe { Box::from_raw(self.current.load(Ordering::Relaxed)) });
    }
}

/// An array that growth replaced. Its memory is freed on drop, so keep it until no reader can access it.
pub struct RetiredBuckets {
    // Not a box, because a box asserts exclusive access.
    array: NonNull<BucketArray>,
}

impl Drop for RetiredBuckets {
    fn drop(&mut self) {
        // SAFETY: the pointer comes from a box and this value is its only owner.
        drop(unsafe { Box::from_raw(self.array.as_ptr()) });
    }
}

// SAFETY: the value owns an array of atomics, which may be freed on any thread, and gives no access to it.
unsafe impl Send for RetiredBuckets {}
// SAFETY: as above.
unsafe impl Sync for RetiredBuckets {}

/// The writer's side of a concurrent bucket table; see the module's description.
pub struct ConcurrentBucketTable {
    shared: Arc<Shared>,
    pages: PageRequest,
    overflow: Overflow,
    growth: Option<Growth>,
    entries: usize,
}

impl ConcurrentBucketTable {
    /// Makes a table with room for about `capacity` entries before it has to grow.
    pub fn new(capacity: usize, pages: PageRequest) -> Result<Self, TableError> {
        let array = BucketArray::new(capacity, pages)?;
        Ok(ConcurrentBucketTable {
            pages,
            overflow: Overflow::new(&array),
            growth: None,
            entries: 0,
            shared: Arc::new(Shared { current: AtomicPtr::new(Box::into_raw(Box::new(array))) }),
        })
    }

    /// Returns a handle for a reader.
    pub fn reader(&self) -> ConcurrentBucketReader {
        ConcurrentBucketReader { shared: Arc::clone(&self.shared) }
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries
    }

    /// Returns true if the table has no entries.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Number of entries that the current array was sized for. [Grow](Self::start_growth) when the table has that
    /// many.
    pub fn capacity(&self) -> usize {
        self.array().capacity()
    }

    /// Iterates over all indexes with a matching tag in the chain of `hash`.
    pub fn candidates(&self, hash: u64) -> ConcurrentCandidates<'_> {
        ConcurrentCandidates::new(self.array(), hash)
    }

    /// Iterates over all indexes, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.array().entries().map(index_in)
    }

    /// Prefetches the buckets that a change or lookup of `hash` will read first.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        self.array().prefetch(hash);
        if let Some(growth) = &self.growth {
            growth.prefetch(self.array(), hash);
        }
    }

    /// Adds an entry and publishes it; the entry's contents must be complete. The same pair may be added more than
    /// once. If the table is full, growing it makes room.
    pub fn insert(&mut self, hash: u64, index: u32) -> Result<(), TableFull> {
        // SAFETY: the current array lives until it is replaced, which needs `&mut self` and is not done here.
        let array = unsafe { &*self.shared.current.load(Ordering::Relaxed) };
        if let Some(growth) = &mut self.growth {
            growth.insert(array, hash, index)?;
        }
        let inserted = self.overflow.insert(array, hash, index);
        match inserted {
            Ok(()) => self.entries += 1,
            Err(TableFull) => {
                if let Some(growth) = &mut self.growth {
                    growth.remove(array, hash, index);
                }
            }
        }
        inserted
    }

    /// Removes one entry with this hash and index. Returns `false` if there is none. Readers may hold the index until
    /// they pass a quiescent state.
    pub fn remove(&mut self, hash: u64, index: u32) -> bool {
        // SAFETY: as in `insert`.
        let array = unsafe { &*self.shared.current.load(Ordering::Relaxed) };
        let removed = self.overflow.remove(array, hash, index);
        if removed {
            self.entries -= 1;
            if let Some(growth) = &mut self.growth {
                growth.remove(array, hash, index);
            }
        }
        removed
    }

    /// Changes the index of one entry with one store. Returns `false` if there is no entry with this hash and the
    /// index `old`. Readers may hold the old index until they pass a quiescent state.
    pub fn replace(&mut self, hash: u64, old: u32, new: u32) -> bool {
        let array = self.array();
        let replaced = array.replace(hash, old, new);
        if let Some(growth) = self.growth.as_ref().filter(|_| replaced) {
            growth.replace(array, hash, old, new);
        }
        replaced
    }

    /// Number of entries that the new array is sized for; `None` when the table is not growing.
    pub fn growing_to(&self) -> Option<usize> {
        self.growth.as_ref().map(Growth::capacity)
    }

    /// Begins to move all entries to a new array for at least `capacity` entries (and at least the current number),
    /// without holes. Cancels a growth in progress.
    pub fn start_growth(&mut self, capacity: usize) -> Result<(), TableError> {
        self.growth = Some(Growth::new(capacity.max(self.entries), self.pages)?);
        Ok(())
    }

    /// Continues the growth by up to `chains` home buckets of the current array and their overflow buckets; does
    /// nothing when the table is not growing. The step that moves the last chain publishes the new array and returns
    /// the old one, which readers may access until they pass a quiescent state.
    ///
    /// # Errors
    /// If the new array is too small for the entries that were added meanwhile. The growth is then cancelled.
    pub fn grow_step(
        &mut self,
        chains: usize,
        entries: &impl GrowthEntries,
    ) -> Result<Option<RetiredBuckets>, TableFull> {
        let Some(mut growth) = self.growth.take() else {
            return Ok(None);
        };
        if !growth.step(self.array(), chains, entries)? {
            self.growth = Some(growth);
            return Ok(None);
        }
        let (array, overflow) = growth.finish();
        let old = self.shared.current.swap(Box::into_raw(array), Ordering::AcqRel);
        self.overflow = overflow;
        // SAFETY: `current` is never null.
        let array = unsafe { NonNull::new_unchecked(old) };
        Ok(Some(RetiredBuckets { array }))
    }

    /// Returns the fill level of the table.
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
}
