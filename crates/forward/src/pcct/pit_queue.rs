//! All PIT slots in the order they were made, so that old ones can be given up when the PIT is full.
//!
//! A ring of slots, each with the face that holds it, written at its tail. Every slot knows its position, so a slot that
//! ends writes a gap over itself; no other memory is touched, and gaps at the head are passed over in sequence.
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

use super::PitRef;
use super::entry::NONE;
use super::shares::Shares;
use namehop_packet::FaceId;

/// Gaps at the head that one insertion passes over at most: twice what it adds.
const PASS_PER_INSERTION: usize = 2;
/// Positions that one look ahead looks at at most.
const LOOK_AHEAD: u64 = 64;
/// Slots that are looked at for one victim.
const LOOKS: usize = 256;

/// A slot in its place, or a gap.
#[derive(Debug, Clone, Copy)]
struct Position {
    slot: PitRef,
    holder: FaceId,
}

impl Position {
    const GAP: Position = Position { slot: PitRef { entry: NONE, block: NONE }, holder: FaceId::INVALID };

    #[inline]
    fn slot(self) -> Option<PitRef> {
        (self.slot.entry != NONE).then_some(self.slot)
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
    ring: Box<[Position]>,
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
    pub(crate) fn new(capacity: usize) -> Self {
        // Twice the capacity, so that gaps and slots together seldom fill it.
        PitQueue {
            ring: vec![Position::GAP; 2 * capacity.max(1)].into_boxed_slice(),
            head: 0,
            head_sequence: 0,
            span: 0,
            live: 0,
            hand: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.live
    }

    fn wrap(&self, position: usize) -> usize {
        if position >= self.ring.len() { position - self.ring.len() } else { position }
    }

    fn pass_head(&mut self) {
        self.head = self.wrap(self.head + 1);
        self.head_sequence += 1;
    }

    fn pass_gaps(&mut self, limit: usize) {
        for _ in 0..limit {
            if self.span == 0 || self.ring[self.head].slot().is_some() {
                break;
            }
            self.pass_head();
            self.span -= 1;
        }
    }

    /// Appends a slot, which a face holds, and returns its position. The caller never has more slots than the queue was made
    /// for.
    pub(crate) fn push(&mut self, slot: PitRef, holder: FaceId) -> u32 {
        self.pass_gaps(PASS_PER_INSERTION);
        // In a full ring the tail is where the head was, so that an old slot with gaps behind it becomes the newest without
        // changing its place.
        while self.span == self.ring.len() && self.live < self.ring.len() {
            match self.ring[self.head].slot() {
                None => self.pass_gaps(1),
                Some(_) => self.pass_head(),
            }
        }
        debug_assert!(self.span < self.ring.len());
        let position = self.wrap(self.head + self.span);
        self.ring[position] = Position { slot, holder };
        self.span += 1;
        self.live += 1;
        position as u32
    }

    /// The slot at this position has ended. Returns who held it.
    #[inline]
    pub(crate) fn remove(&mut self, position: u32) -> FaceId {
        let position = &mut self.ring[position as usize];
        debug_assert!(position.slot().is_some(), "removed twice");
        self.live -= 1;
        std::mem::replace(position, Position::GAP).holder
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
            let here = self.ring[position];
            if let Some(slot) = here.slot() {
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
        self.ring[position as usize].holder
    }

    /// From now on another face holds the slot at this position.
    pub(crate) fn hand_over(&mut self, position: u32, holder: FaceId) {
        self.ring[position as usize].holder = holder;
    }

    /// All slots, oldest first, with the faces that hold them.
    pub(crate) fn with_holders(&self) -> impl Iterator<Item = (PitRef, FaceId)> + '_ {
        let positions = (0..self.span).map(|offset| self.ring[self.wrap(self.head + offset)]);
        positions.filter_map(|position| Some((position.slot()?, position.holder)))
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
        self.ring[self.wrap(self.head + (sequence - self.head_sequence) as usize)].slot()
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

    /// The slot listed at this position.
    pub(crate) fn get(&self, position: u32) -> Option<PitRef> {
        self.ring.get(position as usize)?.slot()
    }
}

#[cfg(test)]
#[path = "pit_queue/tests.rs"]
mod tests;
