//! *Ghosts*: names of evicted packets, which some policies remember.
//!
//! A ghost is 56 bits of a name's hash and a mark, in one of several lists that share the memory. Each ghost takes 16
//! bytes, and 12 bytes as its share of a table with cache-line buckets. Finding one touches two lines, each dependent
//! on the previous one.

use std::fmt;

use namehop_table::{BucketTable, PageRequest, TableError};

use crate::slots::{List, Note, Slots, kept};

/// Ghosts in lists.
pub(crate) struct Ghosts {
    slots: Slots,
    table: BucketTable,
    free: List,
    /// Numbers from here on were never used.
    fresh: u32,
    capacity: u32,
}

impl fmt::Debug for Ghosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ghosts").field("capacity", &self.capacity).field("ghosts", &self.table.len()).finish()
    }
}

impl Ghosts {
    /// Makes room for `capacity` ghosts in all lists together.
    pub(crate) fn new(capacity: usize) -> Result<Self, TableError> {
        Ok(Ghosts {
            slots: Slots::new(capacity)?,
            table: BucketTable::new(capacity, PageRequest::Large)?,
            free: List::default(),
            fresh: 0,
            capacity: capacity as u32,
        })
    }

    /// Returns the ghost of a name, and its mark.
    #[inline]
    pub(crate) fn find(&self, hash: u64) -> Option<(u32, u8)> {
        let hash = kept(hash);
        let ghost = self.table.find(hash, |ghost| self.slots.note(ghost).hash == hash)?;
        Some((ghost, self.slots.mark(ghost)))
    }

    /// Remembers a name that has no ghost, at the back of a list. Returns `false` if there is no room.
    pub(crate) fn push_back(&mut self, list: &mut List, hash: u64, mark: u8) -> bool {
        let ghost = match self.slots.pop_front(&mut self.free) {
            Some(ghost) => ghost,
            None if self.fresh < self.capacity => {
                self.fresh += 1;
                self.fresh - 1
            }
            None => return false,
        };
        let hash = kept(hash);
        if self.table.insert(hash, ghost).is_err() {
            self.slots.push_back(&mut self.free, ghost);
            return false;
        }
        self.slots.set_note(ghost, Note { hash, mark });
        self.slots.push_back(list, ghost);
        true
    }

    /// Forgets a ghost that is in this list.
    pub(crate) fn forget(&mut self, list: &mut List, ghost: u32) {
        self.slots.remove(list, ghost);
        self.table.remove(self.slots.note(ghost).hash, ghost);
        self.slots.push_back(&mut self.free, ghost);
    }

    /// Forgets the ghost at the front of a list.
    pub(crate) fn forget_first(&mut self, list: &mut List) {
        if let Some(first) = list.first() {
            self.forget(list, first);
        }
    }

    /// Prefetches the bucket of a name.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        self.table.prefetch(kept(hash));
    }
}
