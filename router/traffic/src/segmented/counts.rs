//! Counters of a fetch, and contradictions of FinalBlockIds.

use namehop_wire::lp::NackReason;
use serde::Serialize;

/// Outcomes of the segment Interests of a fetch; discovery Interests are not counted.
///
/// Every Interest is counted in exactly one of `data`, `overtaken`, `timeouts`, `nacks` and
/// [`unneeded`](Self::unneeded).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FetchCounts {
    /// Interests for segments.
    pub interests: u64,
    /// Interests answered by Data.
    pub data: u64,
    /// Interests abandoned before their time-out: the answer was late and several later Interests had been answered.
    pub overtaken: u64,
    /// Interests without an answer within the retransmission time-out.
    pub timeouts: u64,
    /// Interests answered by a Nack.
    pub nacks: u64,
    /// Nacks with reason Congestion.
    pub nacks_congestion: u64,
    /// Nacks with reason Duplicate.
    pub nacks_duplicate: u64,
    /// Nacks with reason NoRoute.
    pub nacks_no_route: u64,
    /// Interests for segments that had been requested before.
    pub retransmissions: u64,
    /// Data with a CongestionMark; also counted in `data`.
    pub congestion_marks: u64,
    /// Data of segments that had already arrived or are beyond the object's end.
    pub duplicates: u64,
}

impl FetchCounts {
    pub(super) fn count_nack(&mut self, reason: NackReason) {
        self.nacks += 1;
        match reason {
            NackReason::CONGESTION => self.nacks_congestion += 1,
            NackReason::DUPLICATE => self.nacks_duplicate += 1,
            NackReason::NO_ROUTE => self.nacks_no_route += 1,
            _ => {}
        }
    }

    /// Returns the number of unanswered Interests that were not needed: the fetch ended, or their segments are beyond
    /// the object's end, which was unknown when they were sent.
    pub fn unneeded(&self) -> u64 {
        self.interests.saturating_sub(self.data + self.overtaken + self.timeouts + self.nacks)
    }

    /// Returns the sum of both.
    pub fn plus(self, other: Self) -> Self {
        Self {
            interests: self.interests + other.interests,
            data: self.data + other.data,
            overtaken: self.overtaken + other.overtaken,
            timeouts: self.timeouts + other.timeouts,
            nacks: self.nacks + other.nacks,
            nacks_congestion: self.nacks_congestion + other.nacks_congestion,
            nacks_duplicate: self.nacks_duplicate + other.nacks_duplicate,
            nacks_no_route: self.nacks_no_route + other.nacks_no_route,
            retransmissions: self.retransmissions + other.retransmissions,
            congestion_marks: self.congestion_marks + other.congestion_marks,
            duplicates: self.duplicates + other.duplicates,
        }
    }
}

/// Data contradict each other about the last segment, so the fetcher cannot tell whether the object is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndError {
    /// FinalBlockId differs from that of earlier segments.
    #[error(
        "segment {segment} names segment {said} as the last, but earlier segments named {was}: the producer changed \
         the object without a new version"
    )]
    Changed {
        /// Segment with this FinalBlockId.
        segment: u64,
        /// Last segment according to this FinalBlockId.
        said: u64,
        /// Last segment according to earlier FinalBlockIds.
        was: u64,
    },
    /// FinalBlockId names a segment before one that exists.
    #[error("segment {segment} names segment {said} as the last, but segment {highest} exists")]
    Passed {
        /// Segment with this FinalBlockId.
        segment: u64,
        /// Last segment according to this FinalBlockId.
        said: u64,
        /// A later segment that has arrived.
        highest: u64,
    },
}
