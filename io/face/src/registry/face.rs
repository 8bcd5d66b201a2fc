//! A face as shared by all threads: fixed remote address and kind, changeable properties, counters.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use namehop_packet::{FaceId, FaceInfo, FaceScope, LinkType};
use namehop_wire::MAX_PACKET_SIZE;

use super::link_options::LinkOptions;
use super::params::{FaceFlags, FaceParams, FacePersistency, FaceUpdate, MIN_MTU_BYTES, RejectedProperties};
use super::path_mtu::PathMtu;
use super::pit_tokens::{PitTokenMode, PitTokens};
use super::probe_interests::{INTEREST_LEN, ProbeInterests};
use crate::counters::{FaceCounters, LinkDropTotals};
use crate::uri::FaceUri;

const NO_EXPIRATION: u64 = u64::MAX;
/// Not a hardware address, because those have 48 bits.
const NO_NEXT_HOP: u64 = u64::MAX;

/// A face, shared by all threads.
#[derive(Debug)]
pub struct Face {
    id: FaceId,
    remote_uri: FaceUri,
    /// [`FaceUri::Null`] while it is unknown.
    local_uri: RwLock<Arc<FaceUri>>,
    scope: FaceScope,
    link_type: LinkType,
    home_worker: usize,
    allowed_persistencies: &'static [FacePersistency],
    is_datagram: bool,
    created: Instant,
    persistency: AtomicU8,
    is_up: AtomicBool,
    self_learning: bool,
    idle_timeout: Option<Duration>,
    flags: AtomicU64,
    link_mtu_bytes: AtomicU32,
    /// Frames larger than this are large; `None` if the path MTU is not discovered.
    base_mtu_bytes: Option<u16>,
    /// As management has set it; [`u32::MAX`] if it has set none.
    mtu_override_bytes: AtomicU32,
    /// The MTU that probes have found.
    pub(crate) path_mtu: PathMtu,
    base_congestion_marking_interval_ns: AtomicU64,
    default_congestion_threshold_bytes: AtomicU64,
    /// Milliseconds after `created`.
    expires_at_ms: AtomicU64,
    /// Hardware address of the next hop of an Internet face on a port; [`NO_NEXT_HOP`] while it is unknown.
    next_hop: AtomicU64,
    /// Whether Interests carry this router's PIT token.
    pub(crate) pit_tokens: PitTokens,
    /// Interests that ask whether the peer can be reached.
    pub(crate) probe_interests: ProbeInterests,
    /// Bytes queued for sending on the link, updated by the thread that serves the link.
    pub send_queue_bytes: AtomicUsize,
    /// Counters.
    pub counters: FaceCounters,
}

impl Face {
    pub(super) fn new(id: FaceId, params: FaceParams, workers: usize, totals: &Arc<LinkDropTotals>) -> Face {
        let is_point_to_point = params.link_type == LinkType::PointToPoint;
        let flags = if is_point_to_point { params.flags } else { params.flags.without(FaceFlags::PIT_TOKENS) };
        let face = Face {
            id,
            scope: params.scope,
            link_type: params.link_type,
            home_worker: params.home_worker.unwrap_or(id.slot()) % workers.max(1),
            allowed_persistencies: params.allowed_persistencies,
            is_datagram: params.is_datagram,
            created: Instant::now(),
            persistency: AtomicU8::new(params.persistency as u8),
            is_up: AtomicBool::new(params.is_up),
            self_learning: params.self_learning,
            idle_timeout: params.idle_timeout,
            flags: AtomicU64::new(flags.0),
            pit_tokens: PitTokens::new(params.link_type, PitTokenMode::of(flags).unwrap_or_default()),
            probe_interests: ProbeInterests::default(),
            link_mtu_bytes: AtomicU32::new(clamp_mtu(params.link_mtu_bytes)),
            base_mtu_bytes: base_mtu_bytes(&params),
            mtu_override_bytes: AtomicU32::new(u32::MAX),
            path_mtu: PathMtu::default(),
            base_congestion_marking_interval_ns: AtomicU64::new(params.base_congestion_marking_interval_ns),
            default_congestion_threshold_bytes: AtomicU64::new(params.default_congestion_threshold_bytes),
            expires_at_ms: AtomicU64::new(NO_EXPIRATION),
            next_hop: AtomicU64::new(NO_NEXT_HOP),
            send_queue_bytes: AtomicUsize::new(0),
            counters: FaceCounters::new(totals, workers),
            remote_uri: params.remote_uri,
            local_uri: RwLock::new(Arc::new(params.local_uri)),
        };
        face.begin_persistency(params.persistency);
        face
    }

    /// Sets the persistency, and the expiration: only on-demand faces expire.
    fn begin_persistency(&self, persistency: FacePersistency) {
        self.persistency.store(persistency as u8, Ordering::Relaxed);
        let idle = self.idle_timeout.filter(|_| persistency == FacePersistency::OnDemand);
        // Idle checks come once per time-out, so a face may live until the second one.
        self.set_expiration(idle.and_then(|idle| Instant::now().checked_add(idle.saturating_mul(2))));
    }

    /// Returns the face id.
    pub fn id(&self) -> FaceId {
        self.id
    }

    /// Returns the address of the peer.
    pub fn remote_uri(&self) -> &FaceUri {
        &self.remote_uri
    }

    /// Returns the present address of this end. It changes with each connection, and with the addresses of this host.
    /// [`FaceUri::Null`] while the face has none.
    pub fn local_uri(&self) -> Arc<FaceUri> {
        Arc::clone(&self.local_uri.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sets the address of this end. Its path to the peer may have another MTU.
    pub fn set_local_uri(&self, uri: FaceUri) {
        *self.local_uri.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(uri);
        self.path_mtu.forget();
    }

    /// Returns whether the peer is on this host.
    pub fn scope(&self) -> FaceScope {
        self.scope
    }

    /// Returns how many peers the face reaches.
    pub fn link_type(&self) -> LinkType {
        self.link_type
    }

    /// Returns the number of the worker that has the state of the link: partial packets, unacknowledged frames, and on
    /// a port the port itself. Faces over sockets are distributed over all workers.
    pub fn home_worker(&self) -> usize {
        self.home_worker
    }

    /// Sets the hardware address of the next hop of an Internet face on a port; `None` if it is unknown. The home
    /// worker resolves it, and other workers that send on the port read it.
    pub fn set_next_hop(&self, address: Option<[u8; 6]>) {
        let number = address.map_or(NO_NEXT_HOP, |[a, b, c, d, e, f]| u64::from_be_bytes([0, 0, a, b, c, d, e, f]));
        self.next_hop.store(number, Ordering::Relaxed);
    }

    /// Returns the hardware address of the next hop, if it is known.
    #[inline]
    pub fn next_hop(&self) -> Option<[u8; 6]> {
        let number = self.next_hop.load(Ordering::Relaxed);
        let [_, _, address @ ..] = number.to_be_bytes();
        (number != NO_NEXT_HOP).then_some(address)
    }

    /// Whether the link keeps packet borders and packets may be fragmented.
    pub fn is_datagram(&self) -> bool {
        self.is_datagram
    }

    /// Whether the peer is unsolicited and on another host. A command can change that.
    pub fn is_unsolicited(&self) -> bool {
        self.scope == FaceScope::NonLocal && self.persistency() == FacePersistency::OnDemand
    }

    /// Returns what happens when the link fails.
    pub fn persistency(&self) -> FacePersistency {
        const ON_DEMAND: u8 = FacePersistency::OnDemand as u8;
        const PERMANENT: u8 = FacePersistency::Permanent as u8;
        match self.persistency.load(Ordering::Relaxed) {
            ON_DEMAND => FacePersistency::OnDemand,
            PERMANENT => FacePersistency::Permanent,
            _ => FacePersistency::Persistent,
        }
    }

    /// Returns the present flags.
    pub fn flags(&self) -> FaceFlags {
        FaceFlags(self.flags.load(Ordering::Relaxed))
    }

    /// Whether the link works.
    pub fn is_up(&self) -> bool {
        self.is_up.load(Ordering::Relaxed)
    }

    /// Sets whether the link works; returns the previous state. A change clears what the peer has shown about itself,
    /// because the next peer may be another program.
    pub fn set_up(&self, is_up: bool) -> bool {
        let was_up = self.is_up.swap(is_up, Ordering::Relaxed);
        if was_up != is_up {
            self.pit_tokens.forget_peer();
            self.path_mtu.forget();
        }
        was_up
    }

    /// Requests that the peer is asked whether it can be reached; this happens when the link options are next applied.
    pub fn want_question(&self) {
        self.pit_tokens.want_question();
    }

    /// Returns the Interest that asks the peer besides the question whether it knows PIT tokens; `None` for a Namehop,
    /// which answers that question.
    pub(crate) fn next_probe_interest(&self) -> Option<[u8; INTEREST_LEN]> {
        (!self.pit_tokens.is_namehop()).then(|| self.probe_interests.next())
    }

    /// Returns and clears whether the peer has answered such a question or Interest.
    pub fn take_answered(&self) -> bool {
        self.pit_tokens.take_answered()
    }

    /// Returns how many such questions of the peer were answered.
    pub fn answers_sent(&self) -> u64 {
        self.pit_tokens.answers()
    }

    /// Returns the largest frame to send, in bytes: the MTU of the link, or less if management has set less or if the
    /// path is known to carry less.
    pub fn mtu_bytes(&self) -> usize {
        self.max_mtu_bytes().min(self.path_mtu.bytes() as usize)
    }

    /// Returns the largest frame that link and management allow, in bytes, not limited by what is known about the path.
    pub fn max_mtu_bytes(&self) -> usize {
        let link = self.link_mtu_bytes.load(Ordering::Relaxed);
        link.min(self.mtu_override_bytes.load(Ordering::Relaxed)) as usize
    }

    /// Returns the largest frame that every path to the peer carries, in bytes; `None` if the path MTU is not
    /// discovered.
    pub(crate) fn base_mtu_bytes(&self) -> Option<u16> {
        self.base_mtu_bytes
    }

    /// Returns the MTU in bytes that management has set; `None` if it has set none.
    pub fn requested_mtu_bytes(&self) -> Option<u64> {
        let bytes = self.mtu_override_bytes.load(Ordering::Relaxed);
        (bytes != u32::MAX).then_some(bytes.into())
    }

    /// Sets the MTU of the link; returns whether it has changed. A change clears what is known about the path, which
    /// may be another one.
    pub fn set_link_mtu_bytes(&self, mtu_bytes: usize) -> bool {
        let mtu = clamp_mtu(mtu_bytes);
        let has_changed = self.link_mtu_bytes.swap(mtu, Ordering::Relaxed) != mtu;
        if has_changed {
            self.path_mtu.forget();
        }
        has_changed
    }

    /// Returns the time that the queue must be above the threshold before packets are marked, in nanoseconds.
    pub fn base_congestion_marking_interval_ns(&self) -> u64 {
        self.base_congestion_marking_interval_ns.load(Ordering::Relaxed)
    }

    /// Returns the send-queue length above which congestion begins, in bytes.
    pub fn default_congestion_threshold_bytes(&self) -> u64 {
        self.default_congestion_threshold_bytes.load(Ordering::Relaxed)
    }

    /// Whether the headers of self-learning are honoured.
    pub fn self_learning(&self) -> bool {
        self.self_learning
    }

    /// Sets or clears the time at which the face is closed unless it is used before.
    pub fn set_expiration(&self, at: Option<Instant>) {
        let expires_at_ms = match at {
            None => NO_EXPIRATION,
            Some(at) => milliseconds(at.saturating_duration_since(self.created)),
        };
        self.expires_at_ms.store(expires_at_ms, Ordering::Relaxed);
    }

    /// Returns the milliseconds until the face is closed unless it is used before; `None` if it does not expire.
    pub fn expiration_period_ms(&self) -> Option<u64> {
        match self.expires_at_ms.load(Ordering::Relaxed) {
            NO_EXPIRATION => None,
            at_ms => Some(at_ms.saturating_sub(milliseconds(self.created.elapsed()))),
        }
    }

    /// Whether keep-alives can be sent: over a UDP socket with one peer.
    fn can_keep_alive(&self) -> bool {
        let is_udp = matches!(self.remote_uri, FaceUri::Udp { .. });
        is_udp && self.link_type == LinkType::PointToPoint && self.local_uri().options().is_none()
    }

    /// Returns the flags that a face gets by default with a new persistency: keep-alive, if it is to another host and
    /// becomes permanent.
    fn flags_with(&self, persistency: Option<FacePersistency>) -> FaceFlags {
        let becomes_permanent =
            persistency == Some(FacePersistency::Permanent) && self.persistency() != FacePersistency::Permanent;
        let is_far = || self.remote_uri.socket_address().is_none_or(|remote| !remote.ip().is_loopback());
        if becomes_permanent && self.can_keep_alive() && is_far() {
            FaceFlags::KEEP_ALIVE
        } else {
            FaceFlags::default()
        }
    }

    /// Changes all given properties, or none.
    ///
    /// # Errors
    /// The properties that this face rejects; then nothing is changed.
    pub fn update(&self, update: &FaceUpdate) -> Result<(), RejectedProperties> {
        let flags = self.flags().union(self.flags_with(update.persistency)).changed(update.flags, update.flags_mask);
        let newly_set = FaceFlags(flags.0 & update.flags_mask);
        let pit_tokens = PitTokenMode::of(flags);
        let rejected = RejectedProperties {
            persistency: update.persistency.is_some_and(|wanted| !self.allowed_persistencies.contains(&wanted)),
            flags: (newly_set.contains(FaceFlags::LOCAL_FIELDS) && self.scope != FaceScope::Local)
                || (newly_set.contains(FaceFlags::RELIABILITY) && self.link_type != LinkType::PointToPoint)
                || (newly_set.contains(FaceFlags::KEEP_ALIVE) && !self.can_keep_alive())
                || (newly_set.intersects(FaceFlags::PIT_TOKENS) && self.link_type != LinkType::PointToPoint)
                || pit_tokens.is_none(),
            base_congestion_marking_interval: update.base_congestion_marking_interval_ns == Some(0),
            mtu: update.mtu_bytes.is_some_and(|mtu| mtu < MIN_MTU_BYTES as u64 || !self.is_datagram),
        };
        if rejected != RejectedProperties::default() {
            return Err(rejected);
        }
        if let Some(persistency) = update.persistency.filter(|&wanted| wanted != self.persistency()) {
            self.begin_persistency(persistency);
        }
        self.flags.store(flags.0, Ordering::Relaxed);
        self.pit_tokens.set_mode(pit_tokens.unwrap_or_default());
        if let Some(interval) = update.base_congestion_marking_interval_ns {
            self.base_congestion_marking_interval_ns.store(interval, Ordering::Relaxed);
        }
        if let Some(threshold) = update.default_congestion_threshold_bytes {
            self.default_congestion_threshold_bytes.store(threshold, Ordering::Relaxed);
        }
        if let Some(mtu) = update.mtu_bytes {
            let mtu = u32::try_from(mtu).unwrap_or(u32::MAX);
            self.mtu_override_bytes.store(mtu, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Returns the present properties that the engine needs.
    pub fn to_face_info(&self) -> FaceInfo {
        FaceInfo { id: self.id, scope: self.scope, link_type: self.link_type, is_up: self.is_up() }
    }

    /// Returns the present properties that the link service needs.
    pub fn link_options(&self) -> LinkOptions {
        let flags = self.flags();
        LinkOptions {
            mtu_bytes: self.mtu_bytes() as u16,
            is_datagram: self.is_datagram,
            local_fields: flags.contains(FaceFlags::LOCAL_FIELDS),
            // With several peers, the sender of an acknowledgement would be ambiguous.
            reliability: flags.contains(FaceFlags::RELIABILITY) && self.link_type == LinkType::PointToPoint,
            congestion_marking: flags.contains(FaceFlags::CONGESTION_MARKING),
            self_learning: self.self_learning(),
            base_congestion_marking_interval_ns: self.base_congestion_marking_interval_ns(),
            default_congestion_threshold_bytes: self.default_congestion_threshold_bytes(),
        }
    }
}

const _: () = assert!(MAX_PACKET_SIZE <= u16::MAX as usize, "an MTU fits into LinkOptions");

/// Only datagrams to one peer discover the path MTU.
fn base_mtu_bytes(params: &FaceParams) -> Option<u16> {
    let is_one_peer = params.is_datagram && params.link_type == LinkType::PointToPoint;
    let bytes = params.base_mtu_bytes.filter(|_| is_one_peer)?;
    Some(u16::try_from(bytes).unwrap_or(u16::MAX))
}

fn clamp_mtu(bytes: usize) -> u32 {
    bytes.clamp(MIN_MTU_BYTES, MAX_PACKET_SIZE) as u32
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(NO_EXPIRATION - 1)
}
