//! What a consumer counts.

use hdrhistogram::Histogram;

use crate::rtt_histogram::rtt_histogram;

/// What a consumer counted while it was measuring.
#[derive(Clone, Debug)]
pub struct ConsumerCounts {
    /// Interests sent.
    pub interests: u64,
    /// Interests answered by Data.
    pub exchanges: u64,
    /// Interests without an answer within their lifetime.
    pub timeouts: u64,
    /// Interests answered by a Nack.
    pub nacks: u64,
    /// Of these, with reason Congestion.
    pub nacks_congestion: u64,
    /// With reason Duplicate.
    pub nacks_duplicate: u64,
    /// With reason NoRoute.
    pub nacks_no_route: u64,
    /// Interests that had no answer yet when the consumer ended.
    pub unanswered: u64,
    /// Answers to Interests that were answered already.
    pub duplicates: u64,
    /// Answers to Interests that had timed out.
    pub late: u64,
    /// Answers to what was not asked for, or so long ago that it is forgotten.
    pub unsolicited: u64,
    /// Data with a CongestionMark.
    pub marked: u64,
    /// Interests that were not sent because their name, or the one in its place in the consumer's memory, was pending already.
    pub held_back: u64,
    /// Interests that were due by the clock and not sent: too many were in flight, or the generator was too slow.
    pub not_sent: u64,
    /// Frames that it did not understand, measuring or not.
    pub malformed: u64,
    /// Bytes of frames with Data that answered Interests.
    pub bytes: u64,
    /// Round-trip times in nanoseconds, to a thousandth of each.
    pub rtt_ns: Histogram<u64>,
}

impl ConsumerCounts {
    pub(super) fn new() -> Self {
        Self::with(rtt_histogram())
    }

    /// What was counted so far; counting begins again.
    pub(super) fn take(&mut self) -> Self {
        // One with the same bounds and nothing in it.
        let rtt_ns = Histogram::new_from(&self.rtt_ns);
        std::mem::replace(self, Self::with(rtt_ns))
    }

    fn with(rtt_ns: Histogram<u64>) -> Self {
        Self {
            interests: 0,
            exchanges: 0,
            timeouts: 0,
            nacks: 0,
            nacks_congestion: 0,
            nacks_duplicate: 0,
            nacks_no_route: 0,
            unanswered: 0,
            duplicates: 0,
            late: 0,
            unsolicited: 0,
            marked: 0,
            held_back: 0,
            not_sent: 0,
            malformed: 0,
            bytes: 0,
            rtt_ns,
        }
    }

    /// Answers that were not waited for.
    pub fn unexpected(&self) -> u64 {
        self.duplicates + self.late + self.unsolicited
    }
}
