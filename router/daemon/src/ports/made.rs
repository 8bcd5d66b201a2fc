//! The faces of a port that were made by command or configuration, with the VLANs they are in.
//!
//! Looking for them among all faces would take the longer, the more there are, and is done for each that is made. Senders make faces only
//! where a port stays, and only in VLANs that are configured, so nobody asks for those here.

use std::collections::{BTreeMap, HashMap};

use namehop_packet::FaceId;

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct FacesMade {
    faces: HashMap<FaceId, Option<u16>>,
    /// How many of them are in each VLAN.
    vlans: BTreeMap<u16, usize>,
}

impl FacesMade {
    /// Notes one; whether it is the first in its VLAN.
    pub(super) fn add(&mut self, id: FaceId, vlan: Option<u16>) -> bool {
        self.faces.insert(id, vlan);
        let Some(vlan) = vlan else { return false };
        let in_vlan = self.vlans.entry(vlan).or_default();
        *in_vlan += 1;
        *in_vlan == 1
    }

    /// Notes that one is gone; whether it was the last in its VLAN. Others may be named as well.
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

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.faces.is_empty()
    }

    /// The VLANs that they are in, in order.
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
        assert!(!made.add(FaceId(1), None), "without a tag");
        assert!(made.add(FaceId(2), Some(7)));
        assert!(!made.add(FaceId(3), Some(7)));
        assert!(made.add(FaceId(4), Some(4)));
        assert_eq!(made.vlans().collect::<Vec<_>>(), [4, 7]);
        assert!(!made.remove(FaceId(9)), "one that a sender has made");
        assert!(!made.remove(FaceId(2)) && !made.remove(FaceId(2)));
        assert!(made.remove(FaceId(3)));
        assert_eq!(made.vlans().collect::<Vec<_>>(), [4]);
        assert!(made.remove(FaceId(4)) && !made.is_empty());
        assert!(!made.remove(FaceId(1)) && made.is_empty());
    }
}
