//! Counters of one face: packets, bytes, frames, and every drop by name.
//!
//! Each counter has a single writing thread, so an addition is a relaxed load and a relaxed store, with no locked
//! instruction. Each worker has counters of its own for each face, and [`FaceCounters::transport`] belongs to the thread that serves
//! the link. Any thread may read; values read together need not belong to one instant.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use namehop_packet::{DropReason, PacketKind};

/// A counter with one writing thread.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `count`. Only from the thread that owns this counter: additions from two threads would lose some.
    #[inline]
    pub fn add(&self, count: u64) {
        let value = self.0.load(Ordering::Relaxed).wrapping_add(count);
        self.0.store(value, Ordering::Relaxed);
    }

    /// The present value.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

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
    /// A fragment that was received before.
    DuplicateFragment = "duplicate-fragment",
    /// FragCount differs from that of the packet's first-seen fragment.
    FragCountMismatch = "frag-count-mismatch",
    /// The fragments add up to more than the largest packet; the whole partial packet is dropped.
    ReassembledTooLong = "reassembled-too-long",
    /// A partial packet got no fragment for too long.
    ReassemblyTimeout = "reassembly-timeout",
    /// A partial packet was given up for a newer one because too many were waiting.
    ReassemblyEvicted = "reassembly-evicted",
    /// Link reliability: a frame that was received before.
    DuplicateSequence = "duplicate-sequence",
    /// Link reliability: a packet given up after its last retransmission.
    RetransmissionsExhausted = "retransmissions-exhausted",
    /// The packet with its headers is larger than any LpPacket may be, on a link without fragmentation.
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
    /// A connection was closed because its peer had taken nothing for too long while packets waited.
    PeerBlocked = "peer-blocked",
    /// A neighbour's command to the router beyond what is looked at.
    TooManyCommands = "too-many-commands",
    /// The link is down, or its face is gone.
    LinkDown = "link-down",
    /// The operating system refused to send.
    SendFailed = "send-failed",
    /// Received bytes that are not one well-framed TLV element.
    MalformedFrame = "malformed-frame",
    /// A connection or peer beyond the limit of faces.
    TooManyFaces = "too-many-faces",
    /// A stranger's face or connection was closed so that somebody else could have its place.
    FaceEvicted = "face-evicted",
    /// A received frame larger than any LpPacket may be.
    FrameTooLong = "frame-too-long",
    /// A WebSocket handshake from a web page of an origin that is not allowed.
    OriginNotAllowed = "origin-not-allowed",
    /// An Ethernet frame that does not carry NDN, or an element on a stream, WebSocket message or datagram that is none of
    /// Interest, Data and LpPacket. A stream with such an element is closed.
    NotNdnFrame = "not-ndn-frame",
    /// A frame to an address that is not this port's.
    ForeignFrame = "foreign-frame",
    /// An NDN frame to a multicast group that no face stands for.
    UnknownGroup = "unknown-group",
    /// An NDN frame from an address that no face stands for.
    UnknownSender = "unknown-sender",
    /// A datagram to a UDP port that no face uses.
    UnknownPort = "unknown-udp-port",
    /// A fragment of an IP packet.
    IpFragment = "ip-fragment",
    /// A packet whose checksum, of IPv4, UDP, ICMP or ICMPv6, is wrong or missing.
    BadChecksum = "bad-checksum",
    /// An ARP or neighbour discovery message that says nothing sensible.
    BadNeighbourMessage = "bad-neighbour-message",
    /// An ARP or neighbour discovery message that gives another hardware address for a next hop than the one that answers.
    NeighbourConflict = "neighbour-conflict",
    /// To a next hop that does not answer ARP or neighbour discovery, or has not yet while too many packets wait for that.
    NextHopUnresolved = "next-hop-unresolved",
}

impl LinkDrop {
    /// Number of reasons.
    pub const COUNT: usize = LinkDrop::ALL.len();

    /// Index in [`LinkDrop::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// Drops by [`LinkDrop`] of all faces together, those that are gone included. Every thread may add: drops are rare.
#[derive(Debug)]
pub struct LinkDropTotals([AtomicU64; LinkDrop::COUNT]);

impl LinkDropTotals {
    /// Counts drops.
    pub fn add(&self, reason: LinkDrop, count: u64) {
        self.0[reason.index()].fetch_add(count, Ordering::Relaxed);
    }

    /// Drops for this reason.
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
    fn new(totals: &Arc<LinkDropTotals>) -> Self {
        LinkDropCounters { own: std::array::from_fn(|_| Counter::default()), totals: Arc::clone(totals) }
    }

    /// Counts `count` drops, here and in the totals. Only from the thread that owns these counters.
    pub fn add(&self, reason: LinkDrop, count: u64) {
        self.own[reason.index()].add(count);
        self.totals.add(reason, count);
    }

    /// Drops for this reason.
    pub fn get(&self, reason: LinkDrop) -> u64 {
        self.own[reason.index()].get()
    }
}

impl Default for LinkDropCounters {
    fn default() -> Self {
        LinkDropCounters::new(&Arc::default())
    }
}

/// Drops by the engine's reason number ([`DropReason::index`]), where every thread can read them.
#[derive(Debug)]
pub struct EngineDropCounters([Counter; DropReason::COUNT]);

impl EngineDropCounters {
    /// Sets the total for this reason number; nothing happens for a number that is no reason. The engine counts by
    /// itself, and the worker publishes from time to time. Worker only.
    pub fn set(&self, reason: u8, total: u64) {
        if let Some(counter) = self.0.get(usize::from(reason)) {
            counter.0.store(total, Ordering::Relaxed);
        }
    }

    /// Drops for this reason number; 0 for a number that is no reason.
    pub fn get(&self, reason: u8) -> u64 {
        self.0.get(usize::from(reason)).map_or(0, Counter::get)
    }
}

impl Default for EngineDropCounters {
    fn default() -> Self {
        EngineDropCounters(std::array::from_fn(|_| Counter::default()))
    }
}

/// Packets of one kind in one direction.
#[derive(Debug, Default)]
pub struct KindCounters {
    /// Network-layer packets.
    pub packets: Counter,
    /// Their bytes, without link-layer headers.
    pub bytes: Counter,
}

/// One direction of a face.
#[derive(Debug, Default)]
pub struct DirectionCounters {
    /// Link-layer packets, fragments and retransmissions included.
    pub frames: Counter,
    /// Bytes of those frames (NFD management: NInBytes, NOutBytes).
    pub bytes: Counter,
    /// Interests.
    pub interests: KindCounters,
    /// Data.
    pub data: KindCounters,
    /// Nacks.
    pub nacks: KindCounters,
}

impl DirectionCounters {
    /// The counters of one packet kind.
    pub fn kind(&self, kind: PacketKind) -> &KindCounters {
        match kind {
            PacketKind::Interest => &self.interests,
            PacketKind::Data => &self.data,
            PacketKind::Nack => &self.nacks,
        }
    }

    /// Counts one network-layer packet.
    pub fn count_packet(&self, kind: PacketKind, bytes: usize) {
        let counters = self.kind(kind);
        counters.packets.add(1);
        counters.bytes.add(bytes as u64);
    }

    /// Counts one link-layer packet.
    pub fn count_frame(&self, bytes: usize) {
        self.frames.add(1);
        self.bytes.add(bytes as u64);
    }
}

/// What the worker counts. On cache lines of its own, away from those of the link's thread.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct WorkerCounters {
    /// Received.
    pub received: DirectionCounters,
    /// Sent.
    pub sent: DirectionCounters,
    /// Packets that this face marked as congested.
    pub congestion_marks: Counter,
    /// Link reliability: frames sent again.
    pub retransmissions: Counter,
    /// Link reliability: frames acknowledged by the peer.
    pub acknowledged: Counter,
    /// Link reliability: frames sent without protection because the window or the buffer pool was full.
    pub unprotected: Counter,
    /// Drops by the link service.
    pub link_drops: LinkDropCounters,
    /// Drops by the engine, on the face the packet came in on or was to go out on.
    pub engine_drops: EngineDropCounters,
}

/// What the thread that serves the link counts.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct TransportCounters {
    /// Drops below the link service.
    pub drops: LinkDropCounters,
}

/// All counters of one face.
#[derive(Debug)]
pub struct FaceCounters {
    /// One for each worker, which alone writes there.
    workers: Box<[Arc<WorkerCounters>]>,
    /// Written by the thread that serves the link.
    pub transport: TransportCounters,
}

impl FaceCounters {
    /// Counters at zero for so many workers, at least one, whose link drops also count in `totals`.
    pub fn new(totals: &Arc<LinkDropTotals>, workers: usize) -> Self {
        let of_worker = || WorkerCounters { link_drops: LinkDropCounters::new(totals), ..WorkerCounters::default() };
        FaceCounters {
            workers: (0..workers.max(1)).map(|_| Arc::new(of_worker())).collect(),
            transport: TransportCounters { drops: LinkDropCounters::new(totals) },
        }
    }

    /// The counters of a worker by its number.
    ///
    /// # Panics
    /// When there are not so many workers.
    pub fn worker(&self, number: usize) -> &Arc<WorkerCounters> {
        &self.workers[number]
    }

    /// Something that workers count, of all of them together.
    pub fn sum(&self, count: impl Fn(&WorkerCounters) -> u64) -> u64 {
        self.workers.iter().map(|worker| count(worker)).sum()
    }

    /// Drops by the engines for this reason.
    pub fn engine_drop(&self, reason: DropReason) -> u64 {
        self.sum(|worker| worker.engine_drops.get(reason.index() as u8))
    }

    /// Counts a drop on the link's thread (not from the worker).
    pub fn count_transport_drop(&self, reason: LinkDrop) {
        self.transport.drops.add(reason, 1);
    }

    /// Drops on the link side for this reason, of all threads.
    pub fn link_drop(&self, reason: LinkDrop) -> u64 {
        self.sum(|worker| worker.link_drops.get(reason)) + self.transport.drops.get(reason)
    }

    /// Name and count of every reason that occurred: link reasons first, then the engine's.
    pub fn drops(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let link = LinkDrop::ALL.iter().map(|&reason| (reason.name(), self.link_drop(reason)));
        let engine = DropReason::ALL.iter().map(|&reason| (reason.name(), self.engine_drop(reason)));
        link.chain(engine).filter(|&(_, count)| count > 0)
    }
}

impl Default for FaceCounters {
    fn default() -> Self {
        FaceCounters::new(&Arc::default(), 1)
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

    #[test]
    fn drops_are_listed_by_name_from_all_threads_and_the_engines() {
        let counters = FaceCounters::new(&Arc::default(), 2);
        counters.worker(0).link_drops.add(LinkDrop::NoBuffer, 1);
        counters.worker(1).link_drops.add(LinkDrop::NoBuffer, 1);
        counters.count_transport_drop(LinkDrop::NoBuffer);
        let dead_nonce = DropReason::DeadNonce.index() as u8;
        counters.worker(0).engine_drops.set(dead_nonce, 4);
        counters.worker(1).engine_drops.set(dead_nonce, 1);
        counters.worker(1).engine_drops.set(255, 7);
        let listed: Vec<_> = counters.drops().collect();
        assert_eq!(listed, [("no-buffer", 3), ("dead-nonce", 5)]);
        assert_eq!(counters.engine_drop(DropReason::DeadNonce), 5);
        assert_eq!(counters.worker(1).engine_drops.get(255), 0);
    }

    #[test]
    fn totals_outlive_the_face() {
        let totals = Arc::default();
        let counters = [FaceCounters::new(&totals, 1), FaceCounters::new(&totals, 1)];
        counters[0].worker(0).link_drops.add(LinkDrop::NoBuffer, 2);
        counters[1].count_transport_drop(LinkDrop::NoBuffer);
        drop(counters);
        assert_eq!(totals.get(LinkDrop::NoBuffer), 3);
    }

    #[test]
    fn packets_are_counted_by_kind() {
        let direction = DirectionCounters::default();
        direction.count_packet(PacketKind::Nack, 13);
        direction.count_packet(PacketKind::Nack, 7);
        direction.count_frame(40);
        assert_eq!(direction.nacks.packets.get(), 2);
        assert_eq!(direction.kind(PacketKind::Nack).bytes.get(), 20);
        assert_eq!((direction.frames.get(), direction.bytes.get()), (1, 40));
        assert_eq!(direction.data.packets.get(), 0);
    }
}
