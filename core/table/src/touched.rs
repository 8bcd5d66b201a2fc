//! Counting the cache lines that an operation touches.
//!
//! The number of cache lines that a packet needs limits forwarding speed, so it is part of each operation's contract.
//! Every access to the tables' memory passes one of a few functions, which record it here. Only debug builds with the
//! feature `count-lines` do so (and the tests of this crate); in others this code compiles to nothing. Release builds
//! are excluded because tests enable the feature for everything that is built with them, including measurements of
//! instructions.
//!
//! Only lines of the tables' memory are counted: buckets, entries, byte strings and the bookkeeping beside them. The
//! handles themselves (a few pointers and counters that every operation uses) are not counted, because they stay in
//! the caches.
//!
//! | Operation | Lines |
//! |---|---|
//! | bucket table: look up, guess (hit or miss) | 1; without a hit 1 more for each overflow bucket of the chain |
//! | bucket table: insert | 1; chain and a new bucket when the home bucket is full |
//! | bucket table: remove, replace | 1; the whole chain when there is one |
//! | concurrent bucket table: all of these | the same; while it grows, changing a moved chain touches both arrays |
//! | arena: get | the entry's lines |
//! | arena: allocate | the entry's lines the first time, later 1 (the list of free slots); free: 1 |
//! | shared arena: get | the entry's lines, and 1 of the list of segments |
//! | byte arena: get | the lines of the bytes |
//! | byte arena: allocate, free | bookkeeping only: 3 of the chunk; 2 of its neighbours when it moves to another list |
//! | cache lines: index | 1 |
//! | prefetching anything | 0; [`prefetched_lines`] returns these lines |
//!
//! "Chain" means the home bucket and its overflow buckets; at the load that tables are sized for, 7 % of home buckets
//! have one.

/// Bytes of a cache line, which one hint prefetches.
pub const CACHE_LINE_BYTES: usize = 64;

#[cfg(any(test, feature = "count-lines"))]
mod notes {
    use std::cell::RefCell;

    use super::CACHE_LINE_BYTES;

    thread_local! {
        /// Numbers of the lines touched on this thread, while they are being counted.
        static TOUCHED: RefCell<Option<Vec<usize>>> = const { RefCell::new(None) };
        /// The same for lines that were prefetched.
        static PREFETCHED: RefCell<Option<Vec<usize>>> = const { RefCell::new(None) };
    }

    /// Returns the numbers of the lines that `operation` touches on this thread, in order and with repetitions, and
    /// its result.
    ///
    /// # Panics
    /// If `operation` counts lines, too.
    pub fn touched_lines<R>(operation: impl FnOnce() -> R) -> (Vec<usize>, R) {
        let counting = TOUCHED.with_borrow_mut(|touched| touched.replace(Vec::new()).is_some());
        assert!(!counting, "line counting is already active on this thread");
        let result = operation();
        (TOUCHED.take().unwrap_or_default(), result)
    }

    /// Returns the numbers of the lines that `operation` prefetches on this thread, in order and with repetitions, and
    /// its result.
    ///
    /// # Panics
    /// If `operation` does the same.
    pub fn prefetched_lines<R>(operation: impl FnOnce() -> R) -> (Vec<usize>, R) {
        let counting = PREFETCHED.with_borrow_mut(|prefetched| prefetched.replace(Vec::new()).is_some());
        assert!(!counting, "prefetched lines are already noted on this thread");
        let result = operation();
        (PREFETCHED.take().unwrap_or_default(), result)
    }

    /// Records that the line at this address is prefetched.
    #[inline(always)]
    pub(crate) fn note_prefetch(address: usize) {
        if !cfg!(any(test, debug_assertions)) {
            return;
        }
        let _ = PREFETCHED.try_with(|prefetched| {
            if let Some(prefetched) = &mut *prefetched.borrow_mut() {
                prefetched.push(address / CACHE_LINE_BYTES);
            }
        });
    }

    /// Returns the number of different lines that `operation` touches on this thread, and its result.
    ///
    /// # Panics
    /// If `operation` counts lines, too.
    pub fn count_lines<R>(operation: impl FnOnce() -> R) -> (usize, R) {
        let (mut touched, result) = touched_lines(operation);
        touched.sort_unstable();
        touched.dedup();
        (touched.len(), result)
    }

    /// Records that `bytes` bytes from `start` on are read or written.
    #[inline(always)]
    pub(crate) fn note_bytes(start: *const u8, bytes: usize) {
        if !cfg!(any(test, debug_assertions)) {
            return;
        }
        // A thread's tables may be dropped after its counter; these accesses are not counted.
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
pub use notes::{count_lines, prefetched_lines, touched_lines};
#[cfg(any(test, feature = "count-lines"))]
pub(crate) use notes::{note_bytes, note_prefetch};

#[cfg(not(any(test, feature = "count-lines")))]
#[inline(always)]
pub(crate) fn note_bytes(_start: *const u8, _bytes: usize) {}

#[cfg(not(any(test, feature = "count-lines")))]
#[inline(always)]
pub(crate) fn note_prefetch(_address: usize) {}

/// Records that a value is read or written.
#[inline(always)]
pub(crate) fn note<T>(value: *const T) {
    note_bytes(value.cast(), size_of::<T>());
}

#[cfg(test)]
mod tests;
