//! The faces of an engine, by slot. Forwarding a packet reads only `slots`: a few bytes for each face, contiguous.

use namehop_packet::{FaceId, FaceInfo, FaceScope, LinkType};

/// The null face takes every packet, and nothing comes from it.
const NULL_FACE: FaceInfo =
    FaceInfo { id: FaceId::NULL, scope: FaceScope::Local, link_type: LinkType::PointToPoint, is_up: true };

/// The content of a slot without a face: an id that belongs to another slot, so that no lookup in this one matches it.
const fn vacant(slot: usize) -> FaceInfo {
    FaceInfo { id: FaceId(slot as u32 ^ 1), scope: FaceScope::NonLocal, link_type: LinkType::PointToPoint, is_up: true }
}

/// All faces.
pub(crate) struct FaceArray {
    /// By slot of the face id.
    slots: Vec<FaceInfo>,
    /// By slot too: whether an Interest was sent to the face. If not, no Interest has to be retried when the face is
    /// removed.
    sent_to: Vec<bool>,
    /// The same faces one after another, for strategies that flood.
    list: Vec<FaceInfo>,
}

impl FaceArray {
    pub(crate) fn new() -> Self {
        let mut slots: Vec<FaceInfo> = (0..=FaceId::NULL.slot()).map(vacant).collect();
        slots[FaceId::NULL.slot()] = NULL_FACE;
        let sent_to = vec![false; slots.len()];
        FaceArray { slots, sent_to, list: Vec::new() }
    }

    /// Adds a face or updates it. Another face in the same slot is removed.
    pub(crate) fn set(&mut self, info: FaceInfo) {
        let slot = info.id.slot();
        if self.slots.len() <= slot {
            self.slots.extend((self.slots.len()..=slot).map(vacant));
            self.sent_to.resize(slot + 1, false);
        }
        self.list.retain(|other| other.id.slot() != slot);
        self.list.push(info);
        self.slots[slot] = info;
    }

    /// Removes a face. Does nothing if no face has this id, or if it is the null face.
    pub(crate) fn remove(&mut self, id: FaceId) {
        if self.exists(id) && id != FaceId::NULL {
            self.slots[id.slot()] = vacant(id.slot());
            self.sent_to[id.slot()] = false;
            self.list.retain(|other| other.id != id);
        }
    }

    /// Returns the face with this id, if it exists.
    #[inline]
    pub(crate) fn get(&self, id: FaceId) -> Option<FaceInfo> {
        let &FaceInfo { id: found, scope, link_type, is_up } = self.slots.get(id.slot())?;
        // Built from its parts, so that they stay in registers.
        if found == id { Some(FaceInfo { id, scope, link_type, is_up }) } else { None }
    }

    /// Returns whether the face exists and its link is up.
    pub(crate) fn is_up(&self, id: FaceId) -> bool {
        self.get(id).is_some_and(|face| face.is_up)
    }

    /// Records that an Interest is sent to a face.
    #[inline]
    pub(crate) fn note_sent_to(&mut self, id: FaceId) {
        if let Some(sent_to) = self.sent_to.get_mut(id.slot()) {
            *sent_to = true;
        }
    }

    /// Returns whether Interests may be pending on this face.
    pub(crate) fn was_sent_to(&self, id: FaceId) -> bool {
        self.exists(id) && self.sent_to.get(id.slot()).is_some_and(|&sent_to| sent_to)
    }

    #[inline]
    pub(crate) fn exists(&self, id: FaceId) -> bool {
        self.get(id).is_some()
    }

    /// Returns all faces except the null face.
    pub(crate) fn list(&self) -> &[FaceInfo] {
        &self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn face(id: u32) -> FaceInfo {
        FaceInfo { id: FaceId(id), scope: FaceScope::NonLocal, link_type: LinkType::PointToPoint, is_up: true }
    }

    #[test]
    fn a_reused_slot_is_another_face() {
        let mut faces = FaceArray::new();
        faces.set(face(300));
        faces.set(face(300 + 0x1_0000));
        assert_eq!(faces.get(FaceId(300)), None);
        assert_eq!(faces.list(), [face(300 + 0x1_0000)]);
        faces.remove(FaceId(300));
        assert!(faces.exists(FaceId(300 + 0x1_0000)));
        faces.remove(FaceId(300 + 0x1_0000));
        assert!(faces.list().is_empty());
        assert!(faces.exists(FaceId::NULL));
        faces.remove(FaceId::NULL);
        assert!(faces.exists(FaceId::NULL) && !faces.exists(FaceId(0)) && !faces.exists(FaceId(1)));
    }
}
