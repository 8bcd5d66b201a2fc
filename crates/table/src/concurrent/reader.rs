//! The readers' side of a concurrent bucket table.

use super::Shared;
use super::array::{Bucket, BucketArray, FREE, index_in, link_in, tag_in};
use crate::sync::{Arc, Ordering, fence};
use crate::tags::{LINK_SLOT, SLOTS, tag_of};

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
    words: [u64; SLOTS],
    matches: u32,
    tag: u32,
}

impl<'a> ConcurrentCandidates<'a> {
    #[inline(always)]
    pub(super) fn new(array: &'a BucketArray, hash: u64) -> Self {
        let mut candidates = ConcurrentCandidates { array, words: [FREE; SLOTS], matches: 0, tag: tag_of(hash) };
        candidates.read(array.home(hash));
        candidates
    }

    /// Reads each slot of a bucket once: what was an entry or a link then is that to the end.
    #[inline(always)]
    fn read(&mut self, number: usize) {
        let Bucket { slots } = self.array.bucket(number);
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
