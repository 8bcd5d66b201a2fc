//! SIEVE (Zhang et al., "SIEVE is Simpler than LRU", NSDI 2024).

use namehop_table::TableError;

use crate::slots::{List, Slots};
use crate::{Ahead, Arrival, EvictionPolicy, Parameters};

const PRESENT: u8 = 1;
const USED: u8 = 2;

/// A hand moves from the oldest packet to the newest and starts over. It skips packets that were used since it last
/// passed, and evicts the first other one. Packets never move. 16 bytes per slot.
#[derive(Debug)]
pub struct Sieve {
    slots: Slots,
    /// The packets, oldest first.
    order: List,
    /// Position of the hand; at the oldest packet when `None`.
    hand: Option<u32>,
}

impl EvictionPolicy for Sieve {
    fn new(parameters: &Parameters) -> Result<Self, TableError> {
        Ok(Sieve { slots: Slots::new(parameters.slots)?, order: List::default(), hand: None })
    }

    fn admitted(&mut self, id: u32, _: &Arrival) {
        self.slots.set_mark(id, PRESENT);
        self.slots.push_back(&mut self.order, id);
    }

    fn hit(&mut self, id: u32) {
        if self.slots.mark(id) != 0 {
            self.slots.set_mark(id, PRESENT | USED);
        }
    }

    fn removed(&mut self, id: u32) {
        if self.slots.mark(id) == 0 {
            return;
        }
        if self.hand == Some(id) {
            self.hand = self.slots.next(id);
        }
        self.slots.set_mark(id, 0);
        self.slots.remove(&mut self.order, id);
    }

    fn victim(&mut self) -> Option<u32> {
        let mut id = self.hand.or(self.order.first())?;
        while self.slots.mark(id) & USED != 0 {
            self.slots.set_mark(id, PRESENT);
            id = self.slots.next(id).or(self.order.first())?;
        }
        self.hand = Some(id);
        Some(id)
    }

    /// Unused packets from the hand to the newest.
    fn upcoming(&self, ahead: &mut Ahead) -> Option<u32> {
        self.slots.upcoming(ahead, || self.hand.or(self.order.first()), |id| self.slots.mark(id) == PRESENT)
    }

    fn prefetch(&self, id: u32) {
        self.slots.prefetch(id);
    }

    fn len(&self) -> usize {
        self.order.len()
    }
}
