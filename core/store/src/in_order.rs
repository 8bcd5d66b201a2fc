//! FIFO and LRU: both keep packets in one order, and differ in whether a hit changes it.

use namehop_table::TableError;

use crate::list::OrderedNumbers;
use crate::{Ahead, Arrival, EvictionPolicy, Parameters};

/// First in, first out: the packet that entered first leaves first.
pub type Fifo = InOrder<false>;

/// Least recently used: the packet whose last hit (or entry) lies longest ago leaves first.
pub type Lru = InOrder<true>;

/// Packets leave in the order in which they entered; with `BY_USE`, in which they entered or were last used.
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

    /// Goes to the end: otherwise one packet that is worth more than all that come would keep all of them out.
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
