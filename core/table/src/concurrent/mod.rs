//! The bucket table for one writer and lock-free readers.
//!
//! As in the table for one owner, a bucket is one cache line of eight (tag, index) slots and a full bucket's last slot
//! becomes a link to an overflow bucket. Here each slot is one atomic word, so that every change is published by one
//! store. Entries that readers may be looking for never move towards the start of a chain, where a reader may have
//! passed already: a removed entry leaves a hole that the next insertion fills.
//!
//! Growth builds a larger array beside the old one, in steps between which the table can be changed, and publishes it by
//! its pointer. The old array is handed to the caller, who keeps it until all readers have passed a quiescent state.

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
    growth: Option<Growth>,
    entries: usize,
}

impl ConcurrentBucketTable {
    /// A table with room for about `capacity` entries before it has to grow.
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

    /// Entries for which the current array was sized: time to [grow](Self::start_growth) when there are as many.
    pub fn capacity(&self) -> usize {
        self.array().capacity()
    }

    /// All indexes whose hash may be `hash`.
    pub fn candidates(&self, hash: u64) -> ConcurrentCandidates<'_> {
        ConcurrentCandidates::new(self.array(), hash)
    }

    /// All indexes, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.array().entries().map(index_in)
    }

    /// Asks for the bucket that a change or search for `hash` will look at first.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        self.array().prefetch(hash);
        if let Some(growth) = &self.growth {
            growth.prefetch(self.array(), hash);
        }
    }

    /// Adds an entry whose contents are complete, and publishes it. The same pair may be added more than once. When it
    /// is full, growing makes room.
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

    /// Removes one entry with this hash and index. `false` if there is none. Readers may still hold the index until they
    /// pass a quiescent state.
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

    /// Changes the index of one entry in one step. `false` if there is no entry with this hash and `old` index. Readers
    /// may still hold the old index until they pass a quiescent state.
    pub fn replace(&mut self, hash: u64, old: u32, new: u32) -> bool {
        let array = self.array();
        let replaced = array.replace(hash, old, new);
        if let Some(growth) = self.growth.as_ref().filter(|_| replaced) {
            growth.replace(array, hash, old, new);
        }
        replaced
    }

    /// Entries for which the array that is being filled is sized; `None` when the table is not growing.
    pub fn growing_to(&self) -> Option<usize> {
        self.growth.as_ref().map(Growth::capacity)
    }

    /// Begins to move all entries to a new array for at least `capacity` entries (and not less than there are), without
    /// holes. A growth that was under way is given up.
    pub fn start_growth(&mut self, capacity: usize) -> Result<(), TableError> {
        self.growth = Some(Growth::new(capacity.max(self.entries), self.pages)?);
        Ok(())
    }

    /// Goes on with the growth by up to `chains` of the current array's home buckets and what overflowed from them; does
    /// nothing when the table is not growing. The step that moves the last of them publishes the new array and returns the
    /// old one, at which readers may be looking until they pass a quiescent state.
    ///
    /// # Errors
    /// When the new array is too small for what was added meanwhile; the growth is given up then.
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
}
