//! The faces that an engine knows, by slot, each with its counters of discarded packets.

use crate::counters::{DropCounters, DropReason};
use crate::face::{FaceId, FaceInfo, FaceScope, LinkType};

struct Slot {
    info: FaceInfo,
    drops: Box<DropCounters>,
}

/// The null face takes every packet, and nothing comes from it.
const NULL_FACE: FaceInfo = FaceInfo { id: FaceId::NULL, scope: FaceScope::Local, link_type: LinkType::PointToPoint };

/// All faces.
pub(crate) struct FaceArray {
    slots: Vec<Option<Slot>>,
    /// The same faces one after another, for strategies that flood.
    list: Vec<FaceInfo>,
}

impl FaceArray {
    pub(crate) fn new() -> Self {
        FaceArray { slots: Vec::new(), list: Vec::new() }
    }

    /// Adds a face or changes what is known of it. A face that was in the same slot before is gone.
    pub(crate) fn set(&mut self, info: FaceInfo) {
        let slot = info.id.slot();
        if self.slots.len() <= slot {
            self.slots.resize_with(slot + 1, || None);
        }
        self.list.retain(|other| other.id.slot() != slot);
        self.list.push(info);
        match &mut self.slots[slot] {
            Some(old) if old.info.id == info.id => old.info = info,
            other => *other = Some(Slot { info, drops: Box::default() }),
        }
    }

    /// Removes a face. Nothing happens if there is none with this number.
    pub(crate) fn remove(&mut self, id: FaceId) {
        if self.get(id).is_some()
            && let Some(slot) = self.slots.get_mut(id.slot())
        {
            *slot = None;
            self.list.retain(|other| other.id != id);
        }
    }

    /// The face with this number, if it exists.
    pub(crate) fn get(&self, id: FaceId) -> Option<FaceInfo> {
        match self.slots.get(id.slot()) {
            Some(Some(slot)) if slot.info.id == id => Some(slot.info),
            _ if id == FaceId::NULL => Some(NULL_FACE),
            _ => None,
        }
    }

    pub(crate) fn exists(&self, id: FaceId) -> bool {
        self.get(id).is_some()
    }

    /// All faces but the null face.
    pub(crate) fn list(&self) -> &[FaceInfo] {
        &self.list
    }

    /// Counts a packet of this face as discarded.
    pub(crate) fn count_drop(&mut self, id: FaceId, reason: DropReason) {
        if let Some(Some(slot)) = self.slots.get_mut(id.slot())
            && slot.info.id == id
        {
            slot.drops[reason] += 1;
        }
    }

    pub(crate) fn drops(&self, id: FaceId) -> Option<&DropCounters> {
        self.slots.get(id.slot())?.as_ref().filter(|slot| slot.info.id == id).map(|slot| &*slot.drops)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn face(id: u32) -> FaceInfo {
        FaceInfo { id: FaceId(id), scope: FaceScope::NonLocal, link_type: LinkType::PointToPoint }
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
    }
}
