//! Parameters of a new face, and the properties that can be changed (NFD management protocol, face management).

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use namehop_packet::{FaceScope, LinkType};
use namehop_wire::MAX_PACKET_SIZE;

use crate::uri::FaceUri;

/// Smallest MTU a link may have, in bytes.
pub const MIN_MTU_BYTES: usize = 64;
/// Size in bytes of an IP packet that every path carries. It is the least that an IPv6 link carries (RFC 8200 section
/// 5), and hardly any path of IPv4 carries less.
pub const BASE_PACKET_BYTES: usize = 1280;
/// Lengths of the headers of IPv4 without options, IPv6 and UDP, in bytes.
const IPV4_BYTES: usize = 20;
const IPV6_BYTES: usize = 40;
const UDP_BYTES: usize = 8;
/// Time that a queue must stay above the threshold before packets are marked, in nanoseconds; the default (NFD).
pub const DEFAULT_MARKING_INTERVAL_NS: u64 = 100_000_000;
/// Queue length above which congestion begins, in bytes; the default (NFD).
pub const DEFAULT_CONGESTION_THRESHOLD_BYTES: u64 = 65_536;

/// Returns the length of the IP and UDP headers of packets to this address, in bytes.
pub fn udp_header_bytes(remote: IpAddr) -> usize {
    UDP_BYTES + if remote.is_ipv4() { IPV4_BYTES } else { IPV6_BYTES }
}

/// What happens to a face when its link fails (NFD management protocol, FacePersistency).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FacePersistency {
    /// Stays until it is destroyed or its link fails for good.
    Persistent,
    /// Created by an incoming packet or connection; closed when idle.
    OnDemand,
    /// Stays until it is destroyed, even if the link fails.
    Permanent,
}

/// Bits of a face's Flags (NFD management protocol).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FaceFlags(pub u64);

impl FaceFlags {
    /// IncomingFaceId, NextHopFaceId and similar fields are honoured on this face.
    pub const LOCAL_FIELDS: FaceFlags = FaceFlags(1);
    /// NDNLPv2 link reliability.
    pub const RELIABILITY: FaceFlags = FaceFlags(2);
    /// NDNLPv2 congestion marking by send-queue length.
    pub const CONGESTION_MARKING: FaceFlags = FaceFlags(4);
    /// IDLE packets of NDNLPv2 are sent at regular intervals, so that gateways and firewalls keep the path open. NFD
    /// does not have this bit.
    pub const KEEP_ALIVE: FaceFlags = FaceFlags(0x100);
    /// Interests carry this router's PIT token, whether or not the peer is known to support it. NFD does not have this
    /// bit and the next one.
    pub const PIT_TOKENS_ON: FaceFlags = FaceFlags(0x200);
    /// No Interest carries this router's PIT token. Mutually exclusive with [`FaceFlags::PIT_TOKENS_ON`].
    pub const PIT_TOKENS_OFF: FaceFlags = FaceFlags(0x400);
    /// The two bits of the PIT token mode: see [`PitTokenMode`](super::PitTokenMode).
    pub const PIT_TOKENS: FaceFlags = FaceFlags::PIT_TOKENS_ON.union(FaceFlags::PIT_TOKENS_OFF);
    /// All defined bits.
    const ALL: FaceFlags = FaceFlags(7 | 0x700);

    /// Whether all bits of `other` are set.
    pub const fn contains(self, other: FaceFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any bit of `other` is set.
    pub(super) const fn intersects(self, other: FaceFlags) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns the bits of both.
    pub const fn union(self, other: FaceFlags) -> FaceFlags {
        FaceFlags(self.0 | other.0)
    }

    /// Returns these bits without the bits of `other`.
    pub(super) const fn without(self, other: FaceFlags) -> FaceFlags {
        FaceFlags(self.0 & !other.0)
    }

    /// Returns `self` with the bits in `mask` replaced by the bits of `flags`; undefined bits in `mask` are ignored.
    pub(super) const fn changed(self, flags: FaceFlags, mask: u64) -> FaceFlags {
        let known = mask & FaceFlags::ALL.0;
        FaceFlags((self.0 & !known) | (flags.0 & known))
    }
}

/// Parameters of a new face. [`FaceParams::new`] fills in the default values.
#[derive(Debug, Clone)]
pub struct FaceParams {
    /// Address of the peer.
    pub remote_uri: FaceUri,
    /// Address of this end; [`FaceUri::Null`] if it is not known yet.
    pub local_uri: FaceUri,
    /// Whether the peer is on this host.
    pub scope: FaceScope,
    /// How many peers the face reaches.
    pub link_type: LinkType,
    /// What happens when the link fails.
    pub persistency: FacePersistency,
    /// Persistencies that management may switch to, including the present one.
    pub allowed_persistencies: &'static [FacePersistency],
    /// Initial flags.
    pub flags: FaceFlags,
    /// MTU of the link: the largest frame it carries, in bytes, from 64 to 8800; other values are clamped.
    pub link_mtu_bytes: usize,
    /// The largest frame, in bytes, that every path to the peer carries: [`BASE_PACKET_BYTES`] less the headers of IP
    /// and what is above it. `None` if the path MTU is not discovered, because the link is no path over IP to another
    /// host. Only datagram faces with one peer discover it. It depends on the address of the peer only, so it stays
    /// when the local address changes.
    pub base_mtu_bytes: Option<usize>,
    /// The link keeps packet borders and may need fragmentation (UDP, Ethernet). Otherwise it is a stream of whole
    /// packets.
    pub is_datagram: bool,
    /// Whether the link works initially.
    pub is_up: bool,
    /// An on-demand face is closed after one to two times this duration without a packet; `None` if it stays as long as
    /// its connection.
    pub idle_timeout: Option<Duration>,
    /// Whether NonDiscovery and PrefixAnnouncement headers are honoured.
    pub self_learning: bool,
    /// The worker that receives and sends its frames; `None` if every worker can, as on sockets.
    pub home_worker: Option<usize>,
    /// See [`DEFAULT_MARKING_INTERVAL_NS`].
    pub base_congestion_marking_interval_ns: u64,
    /// See [`DEFAULT_CONGESTION_THRESHOLD_BYTES`].
    pub default_congestion_threshold_bytes: u64,
}

impl FaceParams {
    /// Returns the parameters of a persistent non-local point-to-point face on a working stream link, with all flags
    /// off.
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
            base_mtu_bytes: None,
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

/// A change of properties (`faces/update`); absent properties stay unchanged.
#[derive(Debug, Clone, Copy, Default)]
pub struct FaceUpdate {
    /// New persistency.
    pub persistency: Option<FacePersistency>,
    /// New flags, for the bits in `flags_mask`.
    pub flags: FaceFlags,
    /// Which flags to change; unknown bits are ignored.
    pub flags_mask: u64,
    /// New base congestion marking interval, in nanoseconds; not 0.
    pub base_congestion_marking_interval_ns: Option<u64>,
    /// New default congestion threshold, in bytes.
    pub default_congestion_threshold_bytes: Option<u64>,
    /// New MTU in bytes; limited to the MTU of the link.
    pub mtu_bytes: Option<u64>,
}

/// The properties of a rejected [`FaceUpdate`]; nothing was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RejectedProperties {
    /// The face cannot have that persistency.
    pub persistency: bool,
    /// The flags cannot be set. The reasons are: local fields on a non-local face; reliability or a PIT token mode on a
    /// face with several peers; PIT tokens both on and off; or keep-alive on a face that is not over a UDP socket.
    pub flags: bool,
    /// The marking interval is 0.
    pub base_congestion_marking_interval: bool,
    /// The MTU is below 64, or the link does not fragment.
    pub mtu: bool,
}

impl RejectedProperties {
    /// Returns the rejected properties in words.
    fn reasons(self) -> Vec<&'static str> {
        let reasons = [
            (self.persistency, "this persistency"),
            (
                self.flags,
                "these flags: local fields are for applications on this host, reliability and PIT tokens for links \
                 with one peer, keep-alive for UDP sockets, and PIT tokens cannot be both on and off",
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
