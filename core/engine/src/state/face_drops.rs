//! The drop counters of each face.

use namehop_packet::{DropCounters, DropReason, FaceId};

/// The drop counters of the faces that exist, without the null face.
#[derive(Debug, Default)]
pub(crate) struct FaceDrops {
    /// By slot of the face id.
    slots: Vec<Option<Box<OfFace>>>,
}

/// The counters of one face.
#[derive(Debug)]
struct OfFace {
    face: FaceId,
    drops: DropCounters,
}

impl FaceDrops {
    /// Starts counting for a face, unless it is counted already. Another face in the same slot is removed.
    pub(crate) fn set_face(&mut self, face: FaceId) {
        let slot = face.slot();
        if self.slots.len() <= slot {
            self.slots.resize_with(slot + 1, || None);
        }
        if self.get(face).is_none() {
            self.slots[slot] = Some(Box::new(OfFace { face, drops: DropCounters::default() }));
        }
    }

    /// Removes the counters of a face, if there are any.
    pub(crate) fn remove_face(&mut self, face: FaceId) {
        if self.get(face).is_some() {
            self.slots[face.slot()] = None;
        }
    }

    /// Counts a dropped packet for the face that it was received on, if that exists.
    pub(crate) fn count(&mut self, face: FaceId, reason: DropReason) {
        if let Some(Some(counted)) = self.slots.get_mut(face.slot())
            && counted.face == face
        {
            counted.drops[reason] += 1;
        }
    }

    /// Returns the counters of a face; `None` if it does not exist.
    pub(crate) fn get(&self, face: FaceId) -> Option<&DropCounters> {
        let counted = self.slots.get(face.slot())?.as_deref()?;
        (counted.face == face).then_some(&counted.drops)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reused_slot_is_another_face() {
        let mut all = FaceDrops::default();
        let (first, second) = (FaceId(300), FaceId(300 + 0x1_0000));
        all.count(first, DropReason::Malformed);
        all.set_face(first);
        all.count(first, DropReason::Malformed);
        all.set_face(first);
        assert_eq!(all.get(first).map(DropCounters::total), Some(1));
        all.set_face(second);
        all.count(first, DropReason::Malformed);
        assert_eq!((all.get(first), all.get(second).map(DropCounters::total)), (None, Some(0)));
        all.remove_face(first);
        assert!(all.get(second).is_some());
        all.remove_face(second);
        assert!(all.get(second).is_none());
    }
}
