//! S3-FIFO (Yang et al., "FIFO queues are all you need for cache eviction", SOSP 2023).

use namehop_table::TableError;

use crate::ghosts::Ghosts;
use crate::slots::{List, Note, Slots, kept};
use crate::{Ahead, Arrival, EvictionPolicy, Parameters};

/// Bits of a mark that say in which queue a packet is; the other bits count its hits.
const QUEUE: u8 = 3;
const SMALL: u8 = 1;
const MAIN: u8 = 2;
/// One hit, as added to a mark.
const HIT: u8 = QUEUE + 1;
/// Maximum number of rounds that hits earn a packet in the main queue.
const MAX_ROUNDS: u8 = 3;

fn hits(mark: u8) -> u8 {
    mark / HIT
}

/// Three queues, each first in, first out. New packets enter a small queue; from there they move to the main queue if
/// they were used meanwhile, or else become ghosts. Data that returns while it is a ghost enters the main queue.
/// There, used packets get another round.
///
/// 16 bytes per slot, and 28 per ghost.
#[derive(Debug)]
pub struct S3Fifo {
    slots: Slots,
    ghosts: Ghosts,
    small: List,
    main: List,
    ghost_queue: List,
    ghost_capacity: usize,
    small_capacity: usize,
    main_capacity: usize,
    /// Hits after which a packet moves from the small queue to the main one.
    promote: u8,
    enters_main: bool,
    /// True once a packet was evicted. Before that, the small queue takes no more than its share.
    has_evicted: bool,
    /// The last victim returned, while it is still in the store.
    chosen: Option<u32>,
}

impl S3Fifo {
    /// Advances through the small queue to the first packet to evict.
    fn victim_of_small(&mut self) -> Option<u32> {
        while let Some(id) = self.small.first() {
            if hits(self.slots.mark(id)) < self.promote {
                return Some(id);
            }
            self.slots.remove(&mut self.small, id);
            self.slots.push_back(&mut self.main, id);
            self.slots.set_mark(id, MAIN);
        }
        None
    }

    fn victim_of_main(&mut self) -> Option<u32> {
        loop {
            let id = self.main.first()?;
            let rounds = hits(self.slots.mark(id)).min(MAX_ROUNDS);
            if rounds == 0 {
                return Some(id);
            }
            self.slots.move_back(&mut self.main, id);
            self.slots.set_mark(id, MAIN + (rounds - 1) * HIT);
        }
    }

    fn main_is_next(&self) -> bool {
        self.main.len() > self.main_capacity || self.small.len() == 0
    }
}

impl EvictionPolicy for S3Fifo {
    const EXPECTS: bool = true;

    fn new(parameters: &Parameters) -> Result<Self, TableError> {
        let ghost_capacity = parameters.share(parameters.tuning.ghosts);
        Ok(S3Fifo {
            slots: Slots::new(parameters.slots)?,
            ghosts: Ghosts::new(ghost_capacity)?,
            small: List::default(),
            main: List::default(),
            ghost_queue: List::default(),
            ghost_capacity,
            small_capacity: parameters.share(parameters.tuning.small),
            main_capacity: parameters.capacity - parameters.share(parameters.tuning.small),
            promote: parameters.tuning.promote,
            enters_main: false,
            has_evicted: false,
            chosen: None,
        })
    }

    fn expected(&mut self, arrival: &Arrival) {
        let ghost = self.ghosts.find(arrival.name_hash);
        self.enters_main = ghost.is_some();
        if let Some((ghost, _)) = ghost {
            self.ghosts.forget(&mut self.ghost_queue, ghost);
        }
    }

    fn admitted(&mut self, id: u32, arrival: &Arrival) {
        let small_is_full = !self.has_evicted && self.small.len() >= self.small_capacity;
        let (list, mark) =
            if self.enters_main || small_is_full { (&mut self.main, MAIN) } else { (&mut self.small, SMALL) };
        self.slots.push_back(list, id);
        self.slots.set_note(id, Note { hash: kept(arrival.name_hash), mark });
        self.enters_main = false;
    }

    fn hit(&mut self, id: u32) {
        let mark = self.slots.mark(id);
        if mark != 0 {
            self.slots.set_mark(id, mark.checked_add(HIT).unwrap_or(mark));
        }
    }

    fn evicted(&mut self, id: u32) {
        let Note { hash, mark } = self.slots.note(id);
        self.has_evicted |= mark != 0;
        self.removed(id);
        if mark & QUEUE == SMALL && self.ghost_capacity > 0 && self.ghosts.find(hash).is_none() {
            if self.ghost_queue.len() >= self.ghost_capacity {
                self.ghosts.forget_first(&mut self.ghost_queue);
            }
            self.ghosts.push_back(&mut self.ghost_queue, hash, 0);
        }
    }

    fn removed(&mut self, id: u32) {
        match self.slots.mark(id) & QUEUE {
            0 => return,
            SMALL => self.slots.remove(&mut self.small, id),
            _ => self.slots.remove(&mut self.main, id),
        }
        self.slots.set_mark(id, 0);
        self.chosen = self.chosen.filter(|&chosen| chosen != id);
    }

    fn victim(&mut self) -> Option<u32> {
        if self.chosen.is_none() {
            let of_small = if self.main_is_next() { None } else { self.victim_of_small() };
            self.chosen = of_small.or_else(|| self.victim_of_main());
        }
        self.chosen
    }

    /// The queue that evicts next, without packets that will stay.
    fn upcoming(&self, ahead: &mut Ahead) -> Option<u32> {
        let (list, stays) = if self.main_is_next() { (&self.main, 1) } else { (&self.small, self.promote) };
        if ahead.number().is_none()
            && let Some(chosen) = self.chosen
        {
            return Some(ahead.pass(chosen));
        }
        self.slots.upcoming(ahead, || list.first(), |id| hits(self.slots.mark(id)) < stays)
    }

    fn prefetch(&self, id: u32) {
        self.slots.prefetch(id);
    }

    fn prefetch_name(&self, name_hash: u64) {
        self.ghosts.prefetch(name_hash);
    }

    fn len(&self) -> usize {
        self.small.len() + self.main.len()
    }
}
