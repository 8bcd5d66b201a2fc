//! CLOCK: first in, first out, but a used packet gets another round.

use namehop_table::TableError;

use crate::list::OrderedNumbers;
use crate::words::Words;
use crate::{Ahead, Arrival, EvictionPolicy, Parameters};

/// One bit records whether a packet was used since it was last at the front; a used packet moves to the back instead
/// of being evicted.
///
/// 9 bytes per slot and a bit, up to 68 where erased packets leave gaps in the order.
#[derive(Debug)]
pub struct Clock {
    order: OrderedNumbers,
    used: Words,
}

impl EvictionPolicy for Clock {
    fn new(parameters: &Parameters) -> Result<Self, TableError> {
        let used = Words::new(parameters.slots.div_ceil(u64::BITS as usize))?;
        Ok(Clock { order: OrderedNumbers::new(parameters.slots)?, used })
    }

    fn admitted(&mut self, id: u32, _: &Arrival) {
        self.used.set_part::<1>(id as usize, 0);
        self.order.push_back(id);
    }

    fn hit(&mut self, id: u32) {
        self.used.set_part::<1>(id as usize, 1);
    }

    fn removed(&mut self, id: u32) {
        self.order.remove(id);
    }

    fn victim(&mut self) -> Option<u32> {
        loop {
            let front = self.order.front()?;
            if self.used.get_part::<1>(front as usize) == 0 {
                return Some(front);
            }
            self.used.set_part::<1>(front as usize, 0);
            self.order.move_back(front);
        }
    }

    /// The victim gets another round.
    fn spared(&mut self) {
        if let Some(victim) = self.victim() {
            self.order.move_back(victim);
        }
    }

    /// Packets from the front on that were not used yet.
    fn upcoming(&self, ahead: &mut Ahead) -> Option<u32> {
        loop {
            let (id, place) = self.order.behind(ahead.0)?;
            ahead.0 = Some(place);
            if self.used.get_part::<1>(id as usize) == 0 {
                return Some(id);
            }
        }
    }

    fn prefetch(&self, id: u32) {
        self.order.prefetch_note(id);
        self.used.prefetch(id as usize / u64::BITS as usize);
    }

    fn len(&self) -> usize {
        self.order.len()
    }
}
