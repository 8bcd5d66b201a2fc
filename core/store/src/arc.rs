//! ARC (Megiddo and Modha, "ARC: A Self-Tuning, Low Overhead Replacement Cache", FAST 2003).

use namehop_table::TableError;

use crate::ghosts::Ghosts;
use crate::slots::{List, Note, Slots, kept};
use crate::{Ahead, Arrival, EvictionPolicy, Parameters};

/// Marks of packets and ghosts: recently used once, or more than once.
const ONCE: u8 = 1;
const OFTEN: u8 = 2;

/// Where the Data that is about to enter was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Unknown,
    GhostOnce,
    GhostOften,
}

/// Two lists in order of last use: packets that were used once, and packets that were used more often. An evicted
/// packet becomes a ghost, and Data that matches a ghost moves the target for the length of the first list.
///
/// 16 bytes per slot, and 28 per packet of the capacity for ghosts.
#[derive(Debug)]
pub struct Arc {
    slots: Slots,
    ghosts: Ghosts,
    once: List,
    often: List,
    ghosts_once: List,
    ghosts_often: List,
    capacity: usize,
    /// Target for the length of `once`.
    target: f64,
    expected: Expected,
}

impl Arc {
    /// Returns the list from which the next packet is evicted: REPLACE of the paper.
    fn next_list(&self) -> &List {
        let length = self.once.len() as f64;
        let is_over = length > self.target || (length == self.target && self.expected == Expected::GhostOften);
        if (self.once.len() > 0 && is_over) || self.often.len() == 0 { &self.once } else { &self.often }
    }

    fn list(&mut self, mark: u8) -> (&mut Slots, &mut List) {
        (&mut self.slots, if mark == ONCE { &mut self.once } else { &mut self.often })
    }

    /// Makes room among the ghosts for a packet that is evicted for unknown Data. Returns `false` if the packet
    /// becomes no ghost.
    fn trim_ghosts(&mut self) -> bool {
        if self.once.len() + self.ghosts_once.len() >= self.capacity {
            if self.ghosts_once.len() == 0 {
                return false;
            }
            self.ghosts.forget_first(&mut self.ghosts_once);
        } else {
            let all = self.once.len() + self.often.len() + self.ghosts_once.len() + self.ghosts_often.len();
            if all >= 2 * self.capacity {
                self.ghosts.forget_first(&mut self.ghosts_often);
            }
        }
        true
    }
}

impl EvictionPolicy for Arc {
    const EXPECTS: bool = true;

    fn new(parameters: &Parameters) -> Result<Self, TableError> {
        Ok(Arc {
            slots: Slots::new(parameters.slots)?,
            // The lists may hold one ghost more than they are trimmed to while a packet is evicted.
            ghosts: Ghosts::new(parameters.capacity.saturating_add(1))?,
            once: List::default(),
            often: List::default(),
            ghosts_once: List::default(),
            ghosts_often: List::default(),
            capacity: parameters.capacity,
            target: 0.0,
            expected: Expected::Unknown,
        })
    }

    fn expected(&mut self, arrival: &Arrival) {
        let (once, often) = (self.ghosts_once.len() as f64, self.ghosts_often.len() as f64);
        self.expected = match self.ghosts.find(arrival.name_hash) {
            None => Expected::Unknown,
            Some((ghost, ONCE)) => {
                self.target = (self.target + (often / once).max(1.0)).min(self.capacity as f64);
                self.ghosts.forget(&mut self.ghosts_once, ghost);
                Expected::GhostOnce
            }
            Some((ghost, _)) => {
                self.target = (self.target - (once / often).max(1.0)).max(0.0);
                self.ghosts.forget(&mut self.ghosts_often, ghost);
                Expected::GhostOften
            }
        };
    }

    fn admitted(&mut self, id: u32, arrival: &Arrival) {
        let mark = if self.expected == Expected::Unknown { ONCE } else { OFTEN };
        self.expected = Expected::Unknown;
        self.slots.set_note(id, Note { hash: kept(arrival.name_hash), mark });
        let (slots, list) = self.list(mark);
        slots.push_back(list, id);
    }

    fn hit(&mut self, id: u32) {
        let mark = self.slots.mark(id);
        if mark == 0 {
            return;
        }
        let (slots, list) = self.list(mark);
        slots.remove(list, id);
        self.slots.push_back(&mut self.often, id);
        self.slots.set_mark(id, OFTEN);
    }

    fn evicted(&mut self, id: u32) {
        let Note { hash, mark } = self.slots.note(id);
        if mark == 0 {
            return;
        }
        let becomes_ghost = self.expected != Expected::Unknown || self.trim_ghosts();
        self.removed(id);
        if becomes_ghost {
            let list = if mark == ONCE { &mut self.ghosts_once } else { &mut self.ghosts_often };
            // A name may have a ghost already if packets enter without `expected`.
            if self.ghosts.find(hash).is_none() && !self.ghosts.push_back(list, hash, mark) {
                self.ghosts.forget_first(list);
                self.ghosts.push_back(list, hash, mark);
            }
        }
    }

    fn removed(&mut self, id: u32) {
        let mark = self.slots.mark(id);
        if mark != 0 {
            let (slots, list) = self.list(mark);
            slots.remove(list, id);
            slots.set_mark(id, 0);
        }
    }

    fn victim(&mut self) -> Option<u32> {
        self.next_list().first()
    }

    /// Packets of the list from which the next packet is evicted now.
    fn upcoming(&self, ahead: &mut Ahead) -> Option<u32> {
        self.slots.upcoming(ahead, || self.next_list().first(), |_| true)
    }

    fn prefetch(&self, id: u32) {
        self.slots.prefetch(id);
    }

    fn prefetch_hit(&self, id: u32) {
        self.slots.prefetch_neighbours(id);
    }

    fn prefetch_name(&self, name_hash: u64) {
        self.ghosts.prefetch(name_hash);
    }

    fn len(&self) -> usize {
        self.once.len() + self.often.len()
    }
}
