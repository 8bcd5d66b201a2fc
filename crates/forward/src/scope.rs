//! Scope prefixes: names that may not leave this computer, or not go further than one hop.

use crate::face::{FaceId, FaceInfo, FaceScope, LinkType};

/// `localhost` as a component.
const LOCALHOST: &[u8] = b"\x08\x09localhost";
/// `localhop` as a component.
const LOCALHOP: &[u8] = b"\x08\x08localhop";

/// Is this Name VALUE under `/localhost`? Such packets stay between local faces.
pub(crate) fn is_localhost(name: &[u8]) -> bool {
    name.starts_with(LOCALHOST)
}

/// Is this Name VALUE under `/localhop`? Interests from other computers then go to local faces only.
pub(crate) fn is_localhop(name: &[u8]) -> bool {
    name.starts_with(LOCALHOP)
}

/// An Interest as far as it decides where it may go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Traveller<'a> {
    /// Name VALUE.
    pub(crate) name: &'a [u8],
    /// The downstream that asks.
    pub(crate) from: FaceId,
    /// Scope of that face; non-local if the face is gone.
    pub(crate) from_scope: FaceScope,
    /// HopLimit that the next hop would see.
    pub(crate) hop_limit: Option<u8>,
}

impl Traveller<'_> {
    /// May the Interest go to this face? Not back where it came from unless the link is ad hoc, and to other computers
    /// only if its scope and its HopLimit allow.
    pub(crate) fn may_go_to(&self, face: &FaceInfo) -> bool {
        if face.id == self.from && face.link_type != LinkType::AdHoc {
            return false;
        }
        face.scope == FaceScope::Local || self.may_leave()
    }

    fn may_leave(&self) -> bool {
        self.hop_limit != Some(0)
            && !is_localhost(self.name)
            && !(is_localhop(self.name) && self.from_scope == FaceScope::NonLocal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn face(id: u32, scope: FaceScope, link_type: LinkType) -> FaceInfo {
        FaceInfo { id: FaceId(id), scope, link_type }
    }

    #[test]
    fn prefixes_are_whole_components() {
        assert!(is_localhost(b"\x08\x09localhost\x08\x01A"));
        assert!(is_localhost(b"\x08\x09localhost"));
        assert!(!is_localhost(b"\x08\x0alocalhosts"));
        assert!(!is_localhost(b"\x20\x09localhost"));
        assert!(is_localhop(b"\x08\x08localhop\x08\x01A"));
        assert!(!is_localhop(b""));
    }

    #[test]
    fn where_an_interest_may_go() {
        use FaceScope::{Local, NonLocal};
        use LinkType::{AdHoc, MultiAccess, PointToPoint};
        type Case = (&'static [u8], FaceScope, Option<u8>, FaceInfo, bool);
        let cases: [Case; 10] = [
            (b"\x08\x01A", NonLocal, None, face(300, NonLocal, PointToPoint), true),
            (b"\x08\x01A", NonLocal, Some(0), face(300, NonLocal, PointToPoint), false),
            (b"\x08\x01A", NonLocal, Some(0), face(300, Local, PointToPoint), true),
            (b"\x08\x01A", NonLocal, Some(1), face(300, NonLocal, MultiAccess), true),
            (b"\x08\x01A", NonLocal, None, face(256, NonLocal, MultiAccess), false),
            (b"\x08\x01A", NonLocal, None, face(256, NonLocal, AdHoc), true),
            (b"\x08\x09localhost", Local, None, face(300, NonLocal, PointToPoint), false),
            (b"\x08\x09localhost", Local, None, face(300, Local, PointToPoint), true),
            (b"\x08\x08localhop", NonLocal, None, face(300, NonLocal, PointToPoint), false),
            (b"\x08\x08localhop", Local, None, face(300, NonLocal, PointToPoint), true),
        ];
        for (number, (name, from_scope, hop_limit, to, expected)) in cases.into_iter().enumerate() {
            let traveller = Traveller { name, from: FaceId(256), from_scope, hop_limit };
            assert_eq!(traveller.may_go_to(&to), expected, "case {number}");
        }
    }
}
