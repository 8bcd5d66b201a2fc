//! What a fetch counts, and what Data may say wrongly about the object's end.

use namehop_wire::lp::NackReason;
use serde::Serialize;

/// What became of the Interests of a fetch, those of discovery apart.
///
/// Every Interest is in exactly one of `data`, `overtaken`, `timeouts`, `nacks` and [`unneeded`](Self::unneeded).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FetchCounts {
    /// Interests for segments.
    pub interests: u64,
    /// Interests answered by Data.
    pub data: u64,
    /// Interests given up early: several later ones had been answered, and the answer was late.
    pub overtaken: u64,
    /// Interests without an answer within the retransmission time-out.
    pub timeouts: u64,
    /// Interests answered by a Nack.
    pub nacks: u64,
    /// Of these, with reason Congestion.
    pub nacks_congestion: u64,
    /// With reason Duplicate.
    pub nacks_duplicate: u64,
    /// With reason NoRoute.
    pub nacks_no_route: u64,
    /// Interests for segments that had been asked for before.
    pub retransmissions: u64,
    /// Data with a CongestionMark, which are among `data`.
    pub congestion_marks: u64,
    /// Data of segments that were not wanted any more: they had arrived, or are behind the end.
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

    /// Interests that had no answer and were given up without being missed: the fetch ended, or their segments are behind the
    /// object's end, which was not known when they were sent.
    pub fn unneeded(&self) -> u64 {
        self.interests.saturating_sub(self.data + self.overtaken + self.timeouts + self.nacks)
    }

    /// Both together.
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

/// Data contradict each other about the last segment of an object, so that nobody can tell whether all of it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndError {
    /// FinalBlockId has another value than before.
    #[error(
        "segment {segment} says that segment {said} is the last, but before it was {was}: the producer changes the object \
         under this version"
    )]
    Changed {
        /// Who says so.
        segment: u64,
        /// The last segment, after this.
        said: u64,
        /// The last segment, before.
        was: u64,
    },
    /// FinalBlockId names a segment before one that exists.
    #[error("segment {segment} says that segment {said} is the last, but there is a segment {highest}")]
    Passed {
        /// Who says so.
        segment: u64,
        /// The last segment, after this.
        said: u64,
        /// One that has come.
        highest: u64,
    },
}
