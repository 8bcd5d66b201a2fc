//! Scope prefixes: names that may not leave this host, or may not travel further than one hop.

use namehop_packet::{FaceId, FaceInfo, FaceScope, LinkType};

/// `localhost` as a component.
const LOCALHOST: &[u8] = b"\x08\x09localhost";
/// `localhop` as a component.
const LOCALHOP: &[u8] = b"\x08\x08localhop";

/// How far packets with a name may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameScope {
    /// `/localhost`: such packets stay between local faces.
    Localhost,
    /// `/localhop`: Interests from non-local faces are sent only to local faces.
    Localhop,
    /// All other names, without a limit.
    Anywhere,
}

impl NameScope {
    /// Returns the scope of a Name VALUE.
    #[inline]
    pub(crate) fn of(name: &[u8]) -> Self {
        if name.starts_with(LOCALHOST) {
            NameScope::Localhost
        } else if name.starts_with(LOCALHOP) {
            NameScope::Localhop
        } else {
            NameScope::Anywhere
        }
    }
}

/// The properties of an Interest that limit where it may be sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InterestLimits {
    /// Scope of the Interest's name.
    pub(crate) scope: NameScope,
    /// The downstream face.
    pub(crate) from: FaceId,
    /// Scope of that face; non-local if the face was removed.
    pub(crate) from_scope: FaceScope,
    /// HopLimit that the next hop would see.
    pub(crate) hop_limit: Option<u8>,
}

impl InterestLimits {
    /// Returns whether the Interest may be sent to `face`. It may return to its own face only on an ad hoc link, and it
    /// reaches a non-local face only if its scope and its HopLimit allow.
    #[inline(always)]
    pub(crate) fn may_go_to(&self, face: &FaceInfo) -> bool {
        if face.id == self.from && face.link_type != LinkType::AdHoc {
            return false;
        }
        face.scope == FaceScope::Local || self.may_leave()
    }

    #[inline(always)]
    fn may_leave(&self) -> bool {
        let allowed = match self.scope {
            NameScope::Localhost => false,
            NameScope::Localhop => self.from_scope == FaceScope::Local,
            NameScope::Anywhere => true,
        };
        allowed && self.hop_limit != Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn face(id: u32, scope: FaceScope, link_type: LinkType) -> FaceInfo {
        FaceInfo { id: FaceId(id), scope, link_type, is_up: true }
    }

    #[test]
    fn prefixes_are_whole_components() {
        assert_eq!(NameScope::of(b"\x08\x09localhost\x08\x01A"), NameScope::Localhost);
        assert_eq!(NameScope::of(b"\x08\x09localhost"), NameScope::Localhost);
        assert_eq!(NameScope::of(b"\x08\x0alocalhosts"), NameScope::Anywhere);
        assert_eq!(NameScope::of(b"\x20\x09localhost"), NameScope::Anywhere);
        assert_eq!(NameScope::of(b"\x08\x08localhop\x08\x01A"), NameScope::Localhop);
        assert_eq!(NameScope::of(b""), NameScope::Anywhere);
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
            let limits = InterestLimits { scope: NameScope::of(name), from: FaceId(256), from_scope, hop_limit };
            assert_eq!(limits.may_go_to(&to), expected, "case {number}");
        }
    }
}
