//! Fetches for the hint plane: what the pipelines will touch, asked for ahead of time. Nothing here changes the table, and
//! any index may be given.

use namehop_hash::PrefixHashes;
use namehop_store::EvictionPolicy;

use super::Pcct;
use super::content::{ContentStore, DIGEST_BYTES};
use super::entry::Entry;
use crate::time::Timestamp;

/// Lines of cached Data that are asked for; the processor notices the run and fetches the rest itself.
const DATA_LINES: usize = 8;

impl Pcct {
    /// Are hashes of a Data name needed although its PIT token leads to an entry with this name? They are while Interests
    /// with CanBePrefix or with an implicit digest are pending, or while such Interests were lately answered.
    pub(crate) fn asks_for_prefixes(&self, now: Timestamp) -> bool {
        self.pending_unusual > 0 || (self.content.admits() && self.content.indexes(now))
    }

    /// Bucket of a name.
    #[inline]
    pub(crate) fn prefetch_bucket(&self, name_hash: u64) {
        self.table.prefetch(name_hash);
    }

    /// Bucket of a name in the index of cached Data by prefix.
    #[inline]
    pub(crate) fn prefetch_prefix(&self, name_hash: u64) {
        self.content.prefetch_prefix(name_hash);
    }

    /// Buckets in which Data without a usable token looks for what it satisfies.
    #[inline]
    pub(crate) fn prefetch_satisfied(&self, hashes: &PrefixHashes) {
        self.table.prefetch(hashes.full());
        for depth in 1..hashes.depth() {
            if self.pending_prefixes[depth] > 0 {
                self.table.prefetch(hashes.get(depth));
            }
        }
    }

    /// The entry of a name, judging by its bucket alone. Best when that is in the cache.
    #[inline]
    pub(crate) fn guess(&self, name_hash: u64) -> Option<u32> {
        self.table.guess(name_hash)
    }

    /// All lines of an entry.
    #[inline]
    pub(crate) fn prefetch_entry(&self, index: u32) {
        for line in 0..size_of::<Entry>() / 64 {
            self.entries.prefetch_line(index, line);
        }
    }

    /// All lines of the entry that will be made after `before` others.
    #[inline]
    pub(crate) fn prefetch_new_entry(&self, before: usize) {
        if let Some(index) = self.entries.upcoming(before) {
            self.prefetch_entry(index);
        }
    }

    /// Identity and name of an entry.
    #[inline]
    pub(crate) fn prefetch_identity(&self, index: u32) {
        self.entries.prefetch_line(index, 0);
    }

    /// The cached Data of an entry, if it has any. Reads the entry.
    #[inline]
    pub(crate) fn prefetch_data(&self, index: u32) {
        let Some(entry) = self.entries.get(index).filter(|entry| entry.has_data()) else { return };
        let lines = (DIGEST_BYTES + usize::from(entry.data_bytes)).div_ceil(64);
        self.content.blocks.prefetch(entry.data, lines.min(DATA_LINES));
    }

    /// What the end of an entry touches. Reads the entry.
    #[inline]
    pub(crate) fn prefetch_removal(&self, index: u32) {
        if let Some(entry) = self.entries.get(index) {
            self.table.prefetch(entry.name_hash);
        }
    }

    /// What the eviction of an entry's Data touches, and what new Data is then written over. Reads the entry.
    #[inline]
    pub(crate) fn prefetch_eviction(&self, index: u32) {
        let Some(entry) = self.entries.get(index) else { return };
        self.table.prefetch(entry.name_hash);
        self.prefetch_data(index);
    }
}

impl ContentStore {
    /// May Data enter?
    #[inline]
    pub(crate) fn admits(&self) -> bool {
        self.admit && self.capacity > 0
    }

    /// Does the next new Data displace another?
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.admits() && self.len() >= self.capacity
    }

    /// The Data that will be evicted after `victim`, or first.
    #[inline]
    pub(crate) fn victim_after(&self, victim: Option<u32>) -> Option<u32> {
        self.policy.victim_after(victim)
    }
}
