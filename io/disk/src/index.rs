//! The index of one worker: maps the hash of a name to the position of its record in the log.
//!
//! It is a table of cache lines with eight entries of 64 bits each; a name maps to one line. An entry holds the
//! position of the record, its number of slots, whether it may be fresh, and some bits of the hash. Two names may
//! share all of these bits, which costs a useless read: the reader compares the name.
//!
//! Nothing is removed when the log overwrites a record: an entry with an overwritten position is invalid and is
//! replaced first. In a full line the oldest entry is replaced.

use namehop_engine::second_tier::RecordLocation;
use namehop_table::{CacheLine, CacheLines, PageRequest, TableError};

use crate::format::MAX_RECORD_SLOTS;

/// Bits of an entry, from the lowest: position in the log, slots, whether it may be fresh, tag.
const POSITION_BITS: u32 = 34;
const SLOTS_BITS: u32 = 4;
const SLOTS_SHIFT: u32 = POSITION_BITS;
const FRESH_SHIFT: u32 = SLOTS_SHIFT + SLOTS_BITS;
const TAG_SHIFT: u32 = FRESH_SHIFT + 1;
const POSITION_MASK: u64 = (1 << POSITION_BITS) - 1;
const _: () = assert!(MAX_RECORD_SLOTS < 1 << SLOTS_BITS);
/// Maximum number of slots of the log: the position in an entry must be unambiguous.
pub(crate) const MAX_SLOTS: u64 = 1 << (POSITION_BITS - 2);
/// Entries of a line.
const LINE_ENTRIES: u64 = 8;

/// The extent of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Number of slots taken since the life of the file began.
    pub(crate) cursor: u64,
    /// Number of slots of the ring.
    pub(crate) slots: u64,
}

impl Extent {
    /// Returns true if the record at this position was not overwritten.
    pub(crate) fn is_live(&self, position: u64) -> bool {
        position < self.cursor && self.cursor - position <= self.slots
    }
}

/// The index; see the module's description.
pub(crate) struct Index {
    lines: CacheLines,
}

/// Returns the bits of a hash that an entry keeps: the lowest ones, because the highest ones determine the line.
fn tag(hash: u64) -> u64 {
    hash << TAG_SHIFT
}

fn has_tag(entry: u64, hash: u64) -> bool {
    entry >> TAG_SHIFT << TAG_SHIFT == tag(hash)
}

impl Index {
    /// Makes an index for `records` records. Its memory is touched now, so that later accesses do not wait for the
    /// system.
    pub(crate) fn new(records: u64) -> Result<Self, TableError> {
        let lines = usize::try_from(records.div_ceil(LINE_ENTRIES).max(1)).map_err(|_| TableError::CapacityTooLarge)?;
        let mut lines = CacheLines::new(lines, PageRequest::Large)?;
        lines.as_mut_slice().fill(CacheLine::default());
        Ok(Index { lines })
    }

    /// Size in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.lines.len() * size_of::<CacheLine>()
    }

    #[inline]
    fn line(&self, hash: u64) -> usize {
        ((u128::from(hash) * self.lines.len() as u128) >> 64) as usize
    }

    /// Prefetches the line of a name.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        self.lines.prefetch(self.line(hash));
    }

    /// Returns the record of a name, unless the log has overwritten it.
    #[inline]
    pub(crate) fn find(&self, hash: u64, extent: Extent) -> Option<RecordLocation> {
        let entries = &self.lines[self.line(hash)].0;
        let of_name = entries.iter().filter(|&&entry| has_tag(entry, hash));
        of_name.filter_map(|&entry| locate(entry, extent)).max_by_key(|located| located.position)
    }

    /// Stores the record of a name, replacing an older one of the same name. Returns `false` if it evicted a valid
    /// entry of another name.
    pub(crate) fn insert(&mut self, hash: u64, new: RecordLocation, extent: Extent) -> bool {
        let line = self.line(hash);
        let entries = &mut self.lines[line].0;
        // Replacement order: an entry of the same name first, then invalid entries, then the oldest.
        let value = |&entry: &u64| match locate(entry, extent) {
            _ if entry != 0 && has_tag(entry, hash) => 0,
            None => 1,
            Some(located) => located.position + 2,
        };
        let Some((slot, least)) = entries.iter().map(value).enumerate().min_by_key(|&(_, value)| value) else {
            return false;
        };
        entries[slot] = encode(hash, new);
        least <= 1
    }

    /// Removes the record of a name.
    #[inline]
    pub(crate) fn remove(&mut self, hash: u64) {
        let line = self.line(hash);
        for entry in &mut self.lines[line].0 {
            if has_tag(*entry, hash) {
                *entry = 0;
            }
        }
    }

    /// Records that the Data of a name at this position is stale.
    pub(crate) fn note_stale(&mut self, hash: u64, position: u64) {
        let line = self.line(hash);
        for entry in &mut self.lines[line].0 {
            if has_tag(*entry, hash) && *entry & POSITION_MASK == position & POSITION_MASK {
                *entry &= !(1 << FRESH_SHIFT);
            }
        }
    }
}

fn encode(hash: u64, located: RecordLocation) -> u64 {
    tag(hash)
        | u64::from(located.may_be_fresh) << FRESH_SHIFT
        | (located.slots as u64) << SLOTS_SHIFT
        | located.position & POSITION_MASK
}

/// Decodes an entry; `None` if it is empty or its record was overwritten.
#[inline]
fn locate(entry: u64, extent: Extent) -> Option<RecordLocation> {
    let slots = entry >> SLOTS_SHIFT & ((1 << SLOTS_BITS) - 1);
    // The last position before the cursor with these low bits.
    let back = extent.cursor.wrapping_sub(1).wrapping_sub(entry) & POSITION_MASK;
    let position = extent.cursor.checked_sub(1 + back)?;
    let is_live = slots != 0 && extent.is_live(position);
    is_live.then_some(RecordLocation { position, slots: slots as usize, may_be_fresh: entry >> FRESH_SHIFT & 1 == 1 })
}
