//! The faces of a port that were created by command or configuration, and the VLANs they are in.
//!
//! A search among all faces would take time proportional to their number for each face that is created, hence this
//! index. Faces created by unknown senders are not counted: senders create faces only on configured ports, which stay
//! open, and in configured VLANs, which are received anyway.

use std::collections::{BTreeMap, HashMap};

use namehop_packet::FaceId;

/// The faces created by command or configuration, each with its VLAN.
#[derive(Debug, Default)]
pub(super) struct FacesMade {
    faces: HashMap<FaceId, Option<u16>>,
    /// Number of these faces in each VLAN.
    vlans: BTreeMap<u16, usize>,
}

impl FacesMade {
    /// Adds a face. Returns whether it is the first in its VLAN.
    pub(super) fn add(&mut self, id: FaceId, vlan: Option<u16>) -> bool {
        self.faces.insert(id, vlan);
        let Some(vlan) = vlan else { return false };
        let in_vlan = self.vlans.entry(vlan).or_default();
        *in_vlan += 1;
        *in_vlan == 1
    }

    /// Removes a face. Returns whether it was the last in its VLAN. Ignores faces that were not added.
    pub(super) fn remove(&mut self, id: FaceId) -> bool {
        let Some(Some(vlan)) = self.faces.remove(&id) else { return false };
        let Some(in_vlan) = self.vlans.get_mut(&vlan) else { return false };
        *in_vlan -= 1;
        let is_last = *in_vlan == 0;
        if is_last {
            self.vlans.remove(&vlan);
        }
        is_last
    }

    /// Returns whether there are no such faces.
    pub(super) fn is_empty(&self) -> bool {
        self.faces.is_empty()
    }

    /// Returns the VLANs of the faces, in ascending order.
    pub(super) fn vlans(&self) -> impl Iterator<Item = u16> + '_ {
        self.vlans.keys().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_face_of_a_vlan_are_told() {
        let mut made = FacesMade::default();
        assert!(!made.add(FaceId(1), None), "an untagged face changes no VLAN");
        assert!(made.add(FaceId(2), Some(7)));
        assert!(!made.add(FaceId(3), Some(7)));
        assert!(made.add(FaceId(4), Some(4)));
        assert_eq!(made.vlans().collect::<Vec<_>>(), [4, 7]);
        assert!(!made.remove(FaceId(9)), "an on-demand face is not counted");
        assert!(!made.remove(FaceId(2)) && !made.remove(FaceId(2)));
        assert!(made.remove(FaceId(3)));
        assert_eq!(made.vlans().collect::<Vec<_>>(), [4]);
        assert!(made.remove(FaceId(4)) && !made.is_empty());
        assert!(!made.remove(FaceId(1)) && made.is_empty());
    }
}
