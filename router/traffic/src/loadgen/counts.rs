//! Counters of a consumer.

use hdrhistogram::Histogram;

use crate::rtt_histogram::rtt_histogram;

/// Counts of a consumer while it was measuring.
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
    /// Nacks with reason Congestion.
    pub nacks_congestion: u64,
    /// Nacks with reason Duplicate.
    pub nacks_duplicate: u64,
    /// Nacks with reason NoRoute.
    pub nacks_no_route: u64,
    /// Interests still pending when the consumer ended.
    pub unanswered: u64,
    /// Answers to Interests that were already answered.
    pub duplicates: u64,
    /// Answers to Interests that had timed out.
    pub late: u64,
    /// Answers that match no Interest, or one so old that its slot was reused.
    pub unsolicited: u64,
    /// Data with a CongestionMark.
    pub marked: u64,
    /// Interests not sent because their name, or another name with the same slot, was pending.
    pub held_back: u64,
    /// Interests that were due by the clock but not sent: too many were in flight, or the generator was too slow.
    pub not_sent: u64,
    /// Frames that could not be parsed, also counted while not measuring.
    pub malformed: u64,
    /// Bytes of frames with Data that answered Interests.
    pub bytes: u64,
    /// Histogram of round-trip times in nanoseconds, precise to a thousandth.
    pub rtt_ns: Histogram<u64>,
}

impl ConsumerCounts {
    pub(super) fn new() -> Self {
        Self::with(rtt_histogram())
    }

    /// Returns the counts so far and resets them.
    pub(super) fn take(&mut self) -> Self {
        // An empty histogram with the same bounds.
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

    /// Returns the number of unexpected answers.
    pub fn unexpected(&self) -> u64 {
        self.duplicates + self.late + self.unsolicited
    }
}
