//! All PIT slots in the order they were made, so that the oldest can be given up when the PIT is full.
//!
//! A ring of (entry, block) pairs, written at its tail. Every slot knows its position, so a slot that ends writes a
//! gap over its pair; no other memory is touched, and gaps at the head are passed over in sequence.

use std::ops::Range;

use super::PitRef;

/// Gaps at the head that one insertion passes over at most: twice what it adds.
const PASS_PER_INSERTION: usize = 2;

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
