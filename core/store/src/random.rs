//! Random: evicts a packet chosen uniformly at random.

use namehop_table::TableError;
use namehop_table::permutation::mix;

use crate::words::Words;
use crate::{Ahead, Arrival, EvictionPolicy, Parameters};

/// The victim is drawn at random; 8 bytes per slot.
#[derive(Debug)]
pub struct Random {
    /// Numbers of the packets in the store, in adjacent elements.
    numbers: Words,
    /// Index of each packet in `numbers`, plus one; 0 for packets that are not in the store.
    places: Words,
    length: usize,
    seed: u64,
    /// Number of victims drawn so far.
    draws: u64,
}

impl Random {
    fn place(&self, id: u32) -> Option<usize> {
        (self.places.get_part::<32>(id as usize) as usize).checked_sub(1)
    }

    /// Returns the packet that will be drawn after `others` more draws.
    fn drawn(&self, others: u64) -> Option<u32> {
        let draw = mix(self.seed ^ mix(self.draws + others));
        let place = ((u128::from(draw) * self.length as u128) >> u64::BITS) as usize;
        (self.length > 0).then(|| self.numbers.get_part::<32>(place) as u32)
    }
}

impl EvictionPolicy for Random {
    fn new(parameters: &Parameters) -> Result<Self, TableError> {
        let words = || Words::new(parameters.slots.div_ceil(2));
        Ok(Random { numbers: words()?, places: words()?, length: 0, seed: mix(parameters.tuning.seed), draws: 0 })
    }

    fn admitted(&mut self, id: u32, _: &Arrival) {
        self.numbers.set_part::<32>(self.length, id.into());
        self.length += 1;
        self.places.set_part::<32>(id as usize, self.length as u64);
    }

    fn hit(&mut self, _: u32) {}

    fn removed(&mut self, id: u32) {
        let Some(place) = self.place(id) else { return };
        self.draws += 1;
        self.length -= 1;
        let last = self.numbers.get_part::<32>(self.length);
        self.numbers.set_part::<32>(place, last);
        self.places.set_part::<32>(last as usize, place as u64 + 1);
        self.places.set_part::<32>(id as usize, 0);
    }

    fn victim(&mut self) -> Option<u32> {
        self.drawn(0)
    }

    fn spared(&mut self) {
        self.draws += 1;
    }

    /// The future draws if the number of packets stays the same, which it does apart from small changes of the order.
    fn upcoming(&self, ahead: &mut Ahead) -> Option<u32> {
        let others = ahead.number().map_or(0, |passed| passed + 1);
        if others as usize >= self.length {
            return None;
        }
        ahead.pass(others);
        self.drawn(others.into())
    }

    fn prefetch(&self, id: u32) {
        self.places.prefetch(id as usize / 2);
    }

    fn len(&self) -> usize {
        self.length
    }
}
