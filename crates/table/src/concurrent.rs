//! The bucket table for one writer and lock-free readers.
//!
//! As in the table for one owner, a bucket is one cache line of eight (tag, index) slots and a full bucket's last slot
//! becomes a link to an overflow bucket. Here each slot is one atomic word, so that every change is published by one
//! store. Entries that readers may be looking for never move towards the start of a chain, where a reader may have
//! passed already: a removed entry leaves a hole that the next insertion fills.
//!
//! Growth builds a larger array beside the old one and publishes it by its pointer. The old array is handed to the
//! caller, who keeps it until all readers have passed a quiescent state.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering, fence};

use crate::pages::{Mapping, MemoryNeed, PageRequest};
use crate::prefetch::prefetch_read;
use crate::tags::{EMPTY, LINK, LINK_SLOT, SLOTS, home_buckets, overflow_buckets, tag_of};
use crate::{BucketStatistics, TableError, TableFull};

#[repr(C, align(64))]
struct Bucket {
    slots: [AtomicU64; SLOTS],
}

const fn pack(tag: u32, index: u32) -> u64 {
    (tag as u64) << 32 | index as u64
}

const fn tag_in(word: u64) -> u32 {
    (word >> 32) as u32
}

const fn index_in(word: u64) -> u32 {
    word as u32
}

/// A free slot.
const FREE: u64 = pack(EMPTY, 0);

/// Next bucket of the chain, according to the word in the link slot.
const fn link_in(word: u64) -> Option<usize> {
    if tag_in(word) == LINK { Some(index_in(word) as usize) } else { None }
}

struct BucketArray {
    memory: Mapping,
    home_mask: usize,
    bucket_count: usize,
    capacity: usize,
}

impl BucketArray {
    fn new(capacity: usize, pages: PageRequest) -> Result<Self, TableError> {
        if capacity >= u32::MAX as usize {
            return Err(TableError::CapacityTooLarge);
        }
        let home_count = home_buckets(capacity);
        let bucket_count = home_count + overflow_buckets(capacity);
        Ok(BucketArray {
            memory: Mapping::new(MemoryNeed::all("shared buckets", bucket_count * size_of::<Bucket>()), pages)?,
            home_mask: home_count - 1,
            bucket_count,
            capacity,
        })
    }

    #[inline(always)]
    fn home(&self, hash: u64) -> usize {
        hash as usize & self.home_mask
    }

    #[inline(always)]
    fn buckets(&self) -> &[Bucket] {
        // SAFETY: the mapping has `bucket_count` buckets of initialised (zeroed at first) words, aligned to a page, all
        // of which are atomics.
        unsafe { std::slice::from_raw_parts(self.memory.base().as_ptr().cast(), self.bucket_count) }
    }
}

struct Shared {
    current: AtomicPtr<BucketArray>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: `current` always comes from a box, and the last handle is gone.
        drop(unsafe { Box::from_raw(*self.current.get_mut()) });
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

/// The writer's notes about one array: which overflow buckets are in use.
struct Overflow {
    /// First one that was never used.
    fresh: usize,
    unlinked: Vec<u32>,
}

impl Overflow {
    fn new(array: &BucketArray) -> Self {
        Overflow { fresh: array.home_mask + 1, unlinked: Vec::new() }
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

    fn in_use(&self, array: &BucketArray) -> usize {
        self.fresh - (array.home_mask + 1) - self.unlinked.len()
    }
}

/// Adds an entry to an array.
fn insert(array: &BucketArray, overflow: &mut Overflow, hash: u64, index: u32) -> Result<(), TableFull> {
    let entry = pack(tag_of(hash), index);
    let mut number = array.home(hash);
    loop {
        let slots = &array.buckets()[number].slots;
        if let Some(hole) = slots.iter().find(|slot| load(slot) == FREE) {
            hole.store(entry, Ordering::Release);
            return Ok(());
        }
        let last = load(&slots[LINK_SLOT]);
        match link_in(last) {
            Some(next) => number = next,
            None => {
                let added = overflow.take(array)?;
                let [first, second, ..] = &array.buckets()[added].slots;
                first.store(last, Ordering::Release);
                second.store(entry, Ordering::Release);
                // One store hides the old last entry behind the link and publishes the new one.
                slots[LINK_SLOT].store(pack(LINK, added as u32), Ordering::Release);
                return Ok(());
            }
        }
    }
}

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
        self.array().capacity
    }

    /// All indexes whose hash may be `hash`.
    pub fn candidates(&self, hash: u64) -> ConcurrentCandidates<'_> {
        ConcurrentCandidates::new(self.array(), hash)
    }

    /// All indexes, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        words(self.array()).map(index_in)
    }

    /// Adds an entry whose contents are complete, and publishes it. The same pair may be added more than once. When it
    /// is full, growing makes room.
    pub fn insert(&mut self, hash: u64, index: u32) -> Result<(), TableFull> {
        // SAFETY: the current array lives until it is replaced, which needs `&mut self` and is not done here.
        let array = unsafe { &*self.shared.current.load(Ordering::Relaxed) };
        insert(array, &mut self.overflow, hash, index)?;
        self.entries += 1;
        Ok(())
    }

    /// Removes one entry with this hash and index. `false` if there is none. Readers may still hold the index until they
    /// pass a quiescent state.
    pub fn remove(&mut self, hash: u64, index: u32) -> bool {
        let Some((bucket, slot)) = self.position(hash, index) else {
            return false;
        };
        self.array().buckets()[bucket].slots[slot].store(FREE, Ordering::Release);
        self.entries -= 1;
        if bucket != self.array().home(hash) {
            while let Some(unlinked) = self.unlink_empty_tail(hash) {
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
            self.array().buckets()[bucket].slots[slot].store(word, Ordering::Release);
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
        for word in words(self.array()) {
            let hash = u64::from(tag_in(word)) << 32 | u64::from(low_bits_of(index_in(word)));
            // An array filled for the first time has room for its capacity however the hashes are spread.
            insert(&array, &mut overflow, hash, index_in(word)).map_err(|TableFull| TableError::CapacityTooLarge)?;
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
        let home_buckets = array.home_mask + 1;
        BucketStatistics {
            entries: self.entries,
            capacity: array.capacity,
            home_buckets,
            overflow_buckets: self.overflow.in_use(array),
            overflow_capacity: array.bucket_count - home_buckets,
            pages: array.memory.kind(),
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
            let slots = &self.array().buckets()[number].slots;
            if let Some(slot) = slots.iter().position(|slot| load(slot) == entry) {
                return Some((number, slot));
            }
            number = link_in(load(&slots[LINK_SLOT]))?;
        }
    }

    /// Takes the last bucket off the chain of `hash` if it is an overflow bucket without entries.
    ///
    /// It may be used again at once: a reader that is still in it finds nothing of its chain there, and nothing was
    /// there when it was unlinked. (Of a bucket in the middle of a chain that would not be true.)
    fn unlink_empty_tail(&mut self, hash: u64) -> Option<u32> {
        let buckets = self.array().buckets();
        let mut number = self.array().home(hash);
        let mut link = None;
        while let Some(next) = link_in(load(&buckets[number].slots[LINK_SLOT])) {
            link = Some(&buckets[number].slots[LINK_SLOT]);
            number = next;
        }
        let link = link?;
        let is_empty = buckets[number].slots.iter().all(|slot| load(slot) == FREE);
        is_empty.then(|| {
            link.store(FREE, Ordering::Release);
            number as u32
        })
    }
}

/// The writer's view of a slot: nobody else changes it.
fn load(slot: &AtomicU64) -> u64 {
    slot.load(Ordering::Relaxed)
}

/// All entries of an array, as the writer sees it.
fn words(array: &BucketArray) -> impl Iterator<Item = u64> + '_ {
    // Buckets that are in no chain are empty.
    array
        .buckets()
        .iter()
        .flat_map(|bucket| &bucket.slots)
        .map(load)
        .filter(|&word| word != FREE && link_in(word).is_none())
}

/// A reader's side of a concurrent bucket table. Cheap to clone.
#[derive(Clone)]
pub struct ConcurrentBucketReader {
    shared: Arc<Shared>,
}

impl ConcurrentBucketReader {
    /// All indexes whose hash may be `hash`.
    ///
    /// An entry that is in the table during the whole call is found, whatever the writer does meanwhile.
    ///
    /// # Safety
    /// Arrays retired by [`grow`](ConcurrentBucketTable::grow) after this call are not dropped before the iterator is.
    #[inline(always)]
    pub unsafe fn candidates(&self, hash: u64) -> ConcurrentCandidates<'_> {
        // SAFETY: as the caller promises; an array that was current is complete before its pointer is published.
        let array = unsafe { &*self.shared.current.load(Ordering::Acquire) };
        ConcurrentCandidates::new(array, hash)
    }

    /// Asks for the home bucket of `hash` to be brought into the cache.
    ///
    /// # Safety
    /// Arrays retired by [`grow`](ConcurrentBucketTable::grow) are not dropped during the call.
    #[inline(always)]
    pub unsafe fn prefetch(&self, hash: u64) {
        // SAFETY: as the caller promises.
        let array = unsafe { &*self.shared.current.load(Ordering::Acquire) };
        prefetch_read(&raw const array.buckets()[array.home(hash)]);
    }
}

/// Iterator over the indexes whose hash may be the one looked for.
pub struct ConcurrentCandidates<'a> {
    buckets: &'a [Bucket],
    words: [u64; SLOTS],
    matches: u32,
    tag: u32,
}

impl<'a> ConcurrentCandidates<'a> {
    #[inline(always)]
    fn new(array: &'a BucketArray, hash: u64) -> Self {
        let mut candidates =
            ConcurrentCandidates { buckets: array.buckets(), words: [FREE; SLOTS], matches: 0, tag: tag_of(hash) };
        candidates.read(array.home(hash));
        candidates
    }

    /// Reads each slot of a bucket once: what was an entry or a link then is that to the end.
    #[inline(always)]
    fn read(&mut self, number: usize) {
        let slots = &self.buckets[number].slots;
        self.matches = 0;
        for (position, slot) in slots.iter().enumerate() {
            let word = slot.load(Ordering::Relaxed);
            self.words[position] = word;
            self.matches |= u32::from(tag_in(word) == self.tag) << position;
        }
        // Pairs with the release store of every slot: entries and buckets are seen complete.
        fence(Ordering::Acquire);
    }
}

impl Iterator for ConcurrentCandidates<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        while self.matches == 0 {
            let next = link_in(self.words[LINK_SLOT])?;
            self.read(next);
        }
        let slot = self.matches.trailing_zeros() as usize;
        self.matches &= self.matches - 1;
        Some(index_in(self.words[slot]))
    }
}

#[cfg(test)]
mod tests;
