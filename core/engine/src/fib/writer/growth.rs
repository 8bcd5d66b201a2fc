//! Growth of the hash table, spread over the changes that need it.
//!
//! Moving all entries of a table of a hundred million at once takes half a minute. So growth begins while there is
//! still room, and each new prefix moves a few entries; the old array has room for new ones until all are moved.

use namehop_table::{GrowthEntries, SharedArena, TableError, TableFull};

use super::FibWriter;
use crate::fib::FibError;
use crate::fib::entry::Entry;
use crate::fib::shared::Retired;

/// Initial capacity in prefixes.
pub(super) const INITIAL_CAPACITY: usize = 4096;
/// Growth begins when less than this part of the capacity is free.
const LEFT_PART: usize = 8;

/// Returns the capacity of the buckets after `prefixes` were added one by one.
pub(in crate::fib) fn grown_capacity(prefixes: usize) -> usize {
    (prefixes + prefixes / (LEFT_PART - 1) + 1).next_power_of_two()
}
/// Number of chains moved for each new prefix. A table for C prefixes has at most 2 C / 5 home buckets, so all are
/// moved after C / 20 new prefixes: before the free part is used up.
const CHAINS_PER_PREFIX: usize = 8;
/// A table with fewer prefixes than this is moved at once, which takes a millisecond.
const SMALL: usize = 16_384;

struct Entries<'a>(&'a SharedArena<Entry>);

impl GrowthEntries for Entries<'_> {
    #[inline]
    fn prefetch(&self, index: u32) {
        self.0.prefetch_line(index, 0);
    }

    #[inline]
    fn low_bits(&self, index: u32) -> u32 {
        // SAFETY: the table contains only indexes of entries that are not freed.
        unsafe { self.0.get(index) }.hash_low()
    }
}

impl<S: Send + Sync> FibWriter<S> {
    /// Makes room for `additional` more prefixes, so that the table grows at most once while they are added. Takes
    /// negligible time: entries are moved as prefixes are added.
    pub fn reserve(&mut self, additional: usize) -> Result<(), FibError> {
        self.wanted_capacity = self.table.len().saturating_add(additional);
        self.entries.expect(additional);
        self.make_room(0)
    }

    /// Must be called before `prefixes` new ones are inserted.
    pub(super) fn make_room(&mut self, prefixes: usize) -> Result<(), FibError> {
        let capacity = self.table.capacity();
        if self.table.growing_to().is_none() {
            let left = capacity.saturating_sub(self.table.len());
            if left >= capacity / LEFT_PART && self.wanted_capacity <= capacity {
                return Ok(());
            }
            // Includes the part that must stay free, so that the reserved prefixes do not make the table grow again.
            let wanted = self.wanted_capacity.saturating_add(self.wanted_capacity / (LEFT_PART - 1) + 1);
            self.table.start_growth(wanted.max(2 * capacity))?;
        }
        let chains = match self.table.len() {
            0..SMALL => usize::MAX,
            _ => CHAINS_PER_PREFIX * prefixes,
        };
        self.grow_step(chains);
        Ok(())
    }

    fn grow_step(&mut self, chains: usize) {
        let FibWriter { table, entries, retired, wanted_capacity, .. } = self;
        let target = table.growing_to();
        match table.grow_step(chains, &Entries(entries)) {
            Ok(Some(old)) => retired.retire(Retired::Buckets(old)),
            Ok(None) => {}
            // The next change starts again, with a larger array.
            Err(TableFull) => *wanted_capacity = target.unwrap_or(0).saturating_mul(2),
        }
    }

    /// Inserts a complete entry into the table.
    pub(super) fn insert(&mut self, hash: u64, index: u32) -> Result<(), FibError> {
        if self.table.insert(hash, index).is_err() {
            // The free slots are in the wrong buckets; moving all entries fixes that.
            let capacity = self.table.growing_to().unwrap_or(0).max(self.table.capacity());
            self.table.start_growth(2 * capacity)?;
            self.grow_step(usize::MAX);
            self.table.insert(hash, index).map_err(|TableFull| TableError::CapacityTooLarge)?;
        }
        Ok(())
    }
}
