//! Counting the cache lines that an operation touches.
//!
//! How many lines of memory a packet needs decides how fast it can be forwarded, so the number is part of what each
//! operation promises. Every access to the tables' memory passes one of a few functions, which note it here. Only debug builds
//! with the feature `count-lines` do so (and the tests of this crate); in others nothing is left of it. Not in release builds:
//! tests want the feature, and so what is built beside them has it, measurements of instructions as well.
//!
//! What is counted are lines of the tables' memory: buckets, entries, byte strings and the bookkeeping beside them. The
//! handles themselves (a few pointers and counters that every operation uses) are not, because they stay in the caches.
//!
//! | Operation | Lines |
//! |---|---|
//! | bucket table: look up, guess (hit or miss) | 1; without a hit 1 more for each overflow bucket of the chain |
//! | bucket table: insert | 1; chain and a new bucket when the home bucket is full |
//! | bucket table: remove, replace | 1; the whole chain when there is one |
//! | concurrent bucket table: all of these | the same; while it grows, changes of a chain that was moved touch its lines in both arrays |
//! | arena: get | those of the entry |
//! | arena: allocate | those of the entry the first time, later 1 (the list of free slots); free: 1 |
//! | shared arena: get | those of the entry, and 1 of the list of segments |
//! | byte arena: get | those of the bytes |
//! | byte arena: allocate, free | at most 3 of the chunk's notes, and 2 of its neighbours in a list when the chunk fills up, or is not full or empty any more; none of the bytes |
//! | cache lines: index | 1 |
//! | prefetching anything | 0 |
//!
//! "Chain" means the home bucket and its overflow buckets: of home buckets with the load that tables are sized for, 7 %
//! have one.

#[cfg(any(test, feature = "count-lines"))]
mod notes {
    use std::cell::RefCell;

    use crate::prefetch::CACHE_LINE_BYTES;

    thread_local! {
        /// Numbers of the lines touched on this thread, while somebody counts.
        static TOUCHED: RefCell<Option<Vec<usize>>> = const { RefCell::new(None) };
    }

    /// Numbers of the lines that `operation` touches on this thread, in that order and as often as it does, and its result.
    ///
    /// # Panics
    /// If `operation` counts, too.
    pub fn touched_lines<R>(operation: impl FnOnce() -> R) -> (Vec<usize>, R) {
        let counting = TOUCHED.with_borrow_mut(|touched| touched.replace(Vec::new()).is_some());
        assert!(!counting, "lines are being counted already");
        let result = operation();
        (TOUCHED.take().unwrap_or_default(), result)
    }

    /// Number of different lines that `operation` touches on this thread, and its result.
    ///
    /// # Panics
    /// If `operation` counts, too.
    pub fn count_lines<R>(operation: impl FnOnce() -> R) -> (usize, R) {
        let (mut touched, result) = touched_lines(operation);
        touched.sort_unstable();
        touched.dedup();
        (touched.len(), result)
    }

    /// Notes that `bytes` bytes from `start` on are looked at or changed.
    #[inline(always)]
    pub(crate) fn note_bytes(start: *const u8, bytes: usize) {
        if !cfg!(any(test, debug_assertions)) {
            return;
        }
        // A thread that is ending counts no more, but a table of its own may go after the count.
        let _ = TOUCHED.try_with(|touched| {
            if let Some(touched) = &mut *touched.borrow_mut()
                && bytes > 0
            {
                let last = start.addr() + bytes - 1;
                touched.extend(start.addr() / CACHE_LINE_BYTES..=last / CACHE_LINE_BYTES);
            }
        });
    }
}

#[cfg(any(test, feature = "count-lines"))]
pub(crate) use notes::note_bytes;
#[cfg(any(test, feature = "count-lines"))]
pub use notes::{count_lines, touched_lines};

#[cfg(not(any(test, feature = "count-lines")))]
#[inline(always)]
pub(crate) fn note_bytes(_start: *const u8, _bytes: usize) {}

/// Notes that a value is looked at or changed.
#[inline(always)]
pub(crate) fn note<T>(value: *const T) {
    note_bytes(value.cast(), size_of::<T>());
}

#[cfg(test)]
mod tests;
