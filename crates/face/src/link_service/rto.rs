//! Retransmission time-out of link reliability: that of measured round-trip times (RFC 6298, as strategies measure them),
//! doubled when frames are lost.

use namehop_packet::rtt::RttEstimator;

pub use namehop_packet::rtt::{INITIAL_RTO_NS, MAX_RTO_NS, MIN_RTO_NS};

/// Round-trip times of a link and its present time-out.
#[derive(Debug)]
pub struct RtoEstimator {
    rtt: RttEstimator,
    rto_ns: u64,
}

impl Default for RtoEstimator {
    fn default() -> Self {
        RtoEstimator { rtt: RttEstimator::NEW, rto_ns: INITIAL_RTO_NS }
    }
}

impl RtoEstimator {
    /// Takes in the round-trip time of a frame that was sent once only.
    pub fn add_sample(&mut self, rtt_ns: u64) {
        self.rtt.add_sample(rtt_ns);
        self.rto_ns = self.rtt.rto_ns();
    }

    /// Doubles the time-out until the next sample. Retransmitted frames give no sample, so without this a link slower
    /// than the present time-out would never be measured.
    pub fn back_off(&mut self) {
        self.rto_ns = (2 * self.rto_ns).min(MAX_RTO_NS);
    }

    /// The present time-out.
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
    fn backing_off_doubles_up_to_the_maximum_and_a_sample_ends_it() {
        let mut rto = RtoEstimator::default();
        rto.back_off();
        assert_eq!(rto.rto_ns(), 2000 * MS);
        for _ in 0..10 {
            rto.back_off();
        }
        assert_eq!(rto.rto_ns(), MAX_RTO_NS);
        rto.add_sample(10 * MS);
        assert_eq!(rto.rto_ns(), MIN_RTO_NS);
    }
}
