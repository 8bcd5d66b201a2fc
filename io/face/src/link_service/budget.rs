//! Shares the slots for partial packets among the faces, so that neither one peer nor many together keep others from
//! reassembly.
//!
//! All faces share a number of slots, one for each partial packet. While there are free ones, a face takes as many as
//! it needs, up to [`MAX_PARTIAL_PACKETS`](super::MAX_PARTIAL_PACKETS). When there are none, the oldest packet of the
//! face with the most slots is evicted; a face that itself has the most evicts its own oldest. So a face with fewer
//! slots than the others loses none, however many fragments the others send. If each slot is held by a different face,
//! the packet that has waited longest is evicted: a packet with fragments that follow each other closely still gets
//! through.
//!
//! Every operation takes constant time, plus one pass over the slot numbers of the face.

use super::reassembler::MAX_PARTIAL_PACKETS;
use crate::list::{Linked, Links, List};

/// A slot for a partial packet, used or free.
#[derive(Debug)]
struct BudgetSlot {
    /// Slot of the face id of its present or last owner.
    owner: u32,
    by_age: Links,
}

impl Linked for BudgetSlot {
    fn links(&mut self) -> &mut Links {
        &mut self.by_age
    }
}

/// The slots of one face.
#[derive(Debug)]
struct Holder {
    /// Its partial-packet slots, least recently touched first. The list keeps its memory: 256 bytes for a face that was
    /// once full.
    held: Vec<u32>,
    by_count: Links,
}

impl Linked for Holder {
    fn links(&mut self) -> &mut Links {
        &mut self.by_count
    }
}

/// The partial-packet slots of all faces of one worker. A face is identified by the slot of its id, a partial-packet
/// slot by its number below the limit.
#[derive(Debug)]
pub(super) struct ReassemblyBudget {
    limit: u32,
    /// Slots that were used and are free now.
    free: Vec<u32>,
    slots: Vec<BudgetSlot>,
    /// Used slots, least recently touched first.
    by_age: List,
    /// Indexed by face slot.
    holders: Vec<Holder>,
    /// Face slots by the number of their partial packets; list 0 stays empty.
    by_count: [List; MAX_PARTIAL_PACKETS + 1],
    /// Largest number of partial packets of one face.
    most: usize,
}

impl ReassemblyBudget {
    /// Creates a budget of `limit` slots, at least one.
    pub(super) fn new(limit: usize) -> Self {
        ReassemblyBudget {
            // Lists use the highest number as null.
            limit: u32::try_from(limit).unwrap_or(u32::MAX).clamp(1, u32::MAX - 1),
            free: Vec::new(),
            slots: Vec::new(),
            by_age: List::default(),
            holders: Vec::new(),
            by_count: std::array::from_fn(|_| List::default()),
            most: 0,
        }
    }

    /// Returns the number of used slots.
    pub(super) fn taken(&self) -> usize {
        self.by_age.len()
    }

    /// Returns the slots of a face, least recently touched first.
    pub(super) fn held_by(&self, face_slot: usize) -> &[u32] {
        self.holders.get(face_slot).map_or(&[], |holder| &holder.held)
    }

    /// Returns the least recently touched slot.
    pub(super) fn oldest(&self) -> Option<u32> {
        self.by_age.first()
    }

    /// Returns the slot that must be released before this face may take one; `None` if one is free.
    pub(super) fn victim_for(&self, face_slot: usize) -> Option<u32> {
        let own = self.held_by(face_slot);
        if own.len() < MAX_PARTIAL_PACKETS && self.taken() < self.limit as usize {
            return None;
        }
        if own.len() == self.most {
            return own.first().copied();
        }
        if self.most == 1 {
            return self.oldest();
        }
        let greediest = self.by_count[self.most].first()?;
        self.held_by(greediest as usize).first().copied()
    }

    /// Takes a free slot for a face; [`ReassemblyBudget::victim_for`] tells whether there is one.
    pub(super) fn take(&mut self, face_slot: usize) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(BudgetSlot { owner: 0, by_age: Links::NOWHERE });
            self.slots.len() as u32 - 1
        });
        if self.holders.len() <= face_slot {
            self.holders.resize_with(face_slot + 1, || Holder { held: Vec::new(), by_count: Links::NOWHERE });
        }
        self.slots[slot as usize].owner = face_slot as u32;
        self.by_age.push_last(&mut self.slots, slot);
        self.change_held(face_slot, |held| held.push(slot));
        slot
    }

    /// Makes a used slot the most recently touched one.
    pub(super) fn touch(&mut self, slot: u32) {
        self.by_age.remove(&mut self.slots, slot);
        self.by_age.push_last(&mut self.slots, slot);
        let held = &mut self.holders[self.slots[slot as usize].owner as usize].held;
        if let Some(at) = held.iter().position(|&other| other == slot) {
            held[at..].rotate_left(1);
        }
    }

    /// Releases a used slot.
    pub(super) fn give(&mut self, slot: u32) {
        self.by_age.remove(&mut self.slots, slot);
        self.free.push(slot);
        let face_slot = self.slots[slot as usize].owner as usize;
        self.change_held(face_slot, |held| held.retain(|&other| other != slot));
    }

    /// Changes the slots of a face by one, and moves the face to the list of its new count.
    fn change_held(&mut self, face_slot: usize, change: impl FnOnce(&mut Vec<u32>)) {
        let held = &mut self.holders[face_slot].held;
        let before = held.len();
        change(held);
        let count = held.len();
        if before > 0 {
            self.by_count[before].remove(&mut self.holders, face_slot as u32);
        }
        if count > 0 {
            self.by_count[count].push_last(&mut self.holders, face_slot as u32);
        }
        self.most = self.most.max(count);
        // Only a face with the most slots can have reduced the maximum, and by one.
        if self.most > 0 && self.by_count[self.most].len() == 0 {
            self.most -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    /// The same rules over one list, as a slow reference: face slots and partial-packet slots, least recently touched
    /// first.
    #[derive(Default)]
    struct Model(Vec<(usize, u32)>);

    impl Model {
        fn held_by(&self, face_slot: usize) -> Vec<u32> {
            self.0.iter().filter(|entry| entry.0 == face_slot).map(|entry| entry.1).collect()
        }

        fn counts(&self) -> HashMap<usize, usize> {
            let mut counts = HashMap::new();
            self.0.iter().for_each(|entry| *counts.entry(entry.0).or_default() += 1);
            counts
        }

        fn may_give_up(&self, face_slot: usize, limit: usize) -> Vec<u32> {
            let own = self.held_by(face_slot);
            if own.len() < MAX_PARTIAL_PACKETS && self.0.len() < limit {
                return Vec::new();
            }
            let counts = self.counts();
            let most = counts.values().copied().max().unwrap_or(0);
            if own.len() == most {
                return vec![own[0]];
            }
            if most == 1 {
                return vec![self.0[0].1];
            }
            let greediest = counts.iter().filter(|(_, count)| **count == most);
            greediest.map(|(face_slot, _)| self.held_by(*face_slot)[0]).collect()
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn it_does_as_a_slow_model(
            limit in 1_usize..150,
            steps in proptest::collection::vec((0_u8..8, 0_usize..6, any::<proptest::sample::Index>()), 0..400),
        ) {
            let mut budget = ReassemblyBudget::new(limit);
            let mut model = Model::default();
            for (what, face_slot, which) in steps {
                if what < 6 {
                    // Face slot 0 is the greedy one.
                    let face_slot = if what < 3 { 0 } else { face_slot };
                    let allowed = model.may_give_up(face_slot, limit);
                    match budget.victim_for(face_slot) {
                        None => prop_assert!(allowed.is_empty()),
                        Some(slot) => {
                            prop_assert!(allowed.contains(&slot));
                            budget.give(slot);
                            model.0.retain(|entry| entry.1 != slot);
                        }
                    }
                    let slot = budget.take(face_slot);
                    prop_assert!(!model.0.iter().any(|entry| entry.1 == slot), "a slot must have one holder");
                    prop_assert!((slot as usize) < limit);
                    model.0.push((face_slot, slot));
                } else if !model.0.is_empty() {
                    let entry = model.0.remove(which.index(model.0.len()));
                    if what == 6 {
                        budget.touch(entry.1);
                        model.0.push(entry);
                    } else {
                        budget.give(entry.1);
                    }
                }
                prop_assert_eq!(budget.taken(), model.0.len());
                prop_assert_eq!(budget.oldest(), model.0.first().map(|entry| entry.1));
                for face_slot in 0..6 {
                    prop_assert_eq!(budget.held_by(face_slot), &model.held_by(face_slot)[..]);
                }
            }
        }
    }

    #[test]
    fn a_face_with_few_slots_keeps_them_during_a_flood() {
        let mut budget = ReassemblyBudget::new(2048);
        let mut take = |face_slot: usize| {
            if let Some(slot) = budget.victim_for(face_slot) {
                budget.give(slot);
            }
            budget.take(face_slot)
        };
        let modest = [take(1000), take(1000)];
        for _ in 0..1000 {
            (0..40).for_each(|face_slot| _ = take(face_slot));
        }
        assert_eq!(budget.held_by(1000), modest);
        assert_eq!(budget.taken(), 2048);
    }
}
