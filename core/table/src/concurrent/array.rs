//! The buckets of a concurrent table: an array of fixed size that one thread changes while others read it.
//!
//! Slots are atomic words of a tag and an index. The writer publishes each change with one store. It keeps the list
//! of free overflow buckets for itself, in [`Overflow`].

use crate::pages::{PageKind, PageRequest};
use crate::prefetch::prefetch_read;
use crate::sync::{AtomicU64, Ordering};
use crate::tags::{EMPTY, LINK, LINK_SLOT, SLOTS, home_buckets, overflow_buckets, tag_of};
use crate::{TableError, TableFull, touched};

#[repr(C, align(64))]
pub(super) struct Bucket {
    pub(super) slots: [AtomicU64; SLOTS],
}

const fn pack(tag: u32, index: u32) -> u64 {
    (tag as u64) << 32 | index as u64
}

pub(super) const fn tag_in(word: u64) -> u32 {
    (word >> 32) as u32
}

pub(super) const fn index_in(word: u64) -> u32 {
    word as u32
}

/// A free slot.
pub(super) const FREE: u64 = pack(EMPTY, 0);

/// Returns the next bucket of the chain, given the word in the link slot.
pub(super) const fn link_in(word: u64) -> Option<usize> {
    if tag_in(word) == LINK { Some(index_in(word) as usize) } else { None }
}

/// Reads a slot in the writer, which is the only thread that changes it.
fn load(slot: &AtomicU64) -> u64 {
    slot.load(Ordering::Relaxed)
}

pub(super) struct BucketArray {
    memory: Memory,
    home_mask: usize,
    bucket_count: usize,
    capacity: usize,
}

impl BucketArray {
    pub(super) fn new(capacity: usize, pages: PageRequest) -> Result<Self, TableError> {
        if capacity >= u32::MAX as usize {
            return Err(TableError::CapacityTooLarge);
        }
        let home_count = home_buckets(capacity);
        let bucket_count = home_count + overflow_buckets(capacity);
        let memory = Memory::new(home_count, bucket_count, pages)?;
        Ok(BucketArray { memory, home_mask: home_count - 1, bucket_count, capacity })
    }

    #[inline(always)]
    pub(super) fn home(&self, hash: u64) -> usize {
        hash as usize & self.home_mask
    }

    /// Number of home buckets, a power of two.
    pub(super) fn home_buckets(&self) -> usize {
        self.home_mask + 1
    }

    /// Number of overflow buckets.
    pub(super) fn overflow_buckets(&self) -> usize {
        self.bucket_count - self.home_buckets()
    }

    /// Number of entries that the array was sized for.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(super) fn pages(&self) -> PageKind {
        self.memory.pages()
    }

    /// # Panics
    /// If `number` is out of range.
    #[inline(always)]
    pub(super) fn bucket(&self, number: usize) -> &Bucket {
        assert!(number < self.bucket_count, "no such bucket");
        // SAFETY: `number` is below the number of buckets.
        let bucket = unsafe { &*self.memory.bucket(number) };
        touched::note(bucket);
        bucket
    }

    /// Prefetches the home bucket of `hash`.
    #[inline(always)]
    pub(super) fn prefetch(&self, hash: u64) {
        self.prefetch_bucket(self.home(hash));
    }

    #[inline(always)]
    pub(super) fn prefetch_bucket(&self, number: usize) {
        prefetch_read(self.memory.bucket(number));
    }

    /// Iterates over all entries of the chain that starts at a home bucket. Only for the writer.
    pub(super) fn chain(&self, home: usize) -> impl Iterator<Item = u64> + '_ {
        let following = |bucket: &&Bucket| Some(self.bucket(link_in(load(&bucket.slots[LINK_SLOT]))?));
        std::iter::successors(Some(self.bucket(home)), following).flat_map(entries_in)
    }

    /// Iterates over all entries. Only for the writer.
    pub(super) fn entries(&self) -> impl Iterator<Item = u64> + '_ {
        // Buckets that are in no chain are empty.
        (0..self.bucket_count).flat_map(|number| entries_in(self.bucket(number)))
    }

    /// Returns the slot of an entry, and whether it is in the home bucket.
    fn position(&self, hash: u64, index: u32) -> Option<(&AtomicU64, bool)> {
        let entry = pack(tag_of(hash), index);
        let home = self.home(hash);
        let mut number = home;
        loop {
            let slots = &self.bucket(number).slots;
            if let Some(slot) = slots.iter().find(|slot| load(slot) == entry) {
                return Some((slot, number == home));
            }
            number = link_in(load(&slots[LINK_SLOT]))?;
        }
    }

    /// Changes the index of one entry with one store. Returns `false` if there is none. Only for the writer.
    pub(super) fn replace(&self, hash: u64, old: u32, new: u32) -> bool {
        let position = self.position(hash, old);
        if let Some((slot, _)) = position {
            slot.store(pack(tag_of(hash), new), Ordering::Release);
        }
        position.is_some()
    }

    /// Takes the last bucket off the chain of `hash` if it is an overflow bucket without entries. Only for the
    /// writer.
    ///
    /// The bucket may be used again at once: a reader that still reads it finds no entry of its chain there, and
    /// there was none when the bucket was unlinked. (This would not hold for a bucket in the middle of a chain.)
    fn unlink_empty_tail(&self, hash: u64) -> Option<u32> {
        let mut bucket = self.bucket(self.home(hash));
        let (mut number, mut link) = (0, None);
        while let Some(next) = link_in(load(&bucket.slots[LINK_SLOT])) {
            link = Some(&bucket.slots[LINK_SLOT]);
            bucket = self.bucket(next);
            number = next;
        }
        let link = link?;
        let is_empty = bucket.slots.iter().all(|slot| load(slot) == FREE);
        is_empty.then(|| {
            link.store(FREE, Ordering::Release);
            number as u32
        })
    }
}

fn entries_in(bucket: &Bucket) -> impl Iterator<Item = u64> + '_ {
    bucket.slots.iter().map(load).filter(|&word| word != FREE && link_in(word).is_none())
}

/// The writer's bookkeeping of one array: which overflow buckets are in use.
pub(super) struct Overflow {
    /// First overflow bucket that was never used.
    fresh: usize,
    unlinked: Vec<u32>,
}

impl Overflow {
    pub(super) fn new(array: &BucketArray) -> Self {
        Overflow { fresh: array.home_buckets(), unlinked: Vec::new() }
    }

    fn take(&mut self, array: &BucketArray) -> Result<usize, TableFull> {
        if let Some(number) = self.unlinked.pop() {
            return Ok(number as usize);
        }
        if self.fresh == array.bucket_count {
            return Err(TableFull);
        }
        self.fresh += 1;
        Ok(self.fresh - 1)
    }

    pub(super) fn in_use(&self, array: &BucketArray) -> usize {
        self.fresh - array.home_buckets() - self.unlinked.len()
    }

    /// Adds an entry to the array.
    pub(super) fn insert(&mut self, array: &BucketArray, hash: u64, index: u32) -> Result<(), TableFull> {
        let entry = pack(tag_of(hash), index);
        let mut number = array.home(hash);
        loop {
            let slots = &array.bucket(number).slots;
            if let Some(hole) = slots.iter().find(|slot| load(slot) == FREE) {
                hole.store(entry, Ordering::Release);
                return Ok(());
            }
            let last = load(&slots[LINK_SLOT]);
            match link_in(last) {
                Some(next) => number = next,
                None => {
                    let added = self.take(array)?;
                    let [first, second, ..] = &array.bucket(added).slots;
                    first.store(last, Ordering::Release);
                    second.store(entry, Ordering::Release);
                    // One store replaces the old last entry, which is in the new bucket too, by the link and
                    // publishes the new one.
                    slots[LINK_SLOT].store(pack(LINK, added as u32), Ordering::Release);
                    return Ok(());
                }
            }
        }
    }

    /// Removes one entry with this hash and index from the array. Returns `false` if there is none.
    pub(super) fn remove(&mut self, array: &BucketArray, hash: u64, index: u32) -> bool {
        let Some((slot, is_home)) = array.position(hash, index) else {
            return false;
        };
        slot.store(FREE, Ordering::Release);
        if !is_home {
            while let Some(unlinked) = array.unlink_empty_tail(hash) {
                self.unlinked.push(unlinked);
            }
        }
        true
    }
}

#[cfg(not(loom))]
use mapped::Memory;
#[cfg(loom)]
use modelled::Memory;

/// Memory of the buckets, in builds without the model checker.
#[cfg(not(loom))]
mod mapped {
    use super::Bucket;
    use crate::TableError;
    use crate::pages::{Mapping, MemoryNeed, PageKind, PageRequest, touch_soon};

    /// From this size on, another thread touches the memory ahead.
    const AHEAD_BYTES: usize = 64 << 20;
    /// One in this many overflow buckets is expected to be used.
    const USED_OVERFLOW_PART: usize = 16;

    pub(super) struct Memory(Mapping);

    impl Memory {
        /// Makes buckets of free slots, which are zero. Few of the overflow buckets are expected to be used.
        pub(super) fn new(home_count: usize, count: usize, pages: PageRequest) -> Result<Self, TableError> {
            let bytes_of = |count: usize| count * size_of::<Bucket>();
            let expected_bytes = bytes_of(home_count + (count - home_count) / USED_OVERFLOW_PART);
            let need = MemoryNeed { expected_bytes, ..MemoryNeed::all("shared buckets", bytes_of(count)) };
            let mapping = Mapping::new(need, pages)?;
            if bytes_of(home_count) >= AHEAD_BYTES {
                // The order in which home buckets are filled is unknown, but all will be.
                touch_soon(&mapping, 0, bytes_of(home_count));
            }
            Ok(Memory(mapping))
        }

        pub(super) fn pages(&self) -> PageKind {
            self.0.kind()
        }

        /// Returns the address of a bucket; valid if `number` is below the number of buckets.
        #[inline(always)]
        pub(super) fn bucket(&self, number: usize) -> *const Bucket {
            self.0.base().cast::<Bucket>().as_ptr().wrapping_add(number)
        }
    }
}

/// Memory of the buckets for the model checker: its atomics hold more than their value.
#[cfg(loom)]
mod modelled {
    use super::{Bucket, FREE};
    use crate::TableError;
    use crate::pages::{PageKind, PageRequest};
    use crate::sync::AtomicU64;

    pub(super) struct Memory(Box<[Bucket]>);

    impl Memory {
        pub(super) fn new(_home_count: usize, count: usize, _pages: PageRequest) -> Result<Self, TableError> {
            let free = || Bucket { slots: std::array::from_fn(|_| AtomicU64::new(FREE)) };
            Ok(Memory((0..count).map(|_| free()).collect()))
        }

        pub(super) fn pages(&self) -> PageKind {
            PageKind::Ordinary
        }

        pub(super) fn bucket(&self, number: usize) -> *const Bucket {
            self.0.as_ptr().wrapping_add(number)
        }
    }
}
