//! NDNLPv2 on one face: turns received frames into network-layer packets and packets to send into frames.
//!
//! A [`LinkService`] belongs to one worker and one face. The worker calls [`LinkService::receive`] for each frame,
//! [`LinkService::send`] for each packet, and [`LinkService::tick`] when [`LinkService::next_deadline`] has come. The
//! link service reads no clock, opens no socket and takes no lock. It counts packets, frames and drops on the face's
//! worker counters, so callers do not count them again. Buffers come from the given pool and return to it on drop.
//!
//! Limits, per face:
//!
//! | what | limit |
//! |---|---|
//! | network-layer packet, LpPacket | [`namehop_wire::MAX_PACKET_SIZE`] = 8800 bytes |
//! | fragments of one packet, sent or received | [`MAX_FRAGMENTS`] = 400 |
//! | packets that wait for fragments | [`MAX_PARTIAL_PACKETS`] = 64 buffers; [`REASSEMBLY_TIMEOUT_MS`] = 500 ms |
//! | frames that wait for an acknowledgement | [`MAX_UNACKNOWLEDGED`] = 1024, one buffer each |
//! | retransmissions of a frame | [`MAX_RETRANSMISSIONS`] = 3 |
//! | time-out after losses, unless a longer one was measured | [`MAX_BACKED_OFF_NS`] = 4 s |
//! | acknowledgements that wait to be sent | [`MAX_PENDING_ACKS`] = 1024, for [`IDLE_ACK_MS`] = 5 ms |
//! | received Sequence numbers remembered against duplicates | [`REMEMBERED_SEQUENCES`] = 1024 |
//!
//! The partial packets of all faces are in one [`Reassembler`], which also belongs to the worker. It bounds their
//! number and evicts packets of the faces that hold the most.
//!
//! Memory for reassembly is allocated at first use and kept. Memory for reliability is allocated when reliability is
//! enabled and freed when it is disabled. Memory for path MTU discovery is allocated with the first large frame or
//! probe, and kept. After that nothing is allocated per packet.

mod acks;
mod budget;
mod congestion;
mod fragmenter;
mod path_mtu;
mod pit_tokens;
mod probing;
mod reassembler;
mod receive;
mod reliability;
mod rto;
mod send;
#[cfg(test)]
mod tests;

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use namehop_packet::{BufferPool, FaceId, PacketBuffer, Timestamp};

use crate::counters::WorkerCounters;
use crate::registry::{Face, LinkOptions};
use acks::{PendingAcks, ReceivedSequences};
use probing::PathProbing;
use reliability::SendWindow;

pub use acks::{IDLE_ACK_MS, MAX_PENDING_ACKS, REMEMBERED_SEQUENCES};
pub use congestion::CongestionMarker;
pub use reassembler::{MAX_FRAGMENTS, MAX_PARTIAL_PACKETS, REASSEMBLY_TIMEOUT_MS, Reassembler};
pub use reliability::{LATER_ACKS_OF_LOSS, MAX_RETRANSMISSIONS, MAX_UNACKNOWLEDGED};
pub use rto::{INITIAL_RTO_NS, MAX_BACKED_OFF_NS, MAX_RTO_NS, MIN_RTO_NS};

/// An Interest abandoned by link reliability. The strategy may try another face (NFD: `onDroppedInterest`).
#[derive(Debug)]
pub struct DroppedInterest {
    /// Face on which it was sent.
    pub face: FaceId,
    /// The Interest as it was sent.
    pub buffer: PacketBuffer,
}

/// State of link reliability, in both directions.
#[derive(Debug)]
struct Reliability {
    window: SendWindow,
    acks: PendingAcks,
    received: ReceivedSequences,
}

impl Reliability {
    fn new() -> Box<Self> {
        Box::new(Reliability {
            window: SendWindow::new(),
            acks: PendingAcks::new(),
            received: ReceivedSequences::new(),
        })
    }
}

/// NDNLPv2 for one face; see the module documentation.
#[derive(Debug)]
pub struct LinkService {
    face: Arc<Face>,
    /// This worker's counters of the face.
    counters: Arc<WorkerCounters>,
    options: LinkOptions,
    next_sequence: u64,
    marker: CongestionMarker,
    /// `Some` while reliability is enabled.
    reliability: Option<Box<Reliability>>,
    /// The peer has asked whether this side knows PIT tokens.
    owes_answer: bool,
    /// This side is to ask the peer the same.
    owes_question: bool,
    /// Frames larger than this are noted for path MTU discovery; [`u16::MAX`]: none.
    large_above_bytes: u16,
    /// `Some` after the first large frame or the first probe of the peer.
    probing: Option<Box<PathProbing>>,
}

impl LinkService {
    /// Creates the link service of a face, with its present options. Sequence numbers start at random, so that
    /// fragments sent before and after a restart are not reassembled into one packet.
    ///
    /// Several workers may each have a link service of the same face. Their Sequence numbers are then so far apart that
    /// a peer does not confuse them. But only the face's [home worker](Face::home_worker) does link reliability.
    pub fn new(face: Arc<Face>, worker: usize) -> Self {
        let first_sequence = RandomState::new().hash_one(face.id());
        LinkService::with_first_sequence(face, worker, first_sequence)
    }

    /// Like [`LinkService::new`], with a chosen first Sequence.
    pub fn with_first_sequence(face: Arc<Face>, worker: usize, first_sequence: u64) -> Self {
        let options = face.link_options().of_worker(worker == face.home_worker());
        LinkService {
            counters: Arc::clone(face.counters.worker(worker)),
            large_above_bytes: face.base_mtu_bytes().unwrap_or(u16::MAX),
            face,
            options,
            next_sequence: first_sequence,
            marker: CongestionMarker::default(),
            reliability: options.reliability.then(Reliability::new),
            owes_answer: false,
            owes_question: false,
            probing: None,
        }
    }

    /// Returns the face.
    pub fn face(&self) -> &Arc<Face> {
        &self.face
    }

    /// Returns this worker's counters of the face.
    pub fn counters(&self) -> &WorkerCounters {
        &self.counters
    }

    /// Whether this worker is the face's home worker.
    fn is_home(&self) -> bool {
        Arc::ptr_eq(&self.counters, self.face.counters.worker(self.face.home_worker()))
    }

    /// Applies changed options, and asks the peer about PIT tokens if requested. Disabling reliability drops the frames
    /// that wait for an acknowledgement.
    pub fn update(&mut self, options: LinkOptions) {
        let is_home = self.is_home();
        let options = options.of_worker(is_home);
        self.options = options;
        if is_home {
            self.owes_question |= self.face.pit_tokens.take_wanted_question();
            self.renew_probing();
        }
        if !options.reliability {
            self.reliability = None;
        } else if self.reliability.is_none() {
            self.reliability = Some(Reliability::new());
        }
    }

    /// Performs the due actions: answers whether this side knows PIT tokens, asks the peer, probes the path and answers
    /// probes, retransmits lost frames, and sends acknowledgements that no frame has carried. Frames to send are added
    /// to `frames`, abandoned Interests to `dropped_interests`. Returns whether the face has changed: then every worker
    /// is to [update](LinkService::update) its link service.
    pub fn tick(
        &mut self,
        now: Timestamp,
        pool: &BufferPool,
        frames: &mut Vec<PacketBuffer>,
        dropped_interests: &mut Vec<DroppedInterest>,
    ) -> bool {
        self.ask_and_answer(pool, frames);
        let has_changed = self.probe_path(now, pool, frames);
        let counters = &self.counters;
        let Some(reliability) = self.reliability.as_deref_mut() else {
            return has_changed;
        };
        let id = self.face.id();
        let window = &mut reliability.window;
        window.resend_due(now, id, pool, frames, dropped_interests, counters);
        if reliability.acks.deadline() <= now {
            self.send_idle_acks(now, pool, frames);
        }
        has_changed
    }

    /// Returns when [`LinkService::tick`] is to be called next; [`Timestamp::NEVER`] if nothing waits. Every call of
    /// another method may move it forward, also to a time in the past.
    pub fn next_deadline(&self) -> Timestamp {
        if self.owes_answer || self.owes_question {
            return Timestamp::default();
        }
        let probing = self.probing.as_deref().map_or(Timestamp::NEVER, PathProbing::deadline);
        match &self.reliability {
            None => probing,
            Some(reliability) => reliability.window.next_deadline().min(reliability.acks.deadline()).min(probing),
        }
    }

    /// Returns the number of frames that wait for an acknowledgement.
    #[cfg(test)]
    fn unacknowledged_frames(&self) -> usize {
        let reliability = self.reliability.as_deref();
        reliability.map_or(0, |reliability| reliability.window.waiting())
    }
}
