//! A bounded ring between two threads: one sends items in bursts, the other receives them in bursts.
//!
//! Neither side waits for the other. A burst costs each side one atomic store, however many items it has. The sender
//! writes items into free slots, where the receiver does not see them yet, and then
//! [publishes](HandoverSender::publish) them all. The receiver takes the published items and then frees all their
//! slots at once. Each side remembers the other side's counter from its last read, and reads it again only when that
//! value is not enough. So the cache line with a counter moves between the two cores at most once per burst.
//!
//! Items lie in the ring itself, in consecutive slots. A burst is prefetched as a whole before its first item is
//! taken: each line comes from the other core's cache, which is slow, and several lines at a time take no longer than
//! one.

#[cfg(all(test, loom))]
mod model;
#[cfg(all(test, not(loom)))]
mod tests;

use std::fmt;
use std::mem::MaybeUninit;

use crossbeam_utils::CachePadded;

use crate::prefetch::prefetch_lines;
use crate::sync::{Arc, AtomicU64, Ordering, UnsafeCell};

/// State that both sides share.
struct Shared<T> {
    /// The ring; its length is a power of two.
    slots: Box<[UnsafeCell<MaybeUninit<T>>]>,
    /// Number of items published since the start. Written by the sender.
    published: CachePadded<AtomicU64>,
    /// Number of items taken since the start. Written by the receiver.
    taken: CachePadded<AtomicU64>,
}

// SAFETY: only one side at a time uses a slot. The sender writes slots from `published` up to `taken` plus the
// capacity; the receiver reads slots from `taken` to `published`. Each side advances its counter with `Release` after
// it is done with slots, and the other side reads that counter with `Acquire` before it uses them. Only items move
// between threads, and they are `Send`.
unsafe impl<T: Send> Sync for Shared<T> {}
// SAFETY: as above; the slots own their items.
unsafe impl<T: Send> Send for Shared<T> {}

impl<T> Shared<T> {
    fn slot(&self, position: u64) -> &UnsafeCell<MaybeUninit<T>> {
        &self.slots[position as usize & (self.slots.len() - 1)]
    }

    /// Moves an item out of its slot.
    ///
    /// # Safety
    /// The slot holds an item, the other side does not use the slot, and the item is not taken again.
    unsafe fn take(&self, position: u64) -> T {
        // SAFETY: as the caller promises.
        self.slot(position).with_mut(|slot| unsafe { (*slot).assume_init_read() })
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // Both sides are dropped, and their writes are visible to the thread that drops this value.
        let end = self.published.load(Ordering::Acquire);
        for position in self.taken.load(Ordering::Acquire)..end {
            // SAFETY: the slots from `taken` to `published` hold items, and no other thread has access.
            drop(unsafe { self.take(position) });
        }
    }
}

/// Makes a ring with room for `capacity` items, rounded up to a power of two.
pub fn handover_ring<T: Send>(capacity: usize) -> (HandoverSender<T>, HandoverReceiver<T>) {
    let slots = (0..capacity.max(1).next_power_of_two()).map(|_| UnsafeCell::new(MaybeUninit::uninit()));
    let shared = Arc::new(Shared {
        slots: slots.collect(),
        published: CachePadded::new(AtomicU64::new(0)),
        taken: CachePadded::new(AtomicU64::new(0)),
    });
    let receiver = HandoverReceiver { shared: Arc::clone(&shared), taken: 0, published: 0 };
    (HandoverSender { shared, written: 0, published: 0, taken: 0 }, receiver)
}

/// The sending side.
pub struct HandoverSender<T: Send> {
    shared: Arc<Shared<T>>,
    /// Number of items written since the start, published or not.
    written: u64,
    /// Number of items published since the start.
    published: u64,
    /// The receiver's counter when this side last read it.
    taken: u64,
}

impl<T: Send> HandoverSender<T> {
    /// Writes an item for the receiver, which sees it after [`publish`](Self::publish). Keeps at least `reserve`
    /// slots free.
    ///
    /// # Errors
    /// Returns the item if the ring has at most `reserve` free slots.
    #[inline]
    pub fn push(&mut self, item: T, reserve: usize) -> Result<(), T> {
        if !self.has_room(reserve) {
            return Err(item);
        }
        self.push_with(reserve, || item);
        Ok(())
    }

    /// Like [`push`](Self::push), but builds the item in its slot; inlined into the caller. Without room it does not
    /// call `make` and returns `false`.
    #[inline(always)]
    pub fn push_with(&mut self, reserve: usize, make: impl FnOnce() -> T) -> bool {
        if !self.has_room(reserve) {
            return false;
        }
        // SAFETY: the slot is free: the receiver took its item before it stored the value of `taken` that was read
        // with `Acquire`.
        self.shared.slot(self.written).with_mut(|slot| unsafe {
            (*slot).write(make());
        });
        self.written += 1;
        true
    }

    /// Returns true if there are more than `reserve` free slots.
    #[inline(always)]
    fn has_room(&mut self, reserve: usize) -> bool {
        if self.free() <= reserve {
            self.taken = self.shared.taken.load(Ordering::Acquire);
        }
        self.free() > reserve
    }

    /// Shows the receiver all items written so far. Returns false if there were no new ones.
    #[inline]
    pub fn publish(&mut self) -> bool {
        let is_new = self.written != self.published;
        if is_new {
            self.published = self.written;
            self.shared.published.store(self.published, Ordering::Release);
        }
        is_new
    }

    /// Number of free slots according to the last read of the receiver's counter.
    fn free(&self) -> usize {
        self.capacity() - (self.written - self.taken) as usize
    }

    /// Number of items that fit.
    pub fn capacity(&self) -> usize {
        self.shared.slots.len()
    }
}

impl<T: Send> Drop for HandoverSender<T> {
    fn drop(&mut self) {
        self.publish();
    }
}

/// The receiving side.
pub struct HandoverReceiver<T: Send> {
    shared: Arc<Shared<T>>,
    /// Number of items taken since the start.
    taken: u64,
    /// The sender's counter when this side last read it.
    published: u64,
}

/// Frees slots after a burst, even if the receiver's callback panics.
struct GiveBack<'a, T: Send>(&'a mut HandoverReceiver<T>);

impl<T: Send> Drop for GiveBack<'_, T> {
    fn drop(&mut self) {
        self.0.shared.taken.store(self.0.taken, Ordering::Release);
    }
}

impl<T: Send> HandoverReceiver<T> {
    /// Takes up to `limit` items, oldest first, and passes each to `take`. Returns their number.
    #[inline]
    pub fn receive(&mut self, limit: usize, mut take: impl FnMut(T)) -> usize {
        if self.published == self.taken {
            self.published = self.shared.published.load(Ordering::Acquire);
        }
        let count = limit.min((self.published - self.taken) as usize);
        if count == 0 {
            return 0;
        }
        self.ask_for(count);
        let burst = GiveBack(self);
        for _ in 0..count {
            // SAFETY: the item was published before the counter that was read with `Acquire`, and it is taken once,
            // because the position advances before anything else happens.
            let item = unsafe { burst.0.shared.take(burst.0.taken) };
            burst.0.taken += 1;
            take(item);
        }
        count
    }

    /// Prefetches the next `count` items.
    #[inline]
    fn ask_for(&self, count: usize) {
        let slots = &self.shared.slots;
        let first = self.taken as usize & (slots.len() - 1);
        // The burst may wrap around the end of the ring.
        let in_front = count.min(slots.len() - first);
        prefetch_lines(slots.as_ptr().wrapping_add(first), in_front * size_of::<T>());
        if in_front < count {
            prefetch_lines(slots.as_ptr(), (count - in_front) * size_of::<T>());
        }
    }

    /// Returns true if there is nothing to receive.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of items that can be received.
    pub fn len(&self) -> usize {
        (self.shared.published.load(Ordering::Acquire) - self.taken) as usize
    }
}

impl<T: Send> fmt::Debug for HandoverSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandoverSender").field("written", &self.written).field("capacity", &self.capacity()).finish()
    }
}

impl<T: Send> fmt::Debug for HandoverReceiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandoverReceiver").field("taken", &self.taken).field("len", &self.len()).finish()
    }
}
