//! The entry of one prefix, in one cache line or two.
//!
//! The first 16 bytes are numbers. The other 48 start with the name, followed by the faces of the next hops and then by
//! their costs, which packets do not need. The cost of an only next hop is among the numbers if it is below 2^32 - 2.
//! So a name of up to 44 bytes fits with one next hop, and one of up to 24 with two.
//!
//! If they do not fit, all of them go to a block, to which the first word behind the numbers points. A block of up to
//! 104 bytes begins right there and continues in a second line. That line is adjacent to the first, so that both come
//! from memory together. A larger block is on the heap.

use std::mem::offset_of;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use namehop_packet::FaceId;
use namehop_table::prefetch::prefetch_lines;

use super::{Costs, MAX_NEXTHOPS, MAX_PREFIX_COMPONENTS, NextHop, NextHops};

/// The index that means no entry.
pub(super) const NONE: u32 = u32::MAX;
/// Marks a freed entry, in place of the index of its next hops' source.
const VACANT: u32 = u32::MAX - 1;
/// Takes the place of a cost that is listed with the others.
const LISTED: u32 = NONE;

const INLINE_WORDS: usize = 6;
/// Offset of the block of a two-line entry, in words from the start of the entry.
const PAIR_AT: usize = 3;
/// Number of words of that block.
const PAIR_WORDS: usize = 2 * size_of::<Entry>() / WORD_BYTES - PAIR_AT;
/// Maximum number of bytes of an extension block that are prefetched; the hardware prefetcher detects the sequence and
/// fetches the rest.
const EXTENSION_BYTES: usize = 256;
const WORD_BYTES: usize = size_of::<u64>();
const FACE_BYTES: usize = size_of::<FaceId>();

// Faces and costs are written as bytes and read in place.
const _: () = {
    assert!(FACE_BYTES == 4 && align_of::<FaceId>() == 4 && align_of::<u64>() <= WORD_BYTES);
    assert!(size_of::<Entry>() == 64 && offset_of!(Entry, body) + WORD_BYTES == PAIR_AT * WORD_BYTES);
    assert!(MAX_NEXTHOPS <= u8::MAX as usize && MAX_PREFIX_COMPONENTS <= u8::MAX as usize);
};

/// The content of an entry.
pub(super) struct EntryParts<'a> {
    /// Name VALUE, at most 65,535 bytes.
    pub(super) value: &'a [u8],
    /// Number of components of the name.
    pub(super) depth: usize,
    /// Hash of the name.
    pub(super) hash: u64,
    /// Own next hops, at most [`MAX_NEXTHOPS`].
    pub(super) nexthops: &'a [NextHop],
    /// Choice of the own or inherited strategy.
    pub(super) choice: u32,
    /// The entry that next hops are inherited from, or [`NONE`]; meaningless if there are own ones.
    pub(super) nexthop_source: u32,
}

/// The entry of a prefix; see the module documentation. Does not free its extension block when dropped.
#[repr(C, align(64))]
pub(super) struct Entry {
    hash_low: u32,
    choice: AtomicU32,
    /// Without own next hops: the entry they are inherited from. With one: its cost, or [`LISTED`]. With more:
    /// meaningless.
    nexthop_source: AtomicU32,
    name_bytes: u16,
    depth: u8,
    nexthop_count: u8,
    body: Body,
}

#[repr(C)]
union Body {
    inline: [u64; INLINE_WORDS],
    /// Start of `extension_words` words: in the two slots of the entry, or a leaked `Box<[u64]>`.
    extension: *mut u64,
}

// SAFETY: the block belongs to the entry alone and is not changed while the entry lives; the other mutable fields are
// atomic.
unsafe impl Send for Entry {}
// SAFETY: as above.
unsafe impl Sync for Entry {}

/// Returns the offset of the faces, in bytes from the start of the name.
#[inline(always)]
const fn faces_at(name_bytes: usize) -> usize {
    name_bytes.next_multiple_of(FACE_BYTES)
}

/// Returns the offset of the costs, in words.
#[inline(always)]
const fn costs_at(name_bytes: usize, nexthop_count: usize) -> usize {
    (faces_at(name_bytes) + nexthop_count * FACE_BYTES).div_ceil(WORD_BYTES)
}

/// Returns the number of words for name, next hops and listed costs.
#[inline(always)]
const fn words_needed(name_bytes: usize, nexthop_count: usize, listed_costs: usize) -> usize {
    costs_at(name_bytes, nexthop_count) + listed_costs
}

/// Returns the bytes of a prefix with one next hop of usual cost, by the length of its Name VALUE.
pub(super) fn entry_bytes(name_bytes: usize) -> usize {
    match words_needed(name_bytes, 1, 0) {
        0..=INLINE_WORDS => size_of::<Entry>(),
        words if needs_pair(words) => 2 * size_of::<Entry>(),
        words => size_of::<Entry>() + words * WORD_BYTES,
    }
}

/// Returns the cost of an only next hop, if it fits among the numbers.
fn short_cost(nexthops: &[NextHop]) -> Option<u32> {
    let [only] = nexthops else { return None };
    u32::try_from(only.cost).ok().filter(|&cost| cost < VACANT)
}

/// Writes name, faces and costs into `words`; costs only as far as there is room.
fn fill(words: &mut [u64], value: &[u8], nexthops: &[NextHop]) {
    let (faces, costs) = (faces_at(value.len()), costs_at(value.len(), nexthops.len()));
    for (word, nexthop) in words[costs..].iter_mut().zip(nexthops) {
        *word = nexthop.cost;
    }
    // SAFETY: the words are initialised, any of their bytes may be written and read by itself, and the borrow is
    // exclusive.
    let bytes = unsafe {
        std::slice::from_raw_parts_mut(words.as_mut_ptr().cast::<u8>(), std::mem::size_of_val::<[u64]>(words))
    };
    bytes[..value.len()].copy_from_slice(value);
    for (bytes, nexthop) in bytes[faces..].chunks_exact_mut(FACE_BYTES).zip(nexthops) {
        bytes.copy_from_slice(&nexthop.face.0.to_ne_bytes());
    }
}

impl EntryParts<'_> {
    fn words_needed(&self) -> usize {
        let listed_costs = if short_cost(self.nexthops).is_some() { 0 } else { self.nexthops.len() };
        words_needed(self.value.len(), self.nexthops.len(), listed_costs)
    }

    /// Returns whether the entry takes two slots.
    pub(super) fn needs_pair(&self) -> bool {
        needs_pair(self.words_needed())
    }
}

/// Returns whether this number of words takes two slots.
#[inline(always)]
fn needs_pair(words: usize) -> bool {
    (INLINE_WORDS + 1..=PAIR_WORDS).contains(&words)
}

impl Entry {
    /// Creates an entry of one slot.
    pub(super) fn new(parts: &EntryParts<'_>) -> Self {
        debug_assert!(!parts.needs_pair());
        let needed = parts.words_needed();
        let body = if needed <= INLINE_WORDS {
            let mut inline = [0; INLINE_WORDS];
            fill(&mut inline, parts.value, parts.nexthops);
            Body { inline }
        } else {
            let mut words = vec![0; needed].into_boxed_slice();
            fill(&mut words, parts.value, parts.nexthops);
            Body { extension: Box::into_raw(words).cast() }
        };
        Entry::with_body(parts, body)
    }

    /// Writes an entry that [needs](EntryParts::needs_pair) two slots.
    ///
    /// # Safety
    /// `first` must be the start of two adjacent slots that no other code uses, and must be valid for access to both.
    pub(super) unsafe fn write_pair(first: NonNull<Entry>, parts: &EntryParts<'_>) {
        debug_assert!(parts.needs_pair());
        // SAFETY: the block lies within the two slots.
        let block = unsafe { first.cast::<u64>().add(PAIR_AT) };
        // SAFETY: no other code uses the slots, as the caller promises, and they are aligned for an entry and for
        // words. The block is written after the entry, in which it begins.
        let words = unsafe {
            first.write(Entry::with_body(parts, Body { extension: block.as_ptr() }));
            block.write_bytes(0, PAIR_WORDS);
            std::slice::from_raw_parts_mut(block.as_ptr(), PAIR_WORDS)
        };
        fill(words, parts.value, parts.nexthops);
    }

    /// Returns an entry for a slot that was never used by itself.
    pub(super) fn vacant() -> Self {
        let parts = EntryParts { value: &[], depth: 0, hash: 0, nexthops: &[], choice: 0, nexthop_source: VACANT };
        Entry::with_body(&parts, Body { inline: [0; INLINE_WORDS] })
    }

    fn with_body(parts: &EntryParts<'_>, body: Body) -> Self {
        Entry {
            hash_low: parts.hash as u32,
            choice: AtomicU32::new(parts.choice),
            nexthop_source: AtomicU32::new(match parts.nexthops {
                [] => parts.nexthop_source,
                nexthops => short_cost(nexthops).unwrap_or(LISTED),
            }),
            name_bytes: parts.value.len() as u16,
            depth: parts.depth as u8,
            nexthop_count: parts.nexthops.len() as u8,
            body,
        }
    }

    /// Returns the number of costs listed behind the faces.
    #[inline(always)]
    fn listed_costs(&self) -> usize {
        match self.nexthop_count {
            1 if self.nexthop_source.load(Ordering::Relaxed) != LISTED => 0,
            count => usize::from(count),
        }
    }

    /// Returns the number of words of the block that does not fit into one line; 0 if there is none.
    #[inline(always)]
    fn extension_words(&self) -> usize {
        let (name_bytes, nexthop_count) = (usize::from(self.name_bytes), usize::from(self.nexthop_count));
        match words_needed(name_bytes, nexthop_count, self.listed_costs()) {
            0..=INLINE_WORDS => 0,
            words => words,
        }
    }

    /// Returns whether the entry takes two slots. Must not be called for a vacant entry.
    #[inline(always)]
    pub(super) fn is_pair(&self) -> bool {
        needs_pair(self.extension_words())
    }

    /// Prefetches the first lines of a block on the heap, if there is one. Reads the entry.
    #[inline]
    pub(super) fn prefetch_extension(&self) {
        if self.extension_words() > PAIR_WORDS {
            // SAFETY: with such a block, `extension` is what `new` has set.
            let words = unsafe { self.body.extension };
            prefetch_lines(words, usize::from(self.name_bytes).min(EXTENSION_BYTES));
        }
    }

    /// Returns the bytes of a block on the heap.
    pub(super) fn extension_bytes(&self) -> usize {
        match self.extension_words() {
            0..=PAIR_WORDS => 0,
            words => words * WORD_BYTES,
        }
    }

    /// Returns the words with name and next hops.
    #[inline(always)]
    fn words(&self) -> &[u64] {
        match self.extension_words() {
            // SAFETY: without a block, `inline` is what `new` has set.
            0 => unsafe { &self.body.inline },
            // SAFETY: `extension` was set to this many initialised words, which live as long as the entry.
            words => unsafe { std::slice::from_raw_parts(self.body.extension, words) },
        }
    }

    /// Returns the Name VALUE.
    #[inline(always)]
    pub(super) fn value(&self) -> &[u8] {
        let start = self.words().as_ptr().cast::<u8>();
        // SAFETY: the name is at the start of the words, which are initialised.
        unsafe { std::slice::from_raw_parts(start, usize::from(self.name_bytes)) }
    }

    /// Returns the own next hops, sorted by cost.
    #[inline(always)]
    pub(super) fn own_nexthops(&self) -> NextHops<'_> {
        let (name_bytes, count) = (usize::from(self.name_bytes), usize::from(self.nexthop_count));
        let words = self.words();
        let costs = match self.listed_costs() {
            0 if count == 1 => Costs::Only(self.nexthop_source.load(Ordering::Relaxed)),
            listed => Costs::Listed(&words[costs_at(name_bytes, count)..][..listed]),
        };
        // SAFETY: `fill` put as many faces behind the name, which is `faces_at` bytes from the start of the words and
        // inside them, because the costs begin behind the last; the words are aligned to more than a face, `faces_at`
        // is a multiple of a face, and all bit patterns are valid numbers.
        let faces = unsafe {
            std::slice::from_raw_parts(words.as_ptr().cast::<u8>().add(faces_at(name_bytes)).cast::<FaceId>(), count)
        };
        NextHops { faces, costs }
    }

    /// Returns whether the entry has its own next hops.
    #[inline(always)]
    pub(super) fn has_own_nexthops(&self) -> bool {
        self.nexthop_count > 0
    }

    /// Returns the number of components of the name.
    #[inline(always)]
    pub(super) fn depth(&self) -> usize {
        usize::from(self.depth)
    }

    /// Returns the low half of the name's hash.
    pub(super) fn hash_low(&self) -> u32 {
        self.hash_low
    }

    /// Returns the choice of the own or inherited strategy.
    #[inline(always)]
    pub(super) fn choice(&self) -> u32 {
        self.choice.load(Ordering::Acquire)
    }

    pub(super) fn set_choice(&self, choice: u32) {
        self.choice.store(choice, Ordering::Release);
    }

    /// Returns the entry that next hops are inherited from, or [`NONE`]. Must be called only for an entry without own
    /// next hops.
    #[inline(always)]
    pub(super) fn nexthop_source(&self) -> u32 {
        debug_assert!(!self.has_own_nexthops());
        self.nexthop_source.load(Ordering::Acquire)
    }

    pub(super) fn set_nexthop_source(&self, source: u32) {
        debug_assert!(!self.has_own_nexthops());
        self.nexthop_source.store(source, Ordering::Release);
    }

    /// Returns whether [`release`](Self::release) was called.
    pub(super) fn is_vacant(&self) -> bool {
        self.nexthop_source.load(Ordering::Relaxed) == VACANT
    }

    /// Frees a block on the heap and marks the entry as vacant.
    ///
    /// # Safety
    /// Must be called once, when no reader can see the entry; name and next hops must not be read afterwards.
    pub(super) unsafe fn release(&self) {
        debug_assert!(!self.is_vacant());
        let words = self.extension_words();
        self.nexthop_source.store(VACANT, Ordering::Relaxed);
        if words > PAIR_WORDS {
            // SAFETY: the block was leaked by `new` with this length, and this is the one time that it is taken back.
            drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(self.body.extension, words)) });
        }
    }
}

#[cfg(test)]
mod tests;
