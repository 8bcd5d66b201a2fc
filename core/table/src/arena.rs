//! Storage for a fixed number of entries of one type, addressed by 32-bit indexes.
//!
//! The memory is reserved at once and touched slot by slot. A slot is initialised with `T::default()` when it is
//! first allocated and is dropped only with the arena. A freed slot keeps its last contents until it is allocated
//! again, so a generation number inside the entry survives, and reading a stale index is never undefined behaviour.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};
use std::ptr::NonNull;

use crate::pages::{
    BASE_ALIGNMENT, FillMark, MOST_LEAD_BYTES, Mapping, MemoryNeed, Order, PageKind, PageRequest, ReadyAhead,
};
use crate::prefetch::prefetch_line_of;
use crate::{TableError, touched};

/// Bytes of slots that are made ready before the first allocation.
const FIRST_READY_BYTES: usize = 64 << 10;

/// A fixed-capacity arena; see the module's description.
pub struct Arena<T> {
    slots: Mapping,
    /// Stack of freed indexes.
    free: Mapping,
    free_count: u32,
    /// Slots below this index were allocated at least once and hold a `T`.
    made: u32,
    capacity: u32,
    /// Tracks `made`, so that memory is made ready before slots are initialised in it.
    mark: FillMark,
    /// Allocated slots, to catch double frees in debug builds.
    #[cfg(debug_assertions)]
    given_out: Vec<bool>,
    marker: PhantomData<T>,
}

impl<T: Default> Arena<T> {
    /// Makes an empty arena for `capacity` entries.
    pub fn new(capacity: u32, pages: PageRequest) -> Result<Self, TableError> {
        Self::with_reserve(capacity, capacity, pages)
    }

    /// Makes an empty arena for `capacity` entries of which normally only `expected` are used: the memory of the
    /// others takes no huge pages from the system's pool.
    pub fn with_reserve(capacity: u32, expected: u32, pages: PageRequest) -> Result<Self, TableError> {
        const { assert!(align_of::<T>() <= BASE_ALIGNMENT) };
        let bytes_of = |count: u32, size: usize| (count as usize).checked_mul(size).ok_or(TableError::CapacityTooLarge);
        let slots = MemoryNeed {
            expected_bytes: bytes_of(expected.min(capacity), size_of::<T>())?,
            ..MemoryNeed::entries::<T>(bytes_of(capacity, size_of::<T>())?).used_from_start()
        };
        let free = MemoryNeed {
            contents: "free slots",
            bytes: bytes_of(capacity, size_of::<u32>())?,
            expected_bytes: bytes_of(expected.min(capacity), size_of::<u32>())?,
            order: Order::FromStart,
        };
        let (slots, free) = (Mapping::new(slots, pages)?, Mapping::new(free, pages)?);
        let mut mark = FillMark::new(size_of::<T>());
        slots.make_ready_ahead(
            &mut mark,
            ReadyAhead {
                unit_bytes: size_of::<T>(),
                first_bytes: FIRST_READY_BYTES,
                most_lead_bytes: MOST_LEAD_BYTES,
                can_wait: false,
            },
        );
        // There are never more free slots than allocated ones, so no lead is needed.
        free.make_ready_ahead(
            &mut mark,
            ReadyAhead {
                unit_bytes: size_of::<u32>(),
                first_bytes: BASE_ALIGNMENT,
                most_lead_bytes: 0,
                can_wait: false,
            },
        );
        Ok(Arena {
            slots,
            free,
            free_count: 0,
            made: 0,
            capacity,
            mark,
            #[cfg(debug_assertions)]
            given_out: Vec::new(),
            marker: PhantomData,
        })
    }

    /// Allocates a slot, preferring the one freed last; returns `None` if the arena is full. The contents are
    /// `T::default()` the first time and the last owner's value afterwards.
    #[inline]
    pub fn allocate(&mut self) -> Option<u32> {
        let index = if self.free_count > 0 {
            self.free_count -= 1;
            // SAFETY: the stack has `capacity` elements, and `free` wrote those below the old `free_count`.
            unsafe { self.free_slot(self.free_count).read() }
        } else if self.made < self.capacity {
            let index = self.made;
            // SAFETY: below the capacity, so inside the mapping, aligned, and not holding a value yet.
            unsafe { self.slot(index).write(T::default()) };
            self.made += 1;
            self.mark.note(self.made as usize);
            index
        } else {
            return None;
        };
        #[cfg(debug_assertions)]
        {
            let length = self.given_out.len().max(index as usize + 1);
            self.given_out.resize(length, false);
            self.given_out[index as usize] = true;
        }
        Some(index)
    }
}

impl<T> Arena<T> {
    /// Returns true if the next slot can be allocated without waiting for the system to provide memory.
    #[inline]
    pub fn is_next_ready(&mut self) -> bool {
        self.free_count > 0 || self.mark.is_ready(self.made as usize + 1)
    }

    /// Returns the slot that [`allocate`](Self::allocate) will return after `before` other calls, if no slot is freed
    /// meanwhile.
    #[inline]
    pub fn upcoming(&self, before: usize) -> Option<u32> {
        let before = u32::try_from(before).ok()?;
        match self.free_count.checked_sub(before + 1) {
            // SAFETY: the stack has `capacity` elements, and `free` wrote those below `free_count`.
            Some(position) => Some(unsafe { self.free_slot(position).read() }),
            None => Some(self.made + (before - self.free_count)).filter(|&index| index < self.capacity),
        }
    }

    /// Frees a slot. Each allocation must be freed only once, or two owners share the slot (debug builds panic).
    ///
    /// # Panics
    /// If the index was never allocated.
    #[inline]
    pub fn free(&mut self, index: u32) {
        assert!(index < self.made && self.free_count < self.capacity, "free of a slot that is not allocated");
        #[cfg(debug_assertions)]
        assert!(std::mem::replace(&mut self.given_out[index as usize], false), "double free of slot {index}");
        // SAFETY: the stack has `capacity` elements and `free_count` is below that.
        unsafe { self.free_slot(self.free_count).write(index) };
        self.free_count += 1;
    }

    /// Returns the entry in a slot; `None` if the index was never allocated.
    #[inline]
    pub fn get(&self, index: u32) -> Option<&T> {
        // SAFETY: slots below `made` hold a value, which is only changed through `&mut self`.
        (index < self.made).then(|| unsafe { self.slot(index).as_ref() })
    }

    /// Returns the entry in a slot, mutably; `None` if the index was never allocated.
    #[inline]
    pub fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        // SAFETY: as in `get`, and `&mut self` is exclusive.
        (index < self.made).then(|| unsafe { self.slot(index).as_mut() })
    }

    /// Prefetches the first cache line of a slot. Any index may be given.
    #[inline(always)]
    pub fn prefetch(&self, index: u32) {
        self.prefetch_line(index, 0);
    }

    /// Prefetches cache line `line` (0, 1, …) of a slot. Any index may be given.
    #[inline(always)]
    pub fn prefetch_line(&self, index: u32, line: usize) {
        prefetch_line_of(self.slots.base().cast::<T>().as_ptr().wrapping_add(index as usize), line);
    }

    /// Number of slots allocated now.
    pub fn len(&self) -> usize {
        (self.made - self.free_count) as usize
    }

    /// Returns true if no slot is allocated.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of slots that were allocated at least once, and so take memory.
    pub fn made(&self) -> usize {
        self.made as usize
    }

    /// Total number of slots.
    pub fn capacity(&self) -> usize {
        self.capacity as usize
    }

    /// Kind of pages that the slots lie on.
    pub fn page_kind(&self) -> PageKind {
        self.slots.kind()
    }

    /// Address of a slot; inside the mapping if `index` is below the capacity.
    #[inline(always)]
    fn slot(&self, index: u32) -> NonNull<T> {
        let slot = self.slots.base().cast::<T>().as_ptr().wrapping_add(index as usize);
        touched::note(slot);
        // SAFETY: the start of a mapping is not null, nor is anything else inside it.
        unsafe { NonNull::new_unchecked(slot) }
    }

    fn free_slot(&self, position: u32) -> NonNull<u32> {
        let base = self.free.base().cast::<u32>();
        debug_assert!(position < self.capacity);
        // SAFETY: callers keep `position` below the capacity, the number of elements of this mapping.
        let slot = unsafe { base.add(position as usize) };
        touched::note(slot.as_ptr());
        slot
    }
}

impl<T> Index<u32> for Arena<T> {
    type Output = T;

    /// # Panics
    /// If the index was never allocated.
    #[inline]
    fn index(&self, index: u32) -> &T {
        match self.get(index) {
            Some(entry) => entry,
            None => never_given_out(index),
        }
    }
}

impl<T> IndexMut<u32> for Arena<T> {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut T {
        match self.get_mut(index) {
            Some(entry) => entry,
            None => never_given_out(index),
        }
    }
}

#[cold]
fn never_given_out(index: u32) -> ! {
    panic!("slot {index} was never allocated")
}

impl<T> Drop for Arena<T> {
    fn drop(&mut self) {
        if std::mem::needs_drop::<T>() {
            for index in 0..self.made {
                // SAFETY: slots below `made` hold a value, dropped once here.
                unsafe { self.slot(index).drop_in_place() };
            }
        }
    }
}

impl<T> std::fmt::Debug for Arena<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Arena")
            .field("len", &self.len())
            .field("capacity", &self.capacity)
            .field("pages", &self.page_kind())
            .finish()
    }
}

// SAFETY: an arena owns its values and lends them under the rules of references, like `Vec<T>`.
unsafe impl<T: Send> Send for Arena<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Arena<T> {}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::collections::BTreeMap;
    use std::rc::Rc;

    use proptest::prelude::*;

    use super::*;

    #[derive(Default)]
    struct Entry {
        generation: u32,
        value: u64,
    }

    proptest! {
        #[test]
        fn slots_have_one_owner_at_a_time(
            steps in prop::collection::vec((any::<bool>(), any::<u16>()), 0..200),
        ) {
            let mut arena = Arena::<Entry>::new(20, PageRequest::Ordinary).expect("memory");
            let mut model = BTreeMap::new();
            let mut generations = [0u32; 20];
            for (number, (allocate, pick)) in steps.into_iter().enumerate() {
                if allocate {
                    let index = arena.allocate();
                    prop_assert_eq!(index.is_none(), model.len() == 20);
                    let Some(index) = index else { continue };
                    prop_assert_eq!(arena[index].generation, generations[index as usize]);
                    arena[index].value = number as u64;
                    prop_assert!(model.insert(index, number as u64).is_none());
                } else if let Some(&index) = model.keys().nth(usize::from(pick) % model.len().max(1)) {
                    arena[index].generation += 1;
                    generations[index as usize] += 1;
                    arena.free(index);
                    model.remove(&index);
                }
                prop_assert_eq!(arena.len(), model.len());
                for (&index, &value) in &model {
                    prop_assert_eq!(arena[index].value, value);
                }
            }
        }
    }

    #[test]
    fn values_are_dropped_with_the_arena() {
        let counted = Rc::new(());
        let mut arena = Arena::<Option<Rc<()>>>::new(10, PageRequest::Large).expect("memory");
        for _ in 0..3 {
            let index = arena.allocate().expect("room");
            arena[index] = Some(Rc::clone(&counted));
        }
        arena.free(1);
        assert_eq!(Rc::strong_count(&counted), 4);
        drop(arena);
        assert_eq!(Rc::strong_count(&counted), 1);
    }

    #[test]
    fn indexes_never_given_out_are_refused() {
        let mut arena = Arena::<u64>::new(4, PageRequest::Ordinary).expect("memory");
        assert!(arena.get(0).is_none());
        let index = arena.allocate().expect("room");
        assert_eq!(arena.get(index), Some(&0));
        assert!(arena.get_mut(1).is_none());
        assert!(arena.get(u32::MAX).is_none());
        arena.prefetch(u32::MAX);
        assert_eq!(arena.allocate().and_then(|_| arena.allocate()), Some(2));
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "double free")]
    fn double_free_is_caught_in_debug_builds() {
        let mut arena = Arena::<u64>::new(4, PageRequest::Ordinary).expect("memory");
        let index = arena.allocate().expect("room");
        arena.free(index);
        arena.free(index);
    }

    #[test]
    fn an_arena_for_nothing_and_one_for_a_billion() {
        assert_eq!(Arena::<u64>::new(0, PageRequest::Large).expect("memory").allocate(), None);
        let mut large = Arena::<[u64; 8]>::new(1 << 30, PageRequest::Large).expect("address space");
        assert_eq!(large.allocate(), Some(0));
        assert_eq!(large.capacity(), 1 << 30);
    }
}
