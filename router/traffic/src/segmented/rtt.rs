//! Round-trip time estimation and retransmission time-out, after RFC 6298.
//!
//! The forwarding engine has its own estimator. This crate works with any forwarder and does not depend on the engine.
//! A fetcher also needs more: bounds set by the user, back-off per packet, and detection of late packets.

use std::time::Duration;

/// G of RFC 6298: scheduling alone varies times by this much.
const CLOCK_GRANULARITY: Duration = Duration::from_millis(1);

/// Maximum number of doublings of one packet's time-out.
const MAX_DOUBLINGS: u32 = 4;

/// Bounds of the retransmission time-out.
#[derive(Clone, Copy, Debug)]
pub struct RtoBounds {
    /// Time-out before the first sample (RFC 6298 section 2.1).
    pub initial: Duration,
    /// Lower bound; keeps scheduling jitter from causing spurious retransmissions. RFC 6298 section 2.4 recommends one
    /// second, because clocks were coarse; operating systems use 200 ms, which is the default here.
    pub min: Duration,
    /// Upper bound, including back-off.
    pub max: Duration,
}

impl Default for RtoBounds {
    fn default() -> Self {
        Self { initial: Duration::from_secs(1), min: Duration::from_millis(200), max: Duration::from_secs(20) }
    }
}

/// Smoothed round-trip time, its variation, and the retransmission time-out computed from them.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    bounds: RtoBounds,
    smoothed: Option<Duration>,
    variation: Duration,
    rto: Duration,
    /// The time-out without back-off.
    computed: Duration,
    min: Duration,
    max: Duration,
    sum: Duration,
    samples: u64,
}

impl RttEstimator {
    /// Creates an estimator without samples.
    pub fn new(bounds: RtoBounds) -> Self {
        Self {
            bounds,
            smoothed: None,
            variation: Duration::ZERO,
            rto: bounds.initial,
            computed: bounds.initial,
            min: Duration::MAX,
            max: Duration::ZERO,
            sum: Duration::ZERO,
            samples: 0,
        }
    }

    /// Adds a sample. Samples of retransmitted packets are not allowed (Karn's algorithm, RFC 6298 section 3).
    pub fn sample(&mut self, rtt: Duration) {
        match self.smoothed {
            None => {
                self.smoothed = Some(rtt);
                self.variation = rtt / 2;
            }
            Some(smoothed) => {
                // RFC 6298 section 2.3: alpha = 1/8, beta = 1/4, the variation first.
                self.variation = (self.variation * 3 + smoothed.abs_diff(rtt)) / 4;
                self.smoothed = Some((smoothed * 7 + rtt) / 8);
            }
        }
        let smoothed = self.smoothed.unwrap_or(rtt);
        self.computed = (smoothed + self.variation * 4).clamp(self.bounds.min, self.bounds.max);
        self.rto = self.computed;
        self.min = self.min.min(rtt);
        self.max = self.max.max(rtt);
        self.sum += rtt;
        self.samples += 1;
    }

    /// Doubles the time-out after it expired (RFC 6298 section 5.5).
    pub fn back_off(&mut self) {
        self.rto = (self.rto * 2).min(self.bounds.max);
    }

    /// Returns the current retransmission time-out.
    pub fn rto(&self) -> Duration {
        self.rto
    }

    /// Returns the time-out of the next transmission of a packet that was retransmitted `retransmissions` times; it
    /// doubles each time. Samples of other packets end the back-off of [`rto`](Self::rto), but not that of a packet
    /// which does not arrive while others do.
    pub fn rto_after(&self, retransmissions: u32) -> Duration {
        let doubled = self.computed * (1 << retransmissions.min(MAX_DOUBLINGS));
        self.rto.max(doubled.min(self.bounds.max))
    }

    /// Returns the time after which a packet is unusually late: the time-out without its lower bound. `None` before the
    /// first sample.
    pub fn late_after(&self) -> Option<Duration> {
        self.smoothed.map(|smoothed| smoothed + (self.variation * 4).max(CLOCK_GRANULARITY))
    }

    /// Returns the smoothed round-trip time; `None` before the first sample.
    pub fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }

    /// Returns the smallest sample; `None` before the first.
    pub fn min(&self) -> Option<Duration> {
        (self.samples > 0).then_some(self.min)
    }

    /// Returns the largest sample; `None` before the first.
    pub fn max(&self) -> Option<Duration> {
        (self.samples > 0).then_some(self.max)
    }

    /// Returns the mean of the samples; `None` before the first.
    pub fn mean(&self) -> Option<Duration> {
        (self.samples > 0).then(|| self.sum.div_f64(self.samples as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn first_and_second_sample_follow_the_rfc() {
        let bounds = RtoBounds { initial: MS * 1000, min: MS, max: MS * 60_000 };
        let mut rtt = RttEstimator::new(bounds);
        assert_eq!(rtt.rto(), MS * 1000);
        rtt.sample(MS * 100);
        assert_eq!(rtt.rto(), MS * 300); // R + 4 * R/2
        rtt.sample(MS * 180);
        // RTTVAR = 3/4*50 + 1/4*80 = 57.5; SRTT = 7/8*100 + 1/8*180 = 110
        assert_eq!(rtt.smoothed(), Some(MS * 110));
        assert_eq!(rtt.rto(), Duration::from_micros(110_000 + 4 * 57_500));
        assert_eq!((rtt.min(), rtt.mean(), rtt.max()), (Some(MS * 100), Some(MS * 140), Some(MS * 180)));
    }

    #[test]
    fn bounds_and_back_off_hold() {
        let mut rtt = RttEstimator::new(RtoBounds { initial: MS * 500, min: MS * 200, max: MS * 900 });
        rtt.back_off();
        assert_eq!(rtt.rto(), MS * 900);
        rtt.sample(MS);
        assert_eq!(rtt.rto(), MS * 200);
        rtt.back_off();
        assert_eq!(rtt.rto(), MS * 400);
        assert_eq!(
            [0, 1, 2, 3, u32::MAX].map(|after| rtt.rto_after(after)),
            [400, 400, 800, 900, 900].map(|ms| MS * ms)
        );
        rtt.sample(MS);
        assert_eq!((rtt.rto(), rtt.rto_after(0), rtt.rto_after(2)), (MS * 200, MS * 200, MS * 800));
    }
}
