//! Sums of the counters of on-demand faces to other hosts, by scheme.
//!
//! Every datagram from a new address creates such a face. With labels for each face, any peer could make the metrics
//! grow without bound, and Prometheus would keep them long after the faces are destroyed. When a face is destroyed, its
//! counters are added to these sums, so that the sums never decrease.

use std::collections::BTreeMap;

use namehop_face::counters::{DirectionCounters, FaceCounters, WorkerCounters};
use namehop_face::{Face, LinkDrop};
use namehop_packet::DropReason;

/// Sums over destroyed faces, by scheme.
#[derive(Debug, Clone, Default)]
pub struct GoneFaces(BTreeMap<String, FaceSums>);

/// Sums over several faces.
#[derive(Debug, Clone, Default)]
pub(super) struct FaceSums {
    /// Number of existing faces.
    pub(super) faces: u64,
    /// By direction, `in` and `out`.
    pub(super) directions: [DirectionSums; 2],
    pub(super) link_drops: BTreeMap<&'static str, u64>,
    pub(super) engine_drops: BTreeMap<&'static str, u64>,
    pub(super) congestion_marks: u64,
    pub(super) retransmissions: u64,
    pub(super) send_queue_bytes: u64,
}

/// Sums for one direction.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DirectionSums {
    pub(super) interests: u64,
    pub(super) data: u64,
    pub(super) nacks: u64,
    pub(super) bytes: u64,
    pub(super) frames: u64,
}

impl DirectionSums {
    /// Returns the counters of one face. `direction` selects the direction from the counters of a worker.
    pub(super) fn of(counters: &FaceCounters, direction: fn(&WorkerCounters) -> &DirectionCounters) -> Self {
        let mut sums = DirectionSums::default();
        sums.add(counters, direction);
        sums
    }

    fn add(&mut self, counters: &FaceCounters, direction: fn(&WorkerCounters) -> &DirectionCounters) {
        self.interests += counters.sum(|worker| direction(worker).interests.packets.get());
        self.data += counters.sum(|worker| direction(worker).data.packets.get());
        self.nacks += counters.sum(|worker| direction(worker).nacks.packets.get());
        self.bytes += counters.sum(|worker| direction(worker).bytes.get());
        self.frames += counters.sum(|worker| direction(worker).frames.get());
    }
}

impl GoneFaces {
    /// Adds the counters of a destroyed face; must be called for each.
    pub fn add(&mut self, face: &Face) {
        if face.is_unsolicited() {
            self.sums_of(face).add_counters(face);
        }
    }

    /// Returns the sums over the given existing faces and the destroyed ones.
    pub(super) fn with<'a>(&self, faces: impl Iterator<Item = &'a Face>) -> BTreeMap<String, FaceSums> {
        let mut sums = self.clone();
        for face in faces {
            let sum = sums.sums_of(face);
            sum.add_counters(face);
            sum.faces += 1;
            sum.send_queue_bytes += face.send_queue_bytes.load(std::sync::atomic::Ordering::Relaxed) as u64;
        }
        sums.0
    }

    fn sums_of(&mut self, face: &Face) -> &mut FaceSums {
        self.0.entry(face.remote_uri().scheme().to_owned()).or_default()
    }
}

impl FaceSums {
    fn add_counters(&mut self, face: &Face) {
        let counters = &face.counters;
        self.directions[0].add(counters, |worker| &worker.received);
        self.directions[1].add(counters, |worker| &worker.sent);
        for &reason in LinkDrop::ALL {
            add_to(&mut self.link_drops, reason.name(), face.counters.link_drop(reason));
        }
        for &reason in DropReason::ALL {
            add_to(&mut self.engine_drops, reason.name(), counters.engine_drop(reason));
        }
        self.congestion_marks += counters.sum(|worker| worker.congestion_marks.get());
        self.retransmissions += counters.sum(|worker| worker.retransmissions.get());
    }
}

fn add_to(sums: &mut BTreeMap<&'static str, u64>, reason: &'static str, count: u64) {
    if count > 0 {
        *sums.entry(reason).or_default() += count;
    }
}
