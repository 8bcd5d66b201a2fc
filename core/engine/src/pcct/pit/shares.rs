//! The number of PIT slots that each face holds, so that a full PIT evicts from faces that hold many.
//!
//! An unsolicited remote peer can open many faces with few PIT slots each. So these faces are also counted as one
//! group, capped at half of a full PIT.
//!
//! The face of the Interest that opened a slot holds it; downstreams that join later do not. Packets only increment and
//! decrement counts. An upper bound of the largest holder's count is kept, and computed exactly now and then while the
//! PIT is full. That takes time in proportion to the number of faces, but only once in [`VICTIMS_PER_COUNT`] victims.

use namehop_packet::FaceId;

use crate::pcct::{InvariantError, agree};

/// Number of victims after which the largest holders' counts are computed exactly.
const VICTIMS_PER_COUNT: u32 = 256;
/// Added to the count of a removed face, so that it ranks above all existing faces: no downstream waits for its slots.
const REMOVED: u32 = 1 << 31;

/// The count of one face.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    face: FaceId,
    slots: u32,
    is_unsolicited: bool,
}

/// The count of a face, as far as it matters for eviction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Standing {
    /// Number of slots; a removed face has more than any existing one.
    slots: u32,
    is_unsolicited: bool,
}

impl Standing {
    /// Returns whether the face was removed.
    #[inline]
    pub(super) fn is_removed(self) -> bool {
        self.slots >= REMOVED
    }
}

/// The counts of all faces, in two groups: `[0]` are local applications and configured peers, `[1]` unsolicited remote
/// peers, which can open any number of faces.
#[derive(Default)]
pub(super) struct Shares {
    /// By slot of the face id.
    held: Vec<Held>,
    /// Number of PIT slots of each group.
    all: [u32; 2],
    /// An upper bound of the count of each face in a group.
    most: [u32; 2],
    /// Victims until that bound is computed exactly.
    until_count: u32,
    /// Number of PIT slots of faces that were removed.
    removed: u32,
}

impl Shares {
    /// Counts a PIT slot that a face opened.
    #[inline]
    pub(super) fn add(&mut self, face: FaceId) {
        let index = face.slot();
        if self.held.get(index).is_none_or(|held| held.face != face) {
            self.start_counting(face);
        }
        let Held { slots, is_unsolicited, .. } = &mut self.held[index];
        let group = usize::from(*is_unsolicited);
        *slots += 1;
        self.all[group] += 1;
        self.most[group] = self.most[group].max(*slots & !REMOVED);
    }

    /// Counts down when a PIT slot of a face ends.
    #[inline]
    pub(super) fn remove(&mut self, face: FaceId) {
        match self.held.get_mut(face.slot()) {
            Some(held) if held.face == face => {
                held.slots -= 1;
                if held.slots & REMOVED == 0 {
                    self.all[usize::from(held.is_unsolicited)] -= 1;
                    return;
                }
            }
            _ => {}
        }
        self.removed -= 1;
    }

    /// Records that the face exists.
    pub(super) fn set_face(&mut self, face: FaceId) {
        self.start_counting(face);
        let held = &mut self.held[face.slot()];
        if held.slots & REMOVED != 0 {
            held.slots &= !REMOVED;
            let held = *held;
            self.removed -= held.slots;
            self.enter(held);
        }
    }

    /// Records whether the face belongs to an unsolicited remote peer.
    pub(super) fn set_unsolicited(&mut self, face: FaceId, is_unsolicited: bool) {
        self.start_counting(face);
        let held = &mut self.held[face.slot()];
        let before = std::mem::replace(held, Held { is_unsolicited, ..*held });
        if before.slots & REMOVED == 0 {
            self.all[usize::from(before.is_unsolicited)] -= before.slots;
            self.enter(Held { is_unsolicited, ..before });
        }
    }

    /// Returns whether the face belongs to an unsolicited remote peer.
    pub(super) fn is_unsolicited(&self, face: FaceId) -> bool {
        self.held.get(face.slot()).is_some_and(|held| held.face == face && held.is_unsolicited)
    }

    /// Records that the face was removed.
    pub(super) fn remove_face(&mut self, face: FaceId) {
        if let Some(held) = self.held.get_mut(face.slot()).filter(|held| held.face == face && held.slots & REMOVED == 0)
        {
            self.removed += held.slots;
            self.all[usize::from(held.is_unsolicited)] -= held.slots;
            held.slots |= REMOVED;
        }
    }

    /// Adds the count of a face to its group.
    fn enter(&mut self, held: Held) {
        let group = usize::from(held.is_unsolicited);
        self.all[group] += held.slots;
        self.most[group] = self.most[group].max(held.slots);
    }

    /// Must be called once for each search for a victim.
    pub(super) fn note_victim(&mut self) {
        self.until_count = match self.until_count.checked_sub(1) {
            Some(left) => left,
            None => {
                self.most = [0; 2];
                for held in self.held.iter().filter(|held| held.slots & REMOVED == 0) {
                    let most = &mut self.most[usize::from(held.is_unsolicited)];
                    *most = held.slots.max(*most);
                }
                VICTIMS_PER_COUNT
            }
        };
    }

    /// Returns the count of a face.
    #[inline]
    pub(super) fn standing(&self, face: FaceId) -> Standing {
        match self.held.get(face.slot()) {
            Some(held) if held.face == face => Standing { slots: held.slots, is_unsolicited: held.is_unsolicited },
            _ => Standing { slots: u32::MAX, is_unsolicited: false },
        }
    }

    /// Returns the rank of a face that is about to open another slot.
    pub(super) fn rank_of_newcomer(&self, face: FaceId) -> (bool, u32) {
        let held = self.held.get(face.slot()).copied().filter(|held| held.face == face).unwrap_or_default();
        self.rank(Standing { slots: held.slots & !REMOVED, is_unsolicited: held.is_unsolicited })
    }

    /// Returns the rank in eviction; a higher rank evicts first. Unsolicited remote peers rank higher if together they
    /// hold more than all others; otherwise the others do. Within a group, faces that hold more rank higher.
    #[inline]
    pub(super) fn rank(&self, standing: Standing) -> (bool, u32) {
        (standing.is_unsolicited == (self.all[1] > self.all[0]), standing.slots)
    }

    /// Returns whether removed faces have PIT slots.
    #[inline]
    pub(super) fn has_removed(&self) -> bool {
        self.removed > 0
    }

    /// Returns whether the face holds at least half as many slots as its group's largest holder. If faces hold about
    /// the same, their oldest slots are evicted first; a face that holds less than half of another one's count loses
    /// nothing to it.
    #[inline]
    pub(super) fn holds_much(&self, standing: Standing) -> bool {
        standing.slots >= self.most[usize::from(standing.is_unsolicited)].div_ceil(2)
    }

    /// Returns whether the face holds no slots, or would not hold much with one more.
    pub(super) fn holds_little(&self, face: FaceId) -> bool {
        let standing = self.standing(face);
        let is_known = self.held.get(face.slot()).is_some_and(|held| held.face == face);
        !is_known || !self.holds_much(Standing { slots: standing.slots + 1, ..standing })
    }

    /// Starts counting for a face. Slots of another face with the same index count as slots of a removed face.
    #[cold]
    fn start_counting(&mut self, face: FaceId) {
        let index = face.slot();
        if self.held.len() <= index {
            self.held.resize(index + 1, Held::default());
        }
        let before = self.held[index];
        if before.face != face {
            if before.slots & REMOVED == 0 {
                self.removed += before.slots;
                self.all[usize::from(before.is_unsolicited)] -= before.slots;
            }
            self.held[index] = Held { face, slots: 0, is_unsolicited: false };
        }
    }

    /// Compares the counts with each other and with `found`, the holders of the existing slots.
    pub(super) fn check_invariants(&self, found: impl Iterator<Item = FaceId>) -> Result<(), InvariantError> {
        let mut slots = vec![0; self.held.len()];
        let mut removed = 0;
        for face in found {
            match self.held.get(face.slot()).filter(|held| held.face == face) {
                Some(held) => {
                    slots[face.slot()] += 1;
                    removed += u32::from(held.slots & REMOVED != 0);
                }
                None => removed += 1,
            }
        }
        agree("PIT slots of removed faces", self.removed as usize, removed as usize)?;
        let mut all = [0; 2];
        for (held, found) in self.held.iter().zip(slots) {
            all[usize::from(held.is_unsolicited)] += if held.slots & REMOVED == 0 { found } else { 0 };
            agree("PIT slots of a face", (held.slots & !REMOVED) as usize, found as usize)?;
            if held.slots & REMOVED == 0 && found > self.most[usize::from(held.is_unsolicited)] {
                return Err(InvariantError::MoreThanMost { face: held.face });
            }
        }
        agree("PIT slots of configured peers", self.all[0] as usize, all[0] as usize)?;
        agree("PIT slots of unsolicited peers", self.all[1] as usize, all[1] as usize)
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
        // Each number opens a slot for that face; a number out of range ends the oldest slot.
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
        assert!(open.is_empty() && shares.most == [4, 0]);
        shares.note_victim();
        assert_eq!(shares.most, [0; 2]);
    }

    #[test]
    fn slots_of_faces_that_are_gone_are_counted_until_they_end() {
        let mut shares = Shares::default();
        let [first, second] = [300, 300 + 0x1_0000].map(FaceId);
        (0..3).for_each(|_| shares.add(first));
        shares.remove_face(first);
        shares.remove_face(first);
        shares.check_invariants([first; 3].into_iter()).expect("the face holds three slots");
        shares.remove(first);
        // Another face in its place.
        shares.add(second);
        shares.check_invariants([first, first, second].into_iter()).expect("the first face holds two slots");
        shares.remove(first);
        shares.remove(first);
        assert!(!shares.has_removed());
        shares.add(FaceId(300 + 0x2_0000));
        shares
            .check_invariants([second, FaceId(300 + 0x2_0000)].into_iter())
            .expect("the invariants hold after a replacement");
    }

    #[test]
    fn the_group_that_holds_more_gives_up_something() {
        let mut shares = Shares::default();
        let [known, unsolicited] = [300, 301].map(FaceId);
        shares.set_unsolicited(unsolicited, true);
        (0..3).for_each(|_| shares.add(known));
        (0..2).for_each(|_| shares.add(unsolicited));
        let first = |shares: &Shares| shares.rank(shares.standing(unsolicited)) > shares.rank(shares.standing(known));
        assert!(!first(&shares));
        (0..2).for_each(|_| shares.add(unsolicited));
        assert!(first(&shares) && shares.rank_of_newcomer(FaceId(302)) == (false, 0));
        shares.set_unsolicited(unsolicited, false);
        assert_eq!((shares.all, shares.most), ([7, 0], [4, 4]));
        shares.set_unsolicited(unsolicited, true);
        shares.remove_face(unsolicited);
        assert_eq!((shares.all, shares.removed), ([3, 0], 4));
        let open = [known, known, known, unsolicited, unsolicited, unsolicited, unsolicited];
        shares.check_invariants(open.into_iter()).expect("invariants");
    }

    #[test]
    fn half_of_the_most_is_much() {
        let mut shares = Shares::default();
        (0..5).for_each(|_| shares.add(FaceId(300)));
        let holds_much = |slots| shares.holds_much(Standing { slots, is_unsolicited: false });
        assert_eq!([1, 2, 3, 5].map(holds_much), [false, false, true, true]);
        assert!(shares.standing(FaceId(300)).slots == 5 && shares.standing(FaceId(301)).is_removed());
        // A removed face ranks above all, until it is set again.
        shares.remove_face(FaceId(300));
        assert!(shares.standing(FaceId(300)).is_removed() && !shares.holds_little(FaceId(300)) && shares.has_removed());
        shares.set_face(FaceId(300));
        assert!(!shares.has_removed());
        shares.add(FaceId(300));
        assert_eq!(shares.standing(FaceId(300)).slots, 6);
    }
}
