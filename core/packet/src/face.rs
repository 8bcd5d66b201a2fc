//! Properties of a face that the engine knows: its number, scope, link type and state.
//!
//! Everything else (sockets, addresses, MTU, queues) belongs to the link side and is invisible here.

use std::fmt;

/// Number of a face, as used in the NFD management protocol.
///
/// User faces are numbered from 256. The low 16 bits are the slot in the worker's face array. The high 16 bits count
/// how often that slot was used before. So a number is not reused until its slot was recycled 65,536 times, and a
/// stale record never refers to a newer face.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FaceId(pub u32);

impl FaceId {
    /// No face; in management commands, the face that the command arrived on.
    pub const INVALID: FaceId = FaceId(0);
    /// The management face inside the router.
    pub const INTERNAL: FaceId = FaceId(1);
    /// Source of Data from the Content Store.
    pub const CONTENT_STORE: FaceId = FaceId(254);
    /// A face that drops every packet.
    pub const NULL: FaceId = FaceId(255);
    /// Lowest number of a face that is not reserved.
    pub const FIRST_USER: FaceId = FaceId(256);

    /// Index in the worker's face array.
    pub const fn slot(self) -> usize {
        (self.0 & 0xFFFF) as usize
    }
}

impl fmt::Display for FaceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Whether the peer is on this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaceScope {
    /// The peer is on another host: `/localhost` never crosses this face.
    NonLocal,
    /// The peer is a process on this host.
    Local,
}

/// How many peers a face reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LinkType {
    /// Exactly one peer.
    PointToPoint,
    /// Several peers that all hear each other.
    MultiAccess,
    /// Several peers that may not hear each other: packets may be sent on the face they arrived on.
    AdHoc,
}

/// The properties of a face that the engine needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaceInfo {
    /// Its number.
    pub id: FaceId,
    /// Whether the face is local.
    pub scope: FaceScope,
    /// Point-to-point, multi-access or ad hoc.
    pub link_type: LinkType,
    /// True if the link is up. Interests are not sent to a face that is down.
    pub is_up: bool,
}
