//! What a face is made from and which of its properties can be changed (NFD management protocol, face management).

use std::fmt;
use std::time::Duration;

use namehop_packet::{FaceScope, LinkType};
use namehop_wire::MAX_PACKET_SIZE;

use crate::uri::FaceUri;

/// Smallest MTU a link may have, in bytes.
pub const MIN_MTU_BYTES: usize = 64;
/// Time a queue must stay above the threshold before packets are marked, if nothing else was asked for (NFD).
pub const DEFAULT_MARKING_INTERVAL_NS: u64 = 100_000_000;
/// Queue length above which congestion begins, if nothing else was asked for, in bytes (NFD).
pub const DEFAULT_CONGESTION_THRESHOLD_BYTES: u64 = 65_536;

/// What happens to a face when its link fails (NFD management protocol, FacePersistency).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FacePersistency {
    /// Stays until it is destroyed or its link fails for good.
    Persistent,
    /// Made by an incoming packet or connection; closed when idle.
    OnDemand,
    /// Stays until it is destroyed, whatever happens to the link.
    Permanent,
}

/// Bits of a face's Flags (NFD management protocol).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FaceFlags(pub u64);

impl FaceFlags {
    /// IncomingFaceId, NextHopFaceId and the like are honoured on this face.
    pub const LOCAL_FIELDS: FaceFlags = FaceFlags(1);
    /// NDNLPv2 link reliability.
    pub const RELIABILITY: FaceFlags = FaceFlags(2);
    /// NDNLPv2 congestion marking by send-queue length.
    pub const CONGESTION_MARKING: FaceFlags = FaceFlags(4);
    /// An IDLE packet of NDNLPv2 is sent now and then, so that gateways and firewalls on the path keep it open. A bit that NFD does not have.
    pub const KEEP_ALIVE: FaceFlags = FaceFlags(0x100);
    /// Interests carry this router's PIT token, whatever is known of the peer. A flag of this program's own, as the next.
    pub const PIT_TOKENS_ON: FaceFlags = FaceFlags(0x200);
    /// No Interest carries this router's PIT token. Not together with [`FaceFlags::PIT_TOKENS_ON`].
    pub const PIT_TOKENS_OFF: FaceFlags = FaceFlags(0x400);
    /// The two bits that say when Interests carry PIT tokens: see [`PitTokenMode`](super::PitTokenMode).
    pub const PIT_TOKENS: FaceFlags = FaceFlags::PIT_TOKENS_ON.union(FaceFlags::PIT_TOKENS_OFF);
    /// All bits with a meaning.
    const ALL: FaceFlags = FaceFlags(7 | 0x700);

    /// Whether all bits of `other` are set.
    pub const fn contains(self, other: FaceFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any bit of `other` is set.
    pub(super) const fn intersects(self, other: FaceFlags) -> bool {
        self.0 & other.0 != 0
    }

    /// The bits of both.
    pub const fn union(self, other: FaceFlags) -> FaceFlags {
        FaceFlags(self.0 | other.0)
    }

    /// These without the bits of `other`.
    pub(super) const fn without(self, other: FaceFlags) -> FaceFlags {
        FaceFlags(self.0 & !other.0)
    }

    /// `self` with the bits in `mask` replaced by those of `flags`.
    pub(super) const fn changed(self, flags: FaceFlags, mask: u64) -> FaceFlags {
        let known = mask & FaceFlags::ALL.0;
        FaceFlags((self.0 & !known) | (flags.0 & known))
    }
}

/// What a new face is. [`FaceParams::new`] fills in the usual values.
#[derive(Debug, Clone)]
pub struct FaceParams {
    /// Address of the peer.
    pub remote_uri: FaceUri,
    /// Address of this end; [`FaceUri::Null`] when it is not known yet.
    pub local_uri: FaceUri,
    /// Whether the peer is on this computer.
    pub scope: FaceScope,
    /// How many peers it reaches.
    pub link_type: LinkType,
    /// What happens when the link fails.
    pub persistency: FacePersistency,
    /// Persistencies that management may switch to, the present one included.
    pub allowed_persistencies: &'static [FacePersistency],
    /// Flags at the start.
    pub flags: FaceFlags,
    /// Largest frame the link carries, in bytes: 64 to 8800; values outside are clamped.
    pub link_mtu_bytes: usize,
    /// Packets keep their borders on this link and may need fragmentation (UDP, Ethernet). Otherwise it is a stream of
    /// whole packets.
    pub is_datagram: bool,
    /// The link works from the start.
    pub is_up: bool,
    /// While on-demand it is closed after one to two times so long without a packet; `None` when it stays for as long as its
    /// connection.
    pub idle_timeout: Option<Duration>,
    /// NonDiscovery and PrefixAnnouncement headers are honoured.
    pub self_learning: bool,
    /// The worker that receives and sends its frames; `None` when every worker can, as on sockets.
    pub home_worker: Option<usize>,
    /// See [`DEFAULT_MARKING_INTERVAL_NS`].
    pub base_congestion_marking_interval_ns: u64,
    /// See [`DEFAULT_CONGESTION_THRESHOLD_BYTES`].
    pub default_congestion_threshold_bytes: u64,
}

impl FaceParams {
    /// A persistent non-local point-to-point face on a working stream link with all flags off.
    pub fn new(remote_uri: FaceUri, local_uri: FaceUri) -> Self {
        FaceParams {
            remote_uri,
            local_uri,
            scope: FaceScope::NonLocal,
            link_type: LinkType::PointToPoint,
            persistency: FacePersistency::Persistent,
            allowed_persistencies: &[FacePersistency::Persistent],
            flags: FaceFlags::default(),
            link_mtu_bytes: MAX_PACKET_SIZE,
            is_datagram: false,
            is_up: true,
            idle_timeout: None,
            self_learning: false,
            home_worker: None,
            base_congestion_marking_interval_ns: DEFAULT_MARKING_INTERVAL_NS,
            default_congestion_threshold_bytes: DEFAULT_CONGESTION_THRESHOLD_BYTES,
        }
    }
}

/// A change of properties (`faces/update`); absent ones stay as they are.
#[derive(Debug, Clone, Copy, Default)]
pub struct FaceUpdate {
    /// New persistency.
    pub persistency: Option<FacePersistency>,
    /// New flags, where `flags_mask` has a bit.
    pub flags: FaceFlags,
    /// Which flags to change; unknown bits are ignored.
    pub flags_mask: u64,
    /// New base congestion marking interval, in nanoseconds; not 0.
    pub base_congestion_marking_interval_ns: Option<u64>,
    /// New default congestion threshold, in bytes.
    pub default_congestion_threshold_bytes: Option<u64>,
    /// New MTU in bytes; limited to what the link carries.
    pub mtu_bytes: Option<u64>,
}

/// Properties of a [`FaceUpdate`] that the face refuses; nothing was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RejectedProperties {
    /// The face cannot have that persistency.
    pub persistency: bool,
    /// The flags cannot be set: local fields on a non-local face, reliability or a mode of PIT tokens on a face with several peers, PIT
    /// tokens both on and off, or keep-alive on a face that is not over a UDP socket.
    pub flags: bool,
    /// The marking interval is 0.
    pub base_congestion_marking_interval: bool,
    /// The MTU is below 64, or the link does not fragment.
    pub mtu: bool,
}

impl RejectedProperties {
    /// What it cannot have, in words.
    fn reasons(self) -> Vec<&'static str> {
        let reasons = [
            (self.persistency, "this persistency"),
            (
                self.flags,
                "these flags: local fields are for applications on this host, reliability and PIT tokens for links with one peer, \
                 keep-alive for UDP sockets, and PIT tokens cannot be both on and off",
            ),
            (self.base_congestion_marking_interval, "a marking interval of 0"),
            (self.mtu, "this MTU: at least 64 bytes, and only over datagrams and frames"),
        ];
        reasons.into_iter().filter_map(|(is_rejected, reason)| is_rejected.then_some(reason)).collect()
    }
}

impl fmt::Display for RejectedProperties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the face cannot have {}", self.reasons().join(", nor "))
    }
}

impl std::error::Error for RejectedProperties {}
