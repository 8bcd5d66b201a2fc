//! Names of Data that pending Interests request by implicit digest.
//!
//! Computing a digest costs more than all other processing of a packet. So it is done only for Data with a name that is
//! requested by digest. Names are represented by their keyed hashes alone, which no peer can choose. The table uses
//! open addressing and is never more than half full. A false match costs one digest.

/// The table of names.
pub(super) struct DigestNames {
    /// Hash of a name, and its number of PIT slots; 0 in a free slot. The number of slots is a power of two.
    slots: Box<[[u64; 2]]>,
}

/// Returns the number of slots for `capacity` PIT slots.
fn slots_for(capacity: usize) -> usize {
    (2 * capacity.max(1)).next_power_of_two()
}

impl DigestNames {
    /// Creates a table for at most `capacity` PIT slots. Memory that is never used costs nothing.
    pub(super) fn new(capacity: usize) -> Self {
        DigestNames { slots: vec![[0; 2]; slots_for(capacity)].into_boxed_slice() }
    }

    /// Returns the size in bytes of a table for `capacity` PIT slots.
    pub(super) fn bytes_for(capacity: usize) -> usize {
        slots_for(capacity) * size_of::<[u64; 2]>()
    }

    /// Returns whether a PIT slot requests Data with this name hash by digest.
    pub(super) fn contains(&self, hash: u64) -> bool {
        self.slots[self.slot_of(hash)][1] > 0
    }

    /// Adds a PIT slot that requests Data with this name by digest.
    pub(super) fn add(&mut self, hash: u64) {
        let [known, count] = &mut self.slots[self.slot_of(hash)];
        *known = hash;
        *count += 1;
    }

    /// Removes such a PIT slot.
    pub(super) fn remove(&mut self, hash: u64) {
        let slot = self.slot_of(hash);
        self.slots[slot][1] -= 1;
        if self.slots[slot][1] == 0 {
            self.close_gap(slot);
        }
    }

    /// Returns the number of PIT slots in the table.
    pub(super) fn len(&self) -> usize {
        self.slots.iter().map(|[_, count]| *count as usize).sum()
    }

    /// Returns the slot of a hash, or the slot where it would be inserted.
    fn slot_of(&self, hash: u64) -> usize {
        let mut slot = self.wrap(hash as usize);
        while self.slots[slot][1] > 0 && self.slots[slot][0] != hash {
            slot = self.wrap(slot + 1);
        }
        slot
    }

    fn wrap(&self, slot: usize) -> usize {
        slot & (self.slots.len() - 1)
    }

    /// Moves entries behind a slot that became free, so that each is reachable from its home slot without it.
    fn close_gap(&mut self, mut gap: usize) {
        let mut next = self.wrap(gap + 1);
        while self.slots[next][1] > 0 {
            let home = self.slots[next][0] as usize;
            if self.wrap(next.wrapping_sub(home)) >= self.wrap(next.wrapping_sub(gap)) {
                self.slots[gap] = std::mem::take(&mut self.slots[next]);
                gap = next;
            }
            next = self.wrap(next + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Uses hashes that collide more often than hashes of names.
        #[test]
        fn it_knows_what_was_added_and_not_removed(steps in prop::collection::vec((0..24_u64, any::<bool>()), 1..200)) {
            let mut names = DigestNames::new(16);
            let mut model = BTreeMap::<u64, usize>::new();
            for (number, adds) in steps {
                // Three consecutive numbers share a home; the last home is the end of the table.
                let hash = number / 3 * 4 + 3 + ((number % 3) << 32);
                let count = model.get(&hash).copied().unwrap_or(0);
                let total: usize = model.values().sum();
                if adds && total < 16 {
                    names.add(hash);
                    model.insert(hash, count + 1);
                } else if !adds && count > 0 {
                    names.remove(hash);
                    model.insert(hash, count - 1);
                }
                for (&hash, &count) in &model {
                    prop_assert_eq!(names.contains(hash), count > 0);
                }
                prop_assert_eq!(names.len(), model.values().sum::<usize>());
            }
        }
    }
}
