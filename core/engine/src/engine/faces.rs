//! The faces that an engine knows, by slot, each with its counters of discarded packets. A packet reads only what is in
//! `slots`: a few bytes for each face, side by side.

use namehop_packet::{DropCounters, DropReason, FaceId, FaceInfo, FaceScope, LinkType};

/// The null face takes every packet, and nothing comes from it.
const NULL_FACE: FaceInfo =
    FaceInfo { id: FaceId::NULL, scope: FaceScope::Local, link_type: LinkType::PointToPoint, is_up: true };

/// What stands in a slot without a face: a number that belongs to another slot, so that nobody finds it there.
const fn vacant(slot: usize) -> FaceInfo {
    FaceInfo { id: FaceId(slot as u32 ^ 1), scope: FaceScope::NonLocal, link_type: LinkType::PointToPoint, is_up: true }
}

/// All faces.
pub(crate) struct FaceArray {
    /// By slot of the face number.
    slots: Vec<FaceInfo>,
    /// By slot as well: was an Interest sent to the face? What was not asked can go without any Interest being sent again.
    asked: Vec<bool>,
    /// By slot as well; only of faces that exist, without the null face.
    drops: Vec<Option<Box<DropCounters>>>,
    /// The same faces one after another, for strategies that flood.
    list: Vec<FaceInfo>,
}

impl FaceArray {
    pub(crate) fn new() -> Self {
        let mut slots: Vec<FaceInfo> = (0..=FaceId::NULL.slot()).map(vacant).collect();
        slots[FaceId::NULL.slot()] = NULL_FACE;
        let asked = vec![false; slots.len()];
        FaceArray { slots, asked, drops: Vec::new(), list: Vec::new() }
    }

    /// Adds a face or changes what is known of it. A face that was in the same slot before is gone.
    pub(crate) fn set(&mut self, info: FaceInfo) {
        let slot = info.id.slot();
        if self.slots.len() <= slot {
            self.slots.extend((self.slots.len()..=slot).map(vacant));
            self.asked.resize(slot + 1, false);
        }
        if self.drops.len() <= slot {
            self.drops.resize_with(slot + 1, || None);
        }
        self.list.retain(|other| other.id.slot() != slot);
        self.list.push(info);
        let old = std::mem::replace(&mut self.slots[slot], info);
        if old.id != info.id || self.drops[slot].is_none() {
            self.drops[slot] = Some(Box::default());
        }
    }

    /// Removes a face. Nothing happens if there is none with this number, or it is the null face.
    pub(crate) fn remove(&mut self, id: FaceId) {
        if self.exists(id) && id != FaceId::NULL {
            self.slots[id.slot()] = vacant(id.slot());
            self.asked[id.slot()] = false;
            self.drops[id.slot()] = None;
            self.list.retain(|other| other.id != id);
        }
    }

    /// The face with this number, if it exists.
    #[inline]
    pub(crate) fn get(&self, id: FaceId) -> Option<FaceInfo> {
        let &FaceInfo { id: found, scope, link_type, is_up } = self.slots.get(id.slot())?;
        // Put together from its parts, which then stay in registers.
        if found == id { Some(FaceInfo { id, scope, link_type, is_up }) } else { None }
    }

    /// Whether the face exists and its link works.
    pub(crate) fn is_up(&self, id: FaceId) -> bool {
        self.get(id).is_some_and(|face| face.is_up)
    }

    /// Notes that an Interest is sent to a face.
    #[inline]
    pub(crate) fn note_asked(&mut self, id: FaceId) {
        if let Some(asked) = self.asked.get_mut(id.slot()) {
            *asked = true;
        }
    }

    /// May Interests wait for this face?
    pub(crate) fn is_asked(&self, id: FaceId) -> bool {
        self.exists(id) && self.asked.get(id.slot()).is_some_and(|&asked| asked)
    }

    #[inline]
    pub(crate) fn exists(&self, id: FaceId) -> bool {
        self.get(id).is_some()
    }

    /// All faces but the null face.
    pub(crate) fn list(&self) -> &[FaceInfo] {
        &self.list
    }

    /// Counts a packet of this face as discarded.
    pub(crate) fn count_drop(&mut self, id: FaceId, reason: DropReason) {
        if self.exists(id)
            && let Some(Some(drops)) = self.drops.get_mut(id.slot())
        {
            drops[reason] += 1;
        }
    }

    pub(crate) fn drops(&self, id: FaceId) -> Option<&DropCounters> {
        self.drops.get(id.slot())?.as_deref().filter(|_| self.exists(id))
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
        faces.count_drop(FaceId(300), DropReason::Malformed);
        faces.set(face(300 + 0x1_0000));
        assert_eq!(faces.get(FaceId(300)), None);
        assert_eq!(faces.list(), [face(300 + 0x1_0000)]);
        assert_eq!(faces.drops(FaceId(300 + 0x1_0000)).map(DropCounters::total), Some(0));
        faces.remove(FaceId(300));
        assert!(faces.exists(FaceId(300 + 0x1_0000)));
        faces.remove(FaceId(300 + 0x1_0000));
        assert!(faces.list().is_empty());
        assert!(faces.exists(FaceId::NULL));
        faces.remove(FaceId::NULL);
        assert!(faces.exists(FaceId::NULL) && !faces.exists(FaceId(0)) && !faces.exists(FaceId(1)));
    }
}
