//! All PIT slots in the order they were made, so that the oldest can be given up when the PIT is full.
//!
//! A ring of (entry, block) pairs, written at its tail. Every slot knows its position, so a slot that ends writes a
//! gap over its pair; no other memory is touched, and gaps at the head are passed over in sequence.

use std::ops::Range;

use super::PitRef;

/// Gaps at the head that one insertion passes over at most: twice what it adds.
const PASS_PER_INSERTION: usize = 2;
/// Positions that one look ahead looks at at most.
const LOOK_AHEAD: u64 = 64;

/// The queue.
pub(crate) struct PitQueue {
    ring: Box<[Option<PitRef>]>,
    head: usize,
    /// Sequence number of the head. Every position gets the next number when something is written there.
    head_sequence: u64,
    /// Positions in use from `head` on, gaps included.
    span: usize,
    live: usize,
}

impl PitQueue {
    /// A queue for at most `capacity` PIT slots.
    pub(crate) fn new(capacity: usize) -> Self {
        // Twice the capacity, so that gaps and slots together seldom fill it.
        PitQueue {
            ring: vec![None; 2 * capacity.max(1)].into_boxed_slice(),
            head: 0,
            head_sequence: 0,
            span: 0,
            live: 0,
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
            if self.span == 0 || self.ring[self.head].is_some() {
                break;
            }
            self.pass_head();
            self.span -= 1;
        }
    }

    /// Appends a slot and returns its position. When old slots with gaps behind them fill the ring, they move to the tail;
    /// `moved` is told where each one is now. The caller never has more slots than the queue was made for.
    pub(crate) fn push(&mut self, slot: PitRef, mut moved: impl FnMut(PitRef, u32)) -> u32 {
        self.pass_gaps(PASS_PER_INSERTION);
        while self.span == self.ring.len() {
            match self.ring[self.head].take() {
                None => self.pass_gaps(1),
                Some(old) => {
                    // Full ring: the tail is where the head was.
                    let position = self.head;
                    self.pass_head();
                    self.ring[position] = Some(old);
                    moved(old, position as u32);
                    if self.live == self.ring.len() {
                        break;
                    }
                }
            }
        }
        debug_assert!(self.span < self.ring.len());
        let position = self.wrap(self.head + self.span);
        self.ring[position] = Some(slot);
        self.span += 1;
        self.live += 1;
        position as u32
    }

    /// The slot at this position has ended.
    pub(crate) fn remove(&mut self, position: u32) {
        debug_assert!(self.ring[position as usize].is_some(), "removed twice");
        self.ring[position as usize] = None;
        self.live -= 1;
    }

    /// The slot that was made first.
    pub(crate) fn oldest(&mut self) -> Option<PitRef> {
        if self.live == 0 {
            return None;
        }
        self.pass_gaps(self.span);
        self.ring[self.head]
    }

    /// All slots, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = PitRef> + '_ {
        (0..self.span).filter_map(|offset| self.ring[self.wrap(self.head + offset)])
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
        self.ring[self.wrap(self.head + (sequence - self.head_sequence) as usize)]
    }

    /// For a look ahead: the first slot from a sequence number on, and the number from which to look for the one behind it.
    /// No slot when there are many gaps before it; then the next look begins behind those.
    #[inline]
    pub(crate) fn next_from(&self, sequence: u64) -> (Option<PitRef>, u64) {
        let Range { start, end } = self.sequences();
        let from = sequence.max(start);
        let end = end.min(from + LOOK_AHEAD);
        let mut position = self.wrap(self.head + from.min(end).saturating_sub(start) as usize);
        for sequence in from..end {
            if self.ring[position].is_some() {
                return (self.ring[position], sequence + 1);
            }
            position = self.wrap(position + 1);
        }
        (None, from.max(end))
    }

    /// The slot listed at this position.
    pub(crate) fn get(&self, position: u32) -> Option<PitRef> {
        self.ring.get(position as usize).copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(entry: u32) -> PitRef {
        PitRef { entry, block: super::super::INLINE }
    }

    #[test]
    fn oldest_comes_first_and_gaps_are_passed() {
        let mut queue = PitQueue::new(4);
        let positions: Vec<u32> = (0..4).map(|entry| queue.push(slot(entry), |_, _| ())).collect();
        assert_eq!(queue.oldest(), Some(slot(0)));
        assert_eq!(queue.sequences(), 0..4);
        queue.remove(positions[0]);
        queue.remove(positions[2]);
        assert_eq!(queue.oldest(), Some(slot(1)));
        assert_eq!(queue.sequences(), 1..4);
        assert_eq!(
            [0, 1, 2, 3, 4].map(|sequence| queue.at(sequence)),
            [None, Some(slot(1)), None, Some(slot(3)), None]
        );
        assert_eq!(queue.iter().collect::<Vec<_>>(), [slot(1), slot(3)]);
        assert_eq!(queue.len(), 2);
    }

    #[test]
    fn a_look_ahead_passes_gaps_and_changes_nothing() {
        let mut queue = PitQueue::new(200);
        assert_eq!(queue.next_from(0), (None, 0));
        let positions: Vec<u32> = (0..200).map(|entry| queue.push(slot(entry), |_, _| ())).collect();
        for gap in (1..3).chain(4..104) {
            queue.remove(positions[gap]);
        }
        assert_eq!(queue.next_from(0), (Some(slot(0)), 1));
        assert_eq!(queue.next_from(1), (Some(slot(3)), 4));
        // More gaps than one look passes.
        assert_eq!(queue.next_from(4), (None, 4 + LOOK_AHEAD));
        assert_eq!(queue.next_from(4 + LOOK_AHEAD), (Some(slot(104)), 105));
        assert_eq!((queue.next_from(199), queue.next_from(200)), ((Some(slot(199)), 200), (None, 200)));
        assert_eq!(queue.next_from(1_000), (None, 1_000));
        assert_eq!(queue.sequences(), 0..200);
        // What has left the head meanwhile is not looked at again, and the ring may have wrapped.
        queue.remove(positions[0]);
        assert_eq!(queue.oldest(), Some(slot(3)));
        for entry in 200..300 {
            queue.push(slot(entry), |_, _| ());
        }
        assert_eq!(queue.next_from(0), (Some(slot(3)), 4));
        for (entry, &position) in positions.iter().enumerate() {
            if queue.get(position) == Some(slot(entry as u32)) {
                queue.remove(position);
            }
        }
        assert_eq!(queue.oldest(), Some(slot(200)));
        for entry in 300..450 {
            queue.push(slot(entry), |_, _| ());
        }
        let mut from = 0;
        for entry in 200..450 {
            let (found, next) = queue.next_from(from);
            assert_eq!(found, Some(slot(entry)));
            from = next;
        }
    }

    #[test]
    fn a_long_lived_slot_does_not_block_the_ring() {
        let mut queue = PitQueue::new(4);
        let mut keeper = queue.push(slot(1000), |_, _| ());
        for entry in 0..1000 {
            let position = queue.push(slot(entry), |moved, position| {
                assert_eq!(moved, slot(1000));
                keeper = position;
            });
            assert_eq!(queue.get(keeper), Some(slot(1000)));
            let listed: Vec<_> = queue.sequences().filter_map(|sequence| queue.at(sequence)).collect();
            assert_eq!(listed, queue.iter().collect::<Vec<_>>());
            assert_eq!(queue.at(queue.sequences().end - 1), Some(slot(entry)));
            queue.remove(position);
        }
        assert_eq!(queue.iter().collect::<Vec<_>>(), [slot(1000)]);
        queue.remove(keeper);
        assert_eq!((queue.len(), queue.oldest()), (0, None));
    }
}
