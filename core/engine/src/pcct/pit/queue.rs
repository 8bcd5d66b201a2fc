//! All PIT slots in the order in which they were opened, for evicting old ones when the PIT is full.
//!
//! A ring of slots, each with the face that holds it; new ones are written at its tail. Every slot knows its position.
//! A slot that ends writes a gap over its position and touches no other memory; gaps at the head are skipped in
//! sequence.
//!
//! Timers refer to PIT slots by position and serial number. Most timers fire long after their slot has ended, and
//! timers set one after another fire one after another. So the positions they read are adjacent here, while their
//! entries are scattered over the table.
//!
//! A victim is the slot of a face that was removed, or else of a face that holds much within one of two groups:
//! unsolicited remote peers, if together they hold more than all others, or else the others ([`Shares`]). A clock hand
//! moves along the ring from old to new and skips slots of faces that hold little; after the tail it continues at the
//! head. It examines at most [`MAX_EXAMINED`] slots for one victim. If all of them are held by faces with little, the
//! one that holds most among them loses a slot, unless the newcomer holds more; then the newcomer is refused.
//!
//! So a face that holds less than half as much as the largest holder never loses a slot to a face that holds more than
//! itself. It loses one to another face only where [`MAX_EXAMINED`] slots in a row are held by faces that hold no more
//! than itself. That takes very many faces. While removed faces have slots, the hand continues to the next of these,
//! past at most [`MAX_EXAMINED`] slots. If it meets none, the first victim found is evicted, and the next search starts
//! at the slot after the last one examined.

use std::ops::Range;

use namehop_packet::FaceId;
use namehop_table::{CacheLine, CacheLines, PageRequest, TableError};

use super::shares::Shares;
use crate::pcct::PitRef;

/// Maximum number of gaps at the head that one insertion skips: twice what it adds.
const PASS_PER_INSERTION: usize = 2;
/// Maximum number of positions that one look-ahead examines.
const LOOKAHEAD_POSITIONS: u64 = 64;
/// Maximum number of slots examined for one victim.
const MAX_EXAMINED: usize = 256;

/// A slot, or a gap: two words of a cache line.
#[derive(Debug, Clone, Copy)]
struct Position {
    slot: Option<PitRef>,
    holder: FaceId,
    /// Serial number of the slot; 0 in a gap.
    serial: u32,
}

/// Positions per cache line.
const LINE_POSITIONS: usize = 4;
/// Deadlines per cache line.
const LINE_DEADLINES: usize = 16;
/// Number of lines of positions that are prefetched ahead of the one in use.
const LINES_AHEAD: usize = 4;

impl Position {
    /// Lines are zero initially, and zeros are a gap.
    const GAP: [u64; 2] = [0; 2];

    #[inline(always)]
    fn pack(slot: PitRef, holder: FaceId, serial: u32) -> [u64; 2] {
        // The index of an entry is never `u32::MAX`.
        [u64::from(slot.entry + 1) | u64::from(slot.slot) << 32, u64::from(holder.0) | u64::from(serial) << 32]
    }

    #[inline(always)]
    fn unpack([slot, held]: [u64; 2]) -> Self {
        let entry = (slot as u32).checked_sub(1);
        Position {
            slot: entry.map(|entry| PitRef { entry, slot: (slot >> 32) as u32 }),
            holder: FaceId(held as u32),
            serial: (held >> 32) as u32,
        }
    }
}

/// A search for a victim.
#[derive(Default)]
struct Search {
    /// The best victim so far, and the rank of its holder.
    found: Option<((bool, u32), PitRef)>,
    /// Whether that holder holds much and belongs to the group that has to evict.
    holds_much: bool,
    examined: usize,
    is_done: bool,
}

/// The queue of PIT slots.
pub(crate) struct PitQueue {
    /// [`LINE_POSITIONS`] positions in each line.
    ring: CacheLines,
    /// By position: the mark of the deadline of the last timer that was set to end the slot.
    deadlines: CacheLines,
    /// Number of positions.
    length: usize,
    head: usize,
    /// Sequence number of the head. Each write to a position takes the next number.
    head_sequence: u64,
    /// Number of positions in use from `head` on, including gaps.
    span: usize,
    live: usize,
    /// Sequence number where the search for the next victim starts.
    hand: u64,
}

impl PitQueue {
    /// Creates a queue for at most `capacity` PIT slots.
    ///
    /// # Errors
    /// If the memory cannot be allocated.
    pub(crate) fn new(capacity: usize) -> Result<Self, TableError> {
        // Twice the capacity, so that gaps and slots together seldom fill it.
        let length = capacity.max(1).checked_mul(2).ok_or(TableError::CapacityTooLarge)?;
        Ok(PitQueue {
            ring: CacheLines::used_in_order(length.div_ceil(LINE_POSITIONS), PageRequest::Large)?.named("PIT queue"),
            deadlines: CacheLines::used_in_order(length.div_ceil(LINE_DEADLINES), PageRequest::Large)?
                .named("PIT queue"),
            length,
            head: 0,
            head_sequence: 0,
            span: 0,
            live: 0,
            hand: 0,
        })
    }

    /// Returns the size in bytes of a queue for `capacity` PIT slots.
    pub(super) fn bytes_for(capacity: usize) -> usize {
        let length = capacity.max(1).saturating_mul(2);
        (length.div_ceil(LINE_POSITIONS) + length.div_ceil(LINE_DEADLINES)).saturating_mul(size_of::<CacheLine>())
    }

    #[inline(always)]
    fn words(&mut self, position: usize) -> &mut [u64] {
        let CacheLine(words) = &mut self.ring[position / LINE_POSITIONS];
        &mut words[2 * (position % LINE_POSITIONS)..][..2]
    }

    #[inline(always)]
    fn position(&self, position: usize) -> Position {
        let CacheLine(words) = &self.ring[position / LINE_POSITIONS];
        let first = 2 * (position % LINE_POSITIONS);
        Position::unpack([words[first], words[first + 1]])
    }

    #[inline(always)]
    fn set(&mut self, position: usize, words: [u64; 2]) {
        self.words(position).copy_from_slice(&words);
    }

    pub(crate) fn len(&self) -> usize {
        self.live
    }

    fn wrap(&self, position: usize) -> usize {
        if position >= self.length { position - self.length } else { position }
    }

    fn pass_head(&mut self) {
        self.head = self.wrap(self.head + 1);
        self.head_sequence += 1;
    }

    fn pass_gaps(&mut self, limit: usize) {
        for _ in 0..limit {
            if self.span == 0 || self.position(self.head).slot.is_some() {
                break;
            }
            self.pass_head();
            self.span -= 1;
        }
    }

    /// Appends a slot with this serial number and holder, and returns its position. The caller must not add more slots
    /// than the queue's capacity.
    pub(crate) fn push(&mut self, slot: PitRef, holder: FaceId, serial: u32) -> u32 {
        self.pass_gaps(PASS_PER_INSERTION);
        // In a full ring the tail meets the head, so an old slot with gaps behind it becomes the newest without moving.
        while self.span == self.length && self.live < self.length {
            match self.position(self.head).slot {
                None => self.pass_gaps(1),
                Some(_) => self.pass_head(),
            }
        }
        debug_assert!(self.span < self.length);
        let position = self.wrap(self.head + self.span);
        self.set(position, Position::pack(slot, holder, serial));
        self.ring.note_used(position / LINE_POSITIONS + 1);
        self.deadlines.note_used(position / LINE_DEADLINES + 1);
        self.prefetch_ahead(position);
        self.span += 1;
        self.live += 1;
        position as u32
    }

    /// Removes the slot at this position, which has ended. Returns its holder.
    #[inline]
    pub(crate) fn remove(&mut self, position: u32) -> FaceId {
        let ended = self.position(position as usize);
        debug_assert!(ended.slot.is_some(), "a slot must be removed only once");
        self.set(position as usize, Position::GAP);
        self.live -= 1;
        ended.holder
    }

    /// Prefetches a position, which is written when its slot ends.
    #[inline]
    pub(crate) fn prefetch(&self, position: u32) {
        self.ring.prefetch(position as usize / LINE_POSITIONS);
    }

    /// Prefetches the lines after a position. New slots and timers walk the ring in order, but the hardware prefetcher
    /// does not detect it, because too many other accesses lie in between.
    #[inline(always)]
    fn prefetch_ahead(&self, position: usize) {
        self.ring.prefetch(position / LINE_POSITIONS + LINES_AHEAD);
    }

    /// Returns the slot at this position if it has this serial number: the same slot, still open.
    #[inline(always)]
    pub(crate) fn get_by_serial(&self, position: u32, serial: u32) -> Option<PitRef> {
        self.prefetch_ahead(position as usize);
        let here = self.position(position as usize);
        here.slot.filter(|_| here.serial == serial)
    }

    /// Records the deadline of a timer that was set to end the slot at this position.
    #[inline(always)]
    pub(crate) fn note_deadline(&mut self, position: u32, mark: u32) {
        let position = position as usize;
        let word = &mut self.deadlines[position / LINE_DEADLINES].0[position % LINE_DEADLINES / 2];
        let shift = position % 2 * 32;
        *word = *word & !(u64::from(u32::MAX) << shift) | u64::from(mark) << shift;
    }

    /// Returns the mark of that deadline.
    #[inline(always)]
    pub(crate) fn deadline_mark(&self, position: u32) -> u32 {
        let position = position as usize;
        let word = self.deadlines[position / LINE_DEADLINES].0[position % LINE_DEADLINES / 2];
        (word >> (position % 2 * 32)) as u32
    }

    /// Returns the next slot to evict for a new one of `newcomer`: the oldest after the hand that is held by a face
    /// with much, or else the one ranked highest. The caller closes it or hands it over. Returns `None` if the newcomer
    /// may not evict any.
    pub(crate) fn victim(&mut self, shares: &Shares, newcomer: FaceId) -> Option<PitRef> {
        let Range { start, end } = self.sequences();
        let mut search = Search::default();
        self.hand = self.search(self.hand.max(start)..end, shares, &mut search);
        if !search.is_done {
            self.hand = self.search(start..end, shares, &mut search);
        }
        search
            .found
            .filter(|(rank, _)| search.holds_much || shares.rank_of_newcomer(newcomer) <= *rank)
            .map(|(_, slot)| slot)
    }

    /// Continues the search for a victim in a range of sequence numbers. Returns the number where the search for the
    /// next victim starts.
    #[inline]
    fn search(&self, range: Range<u64>, shares: &Shares, search: &mut Search) -> u64 {
        let mut position = self.wrap(self.head + (range.start.min(range.end) - self.head_sequence) as usize);
        for sequence in range.clone() {
            let here = self.position(position);
            if let Some(slot) = here.slot {
                let standing = shares.standing(here.holder);
                let (is_removed, rank) = (standing.is_removed(), shares.rank(standing));
                let holds_much = is_removed || (rank.0 && shares.holds_much(standing));
                if is_removed
                    || (!search.holds_much && (holds_much || search.found.is_none_or(|(most, _)| rank > most)))
                {
                    search.found = Some((rank, slot));
                    search.holds_much = holds_much;
                }
                search.examined += 1;
                search.is_done =
                    is_removed || (search.holds_much && !shares.has_removed()) || search.examined == MAX_EXAMINED;
                if search.is_done {
                    return sequence + 1;
                }
            }
            position = self.wrap(position + 1);
        }
        range.end.max(range.start)
    }

    /// Returns the holder of the slot at this position.
    pub(crate) fn holder(&self, position: u32) -> FaceId {
        self.position(position as usize).holder
    }

    /// Changes the holder of the slot at this position.
    pub(crate) fn hand_over(&mut self, position: u32, holder: FaceId) {
        let position = position as usize;
        let Position { slot, serial, .. } = self.position(position);
        if let Some(slot) = slot {
            self.set(position, Position::pack(slot, holder, serial));
        }
    }

    /// Returns all slots, oldest first, with their holders.
    pub(crate) fn with_holders(&self) -> impl Iterator<Item = (PitRef, FaceId)> + '_ {
        let positions = (0..self.span).map(|offset| self.position(self.wrap(self.head + offset)));
        positions.filter_map(|position| Some((position.slot?, position.holder)))
    }

    /// Returns the sequence numbers in use, from head to tail, including gaps. A slot keeps its number until it ends or
    /// moves to the tail.
    pub(crate) fn sequences(&self) -> Range<u64> {
        self.head_sequence..self.head_sequence + self.span as u64
    }

    /// Returns the slot with a sequence number; `None` if it is a gap or the number is not in use.
    pub(crate) fn at(&self, sequence: u64) -> Option<PitRef> {
        if !self.sequences().contains(&sequence) {
            return None;
        }
        self.position(self.wrap(self.head + (sequence - self.head_sequence) as usize)).slot
    }

    /// For prefetching: returns the slot that would be the next victim from a sequence number on, and the number where
    /// the search for the one after it starts. Returns no slot if many gaps come first; then the next search starts
    /// after these.
    #[inline]
    pub(crate) fn next_victim_from(&self, sequence: u64, shares: &Shares) -> (Option<PitRef>, u64) {
        let Range { start, end } = self.sequences();
        let from = sequence.max(self.hand).max(start);
        let mut search = Search::default();
        let next = self.search(from..end.min(from + LOOKAHEAD_POSITIONS), shares, &mut search);
        (search.found.map(|(_, slot)| slot), next)
    }
}

#[cfg(test)]
mod tests;
