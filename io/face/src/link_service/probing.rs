//! Sends and answers the probes of path MTU discovery (`path_mtu`) on one face, as PathMtuProbe fields of NDNLPv2.
//!
//! The home worker of a face over UDP or VXLAN to another host probes. Every worker answers probes, on any
//! point-to-point face. Nothing is allocated before the first large frame or probe.

use namehop_packet::{BufferPool, LinkType, PacketBuffer, Timestamp};
use namehop_wire::lp::{KnowsPitTokens, PathMtuProbe};

use super::LinkService;
use super::path_mtu::{PathMtuSearch, Step};
use crate::registry::{Face, FacePersistency};

/// Maximum number of probes answered in a second. A search sends fewer.
const ANSWERS_PER_SECOND: u32 = 32;
const SECOND_MS: u64 = 1_000;

/// The state of path MTU discovery in one link service.
#[derive(Debug)]
pub(super) struct PathProbing {
    search: PathMtuSearch,
    /// Number of the path that `search` is about; see [`PathMtu::path`](crate::registry::PathMtu::path).
    path: u32,
    /// This worker has sent a large frame, or something about the face has changed.
    is_due: bool,
    /// Number of the probe to answer.
    owed: Option<u32>,
    /// Answers in the second that ends at `second_ends`.
    answers: u32,
    second_ends: Timestamp,
}

impl PathProbing {
    fn new(face: &Face, base_bytes: u16) -> Box<Self> {
        Box::new(PathProbing {
            search: PathMtuSearch::new(base_bytes),
            path: face.path_mtu.path(),
            is_due: false,
            owed: None,
            answers: 0,
            second_ends: Timestamp::default(),
        })
    }

    pub(super) fn deadline(&self) -> Timestamp {
        if self.is_due || self.owed.is_some() { Timestamp::default() } else { self.search.deadline() }
    }

    /// Queues the answer to a probe, unless there were too many in this second.
    fn owe_answer(&mut self, now: Timestamp, number: u32) {
        if now >= self.second_ends {
            (self.answers, self.second_ends) = (0, now.plus_ms(SECOND_MS));
        }
        if self.answers < ANSWERS_PER_SECOND {
            self.answers += 1;
            self.owed = Some(number);
        }
    }
}

impl LinkService {
    fn probing(&mut self) -> &mut PathProbing {
        self.probing.get_or_insert_with(|| PathProbing::new(&self.face, self.large_above_bytes))
    }

    /// Notes that a large frame is sent, or a packet that needs one. If the home worker does not look by itself, the
    /// next [`LinkService::tick`] tells it.
    #[cold]
    pub(super) fn note_large_frame(&mut self) {
        if self.face.path_mtu.note_large() {
            self.probing().is_due = true;
        }
    }

    /// Looks at the face again after something about it has changed. Only the home worker does.
    pub(super) fn renew_probing(&mut self) {
        if self.large_above_bytes != u16::MAX && (self.probing.is_some() || self.face.path_mtu.has_large()) {
            self.probing().is_due = true;
        }
    }

    /// Notes that the peer is a Namehop, so that it answers probes.
    pub(super) fn note_namehop(&mut self) {
        if self.face.pit_tokens.note_namehop()
            && let Some(probing) = &mut self.probing
        {
            probing.search.note_namehop(&self.face.path_mtu);
        }
    }

    /// Handles a PathMtuProbe field; ignored on faces with several peers.
    #[cold]
    pub(super) fn receive_path_probe(&mut self, now: Timestamp, field: PathMtuProbe) {
        match field {
            PathMtuProbe::Probe(number) if self.face.link_type() == LinkType::PointToPoint => {
                self.probing().owe_answer(now, number);
            }
            PathMtuProbe::Probe(_) => {}
            PathMtuProbe::Answer(number) => {
                if let Some(probing) = &mut self.probing {
                    probing.search.note_answer(number);
                }
            }
        }
    }

    /// Answers a probe of the peer and sends the probes that are due. Returns whether the other threads must look at
    /// the face again, because its MTU has changed or its home worker is to probe.
    pub(super) fn probe_path(&mut self, now: Timestamp, pool: &BufferPool, frames: &mut Vec<PacketBuffer>) -> bool {
        let Some(probing) = self.probing.as_deref_mut() else { return false };
        let (is_due, owed) = (std::mem::take(&mut probing.is_due), probing.owed.take());
        if let Some(number) = owed {
            self.face.pit_tokens.count_answer();
            self.send_field(&PathMtuProbe::answer(number), pool, frames);
        }
        if !self.is_home() {
            return is_due;
        }
        let mut has_changed = self.follow_path();
        while let Some(step) = self.next_probing_step(now) {
            match step {
                Step::Ask if self.face.persistency() == FacePersistency::OnDemand => {}
                Step::Ask if !self.face.pit_tokens.take_namehop_question(now) => {}
                Step::Ask => self.send_field(&KnowsPitTokens::Asks.frame(), pool, frames),
                Step::Probe { bytes, number } => self.send_path_probe(bytes, number, pool, frames),
                Step::Limit(bytes) => has_changed |= self.limit_path(bytes),
            }
        }
        has_changed
    }

    /// Begins a new search if the face has another path. Returns whether it has: then no limit is known.
    fn follow_path(&mut self) -> bool {
        let path = self.face.path_mtu.path();
        let Some(probing) = self.probing.as_deref_mut().filter(|probing| probing.path != path) else { return false };
        (probing.search, probing.path) = (PathMtuSearch::new(self.large_above_bytes), path);
        true
    }

    fn next_probing_step(&mut self, now: Timestamp) -> Option<Step> {
        let face = &self.face;
        let max_bytes = face.max_mtu_bytes() as u16;
        let search = &mut self.probing.as_deref_mut()?.search;
        search.advance(now, max_bytes, face.pit_tokens.is_namehop(), &face.path_mtu)
    }

    /// Sets the found path MTU; returns whether it has changed.
    fn limit_path(&self, bytes: u16) -> bool {
        self.probing.as_deref().is_some_and(|probing| self.face.path_mtu.set(probing.path, bytes))
    }

    fn send_path_probe(&self, bytes: u16, number: u32, pool: &BufferPool, frames: &mut Vec<PacketBuffer>) {
        // Without a buffer the probe counts as lost, and is sent again.
        let Some(mut frame) = pool.allocate(bytes.into()) else { return };
        let Some(room) = frame.append(bytes.into()) else { return };
        PathMtuProbe::write_probe(number, room);
        self.counters.sent.count_frame(bytes.into());
        frames.push(frame);
    }
}
