//! Storage for entries that one thread writes and others read, growing in place.
//!
//! The memory comes in segments, each as large as all before it together. So an index never moves, growth copies
//! nothing, and the list of segments fits in three cache lines. The arena synchronises only the list of segments. The
//! writer fills a slot, publishes its index with release ordering (for example in a
//! [`ConcurrentBucketTable`](crate::ConcurrentBucketTable)), and frees it only when [`Qsbr`](crate::Qsbr) says so.

use std::marker::PhantomData;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::pages::{BASE_ALIGNMENT, Mapping, MemoryNeed, PageRequest, touch_soon};
use crate::prefetch::prefetch_line_of;
use crate::{TableError, touched};

/// The first segment has 2^12 slots.
const FIRST_SEGMENT_BITS: u32 = 12;
/// Number of segments that cover all 32-bit indexes.
const SEGMENTS: usize = (u32::BITS - FIRST_SEGMENT_BITS) as usize + 1;
/// Bytes that are touched ahead of the allocated slots, when many are expected, and how many at a time.
const AHEAD_BYTES: usize = 32 << 20;
const AHEAD_STEP_BYTES: usize = 8 << 20;

struct Segments<T> {
    starts: [AtomicPtr<T>; SEGMENTS],
    /// Indexed by segment.
    mappings: Mutex<Vec<Mapping>>,
    marker: PhantomData<T>,
}

/// Returns the segment of an index, and the first index of that segment.
#[inline(always)]
fn locate(index: u32) -> (usize, usize) {
    let segment = u32::BITS - (index >> FIRST_SEGMENT_BITS).leading_zeros();
    // Segment s > 0 begins at 2^(12 + s - 1), segment 0 at 0.
    let first = ((1usize << segment) >> 1) << FIRST_SEGMENT_BITS;
    (segment as usize, first)
}

/// Number of slots of a segment.
fn segment_slots(segment: usize) -> usize {
    (1 << FIRST_SEGMENT_BITS) << segment.saturating_sub(1)
}

impl<T> Segments<T> {
    /// Returns the address of a slot.
    ///
    /// # Safety
    /// The slot's segment exists, and this thread has seen that.
    #[inline(always)]
    unsafe fn slot(&self, index: u32) -> NonNull<T> {
        let (segment, first) = locate(index);
        let start = self.starts[segment].load(Ordering::Acquire);
        debug_assert!(!start.is_null());
        // SAFETY: the segment exists and the index is one of its slots.
        let slot = unsafe { NonNull::new_unchecked(start.add(index as usize - first)) };
        touched::note(&raw const self.starts[segment]);
        touched::note(slot.as_ptr());
        slot
    }

    fn prefetch_line(&self, index: u32, line: usize) {
        let (segment, first) = locate(index);
        let start = self.starts[segment].load(Ordering::Relaxed);
        let slot = start.wrapping_add(index as usize - first);
        prefetch_line_of(slot, line);
    }
}

/// The writer's side of a growing arena; see the module's description.
///
/// `T` must not need to be dropped: a freed slot keeps its last contents until it is allocated again, and the arena
/// drops nothing.
pub struct SharedArena<T> {
    segments: Arc<Segments<T>>,
    pages: PageRequest,
    free: Vec<u32>,
    /// First slots of free pairs.
    free_pairs: Vec<u32>,
    /// Slots below this index were allocated at least once.
    made: u32,
    /// Number of slots of all existing segments.
    room: usize,
    /// Number of slots that are expected to be made.
    expected: usize,
    /// Slots below this were announced to the thread that touches memory. `None` when there is nothing more to
    /// announce.
    announced: Option<usize>,
    /// Number of made slots at which more memory must be announced.
    ahead_at: u32,
}

impl<T> SharedArena<T> {
    /// Makes an empty arena. Memory is reserved as it grows.
    pub fn new(pages: PageRequest) -> Self {
        const {
            assert!(align_of::<T>() <= BASE_ALIGNMENT);
            assert!(size_of::<T>() > 0);
            assert!(!std::mem::needs_drop::<T>());
        }
        SharedArena {
            segments: Arc::new(Segments {
                starts: [const { AtomicPtr::new(null_mut()) }; SEGMENTS],
                mappings: Mutex::new(Vec::new()),
                marker: PhantomData,
            }),
            pages,
            free: Vec::new(),
            free_pairs: Vec::new(),
            made: 0,
            room: 0,
            expected: 0,
            announced: None,
            ahead_at: u32::MAX,
        }
    }

    /// Announces that about `additional` more slots will be allocated one after the other, so that another thread can
    /// make their memory ready ahead of that. If they are not allocated, at most some tens of mebibytes are wasted.
    pub fn expect(&mut self, additional: usize) {
        let new = additional.saturating_sub(self.free.len() + self.free_pairs.len());
        self.expected = (self.made as usize).saturating_add(new).min(u32::MAX as usize);
        if (self.expected - self.made as usize).saturating_mul(size_of::<T>()) < AHEAD_BYTES {
            return;
        }
        self.announced.get_or_insert(self.made as usize);
        self.touch_ahead();
    }

    /// Announces the next part of the expected memory. Called when `ahead_at` slots are made.
    #[cold]
    fn touch_ahead(&mut self) {
        self.ahead_at = u32::MAX;
        let Some(announced) = self.announced.take() else { return };
        let made = self.made as usize;
        let wanted = self.expected.min(made + AHEAD_BYTES / size_of::<T>());
        while self.room < wanted {
            // If there is no memory, the next allocation returns the error.
            if self.grow().is_err() {
                return;
            }
        }
        let mappings = self.segments.mappings.lock().unwrap_or_else(PoisonError::into_inner);
        let mut start = announced.max(made);
        while start < wanted {
            let (segment, first) = locate(start as u32);
            let end = wanted.min(first + segment_slots(segment));
            if let Some(mapping) = mappings.get(segment) {
                touch_soon(mapping, (start - first) * size_of::<T>(), (end - start) * size_of::<T>());
            }
            start = end;
        }
        drop(mappings);
        if wanted < self.expected {
            self.ahead_at = self.made.saturating_add((AHEAD_STEP_BYTES / size_of::<T>()).max(1) as u32);
            self.announced = Some(wanted);
        }
    }

    /// Returns a handle for a reader.
    pub fn reader(&self) -> SharedArenaReader<T> {
        SharedArenaReader { segments: Arc::clone(&self.segments) }
    }

    /// Stores `value` in a free slot and returns its index, which is never `u32::MAX`.
    pub fn allocate(&mut self, value: T) -> Result<u32, TableError> {
        let index = match self.free.pop() {
            Some(index) => index,
            None => match self.free_pairs.pop() {
                Some(first) => {
                    self.free.push(first + 1);
                    first
                }
                None => self.make(1)?,
            },
        };
        // SAFETY: the slot's segment exists, and the slot is free, so no thread reads it now.
        unsafe { self.segments.slot(index).write(value) };
        Ok(index)
    }

    /// Allocates two adjacent slots as one piece of memory: one pair of cache lines if a slot is a line. `write`
    /// fills it. Returns the index of the first slot, which is even. If a slot in front of the pair is skipped for
    /// that and stays free, it gets a `vacant` value.
    ///
    /// # Safety
    /// `write` leaves a value in the first slot.
    pub unsafe fn allocate_pair(
        &mut self,
        vacant: impl FnOnce() -> T,
        write: impl FnOnce(NonNull<T>),
    ) -> Result<u32, TableError> {
        let first = match self.free_pairs.pop() {
            Some(first) => first,
            None => {
                if !self.made.is_multiple_of(2) {
                    let skipped = self.make(1)?;
                    // SAFETY: the slot was made just now.
                    unsafe { self.segments.slot(skipped).write(vacant()) };
                    self.free.push(skipped);
                }
                self.make(2)?
            }
        };
        // SAFETY: both slots are free, and in one segment, because segments have an even number of slots.
        write(unsafe { self.segments.slot(first) });
        Ok(first)
    }

    /// Makes the next `count` slots, which were never allocated, and returns the first.
    fn make(&mut self, count: u32) -> Result<u32, TableError> {
        if self.made > u32::MAX - count {
            return Err(TableError::CapacityTooLarge);
        }
        // Segments have an even number of slots, and pairs begin at even indexes.
        if self.made as usize == self.room {
            self.grow()?;
        }
        let first = self.made;
        self.made += count;
        if (first..self.made).contains(&self.ahead_at.wrapping_sub(1)) {
            self.touch_ahead();
        }
        Ok(first)
    }

    fn grow(&mut self) -> Result<(), TableError> {
        let (segment, _) = locate(self.room as u32);
        let slots = segment_slots(segment);
        let bytes = slots.checked_mul(size_of::<T>()).ok_or(TableError::CapacityTooLarge)?;
        // Only a part of the last expected segment is needed.
        let expected_bytes = match self.expected.saturating_sub(self.room) {
            0 => bytes,
            expected => expected.min(slots) * size_of::<T>(),
        };
        let need = MemoryNeed { expected_bytes, ..MemoryNeed::entries::<T>(bytes) };
        let mapping = Mapping::new(need, self.pages)?;
        self.segments.starts[segment].store(mapping.base().cast().as_ptr(), Ordering::Release);
        self.segments.mappings.lock().unwrap_or_else(PoisonError::into_inner).push(mapping);
        self.room += slots;
        Ok(())
    }

    /// Frees a slot.
    ///
    /// # Safety
    /// The slot is allocated, and no reader can see it any more.
    pub unsafe fn free(&mut self, index: u32) {
        debug_assert!(index < self.made);
        self.free.push(index);
    }

    /// Frees both slots of a pair. The second one gets a `vacant` value, so that all slots hold a value.
    ///
    /// # Safety
    /// They were allocated together, and no reader can see them any more.
    pub unsafe fn free_pair(&mut self, first: u32, vacant: T) {
        debug_assert!(first + 1 < self.made && first.is_multiple_of(2));
        // SAFETY: no thread reads the slot, as the caller promises.
        unsafe { self.segments.slot(first + 1).write(vacant) };
        self.free_pairs.push(first);
    }

    /// Returns the entry in a slot.
    ///
    /// # Safety
    /// The slot was allocated at least once and holds a value, which is not freed or changed while the reference
    /// lives. The second slot of a pair holds a value only if the pair's `write` left one there.
    #[inline(always)]
    pub unsafe fn get(&self, index: u32) -> &T {
        debug_assert!(index < self.made);
        // SAFETY: a slot that was allocated has a segment and holds a value.
        unsafe { self.segments.slot(index).as_ref() }
    }

    /// Prefetches cache line `line` (0, 1, …) of a slot. Any index may be given.
    #[inline(always)]
    pub fn prefetch_line(&self, index: u32, line: usize) {
        self.segments.prefetch_line(index, line);
    }

    /// Number of slots allocated now.
    pub fn len(&self) -> usize {
        self.made as usize - self.free.len() - 2 * self.free_pairs.len()
    }

    /// Returns true if no slot is allocated.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of slots that were ever allocated, and so use memory. Their indexes are below this number.
    pub fn slots_made(&self) -> u32 {
        self.made
    }
}

/// A reader's side of a growing arena.
pub struct SharedArenaReader<T> {
    segments: Arc<Segments<T>>,
}

impl<T> SharedArenaReader<T> {
    /// Returns the entry in a slot.
    ///
    /// # Safety
    /// The writer published the index with release ordering, this thread read it with acquire ordering, and the slot
    /// is not freed while the reference lives.
    #[inline(always)]
    pub unsafe fn get(&self, index: u32) -> &T {
        // SAFETY: the segment of a published index was made before the index was published.
        unsafe { self.segments.slot(index).as_ref() }
    }

    /// Prefetches cache line `line` (0, 1, …) of a slot. Any index may be given.
    #[inline(always)]
    pub fn prefetch_line(&self, index: u32, line: usize) {
        self.segments.prefetch_line(index, line);
    }
}

impl<T> Clone for SharedArenaReader<T> {
    fn clone(&self) -> Self {
        SharedArenaReader { segments: Arc::clone(&self.segments) }
    }
}

// SAFETY: handles move values in on one thread and lend them on others, so `T` must allow both. The handles
// themselves synchronise the list of segments, and the writer's handle is not cloned.
unsafe impl<T: Send + Sync> Send for SharedArena<T> {}
// SAFETY: a shared writer's handle only lends values.
unsafe impl<T: Send + Sync> Sync for SharedArena<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Send for SharedArenaReader<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for SharedArenaReader<T> {}

#[cfg(test)]
mod tests;
