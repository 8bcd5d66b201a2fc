//! The readers' side of a concurrent bucket table.

use super::Shared;
use super::array::{BucketArray, FREE, index_in, link_in, tag_in};
use crate::sync::{Arc, AtomicU64, Ordering, fence};
use crate::tags::tag_of;

/// A reader's side of a concurrent bucket table. Cheap to clone.
#[derive(Clone)]
pub struct ConcurrentBucketReader {
    pub(super) shared: Arc<Shared>,
}

impl ConcurrentBucketReader {
    /// All indexes whose hash may be `hash`.
    ///
    /// An entry that is in the table during the whole call is found, whatever the writer does meanwhile.
    ///
    /// # Safety
    /// Arrays retired by [`grow_step`](super::ConcurrentBucketTable::grow_step) after this call are not dropped before the
    /// iterator is.
    #[inline(always)]
    pub unsafe fn candidates(&self, hash: u64) -> ConcurrentCandidates<'_> {
        // SAFETY: as the caller promises; an array that was current is complete before its pointer is published.
        let array = unsafe { &*self.shared.current.load(Ordering::Acquire) };
        ConcurrentCandidates::new(array, hash)
    }

    /// Asks for the home bucket of `hash` to be brought into the cache.
    ///
    /// # Safety
    /// Arrays retired by [`grow_step`](super::ConcurrentBucketTable::grow_step) are not dropped during the call.
    #[inline(always)]
    pub unsafe fn prefetch(&self, hash: u64) {
        // SAFETY: as the caller promises.
        let array = unsafe { &*self.shared.current.load(Ordering::Acquire) };
        array.prefetch(hash);
    }
}

/// Iterator over the indexes whose hash may be the one looked for.
pub struct ConcurrentCandidates<'a> {
    array: &'a BucketArray,
    /// Slots that are still to be read of the bucket at hand.
    slots: std::slice::Iter<'a, AtomicU64>,
    tag: u32,
}

impl<'a> ConcurrentCandidates<'a> {
    #[inline(always)]
    pub(super) fn new(array: &'a BucketArray, hash: u64) -> Self {
        ConcurrentCandidates { array, slots: array.bucket(array.home(hash)).slots.iter(), tag: tag_of(hash) }
    }
}

impl Iterator for ConcurrentCandidates<'_> {
    type Item = u32;

    /// Reads each slot once: what was an entry or a link then is that to the end.
    #[inline(always)]
    fn next(&mut self) -> Option<u32> {
        let mut last = FREE;
        loop {
            for slot in self.slots.by_ref() {
                last = slot.load(Ordering::Relaxed);
                if tag_in(last) == self.tag {
                    // Pairs with the release store of every slot: entries are seen complete.
                    fence(Ordering::Acquire);
                    return Some(index_in(last));
                }
            }
            // The link is in the last slot. A link or an entry there was seen by the call that read it.
            let next = link_in(last)?;
            fence(Ordering::Acquire);
            self.slots = self.array.bucket(next).slots.iter();
            last = FREE;
        }
    }
}
