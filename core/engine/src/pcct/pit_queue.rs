//! All PIT slots in the order they were made, so that old ones can be given up when the PIT is full.
//!
//! A ring of slots, each with the face that holds it, written at its tail. Every slot knows its position, so a slot that
//! ends writes a gap over itself; no other memory is touched, and gaps at the head are passed over in sequence.
//!
//! Timers name PIT slots by their position and serial number. Most timers come due long after their slot has ended, and those that
//! were set one after another come due one after another: what they look at lies side by side here, while their entries are
//! scattered over the table.
//!
//! What is given up belongs to a face that is gone, or else to one that holds much among those whose turn it is: strangers, if all
//! of them hold more than all others, or else those others ([`Shares`]). A hand goes along the ring from old to new and passes
//! over slots of faces that hold little; when it has seen all, it begins again at the head. For one victim it looks at no
//! more than [`LOOKS`] slots. When all of those are held by faces with little, the face that holds most among them gives one
//! up, if the newcomer holds no more than that; else the newcomer is refused. So a face that holds less than half as much as
//! the one with most never loses a slot to a face that holds more than itself. To others it loses one only where [`LOOKS`]
//! slots in a row are held by faces that hold no more than itself: it takes a great many faces to bring that about. While there
//! are slots of faces that are gone, the hand goes on to the next one of those, past [`LOOKS`] slots at most: then the first one
//! that was found is given up, and the next search goes on from there.

use std::ops::Range;

use namehop_packet::FaceId;
use namehop_table::{CacheLine, CacheLines, PageRequest, TableError};

use super::PitRef;
use super::shares::Shares;

/// Gaps at the head that one insertion passes over at most: twice what it adds.
const PASS_PER_INSERTION: usize = 2;
/// Positions that one look ahead looks at at most.
const LOOK_AHEAD: u64 = 64;
/// Slots that are looked at for one victim.
const LOOKS: usize = 256;

/// A slot in its place, or a gap: two words of a cache line.
#[derive(Debug, Clone, Copy)]
struct Position {
    slot: Option<PitRef>,
    holder: FaceId,
    /// Of the slot. 0 in a gap.
    serial: u32,
}

/// Positions of a cache line.
const LINE_POSITIONS: usize = 4;
/// Deadlines of a cache line.
const LINE_DEADLINES: usize = 16;
/// Lines of positions that are asked for ahead of the one in use.
const LINES_AHEAD: usize = 4;

impl Position {
    /// Lines are zero at first, and zeros are a gap.
    const GAP: [u64; 2] = [0; 2];

    #[inline(always)]
    fn pack(slot: PitRef, holder: FaceId, serial: u32) -> [u64; 2] {
        // The index of an entry is never the largest number.
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
    /// The best so far, and how early its holder has to give up something.
    found: Option<((bool, u32), PitRef)>,
    /// Does that face hold much, and belong to those whose turn it is?
    is_much: bool,
    looks: usize,
    is_over: bool,
}

/// The queue.
pub(crate) struct PitQueue {
    /// [`LINE_POSITIONS`] positions in each line.
    ring: CacheLines,
    /// By position: the mark of the deadline for which the last timer was set that is to end the slot.
    deadlines: CacheLines,
    /// Positions there are.
    length: usize,
    head: usize,
    /// Sequence number of the head. Every position gets the next number when something is written there.
    head_sequence: u64,
    /// Positions in use from `head` on, gaps included.
    span: usize,
    live: usize,
    /// Sequence number from which the next victim is looked for.
    hand: u64,
}

impl PitQueue {
    /// A queue for at most `capacity` PIT slots.
    ///
    /// # Errors
    /// When the memory for it cannot be had.
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

    /// Bytes of a queue for `capacity` PIT slots.
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

    /// Appends a slot, which has this serial number and which a face holds, and returns its position. The caller never has more
    /// slots than the queue was made for.
    pub(crate) fn push(&mut self, slot: PitRef, holder: FaceId, serial: u32) -> u32 {
        self.pass_gaps(PASS_PER_INSERTION);
        // In a full ring the tail is where the head was, so that an old slot with gaps behind it becomes the newest without
        // changing its place.
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

    /// The slot at this position has ended. Returns who held it.
    #[inline]
    pub(crate) fn remove(&mut self, position: u32) -> FaceId {
        let ended = self.position(position as usize);
        debug_assert!(ended.slot.is_some(), "removed twice");
        self.set(position as usize, Position::GAP);
        self.live -= 1;
        ended.holder
    }

    /// Asks for a position, which the end of its slot writes to.
    #[inline]
    pub(crate) fn prefetch(&self, position: u32) {
        self.ring.prefetch(position as usize / LINE_POSITIONS);
    }

    /// Asks for what comes after a position. New slots and timers walk the ring in order, but with so much in between that the
    /// processor does not notice.
    #[inline(always)]
    fn prefetch_ahead(&self, position: usize) {
        self.ring.prefetch(position / LINE_POSITIONS + LINES_AHEAD);
    }

    /// The slot at this position, if it has this serial number: the same one, and still open.
    #[inline(always)]
    pub(crate) fn get_by_serial(&self, position: u32, serial: u32) -> Option<PitRef> {
        self.prefetch_ahead(position as usize);
        let here = self.position(position as usize);
        here.slot.filter(|_| here.serial == serial)
    }

    /// A timer was set for this deadline that is to end the slot at this position.
    #[inline(always)]
    pub(crate) fn note_deadline(&mut self, position: u32, mark: u32) {
        let position = position as usize;
        let word = &mut self.deadlines[position / LINE_DEADLINES].0[position % LINE_DEADLINES / 2];
        let shift = position % 2 * 32;
        *word = *word & !(u64::from(u32::MAX) << shift) | u64::from(mark) << shift;
    }

    /// The mark of that deadline.
    #[inline(always)]
    pub(crate) fn deadline_mark(&self, position: u32) -> u32 {
        let position = position as usize;
        let word = self.deadlines[position / LINE_DEADLINES].0[position % LINE_DEADLINES / 2];
        (word >> (position % 2 * 32)) as u32
    }

    /// The slot to be given up next for one of `newcomer`: of those that the hand has not passed over, the oldest that is held
    /// by a face with much, or what comes nearest to that. The caller closes it or hands it over. `None` when the newcomer
    /// has no right to any.
    pub(crate) fn victim(&mut self, shares: &Shares, newcomer: FaceId) -> Option<PitRef> {
        let Range { start, end } = self.sequences();
        let mut search = Search::default();
        self.hand = self.look(self.hand.max(start)..end, shares, &mut search);
        if !search.is_over {
            self.hand = self.look(start..end, shares, &mut search);
        }
        search
            .found
            .filter(|(rank, _)| search.is_much || shares.rank_of_newcomer(newcomer) <= *rank)
            .map(|(_, slot)| slot)
    }

    /// Goes on with the search for a victim among some sequence numbers. Returns the number from which to look for the one
    /// behind it.
    #[inline]
    fn look(&self, range: Range<u64>, shares: &Shares, search: &mut Search) -> u64 {
        let mut position = self.wrap(self.head + (range.start.min(range.end) - self.head_sequence) as usize);
        for sequence in range.clone() {
            let here = self.position(position);
            if let Some(slot) = here.slot {
                let standing = shares.standing(here.holder);
                let (is_gone, rank) = (standing.is_gone(), shares.rank(standing));
                let is_much = is_gone || (rank.0 && shares.is_much(standing));
                if is_gone || (!search.is_much && (is_much || search.found.is_none_or(|(most, _)| rank > most))) {
                    search.found = Some((rank, slot));
                    search.is_much = is_much;
                }
                search.looks += 1;
                search.is_over = is_gone || (search.is_much && !shares.has_gone()) || search.looks == LOOKS;
                if search.is_over {
                    return sequence + 1;
                }
            }
            position = self.wrap(position + 1);
        }
        range.end.max(range.start)
    }

    /// Who holds the slot at this position.
    pub(crate) fn holder(&self, position: u32) -> FaceId {
        self.position(position as usize).holder
    }

    /// From now on another face holds the slot at this position.
    pub(crate) fn hand_over(&mut self, position: u32, holder: FaceId) {
        let position = position as usize;
        let Position { slot, serial, .. } = self.position(position);
        if let Some(slot) = slot {
            self.set(position, Position::pack(slot, holder, serial));
        }
    }

    /// All slots, oldest first, with the faces that hold them.
    pub(crate) fn with_holders(&self) -> impl Iterator<Item = (PitRef, FaceId)> + '_ {
        let positions = (0..self.span).map(|offset| self.position(self.wrap(self.head + offset)));
        positions.filter_map(|position| Some((position.slot?, position.holder)))
    }

    /// All slots, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = PitRef> + '_ {
        self.with_holders().map(|(slot, _)| slot)
    }

    /// Sequence numbers in use, from head to tail, gaps included. A slot keeps its number until it ends or moves to the
    /// tail.
    pub(crate) fn sequences(&self) -> Range<u64> {
        self.head_sequence..self.head_sequence + self.span as u64
    }

    /// The slot with a sequence number; `None` when there is a gap or the number is not in use.
    pub(crate) fn at(&self, sequence: u64) -> Option<PitRef> {
        if !self.sequences().contains(&sequence) {
            return None;
        }
        self.position(self.wrap(self.head + (sequence - self.head_sequence) as usize)).slot
    }

    /// For a look ahead: the slot that would be the next victim from a sequence number on, and the number from which to look
    /// for the one behind it. No slot when there are many gaps before it; then the next look begins behind those.
    #[inline]
    pub(crate) fn next_victim_from(&self, sequence: u64, shares: &Shares) -> (Option<PitRef>, u64) {
        let Range { start, end } = self.sequences();
        let from = sequence.max(self.hand).max(start);
        let mut search = Search::default();
        let next = self.look(from..end.min(from + LOOK_AHEAD), shares, &mut search);
        (search.found.map(|(_, slot)| slot), next)
    }
}

#[cfg(test)]
#[path = "pit_queue/tests.rs"]
mod tests;
