//! NFD's `priority_fifo`: evicts unsolicited Data first, then stale Data, then the rest.

use namehop_table::TableError;

use crate::slots::{List, Slots};
use crate::words::Words;
use crate::{Ahead, Arrival, EvictionPolicy, Parameters};

/// Marks: the queue a packet is in.
const UNSOLICITED: u8 = 1;
const STALE: u8 = 2;
const FRESH: u8 = 3;

/// Three queues, each first in, first out. A packet moves from the third to the second queue when it turns stale:
/// when the next Data arrives, all packets that are due move, in the order in which they turned stale. Finding them
/// takes a number of steps logarithmic in the number of packets.
///
/// 32 bytes per slot.
#[derive(Debug)]
pub struct PriorityFifo {
    slots: Slots,
    unsolicited: List,
    stale: List,
    fresh: List,
    expiry: Heap,
}

impl PriorityFifo {
    fn list(&mut self, mark: u8) -> (&mut Slots, &mut List) {
        let list = match mark {
            UNSOLICITED => &mut self.unsolicited,
            STALE => &mut self.stale,
            _ => &mut self.fresh,
        };
        (&mut self.slots, list)
    }

    fn enter(&mut self, id: u32, mark: u8) {
        self.slots.set_mark(id, mark);
        let (slots, list) = self.list(mark);
        slots.push_back(list, id);
    }

    /// Moves packets that have turned stale.
    fn pass_time(&mut self, now: u64) {
        while let Some((id, until)) = self.expiry.first()
            && until <= now
        {
            self.removed(id);
            self.enter(id, STALE);
        }
    }
}

impl EvictionPolicy for PriorityFifo {
    const EXPECTS: bool = true;

    fn new(parameters: &Parameters) -> Result<Self, TableError> {
        Ok(PriorityFifo {
            slots: Slots::new(parameters.slots)?,
            unsolicited: List::default(),
            stale: List::default(),
            fresh: List::default(),
            expiry: Heap::new(parameters.slots)?,
        })
    }

    fn expected(&mut self, arrival: &Arrival) {
        self.pass_time(arrival.now);
    }

    fn admitted(&mut self, id: u32, arrival: &Arrival) {
        if !arrival.is_solicited {
            return self.enter(id, UNSOLICITED);
        }
        self.enter(id, FRESH);
        if arrival.fresh_until != u64::MAX {
            self.expiry.insert(id, arrival.fresh_until);
        }
        self.pass_time(arrival.now);
    }

    fn hit(&mut self, _: u32) {}

    fn refreshed(&mut self, id: u32, arrival: &Arrival) {
        if self.slots.mark(id) != 0 {
            self.removed(id);
            self.admitted(id, arrival);
        }
    }

    fn removed(&mut self, id: u32) {
        let mark = self.slots.mark(id);
        if mark != 0 {
            self.expiry.remove(id);
            let (slots, list) = self.list(mark);
            slots.remove(list, id);
            slots.set_mark(id, 0);
        }
    }

    fn victim(&mut self) -> Option<u32> {
        self.unsolicited.first().or(self.stale.first()).or(self.fresh.first())
    }

    fn upcoming(&self, ahead: &mut Ahead) -> Option<u32> {
        let queues = [&self.unsolicited, &self.stale, &self.fresh];
        let id = match ahead.number() {
            None => queues.iter().find_map(|queue| queue.first()),
            Some(passed) => match usize::from(self.slots.mark(passed)) {
                0 => None,
                queue => self.slots.next(passed).or_else(|| queues[queue..].iter().find_map(|queue| queue.first())),
            },
        }?;
        Some(ahead.pass(id))
    }

    fn prefetch(&self, id: u32) {
        self.slots.prefetch(id);
        self.expiry.prefetch(id);
    }

    fn len(&self) -> usize {
        self.unsolicited.len() + self.stale.len() + self.fresh.len()
    }
}

/// Packets ordered by a time: a binary heap that knows the position of each packet, so that any can be removed.
#[derive(Debug)]
struct Heap {
    /// Numbers of packets, 32 bits each.
    order: Words,
    /// Position of each packet in `order`, plus one; 0 if the packet is not in it. 32 bits each.
    places: Words,
    times: Words,
    length: usize,
}

impl Heap {
    fn new(slots: usize) -> Result<Self, TableError> {
        let halves = || Words::new(slots.div_ceil(2));
        Ok(Heap { order: halves()?, places: halves()?, times: Words::new(slots)?, length: 0 })
    }

    fn first(&self) -> Option<(u32, u64)> {
        (self.length > 0).then(|| (self.at(0), self.time(0)))
    }

    fn insert(&mut self, id: u32, time: u64) {
        self.times.set(id as usize, time);
        self.length += 1;
        self.put(self.length - 1, id);
        self.rise(self.length - 1);
    }

    fn remove(&mut self, id: u32) {
        let Some(place) = (self.places.get_part::<32>(id as usize) as usize).checked_sub(1) else { return };
        self.places.set_part::<32>(id as usize, 0);
        self.length -= 1;
        if place < self.length {
            self.put(place, self.at(self.length));
            self.rise(place);
            self.sink(place);
        }
    }

    fn prefetch(&self, id: u32) {
        self.places.prefetch(id as usize / 2);
        self.times.prefetch(id as usize);
    }

    fn at(&self, place: usize) -> u32 {
        self.order.get_part::<32>(place) as u32
    }

    fn time(&self, place: usize) -> u64 {
        self.times.get(self.at(place) as usize)
    }

    fn put(&mut self, place: usize, id: u32) {
        self.order.set_part::<32>(place, id.into());
        self.places.set_part::<32>(id as usize, place as u64 + 1);
    }

    fn swap(&mut self, a: usize, b: usize) {
        let (of_a, of_b) = (self.at(a), self.at(b));
        self.put(a, of_b);
        self.put(b, of_a);
    }

    fn rise(&mut self, mut place: usize) {
        while place > 0 && self.time(place) < self.time((place - 1) / 2) {
            self.swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
    }

    fn sink(&mut self, mut place: usize) {
        loop {
            let children = (2 * place + 1..2 * place + 3).filter(|&child| child < self.length);
            let Some(least) = children.min_by_key(|&child| self.time(child)) else { return };
            if self.time(least) >= self.time(place) {
                return;
            }
            self.swap(place, least);
            place = least;
        }
    }
}
