//! The engine's use of the dead nonce list: what enters it when a PIT entry ends, and how long that lasts.

use std::time::Duration;

use namehop_hash::hash_with_nonce;
use namehop_packet::Timestamp;
use namehop_table::TableError;

use crate::dead_nonce_list::DeadNonceList;
use crate::pcct::{Pcct, PitRef};

/// The dead nonce list of one engine, with the lifetime of its nonces.
pub(crate) struct DeadNonces {
    list: DeadNonceList,
    lifetime_ms: u64,
}

impl DeadNonces {
    /// Creates an empty list for about `capacity` nonces at a time.
    ///
    /// # Errors
    /// If the memory cannot be allocated.
    pub(super) fn new(lifetime_ms: u64, capacity: usize) -> Result<Self, TableError> {
        Ok(DeadNonces { list: DeadNonceList::new(Duration::from_millis(lifetime_ms), capacity)?, lifetime_ms })
    }

    /// Makes memory ready in advance for a burst of this number of packets.
    #[inline(always)]
    pub(crate) fn expect_use(&mut self, packets: usize) {
        self.list.expect_use(packets);
    }

    /// Returns whether the list has this nonce of a name.
    #[inline(always)]
    pub(crate) fn contains(&self, name_hash: u64, nonce: u32, now: Timestamp) -> bool {
        self.list.contains(hash_with_nonce(name_hash, nonce), now)
    }

    /// Adds the nonce of an Interest.
    pub(crate) fn insert(&mut self, name_hash: u64, nonce: u32, now: Timestamp) {
        self.list.insert(hash_with_nonce(name_hash, nonce), now);
    }

    /// Adds all nonces that the Interest of a PIT entry was sent upstream with.
    pub(crate) fn insert_all_sent(&mut self, Pcct { names, pit: slots, .. }: &Pcct, pit: PitRef, now: Timestamp) {
        let name_hash = names.entry(pit.entry).name_hash;
        for record in slots.out_records(pit) {
            self.list.insert(hash_with_nonce(name_hash, record.nonce), now);
        }
    }

    /// Prefetches the memory of a nonce; `hash` is its hash with that of the name.
    #[inline(always)]
    pub(crate) fn prefetch(&self, hash: u64) {
        self.list.prefetch(hash);
    }

    /// Returns whether a nonce added now would outlast Data that is fresh for `freshness_ms` from now on.
    #[inline]
    pub(crate) fn outlast(&self, freshness_ms: u64) -> bool {
        freshness_ms < self.lifetime_ms
    }

    /// Returns whether a nonce added now would outlast Data that is fresh until `fresh_until`.
    #[inline]
    pub(crate) fn outlast_until(&self, fresh_until: Timestamp, now: Timestamp) -> bool {
        fresh_until < now.plus_ms(self.lifetime_ms)
    }

    /// Returns the number of nonces at this time.
    pub(crate) fn len(&self, now: Timestamp) -> usize {
        self.list.len(now)
    }
}
