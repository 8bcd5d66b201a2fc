//! How many PIT slots each face holds, so that a full PIT takes from those that hold much.
//!
//! A slot is held by the face whose Interest opened it; others that join it later hold nothing by that. Packets only count
//! up and down. How many slots the face with most of them holds is known from above, and counted anew now and then while
//! the PIT is full: that takes time in proportion to the number of faces, but once in [`VICTIMS_PER_COUNT`] victims.

use crate::face::FaceId;

/// Victims after which the most that a face holds is counted anew.
const VICTIMS_PER_COUNT: u32 = 256;
/// Added to what a face held that is gone, which is more than any other holds then: nobody waits for it.
const GONE: u32 = 1 << 31;

/// What one face holds.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    face: FaceId,
    slots: u32,
}

/// The counts.
#[derive(Default)]
pub(super) struct Shares {
    /// By slot of the face number.
    held: Vec<Held>,
    /// No face holds more than that.
    most: u32,
    /// Victims until that is counted anew.
    until_count: u32,
}

impl Shares {
    /// A face has opened a slot.
    #[inline]
    pub(super) fn add(&mut self, face: FaceId) {
        let place = face.slot();
        if self.held.get(place).is_none_or(|held| held.face != face) {
            self.meet(face);
        }
        let slots = &mut self.held[place].slots;
        *slots += 1;
        self.most = self.most.max(*slots & !GONE);
    }

    /// A slot that a face holds has ended.
    #[inline]
    pub(super) fn remove(&mut self, face: FaceId) {
        if let Some(held) = self.held.get_mut(face.slot())
            && held.face == face
        {
            held.slots -= 1;
        }
    }

    /// The face is there.
    pub(super) fn set_face(&mut self, face: FaceId) {
        self.meet(face);
        self.held[face.slot()].slots &= !GONE;
    }

    /// The face is gone.
    pub(super) fn remove_face(&mut self, face: FaceId) {
        if let Some(held) = self.held.get_mut(face.slot()).filter(|held| held.face == face) {
            held.slots |= GONE;
        }
    }

    /// A victim is looked for.
    pub(super) fn note_victim(&mut self) {
        self.until_count = match self.until_count.checked_sub(1) {
            Some(left) => left,
            None => {
                self.most =
                    self.held.iter().map(|held| held.slots).filter(|slots| slots & GONE == 0).max().unwrap_or(0);
                VICTIMS_PER_COUNT
            }
        };
    }

    /// Slots that a face holds; of one that is gone, more than any.
    #[inline]
    pub(super) fn held_by(&self, face: FaceId) -> u32 {
        match self.held.get(face.slot()) {
            Some(held) if held.face == face => held.slots,
            _ => u32::MAX,
        }
    }

    /// Slots that a face holds which is about to open another.
    pub(super) fn held_by_newcomer(&self, face: FaceId) -> u32 {
        self.held.get(face.slot()).filter(|held| held.face == face).map_or(0, |held| held.slots & !GONE)
    }

    /// Is so much a lot: at least half of what the face with most slots holds? Where faces hold about the same, what they
    /// opened earlier ends first; a face that holds less than half of what another one does loses nothing to it.
    #[inline]
    pub(super) fn is_much(&self, slots: u32) -> bool {
        slots >= self.most.div_ceil(2)
    }

    /// Does a face that is there hold less than that, or nothing?
    pub(super) fn holds_little(&self, face: FaceId) -> bool {
        let is_known = self.held.get(face.slot()).is_some_and(|held| held.face == face);
        !is_known || !self.is_much(self.held_by(face) + 1)
    }

    /// Counts for a face. What another one in the same place held counts no more.
    #[cold]
    fn meet(&mut self, face: FaceId) {
        let place = face.slot();
        if self.held.len() <= place {
            self.held.resize(place + 1, Held::default());
        }
        if self.held[place].face != face {
            self.held[place] = Held { face, slots: 0 };
        }
    }

    /// Compares the counts with each other and with `found`, the faces that hold the slots there are.
    pub(super) fn check_invariants(&self, found: impl Iterator<Item = FaceId>) -> Result<(), String> {
        let mut slots = vec![0; self.held.len()];
        for face in found.filter(|face| self.held.get(face.slot()).is_some_and(|held| held.face == *face)) {
            slots[face.slot()] += 1;
        }
        for (held, found) in self.held.iter().zip(slots) {
            if held.slots & !GONE != found {
                return Err(format!("face {} holds {found} PIT slots, {} counted", held.face, held.slots & !GONE));
            }
            if held.slots & GONE == 0 && found > self.most {
                return Err(format!("face {} holds {found} PIT slots, at most {} were expected", held.face, self.most));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_counted_by_face() {
        let mut shares = Shares::default();
        let faces = [300, 301, 302, 300 + 0x1_0000].map(FaceId);
        let mut open = Vec::new();
        // Face by turns; a number beyond them ends the slot that was opened first.
        for step in [0, 0, 1, 2, 0, 9, 1, 1, 1, 9, 9, 9, 3, 3, 9, 9, 9, 9, 9, 9] {
            match faces.get(step) {
                Some(&face) => {
                    shares.add(face);
                    open.push(face);
                }
                None => shares.remove(open.remove(0)),
            }
            shares.check_invariants(open.iter().copied()).expect("invariants");
        }
        assert!(open.is_empty() && shares.most == 4);
        shares.note_victim();
        assert_eq!(shares.most, 0);
    }

    #[test]
    fn half_of_the_most_is_much() {
        let mut shares = Shares::default();
        (0..5).for_each(|_| shares.add(FaceId(300)));
        assert_eq!([1, 2, 3, 5].map(|slots| shares.is_much(slots)), [false, false, true, true]);
        assert_eq!((shares.held_by(FaceId(300)), shares.held_by(FaceId(301))), (5, u32::MAX));
        // What a face that is gone holds is more than all, until it is back.
        shares.remove_face(FaceId(300));
        assert!(shares.held_by(FaceId(300)) > 1_000 && !shares.holds_little(FaceId(300)));
        shares.set_face(FaceId(300));
        shares.add(FaceId(300));
        assert_eq!(shares.held_by(FaceId(300)), 6);
    }
}
