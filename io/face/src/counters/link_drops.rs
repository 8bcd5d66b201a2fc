//! Reasons for drops of frames and packets on the link side, and their counters.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Counter;

macro_rules! link_drops {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// Why a frame or packet was dropped on the link side. The engine has its own reasons.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum LinkDrop {
            $($(#[$doc])* $variant,)*
        }

        impl LinkDrop {
            /// All reasons, in order of their index.
            pub const ALL: &'static [LinkDrop] = &[$(LinkDrop::$variant,)*];

            /// Name for counters and logs.
            pub const fn name(self) -> &'static str {
                match self {
                    $(LinkDrop::$variant => $name,)*
                }
            }
        }
    };
}

link_drops! {
    /// The LpPacket does not decode.
    MalformedHeader = "malformed-link-header",
    /// The fragment is not exactly one Interest or Data element.
    NotInterestOrData = "not-interest-or-data",
    /// NextHopFaceId on an Interest from a face without local fields.
    NextHopNotAllowed = "next-hop-face-id-not-allowed",
    /// NextHopFaceId on a Data or Nack.
    NextHopOnWrongPacket = "next-hop-face-id-on-wrong-packet",
    /// CachePolicy on an Interest or Nack.
    CachePolicyOnWrongPacket = "cache-policy-on-wrong-packet",
    /// Nack header on a Data.
    NackOnData = "nack-on-data",
    /// NonDiscovery on a Data or Nack.
    NonDiscoveryOnWrongPacket = "non-discovery-on-wrong-packet",
    /// PrefixAnnouncement on an Interest or Nack.
    AnnouncementOnWrongPacket = "prefix-announcement-on-wrong-packet",
    /// A fragment on a link that carries whole packets.
    FragmentOnStreamLink = "fragment-on-stream-link",
    /// FragIndex not below FragCount, or FragCount 0.
    FragIndexOutOfRange = "frag-index-out-of-range",
    /// FragCount above the limit, on receiving or on sending.
    TooManyFragments = "too-many-fragments",
    /// A fragment without Sequence.
    MissingSequence = "missing-sequence",
    /// A fragment without payload.
    EmptyFragment = "empty-fragment",
    /// A fragment that was already received.
    DuplicateFragment = "duplicate-fragment",
    /// FragCount differs from that of the packet's fragment received first.
    FragCountMismatch = "frag-count-mismatch",
    /// The fragments add up to more than the largest packet; the whole partial packet is dropped.
    ReassembledTooLong = "reassembled-too-long",
    /// A partial packet received no fragment for too long.
    ReassemblyTimeout = "reassembly-timeout",
    /// A partial packet was evicted for a newer one because too many were waiting.
    ReassemblyEvicted = "reassembly-evicted",
    /// Link reliability: a frame that was already received.
    DuplicateSequence = "duplicate-sequence",
    /// Link reliability: a packet abandoned after its last retransmission.
    RetransmissionsExhausted = "retransmissions-exhausted",
    /// The packet with its headers is larger than the largest LpPacket, on a link without fragmentation.
    PacketTooLong = "packet-too-long",
    /// The headers alone fill the MTU.
    HeaderTooLong = "header-too-long",
    /// The buffer pool is exhausted.
    NoBuffer = "no-buffer",
    /// A datagram that the kernel dropped because the receive queue of a UDP socket was full.
    KernelQueueFull = "kernel-queue-full",
    /// The ring to the worker is full.
    ReceiveRingFull = "receive-ring-full",
    /// The ring from one worker to another is full.
    HandoverFull = "handover-full",
    /// The ring from the worker or the send queue of the link is full.
    SendQueueFull = "send-queue-full",
    /// A connection was closed because its peer had read nothing for too long while packets were queued.
    PeerBlocked = "peer-blocked",
    /// A neighbour's command to the router beyond the limit of commands that are processed.
    TooManyCommands = "too-many-commands",
    /// A route that a neighbour registered or announced beyond the limit.
    TooManyRoutes = "too-many-routes",
    /// The link is down, or its face is closed.
    LinkDown = "link-down",
    /// The operating system refused to send.
    SendFailed = "send-failed",
    /// Received bytes that are not one well-framed TLV element.
    MalformedFrame = "malformed-frame",
    /// A connection or peer beyond the limit of faces.
    TooManyFaces = "too-many-faces",
    /// The face or connection of an unsolicited peer was closed so that another peer could have its slot.
    FaceEvicted = "face-evicted",
    /// A received frame larger than the largest LpPacket.
    FrameTooLong = "frame-too-long",
    /// A WebSocket handshake from a web page of an origin that is not allowed.
    OriginNotAllowed = "origin-not-allowed",
    /// An Ethernet frame that does not carry NDN; or a stream element, WebSocket message or datagram that is not an
    /// Interest, Data or LpPacket. A stream over the Internet that begins with such an element is closed.
    NotNdnFrame = "not-ndn-frame",
    /// A frame to an address that this port does not have.
    ForeignFrame = "foreign-frame",
    /// An NDN frame to a multicast group without a face.
    UnknownGroup = "unknown-group",
    /// An NDN frame from an address without a face.
    UnknownSender = "unknown-sender",
    /// A datagram to a UDP port that no face uses.
    UnknownPort = "unknown-udp-port",
    /// A fragment of an IP packet.
    IpFragment = "ip-fragment",
    /// A packet with a wrong or missing checksum of IPv4, UDP, ICMP or ICMPv6.
    BadChecksum = "bad-checksum",
    /// An invalid ARP or neighbour discovery message.
    BadNeighbourMessage = "bad-neighbour-message",
    /// An ARP or neighbour discovery message that claims another hardware address for a next hop than the one that
    /// answers.
    NeighbourConflict = "neighbour-conflict",
    /// A packet to a next hop that does not answer ARP or neighbour discovery, or beyond the limit of packets waiting
    /// for that answer.
    NextHopUnresolved = "next-hop-unresolved",
}

impl LinkDrop {
    /// Number of reasons.
    pub const COUNT: usize = LinkDrop::ALL.len();

    /// Returns the index in [`LinkDrop::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// Drops by [`LinkDrop`] of all faces together, closed ones included. Every thread may add: drops are rare.
#[derive(Debug)]
pub struct LinkDropTotals([AtomicU64; LinkDrop::COUNT]);

impl LinkDropTotals {
    /// Counts drops.
    pub fn add(&self, reason: LinkDrop, count: u64) {
        self.0[reason.index()].fetch_add(count, Ordering::Relaxed);
    }

    /// Returns the drops for this reason.
    pub fn get(&self, reason: LinkDrop) -> u64 {
        self.0[reason.index()].load(Ordering::Relaxed)
    }
}

impl Default for LinkDropTotals {
    fn default() -> Self {
        LinkDropTotals(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

/// Drops of one face by [`LinkDrop`].
#[derive(Debug)]
pub struct LinkDropCounters {
    own: [Counter; LinkDrop::COUNT],
    totals: Arc<LinkDropTotals>,
}

impl LinkDropCounters {
    pub(super) fn new(totals: &Arc<LinkDropTotals>) -> Self {
        LinkDropCounters { own: std::array::from_fn(|_| Counter::default()), totals: Arc::clone(totals) }
    }

    /// Counts `count` drops, here and in the totals. Only from the thread that owns these counters.
    pub fn add(&self, reason: LinkDrop, count: u64) {
        self.own[reason.index()].add(count);
        self.totals.add(reason, count);
    }

    /// Returns the drops for this reason.
    pub fn get(&self, reason: LinkDrop) -> u64 {
        self.own[reason.index()].get()
    }
}

impl Default for LinkDropCounters {
    fn default() -> Self {
        LinkDropCounters::new(&Arc::default())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_reason_has_its_own_kebab_case_name_and_index() {
        let names: HashSet<_> = LinkDrop::ALL.iter().map(|reason| reason.name()).collect();
        assert_eq!(names.len(), LinkDrop::COUNT);
        for (index, reason) in LinkDrop::ALL.iter().enumerate() {
            assert_eq!(reason.index(), index);
            let kebab = |b: u8| b.is_ascii_lowercase() || b == b'-';
            assert!(reason.name().bytes().all(kebab), "{}", reason.name());
        }
    }
}
