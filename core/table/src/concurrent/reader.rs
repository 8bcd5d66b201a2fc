//! The readers' side of a concurrent bucket table.

use super::Shared;
use super::array::{Bucket, BucketArray, index_in, link_in, tag_in};
use crate::sync::{Arc, Ordering, fence};
use crate::tags::{LINK_SLOT, tag_of};

/// A reader's side of a concurrent bucket table. Cheap to clone.
#[derive(Clone)]
pub struct ConcurrentBucketReader {
    pub(super) shared: Arc<Shared>,
}

impl ConcurrentBucketReader {
    /// Iterates over all indexes with a matching tag in the chain of `hash`.
    ///
    /// It finds every entry that is in the table during the whole call, even if the writer changes the table meanwhile.
    ///
    /// # Safety
    /// Arrays retired by [`grow_step`](super::ConcurrentBucketTable::grow_step) after this call are not dropped
    /// before the iterator is.
    #[inline(always)]
    pub unsafe fn candidates(&self, hash: u64) -> ConcurrentCandidates<'_> {
        // SAFETY: as the caller promises; an array that was current is complete before its pointer is published.
        let array = unsafe { &*self.shared.current.load(Ordering::Acquire) };
        ConcurrentCandidates::new(array, hash)
    }

    /// Prefetches the home bucket of `hash`.
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

/// Iterator over the indexes with a matching tag in one chain.
pub struct ConcurrentCandidates<'a> {
    array: &'a BucketArray,
    bucket: &'a Bucket,
    /// Slots before the last that had the tag when the bucket was first read.
    matches: u32,
    tag: u32,
    is_last_read: bool,
}

impl<'a> ConcurrentCandidates<'a> {
    #[inline(always)]
    pub(super) fn new(array: &'a BucketArray, hash: u64) -> Self {
        let bucket = array.bucket(array.home(hash));
        let mut candidates = ConcurrentCandidates { array, bucket, matches: 0, tag: tag_of(hash), is_last_read: false };
        candidates.look();
        candidates
    }

    /// Compares the tags without branching on each, because the CPU cannot predict which slot matches.
    #[inline(always)]
    fn look(&mut self) {
        self.matches = 0;
        for (position, slot) in self.bucket.slots[..LINK_SLOT].iter().enumerate() {
            let has_tag = tag_in(slot.load(Ordering::Relaxed)) == self.tag;
            self.matches |= u32::from(has_tag) << position;
        }
        self.is_last_read = false;
    }

    /// Returns the index in a word with the tag. Pairs with the release store of every slot, so the entry is seen
    /// complete.
    #[inline(always)]
    fn candidate(&self, word: u64) -> Option<u32> {
        fence(Ordering::Acquire);
        (tag_in(word) == self.tag).then_some(index_in(word))
    }
}

impl Iterator for ConcurrentCandidates<'_> {
    type Item = u32;

    #[inline(always)]
    fn next(&mut self) -> Option<u32> {
        loop {
            while self.matches != 0 {
                let slot = self.matches.trailing_zeros() as usize;
                self.matches &= self.matches - 1;
                // An entry that stays in the table is still in this slot.
                if let Some(index) = self.candidate(self.bucket.slots[slot].load(Ordering::Relaxed)) {
                    return Some(index);
                }
            }
            if self.is_last_read {
                return None;
            }
            // The last slot is read once: if it was an entry or a link then, it is treated as that to the end.
            let last = self.bucket.slots[LINK_SLOT].load(Ordering::Relaxed);
            if let Some(index) = self.candidate(last) {
                self.is_last_read = true;
                return Some(index);
            }
            self.bucket = self.array.bucket(link_in(last)?);
            self.look();
        }
    }
}
