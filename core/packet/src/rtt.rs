//! Round-trip time estimation after RFC 6298, in integer nanoseconds.

/// Retransmission time-out before the first sample.
pub const INITIAL_RTO_NS: u64 = 1_000_000_000;
/// Shortest retransmission time-out: long enough for a producer that is slow now and then.
pub const MIN_RTO_NS: u64 = 200_000_000;
/// Longest retransmission time-out.
pub const MAX_RTO_NS: u64 = 60_000_000_000;

/// Smoothed round-trip time and its variation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RttEstimator {
    /// 0 before the first sample.
    srtt_ns: u64,
    rttvar_ns: u64,
}

impl RttEstimator {
    /// An estimator without samples.
    pub const NEW: RttEstimator = RttEstimator { srtt_ns: 0, rttvar_ns: 0 };

    /// Adds one sample. It must not come from a retransmitted Interest, because its Data could answer either
    /// transmission (Karn's rule).
    pub fn add_sample(&mut self, rtt_ns: u64) {
        // 0 means "no sample", so a round trip within one clock reading counts as 1 ns; the upper bound keeps sums
        // small.
        let rtt_ns = rtt_ns.clamp(1, MAX_RTO_NS);
        if self.srtt_ns == 0 {
            self.srtt_ns = rtt_ns;
            self.rttvar_ns = rtt_ns / 2;
        } else {
            self.rttvar_ns = (3 * self.rttvar_ns + self.srtt_ns.abs_diff(rtt_ns)) / 4;
            self.srtt_ns = ((7 * self.srtt_ns + rtt_ns) / 8).max(1);
        }
    }

    /// Smoothed round-trip time; `None` before the first sample.
    pub fn srtt_ns(&self) -> Option<u64> {
        (self.srtt_ns != 0).then_some(self.srtt_ns)
    }

    /// Round-trip time variation; 0 before the first sample.
    pub fn rttvar_ns(&self) -> u64 {
        self.rttvar_ns
    }

    /// Retransmission time-out.
    pub fn rto_ns(&self) -> u64 {
        match self.srtt_ns {
            0 => INITIAL_RTO_NS,
            srtt_ns => (srtt_ns + 4 * self.rttvar_ns).clamp(MIN_RTO_NS, MAX_RTO_NS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn first_sample_and_smoothing_follow_the_rfc() {
        let mut estimator = RttEstimator::NEW;
        assert_eq!(estimator.srtt_ns(), None);
        assert_eq!(estimator.rto_ns(), INITIAL_RTO_NS);
        estimator.add_sample(100 * MS);
        assert_eq!(estimator.srtt_ns(), Some(100 * MS));
        assert_eq!(estimator.rttvar_ns(), 50 * MS);
        assert_eq!(estimator.rto_ns(), 300 * MS);
        estimator.add_sample(180 * MS);
        // RTTVAR = 3/4 * 50 + 1/4 * |100 - 180|, SRTT = 7/8 * 100 + 1/8 * 180.
        assert_eq!(estimator.rttvar_ns(), 57 * MS + MS / 2);
        assert_eq!(estimator.srtt_ns(), Some(110 * MS));
        assert_eq!(estimator.rto_ns(), 340 * MS);
    }

    #[test]
    fn time_out_keeps_within_its_bounds() {
        let mut fast = RttEstimator::NEW;
        fast.add_sample(0);
        assert_eq!(fast.srtt_ns(), Some(1));
        assert_eq!(fast.rto_ns(), MIN_RTO_NS);
        let mut slow = RttEstimator::NEW;
        slow.add_sample(u64::MAX);
        assert_eq!(slow.rto_ns(), MAX_RTO_NS);
    }
}
