//! The magazine: small buffers that a thread caches, so that allocating and freeing them touches no memory shared
//! with other threads. The buffer freed last is allocated first, because it is in the CPU cache.
//!
//! A thread has one magazine, for the first pool that it uses; buffers of other pools bypass it. When that pool is
//! dropped, the next pool takes over the magazine.

use std::cell::RefCell;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::shared::{BATCH, Cell, Handle, Shared, give_one, release};
use crate::raw::Header;

/// Maximum number of buffers in a magazine.
pub(super) const MAGAZINE_BUFFERS: usize = 64;

thread_local! {
    static MAGAZINE: RefCell<Option<Magazine>> = const { RefCell::new(None) };
}

/// A thread's magazine; see the module's description.
struct Magazine {
    pool: Handle,
    cells: [NonNull<Header>; MAGAZINE_BUFFERS],
    count: usize,
    /// Copy of `count` that other threads read.
    published: Arc<AtomicUsize>,
}

impl Magazine {
    fn new(pool: Handle) -> Self {
        let published = pool.add_magazine();
        Magazine { pool, cells: [NonNull::dangling(); MAGAZINE_BUFFERS], count: 0, published }
    }

    #[inline]
    fn pop(&mut self) -> Option<NonNull<Header>> {
        self.count = self.count.checked_sub(1)?;
        self.published.store(self.count, Ordering::Relaxed);
        Some(self.cells[self.count])
    }

    #[inline]
    fn push(&mut self, header: NonNull<Header>) {
        if self.count == MAGAZINE_BUFFERS {
            self.give_half_back();
        }
        self.cells[self.count] = header;
        self.count += 1;
        self.published.store(self.count, Ordering::Relaxed);
    }

    /// Returns the least recently used half of the buffers to the pool.
    #[cold]
    fn give_half_back(&mut self) {
        let batch = std::array::from_fn(|slot| Cell(self.cells[slot]));
        self.cells.copy_within(BATCH.., 0);
        self.count -= BATCH;
        self.published.store(self.count, Ordering::Relaxed);
        self.pool.small.give_batch(batch);
        // SAFETY: the cells of the batch were counted, and are in a queue now. The magazine's own reference remains.
        unsafe { release(self.pool.address(), BATCH) };
    }

    /// Fetches a batch from the pool and takes one buffer of it.
    #[cold]
    fn refill(&mut self) -> Option<NonNull<Header>> {
        let batch = self.pool.small.take_batch()?;
        self.pool.retain(BATCH);
        for (slot, Cell(header)) in self.cells.iter_mut().zip(batch) {
            *slot = header;
        }
        self.count = BATCH;
        self.pop()
    }
}

impl Drop for Magazine {
    fn drop(&mut self) {
        self.pool.remove_magazine(&self.published);
        for &header in &self.cells[..self.count] {
            // SAFETY: the cells are of this pool, counted, and unused.
            unsafe { give_one(self.pool.address(), Cell(header)) };
        }
    }
}

/// Calls `act` with the magazine of this thread, if it belongs to this pool or can be claimed for it.
#[inline]
fn with_magazine<R>(pool: &Handle, act: impl FnOnce(&mut Magazine) -> Option<R>) -> Option<R> {
    // A thread that is ending has no magazine.
    let done = MAGAZINE.try_with(|magazine| {
        let mut magazine = magazine.try_borrow_mut().ok()?;
        match &mut *magazine {
            Some(magazine) if magazine.pool.address() == pool.address() => act(magazine),
            other => act(claim(other, pool)?),
        }
    });
    done.ok().flatten()
}

/// Makes a magazine for a pool, unless this thread has one for another pool that is in use.
#[cold]
fn claim<'a>(magazine: &'a mut Option<Magazine>, pool: &Handle) -> Option<&'a mut Magazine> {
    let is_taken = magazine.as_ref().is_some_and(|other| !other.pool.is_abandoned(other.count));
    if is_taken || !pool.has_magazines() {
        return None;
    }
    Some(magazine.insert(Magazine::new(pool.clone())))
}

/// Allocates a small buffer.
#[inline]
pub(crate) fn take_small(pool: &Handle) -> Option<NonNull<Header>> {
    with_magazine(pool, |magazine| magazine.pop().or_else(|| magazine.refill())).or_else(|| pool.take_one(&pool.small))
}

/// Frees a small buffer.
///
/// # Safety
/// The buffer is a counted cell of this pool, and unused.
#[inline]
pub(super) unsafe fn give_small(shared: NonNull<Shared>, header: NonNull<Header>) {
    // SAFETY: the pool lives as long as the cell is counted.
    let pool = unsafe { Handle::borrowed(shared) };
    let keep = |magazine: &mut Magazine| {
        magazine.push(header);
        Some(())
    };
    if with_magazine(&pool, keep).is_none() {
        // SAFETY: as the caller promises; no magazine holds the cell.
        unsafe { give_one(shared, Cell(header)) };
    }
}
