//! FIFO and LRU: both keep packets in one order; only LRU changes it on a hit.

use namehop_table::TableError;

use crate::list::OrderedNumbers;
use crate::{Ahead, Arrival, EvictionPolicy, Parameters};

/// First in, first out: the packet that entered first is evicted first.
pub type Fifo = InOrder<false>;

/// Least recently used: the packet with the oldest hit (or entry) is evicted first.
pub type Lru = InOrder<true>;

/// Packets are evicted in the order in which they entered, or with `BY_USE` in which they entered or were last used.
///
/// 9 bytes per slot with `BY_USE = false`, up to 68 where uses leave gaps in the order.
#[derive(Debug)]
pub struct InOrder<const BY_USE: bool> {
    order: OrderedNumbers,
}

impl<const BY_USE: bool> EvictionPolicy for InOrder<BY_USE> {
    fn new(parameters: &Parameters) -> Result<Self, TableError> {
        Ok(InOrder { order: OrderedNumbers::new(parameters.slots)? })
    }

    #[inline]
    fn admitted(&mut self, id: u32, _: &Arrival) {
        self.order.push_back(id);
    }

    #[inline]
    fn hit(&mut self, id: u32) {
        if BY_USE {
            self.order.move_back(id);
        }
    }

    #[inline]
    fn removed(&mut self, id: u32) {
        self.order.remove(id);
    }

    #[inline]
    fn victim(&mut self) -> Option<u32> {
        self.order.front()
    }

    /// Moves to the end: otherwise one packet with a higher value than all arrivals would keep them all out.
    #[inline]
    fn spared(&mut self) {
        if let Some(front) = self.order.front() {
            self.order.move_back(front);
        }
    }

    #[inline]
    fn upcoming(&self, ahead: &mut Ahead) -> Option<u32> {
        let (id, place) = self.order.behind(ahead.0)?;
        ahead.0 = Some(place);
        Some(id)
    }

    #[inline]
    fn prefetch(&self, id: u32) {
        self.order.prefetch_note(id);
    }

    #[inline]
    fn prefetch_hit(&self, id: u32) {
        if BY_USE {
            self.order.prefetch_block(id);
        }
    }

    fn len(&self) -> usize {
        self.order.len()
    }
}
