//! The index of one worker: from the hash of a name to the position of its record in the log.
//!
//! A table of cache lines with eight entries of 64 bits each; a name has its place in one line. An entry says where the record
//! begins, how many slots it has, whether it may be fresh, and some bits of the hash. Two names may share all of them, which
//! costs a read in vain: the reader compares the name.
//!
//! Nothing is removed when the log overwrites a record: an entry whose position has been written over is worth nothing and is the
//! first whose place is taken. In a full line it is the oldest.

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
/// Most slots that the log may have: a position must tell which time around the ring is meant.
pub(crate) const MAX_SLOTS: u64 = 1 << (POSITION_BITS - 2);
/// Entries of a line.
const LINE_ENTRIES: u64 = 8;

/// How far the log has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Slots that were taken since the life of the file began.
    pub(crate) cursor: u64,
    /// Slots of the ring.
    pub(crate) slots: u64,
}

impl Extent {
    /// Has the record at this position not been written over?
    pub(crate) fn is_live(&self, position: u64) -> bool {
        position < self.cursor && self.cursor - position <= self.slots
    }
}

/// Where a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Located {
    pub(crate) position: u64,
    pub(crate) slots: usize,
    pub(crate) may_be_fresh: bool,
}

/// See the module's description.
pub(crate) struct Index {
    lines: CacheLines,
}

/// What an entry keeps of a hash: its lowest bits, because the highest ones say which line it is in.
fn tag(hash: u64) -> u64 {
    hash << TAG_SHIFT
}

fn has_tag(entry: u64, hash: u64) -> bool {
    entry >> TAG_SHIFT << TAG_SHIFT == tag(hash)
}

impl Index {
    /// An index for so many records. Its memory is touched, so that nobody waits for it later.
    pub(crate) fn new(records: u64) -> Result<Self, TableError> {
        let lines = usize::try_from(records.div_ceil(LINE_ENTRIES).max(1)).map_err(|_| TableError::CapacityTooLarge)?;
        let mut lines = CacheLines::new(lines, PageRequest::Large)?;
        lines.as_mut_slice().fill(CacheLine::default());
        Ok(Index { lines })
    }

    /// Bytes of memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.lines.len() * size_of::<CacheLine>()
    }

    #[inline]
    fn line(&self, hash: u64) -> usize {
        ((u128::from(hash) * self.lines.len() as u128) >> 64) as usize
    }

    /// Asks for the place of a name to be brought into the cache.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        self.lines.prefetch(self.line(hash));
    }

    /// The record of a name, unless the log has gone over it.
    #[inline]
    pub(crate) fn find(&self, hash: u64, extent: Extent) -> Option<Located> {
        let entries = &self.lines[self.line(hash)].0;
        let of_name = entries.iter().filter(|&&entry| has_tag(entry, hash));
        of_name.filter_map(|&entry| locate(entry, extent)).max_by_key(|located| located.position)
    }

    /// Notes the record of a name in the place of an older one of the same name. `false` when another name lost its place.
    pub(crate) fn insert(&mut self, hash: u64, new: Located, extent: Extent) -> bool {
        let line = self.line(hash);
        let entries = &mut self.lines[line].0;
        // The age of what is in the way: an entry of the same name first, then what is worth nothing, then the oldest.
        let value = |&entry: &u64| match locate(entry, extent) {
            _ if entry != 0 && has_tag(entry, hash) => 0,
            None => 1,
            Some(located) => located.position + 2,
        };
        let Some((place, least)) = entries.iter().map(value).enumerate().min_by_key(|&(_, value)| value) else {
            return false;
        };
        entries[place] = encode(hash, new);
        least <= 1
    }

    /// Forgets the record of a name.
    #[inline]
    pub(crate) fn remove(&mut self, hash: u64) {
        let line = self.line(hash);
        for entry in &mut self.lines[line].0 {
            if has_tag(*entry, hash) {
                *entry = 0;
            }
        }
    }

    /// The record of a name is not fresh any more.
    pub(crate) fn note_stale(&mut self, hash: u64, position: u64) {
        let line = self.line(hash);
        for entry in &mut self.lines[line].0 {
            if has_tag(*entry, hash) && *entry & POSITION_MASK == position & POSITION_MASK {
                *entry &= !(1 << FRESH_SHIFT);
            }
        }
    }
}

fn encode(hash: u64, located: Located) -> u64 {
    tag(hash)
        | u64::from(located.may_be_fresh) << FRESH_SHIFT
        | (located.slots as u64) << SLOTS_SHIFT
        | located.position & POSITION_MASK
}

/// `None` for an empty entry, and for one whose record was written over.
#[inline]
fn locate(entry: u64, extent: Extent) -> Option<Located> {
    let slots = entry >> SLOTS_SHIFT & ((1 << SLOTS_BITS) - 1);
    // Of all positions with these low bits the last one before the cursor.
    let back = extent.cursor.wrapping_sub(1).wrapping_sub(entry) & POSITION_MASK;
    let position = extent.cursor.checked_sub(1 + back)?;
    let is_live = slots != 0 && extent.is_live(position);
    is_live.then_some(Located { position, slots: slots as usize, may_be_fresh: entry >> FRESH_SHIFT & 1 == 1 })
}
