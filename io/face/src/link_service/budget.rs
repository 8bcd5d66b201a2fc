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
struct Entry {
    /// Slot of the face id of its present or last owner.
    owner: u32,
    by_age: Links,
}

impl Linked for Entry {
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
    places: Vec<Entry>,
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
            places: Vec::new(),
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
    pub(super) fn held_by(&self, slot: usize) -> &[u32] {
        self.holders.get(slot).map_or(&[], |holder| &holder.held)
    }

    /// Returns the least recently touched slot.
    pub(super) fn oldest(&self) -> Option<u32> {
        self.by_age.first()
    }

    /// Returns the slot that must be released before this face may take one; `None` if one is free.
    pub(super) fn to_give_up_for(&self, slot: usize) -> Option<u32> {
        let own = self.held_by(slot);
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

    /// Takes a free slot for a face; [`ReassemblyBudget::to_give_up_for`] tells whether there is one.
    pub(super) fn take(&mut self, slot: usize) -> u32 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(Entry { owner: 0, by_age: Links::NOWHERE });
            self.places.len() as u32 - 1
        });
        if self.holders.len() <= slot {
            self.holders.resize_with(slot + 1, || Holder { held: Vec::new(), by_count: Links::NOWHERE });
        }
        self.places[place as usize].owner = slot as u32;
        self.by_age.push_last(&mut self.places, place);
        self.change_held(slot, |held| held.push(place));
        place
    }

    /// Makes a used slot the most recently touched one.
    pub(super) fn touch(&mut self, place: u32) {
        self.by_age.remove(&mut self.places, place);
        self.by_age.push_last(&mut self.places, place);
        let held = &mut self.holders[self.places[place as usize].owner as usize].held;
        if let Some(at) = held.iter().position(|&other| other == place) {
            held[at..].rotate_left(1);
        }
    }

    /// Releases a used slot.
    pub(super) fn give(&mut self, place: u32) {
        self.by_age.remove(&mut self.places, place);
        self.free.push(place);
        let slot = self.places[place as usize].owner as usize;
        self.change_held(slot, |held| held.retain(|&other| other != place));
    }

    /// Changes the slots of a face by one, and moves the face to the list of its new count.
    fn change_held(&mut self, slot: usize, change: impl FnOnce(&mut Vec<u32>)) {
        let held = &mut self.holders[slot].held;
        let before = held.len();
        change(held);
        let count = held.len();
        if before > 0 {
            self.by_count[before].remove(&mut self.holders, slot as u32);
        }
        if count > 0 {
            self.by_count[count].push_last(&mut self.holders, slot as u32);
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
        fn held_by(&self, slot: usize) -> Vec<u32> {
            self.0.iter().filter(|entry| entry.0 == slot).map(|entry| entry.1).collect()
        }

        fn counts(&self) -> HashMap<usize, usize> {
            let mut counts = HashMap::new();
            self.0.iter().for_each(|entry| *counts.entry(entry.0).or_default() += 1);
            counts
        }

        fn may_give_up(&self, slot: usize, limit: usize) -> Vec<u32> {
            let own = self.held_by(slot);
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
            greediest.map(|(slot, _)| self.held_by(*slot)[0]).collect()
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
            for (what, slot, which) in steps {
                if what < 6 {
                    // Face slot 0 is the greedy one.
                    let slot = if what < 3 { 0 } else { slot };
                    let allowed = model.may_give_up(slot, limit);
                    match budget.to_give_up_for(slot) {
                        None => prop_assert!(allowed.is_empty()),
                        Some(place) => {
                            prop_assert!(allowed.contains(&place));
                            budget.give(place);
                            model.0.retain(|entry| entry.1 != place);
                        }
                    }
                    let place = budget.take(slot);
                    prop_assert!(!model.0.iter().any(|entry| entry.1 == place), "a slot must have one holder");
                    prop_assert!((place as usize) < limit);
                    model.0.push((slot, place));
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
                for slot in 0..6 {
                    prop_assert_eq!(budget.held_by(slot), &model.held_by(slot)[..]);
                }
            }
        }
    }

    #[test]
    fn a_face_with_few_places_keeps_them_whatever_others_send() {
        let mut budget = ReassemblyBudget::new(2048);
        let mut take = |slot: usize| {
            if let Some(place) = budget.to_give_up_for(slot) {
                budget.give(place);
            }
            budget.take(slot)
        };
        let modest = [take(1000), take(1000)];
        for _ in 0..1000 {
            (0..40).for_each(|slot| _ = take(slot));
        }
        assert_eq!(budget.held_by(1000), modest);
        assert_eq!(budget.taken(), 2048);
    }
}
