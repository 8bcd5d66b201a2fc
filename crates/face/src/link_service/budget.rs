//! Who may have how many partial packets, so that neither one peer nor many together keep others from reassembly.
//!
//! All faces share a number of places, one for each partial packet. While there are free ones, a face takes as many as it
//! needs, up to [`MAX_PARTIAL_PACKETS`](super::MAX_PARTIAL_PACKETS). When there are none, the face with most places gives up
//! its oldest; a face that has as many as any other gives up its own. So a face with fewer places than the others loses
//! none, however many fragments the others send. Only when every place is held by another face, the one that waited
//! longest goes, whoever has it: a packet whose fragments follow each other closely still gets through.
//!
//! Every operation takes constant time, that of a face with many places one pass over their numbers.

use super::reassembler::MAX_PARTIAL_PACKETS;

/// Doubly linked lists of things known by number. A thing is in one of them at most.
#[derive(Debug)]
struct Chains {
    /// Previous and next of each head, then of each thing. What is in no list leads to itself, and so does an empty head.
    links: Vec<[u32; 2]>,
    heads: u32,
}

impl Chains {
    fn new(heads: u32) -> Self {
        Chains { links: (0..heads).map(|head| [head; 2]).collect(), heads }
    }

    fn remove(&mut self, thing: u32) {
        let at = self.heads + thing;
        if let Some(&[previous, next]) = self.links.get(at as usize) {
            self.links[previous as usize][1] = next;
            self.links[next as usize][0] = previous;
            self.links[at as usize] = [at; 2];
        }
    }

    /// Moves a thing to the end of a list, from wherever it is.
    fn append(&mut self, head: u32, thing: u32) {
        let at = self.heads + thing;
        while self.links.len() <= at as usize {
            self.links.push([self.links.len() as u32; 2]);
        }
        self.remove(thing);
        let [last, _] = self.links[head as usize];
        self.links[at as usize] = [last, head];
        self.links[last as usize][1] = at;
        self.links[head as usize][0] = at;
    }

    fn first(&self, head: u32) -> Option<u32> {
        let [_, first] = self.links[head as usize];
        first.checked_sub(self.heads)
    }
}

/// The places of all faces of one worker. A face is known by the slot of its number, a place by its number below the limit.
#[derive(Debug)]
pub(super) struct ReassemblyBudget {
    limit: u32,
    taken: u32,
    /// Places that were taken before and are free.
    free: Vec<u32>,
    /// Slot of the face that has, or had, each place.
    owners: Vec<u32>,
    /// One list: taken places, the one touched longest ago first.
    by_age: Chains,
    /// Places of each slot, the one touched longest ago first. A list keeps its memory, 256 bytes for a face that was once full.
    held: Vec<Vec<u32>>,
    /// Slots by how many places they have; list 0 stays empty.
    by_count: Chains,
    /// Most places that a slot has.
    most: usize,
}

impl ReassemblyBudget {
    /// With `limit` places, at least one.
    pub(super) fn new(limit: usize) -> Self {
        ReassemblyBudget {
            // Half of the numbers are enough, and leave room for heads of lists.
            limit: u32::try_from(limit).unwrap_or(u32::MAX / 2).clamp(1, u32::MAX / 2),
            taken: 0,
            free: Vec::new(),
            owners: Vec::new(),
            by_age: Chains::new(1),
            held: Vec::new(),
            by_count: Chains::new(MAX_PARTIAL_PACKETS as u32 + 1),
            most: 0,
        }
    }

    /// Places that are taken.
    pub(super) fn taken(&self) -> usize {
        self.taken as usize
    }

    /// The places of a slot, the one touched longest ago first.
    pub(super) fn held_by(&self, slot: usize) -> &[u32] {
        self.held.get(slot).map_or(&[], Vec::as_slice)
    }

    /// The place touched longest ago.
    pub(super) fn oldest(&self) -> Option<u32> {
        self.by_age.first(0)
    }

    /// The place that has to be given back before this slot may take one; `None` when there is a free one.
    pub(super) fn to_give_up_for(&self, slot: usize) -> Option<u32> {
        let own = self.held_by(slot);
        if own.len() < MAX_PARTIAL_PACKETS && self.taken < self.limit {
            return None;
        }
        if own.len() == self.most {
            return own.first().copied();
        }
        if self.most == 1 {
            return self.oldest();
        }
        let greediest = self.by_count.first(self.most as u32)?;
        self.held_by(greediest as usize).first().copied()
    }

    /// Takes a free place for a slot; [`ReassemblyBudget::to_give_up_for`] says whether there is one.
    pub(super) fn take(&mut self, slot: usize) -> u32 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.owners.push(0);
            self.owners.len() as u32 - 1
        });
        if self.held.len() <= slot {
            self.held.resize_with(slot + 1, Vec::new);
        }
        self.taken += 1;
        self.owners[place as usize] = slot as u32;
        self.held[slot].push(place);
        self.by_age.append(0, place);
        self.count_changed(slot);
        place
    }

    /// Makes a taken place the youngest.
    pub(super) fn touch(&mut self, place: u32) {
        self.by_age.append(0, place);
        let held = &mut self.held[self.owners[place as usize] as usize];
        if let Some(at) = held.iter().position(|&other| other == place) {
            held[at..].rotate_left(1);
        }
    }

    /// Gives a taken place back.
    pub(super) fn give(&mut self, place: u32) {
        let slot = self.owners[place as usize] as usize;
        self.held[slot].retain(|&other| other != place);
        self.by_age.remove(place);
        self.free.push(place);
        self.taken -= 1;
        self.count_changed(slot);
    }

    /// Enters a slot, which has one place more or less than before, under its new count.
    fn count_changed(&mut self, slot: usize) {
        let count = self.held[slot].len();
        match count {
            0 => self.by_count.remove(slot as u32),
            _ => self.by_count.append(count as u32, slot as u32),
        }
        self.most = self.most.max(count);
        // Only the one that had most can have made it smaller, and by one.
        if self.most > 0 && self.by_count.first(self.most as u32).is_none() {
            self.most -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    /// The same rules over one list, slowly: slots and places, the one touched longest ago first.
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
                    // Slot 0 is the greedy one.
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
                    prop_assert!(!model.0.iter().any(|entry| entry.1 == place), "a place is held once");
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
