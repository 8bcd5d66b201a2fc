//! CLOCK-Pro (Jiang, Chen and Zhang, "CLOCK-Pro: An Effective Improvement of the CLOCK Replacement", USENIX ATC 2005).

use std::fmt;

use namehop_table::{BucketTable, PageRequest, TableError};

use crate::slots::{List, Note, Slots, kept};
use crate::{Ahead, Arrival, EvictionPolicy, Parameters};

/// Marks: a packet is in the store; it is hot, which means used often.
const PRESENT: u8 = 1;
const HOT: u8 = 2;
/// The packet was used since a hand last passed.
const USED: u8 = 4;
/// The packet is cold and in its test period: if it is used now, it becomes hot.
const TEST: u8 = 8;

/// One circle of hot packets, cold packets, and ghosts of evicted cold packets in their test period, with three
/// hands. One hand looks for a cold packet to evict, one turns unused hot packets cold, and one ends test periods.
/// The target for cold packets grows with each ghost that is requested again, and shrinks with each test period that
/// ends without a use.
///
/// 16 bytes per slot, and 28 per packet of the capacity for ghosts.
pub struct ClockPro {
    /// Packets have their slot numbers; the numbers above them are ghosts.
    slots: Slots,
    ghost_table: BucketTable,
    free_ghosts: List,
    next_ghost: u32,
    /// The circle, starting at the hand of hot packets; new entries go to the back, behind that hand.
    circle: List,
    hand_cold: Option<u32>,
    hand_test: Option<u32>,
    first_ghost: u32,
    capacity: usize,
    /// Target number of cold packets, at least 1.
    cold_target: usize,
    hot: usize,
    cold: usize,
    ghosts: usize,
    enters_hot: bool,
}

impl fmt::Debug for ClockPro {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = (self.hot, self.cold, self.ghosts, self.cold_target);
        f.debug_struct("ClockPro").field("hot, cold, ghosts, target", &counts).finish()
    }
}

impl ClockPro {
    /// Returns the next number in the circle.
    fn behind(&self, number: u32) -> Option<u32> {
        self.slots.next(number).or(self.circle.first())
    }

    /// Removes a number from the circle; hands that point to it advance.
    fn leave(&mut self, number: u32) {
        let next = self.behind(number).filter(|&next| next != number);
        for hand in [&mut self.hand_cold, &mut self.hand_test] {
            if *hand == Some(number) {
                *hand = next;
            }
        }
        self.slots.remove(&mut self.circle, number);
    }

    /// Inserts a packet at the back of the circle.
    fn enter(&mut self, number: u32) {
        self.slots.push_back(&mut self.circle, number);
    }

    fn forget_ghost(&mut self, ghost: u32) {
        self.leave(ghost);
        self.ghost_table.remove(self.slots.note(ghost).hash, ghost);
        self.slots.push_back(&mut self.free_ghosts, ghost);
        self.ghosts -= 1;
    }

    fn want_fewer_cold(&mut self) {
        self.cold_target = (self.cold_target - 1).max(1);
    }

    /// Ends the test period of the packet or ghost at a hand. Returns `true` if it was a ghost, which is forgotten.
    fn end_test(&mut self, number: u32) -> bool {
        let mark = self.slots.mark(number);
        if mark & TEST == 0 {
            return false;
        }
        if mark & USED == 0 {
            self.want_fewer_cold();
        }
        if mark & PRESENT == 0 {
            self.forget_ghost(number);
            return true;
        }
        self.slots.set_mark(number, mark & !TEST);
        false
    }

    /// Advances the hand of hot packets until one of them turns cold. There must be one.
    fn run_hand_hot(&mut self) {
        while let Some(number) = self.circle.first() {
            let mark = self.slots.mark(number);
            if mark & HOT == 0 {
                if !self.end_test(number) {
                    self.slots.move_back(&mut self.circle, number);
                }
                continue;
            }
            self.slots.move_back(&mut self.circle, number);
            if mark & USED != 0 {
                self.slots.set_mark(number, mark & !USED);
                continue;
            }
            self.slots.set_mark(number, PRESENT);
            self.hot -= 1;
            self.cold += 1;
            return;
        }
    }

    /// Advances the hand that ends test periods until one ghost is forgotten. There must be one.
    fn run_hand_test(&mut self) {
        while let Some(number) = self.hand_test.or(self.circle.first()) {
            // Advanced first, because it must not point to a forgotten number.
            self.hand_test = self.behind(number);
            if self.end_test(number) {
                return;
            }
        }
    }

    fn limit_hot(&mut self) {
        while self.hot > self.capacity.saturating_sub(self.cold_target) {
            self.run_hand_hot();
        }
    }
}

impl EvictionPolicy for ClockPro {
    const EXPECTS: bool = true;

    fn new(parameters: &Parameters) -> Result<Self, TableError> {
        let Parameters { slots, capacity, .. } = *parameters;
        // One more ghost than the limit exists while a packet is evicted.
        let ghosts = capacity.saturating_add(1);
        Ok(ClockPro {
            slots: Slots::new(slots.saturating_add(ghosts))?,
            ghost_table: BucketTable::new(ghosts, PageRequest::Large)?,
            free_ghosts: List::default(),
            next_ghost: slots as u32,
            circle: List::default(),
            hand_cold: None,
            hand_test: None,
            first_ghost: slots as u32,
            capacity,
            cold_target: capacity.max(1),
            hot: 0,
            cold: 0,
            ghosts: 0,
            enters_hot: false,
        })
    }

    fn expected(&mut self, arrival: &Arrival) {
        let hash = kept(arrival.name_hash);
        let ghost = self.ghost_table.find(hash, |ghost| self.slots.note(ghost).hash == hash);
        self.enters_hot = ghost.is_some();
        if let Some(ghost) = ghost {
            self.cold_target = (self.cold_target + 1).min(self.capacity.max(1));
            self.forget_ghost(ghost);
        }
    }

    fn admitted(&mut self, id: u32, arrival: &Arrival) {
        let kind = if std::mem::take(&mut self.enters_hot) { HOT } else { TEST };
        self.slots.set_note(id, Note { hash: kept(arrival.name_hash), mark: PRESENT | kind });
        self.enter(id);
        if kind == HOT {
            self.hot += 1;
            self.limit_hot();
        } else {
            self.cold += 1;
        }
    }

    fn hit(&mut self, id: u32) {
        let mark = self.slots.mark(id);
        if mark != 0 {
            self.slots.set_mark(id, mark | USED);
        }
    }

    fn evicted(&mut self, id: u32) {
        let Note { hash, mark } = self.slots.note(id);
        let is_known = || self.ghost_table.find(hash, |ghost| self.slots.note(ghost).hash == hash).is_some();
        if mark & TEST == 0 || is_known() {
            return self.removed(id);
        }
        let ghost = self.slots.pop_front(&mut self.free_ghosts).unwrap_or_else(|| {
            self.next_ghost += 1;
            self.next_ghost - 1
        });
        if self.ghost_table.insert(hash, ghost).is_err() {
            self.slots.push_back(&mut self.free_ghosts, ghost);
            return self.removed(id);
        }
        // The ghost takes the packet's position in the circle, and the hands follow.
        self.slots.replace(&mut self.circle, id, ghost);
        for hand in [&mut self.hand_cold, &mut self.hand_test] {
            if *hand == Some(id) {
                *hand = Some(ghost);
            }
        }
        self.slots.set_note(ghost, Note { hash, mark: TEST });
        self.slots.set_mark(id, 0);
        self.cold -= 1;
        self.ghosts += 1;
        while self.ghosts > self.capacity {
            self.run_hand_test();
        }
    }

    fn removed(&mut self, id: u32) {
        let mark = self.slots.mark(id);
        if mark == 0 {
            return;
        }
        self.leave(id);
        self.slots.set_mark(id, 0);
        if mark & HOT != 0 { self.hot -= 1 } else { self.cold -= 1 }
    }

    fn victim(&mut self) -> Option<u32> {
        loop {
            if self.cold == 0 {
                if self.hot == 0 {
                    return None;
                }
                self.run_hand_hot();
            }
            let number = self.hand_cold.or(self.circle.first())?;
            let mark = self.slots.mark(number);
            if mark & (PRESENT | HOT) != PRESENT {
                self.hand_cold = self.behind(number);
                continue;
            }
            if mark & USED == 0 {
                self.hand_cold = Some(number);
                return Some(number);
            }
            self.hand_cold = self.behind(number).filter(|&next| next != number);
            self.slots.move_back(&mut self.circle, number);
            if mark & TEST != 0 {
                self.slots.set_mark(number, PRESENT | HOT);
                self.hot += 1;
                self.cold -= 1;
                self.limit_hot();
            } else {
                self.slots.set_mark(number, PRESENT | TEST);
            }
        }
    }

    /// Unused cold packets from the hand to the end of the list.
    fn upcoming(&self, ahead: &mut Ahead) -> Option<u32> {
        let leaves = |number| number < self.first_ghost && self.slots.mark(number) & (PRESENT | HOT | USED) == PRESENT;
        self.slots.upcoming(ahead, || self.hand_cold.or(self.circle.first()), leaves)
    }

    fn prefetch(&self, id: u32) {
        self.slots.prefetch(id);
    }

    fn prefetch_name(&self, name_hash: u64) {
        self.ghost_table.prefetch(kept(name_hash));
    }

    fn len(&self) -> usize {
        self.hot + self.cold
    }
}
