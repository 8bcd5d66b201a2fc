//! A bounded ring between two threads: one puts items in, the other one takes them out, in bursts.
//!
//! Neither waits for the other. A burst costs each side one atomic store, however many items it has: the sender writes items into
//! free places, which nobody sees, and then [publishes](HandoverSender::publish) them all; the receiver takes out what is published
//! and then gives all their places back. Each side remembers how far the other one was when it last looked, and looks again only
//! when that is not far enough; so the line that says how far a side is travels between the two processors once per burst at most.
//!
//! Items lie in the ring itself, one behind the other. A burst of them is asked for as a whole before the first is taken out: each comes
//! from the other processor's cache, which takes long, and several at a time take no longer than one.

#[cfg(all(test, loom))]
mod model;
#[cfg(all(test, not(loom)))]
mod tests;

use std::fmt;
use std::mem::MaybeUninit;

use crossbeam_utils::CachePadded;

use crate::prefetch::prefetch_lines;
use crate::sync::{Arc, AtomicU64, Ordering, UnsafeCell};

/// What both sides share.
struct Shared<T> {
    /// A power of two of them.
    slots: Box<[UnsafeCell<MaybeUninit<T>>]>,
    /// Items published since the start. Written by the sender.
    published: CachePadded<AtomicU64>,
    /// Items taken out since the start. Written by the receiver.
    taken: CachePadded<AtomicU64>,
}

// SAFETY: a slot is used by one side at a time. The sender writes to slots from `taken` plus capacity downwards to `published`, the
// receiver reads those from `taken` to `published`; each side moves its number with `Release` after it is done with slots, and the
// other one reads it with `Acquire` before it uses them. What moves from thread to thread are items, which are `Send`.
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
    /// The slot holds an item and is not used by the other side, and the item is not taken out again.
    unsafe fn take(&self, position: u64) -> T {
        // SAFETY: as the caller promises.
        self.slot(position).with_mut(|slot| unsafe { (*slot).assume_init_read() })
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // Both sides are gone, and all that they did is visible to whoever drops this.
        let end = self.published.load(Ordering::Acquire);
        for position in self.taken.load(Ordering::Acquire)..end {
            // SAFETY: items from `taken` to `published` are there, and nobody else is.
            drop(unsafe { self.take(position) });
        }
    }
}

/// A ring with room for `capacity` items, rounded up to a power of two.
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

/// The side that puts items in.
pub struct HandoverSender<T: Send> {
    shared: Arc<Shared<T>>,
    /// Items written since the start, those that are not published yet included.
    written: u64,
    /// Of these, those that are published.
    published: u64,
    /// Items that the receiver had taken out when this side last looked.
    taken: u64,
}

impl<T: Send> HandoverSender<T> {
    /// Writes an item for the receiver, which sees it after [`publish`](Self::publish). At least `reserve` places stay free.
    ///
    /// # Errors
    /// Gives the item back when there are not so many.
    #[inline]
    pub fn push(&mut self, item: T, reserve: usize) -> Result<(), T> {
        if !self.has_room(reserve) {
            return Err(item);
        }
        self.push_with(reserve, || item);
        Ok(())
    }

    /// The same for an item that is put together where it is to lie: this is part of its caller. Without room nothing is made, and the
    /// answer is `false`.
    #[inline(always)]
    pub fn push_with(&mut self, reserve: usize, make: impl FnOnce() -> T) -> bool {
        if !self.has_room(reserve) {
            return false;
        }
        // SAFETY: the place is free: what was there was taken out before `taken` came to be what was read with `Acquire`.
        self.shared.slot(self.written).with_mut(|slot| unsafe {
            (*slot).write(make());
        });
        self.written += 1;
        true
    }

    /// Whether there are more than so many free places.
    #[inline(always)]
    fn has_room(&mut self, reserve: usize) -> bool {
        if self.free() <= reserve {
            self.taken = self.shared.taken.load(Ordering::Acquire);
        }
        self.free() > reserve
    }

    /// Shows the receiver all items that were written; whether there were any.
    #[inline]
    pub fn publish(&mut self) -> bool {
        let is_new = self.written != self.published;
        if is_new {
            self.published = self.written;
            self.shared.published.store(self.published, Ordering::Release);
        }
        is_new
    }

    /// Free places when this side last looked.
    fn free(&self) -> usize {
        self.capacity() - (self.written - self.taken) as usize
    }

    /// Items that fit.
    pub fn capacity(&self) -> usize {
        self.shared.slots.len()
    }
}

impl<T: Send> Drop for HandoverSender<T> {
    fn drop(&mut self) {
        self.publish();
    }
}

/// The side that takes items out.
pub struct HandoverReceiver<T: Send> {
    shared: Arc<Shared<T>>,
    /// Items taken out since the start.
    taken: u64,
    /// Items that were published when this side last looked.
    published: u64,
}

/// Gives places back after a burst, also if whoever gets the items panics.
struct GiveBack<'a, T: Send>(&'a mut HandoverReceiver<T>);

impl<T: Send> Drop for GiveBack<'_, T> {
    fn drop(&mut self) {
        self.0.shared.taken.store(self.0.taken, Ordering::Release);
    }
}

impl<T: Send> HandoverReceiver<T> {
    /// Takes out up to `limit` items, oldest first, and gives each to `take`. Returns how many there were.
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
            // SAFETY: the item was published before the number that was read with `Acquire`, and it is taken out once, because the
            // position moves on before anything else happens.
            let item = unsafe { burst.0.shared.take(burst.0.taken) };
            burst.0.taken += 1;
            take(item);
        }
        count
    }

    /// Asks for the next `count` items.
    #[inline]
    fn ask_for(&self, count: usize) {
        let slots = &self.shared.slots;
        let first = self.taken as usize & (slots.len() - 1);
        // The ring goes on at its beginning.
        let in_front = count.min(slots.len() - first);
        prefetch_lines(slots.as_ptr().wrapping_add(first), in_front * size_of::<T>());
        if in_front < count {
            prefetch_lines(slots.as_ptr(), (count - in_front) * size_of::<T>());
        }
    }

    /// Is there nothing to take out?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Items that can be taken out.
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
