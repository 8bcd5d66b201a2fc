//! Retransmission time-out of link reliability: computed from measured round-trip times (RFC 6298, as in strategies),
//! doubled when frames are lost.

use namehop_packet::Timestamp;
use namehop_packet::rtt::RttEstimator;

pub use namehop_packet::rtt::{INITIAL_RTO_NS, MAX_RTO_NS, MIN_RTO_NS};

/// Upper limit of the doubled time-out. An Interest has a lifetime of 4 s by default, so a later retransmission is
/// useless. A packet lost on a broken link should be abandoned while other links can still help.
pub const MAX_BACKED_OFF_NS: u64 = 4_000_000_000;

/// Round-trip times of a link and its present time-out.
#[derive(Debug)]
pub struct RtoEstimator {
    rtt: RttEstimator,
    rto_ns: u64,
    /// When the time-out was last doubled.
    backed_off_at: Timestamp,
}

impl Default for RtoEstimator {
    fn default() -> Self {
        RtoEstimator { rtt: RttEstimator::NEW, rto_ns: INITIAL_RTO_NS, backed_off_at: Timestamp(0) }
    }
}

impl RtoEstimator {
    /// Adds the round-trip time of a frame that was sent only once.
    pub fn add_sample(&mut self, rtt_ns: u64) {
        self.rtt.add_sample(rtt_ns);
        self.rto_ns = self.rtt.rto_ns();
    }

    /// Doubles the time-out until the next sample, because a frame sent at `sent_at` has timed out. Retransmitted
    /// frames give no sample, so without doubling a link slower than the present time-out would never be measured. A
    /// frame sent before the last doubling had a shorter time-out, so its loss says nothing about the present one.
    pub fn timed_out(&mut self, now: Timestamp, sent_at: Timestamp) {
        if sent_at >= self.backed_off_at {
            self.rto_ns = self.rto_ns.max((2 * self.rto_ns).min(MAX_BACKED_OFF_NS));
            self.backed_off_at = now;
        }
    }

    /// Returns the present time-out in nanoseconds.
    pub fn rto_ns(&self) -> u64 {
        self.rto_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn samples_move_the_time_out_within_its_bounds() {
        let mut rto = RtoEstimator::default();
        assert_eq!(rto.rto_ns(), 1000 * MS);
        rto.add_sample(400 * MS);
        // 400 + 4 * 200
        assert_eq!(rto.rto_ns(), 1200 * MS);
        rto.add_sample(400 * MS);
        // the variation falls to 150
        assert_eq!(rto.rto_ns(), 1000 * MS);
        rto.add_sample(800 * MS);
        // smoothed 450, variation (3 * 150 + 400) / 4 = 212.5
        assert_eq!(rto.rto_ns(), 1300 * MS);
        for _ in 0..100 {
            rto.add_sample(MS);
        }
        assert_eq!(rto.rto_ns(), MIN_RTO_NS);
        for _ in 0..100 {
            rto.add_sample(u64::MAX);
        }
        assert_eq!(rto.rto_ns(), MAX_RTO_NS);
    }

    #[test]
    fn time_outs_double_it_up_to_a_bound_and_a_sample_ends_that() {
        let mut rto = RtoEstimator::default();
        rto.timed_out(Timestamp(1000 * MS), Timestamp(0));
        assert_eq!(rto.rto_ns(), 2000 * MS);
        for second in 2..10 {
            rto.timed_out(Timestamp(1000 * second * MS), Timestamp(1000 * second * MS));
        }
        assert_eq!(rto.rto_ns(), MAX_BACKED_OFF_NS);
        rto.add_sample(10 * MS);
        assert_eq!(rto.rto_ns(), MIN_RTO_NS);
        // A larger measured time-out stays unchanged.
        let mut slow = RtoEstimator::default();
        slow.add_sample(10_000 * MS);
        let before = slow.rto_ns();
        slow.timed_out(Timestamp(60_000 * MS), Timestamp(20_000 * MS));
        assert_eq!(slow.rto_ns(), before);
    }

    #[test]
    fn frames_of_one_round_double_it_once() {
        let mut rto = RtoEstimator::default();
        for sent in 0..100 {
            rto.timed_out(Timestamp((1000 + sent) * MS), Timestamp(sent * MS));
        }
        assert_eq!(rto.rto_ns(), 2000 * MS);
        rto.timed_out(Timestamp(3050 * MS), Timestamp(1050 * MS));
        assert_eq!(rto.rto_ns(), 4000 * MS);
    }
}
