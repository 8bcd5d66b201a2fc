//! Estimates the state of a path from round-trip times: the base round-trip time, the queueing delay, and the cause of
//! a loss.
//!
//! A queue shows as delay above the base, the smallest round-trip time of the last five to ten seconds. Only a round
//! trip that began while no other packet of this fetch was in flight can raise the base: this fetch did not cause its
//! delay.

use std::time::{Duration, Instant};

/// The base is the smallest round-trip time of the current and the previous period of this length.
const PERIOD: Duration = Duration::from_secs(5);
/// Losses above this share count as congestion, even without delay: the queue may be too short to show as delay.
const MOST_LOSSES: f64 = 0.1;
/// Number of Interests over which the share of losses is measured.
const LOSS_SAMPLES: u32 = 50;

/// Cause of a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// The line loses packets at random.
    BadLine,
    /// The path has a long queue, which may have overflowed. The line may also have lost the packet.
    Queue,
    /// A queue overflowed. The share of losses is too high for a bad line, so the queue may be too short to show as
    /// delay.
    Congestion,
}

/// Measures one path.
#[derive(Clone, Debug, Default)]
pub(super) struct PathWatch {
    /// Smallest round-trip times of the current and the previous period.
    smallest: [Option<Duration>; 2],
    period_began: Option<Instant>,
    /// Round-trip time with a delay that this fetch does not cause; raises the base until the period ends.
    raised: Option<Duration>,
    /// Start of the round. It ends when Data answers an Interest sent after this time.
    round_began: Option<Instant>,
    round_smallest: Option<Duration>,
    /// Smallest round-trip time of the last completed round.
    last_round: Option<Duration>,
    arrived: u32,
    lost: u32,
}

impl PathWatch {
    /// Returns the round-trip time without a queue, once known.
    pub(super) fn base(&self) -> Option<Duration> {
        self.smallest.into_iter().flatten().min().max(self.raised)
    }

    /// Raises the base to `rtt` until the period ends. The round trip must have begun while no other packet of this
    /// fetch was in flight.
    pub(super) fn raise(&mut self, rtt: Duration) {
        self.raised = Some(rtt);
    }

    /// Starts a new round at the next Data.
    pub(super) fn restart_round(&mut self) {
        self.round_began = None;
        self.round_smallest = None;
    }

    /// Starts a new period if the current one has ended, so that an old base expires. Returns true once per period.
    pub(super) fn has_period_ended(&mut self, now: Instant) -> bool {
        let began = *self.period_began.get_or_insert(now);
        let is_over = now.saturating_duration_since(began) >= PERIOD;
        if is_over {
            self.period_began = Some(now);
            self.smallest = [None, self.smallest[0]];
            self.raised = None;
        }
        is_over
    }

    /// Records a Data that answers an Interest sent once, at `sent_at`. Returns true if it ends a round.
    pub(super) fn on_data(&mut self, now: Instant, sent_at: Instant, rtt: Duration) -> bool {
        self.arrived += 1;
        let least = |one: Option<Duration>| Some(one.map_or(rtt, |one| one.min(rtt)));
        self.smallest[0] = least(self.smallest[0]);
        self.round_smallest = least(self.round_smallest);
        if sent_at < *self.round_began.get_or_insert(now) {
            return false;
        }
        self.round_began = Some(now);
        self.last_round = self.round_smallest.take();
        true
    }

    /// Records the loss of an Interest or its Data and classifies it. A queue with a delay up to `short_queue` counts
    /// as not full.
    pub(super) fn on_loss(&mut self, short_queue: Duration) -> Loss {
        self.lost += 1;
        let samples = self.arrived + self.lost;
        let too_many = samples >= LOSS_SAMPLES && f64::from(self.lost) > MOST_LOSSES * f64::from(samples);
        if samples >= LOSS_SAMPLES {
            (self.arrived, self.lost) = (0, 0);
        }
        match (self.base(), self.last_round.or(self.round_smallest)) {
            (Some(_), Some(_)) if too_many => Loss::Congestion,
            (Some(base), Some(round)) if round <= base + short_queue => Loss::BadLine,
            (Some(_), Some(_)) => Loss::Queue,
            // Nothing is known about the path yet.
            _ => Loss::Congestion,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// A path with round-trip times chosen by the test.
    struct Path {
        watch: PathWatch,
        now: Instant,
    }

    impl Path {
        fn new() -> Self {
            Path { watch: PathWatch::default(), now: Instant::now() }
        }

        /// Delivers ten packets with a round-trip time of `ms` milliseconds. Returns true if they ended a round.
        fn round(&mut self, ms: u32) -> bool {
            let sent_at = self.now;
            self.now += ms * MS;
            (0..10).filter(|_| self.watch.on_data(self.now, sent_at, ms * MS)).count() > 0
        }
    }

    #[test]
    fn the_base_is_the_shortest_round_trip_of_two_periods() {
        let mut path = Path::new();
        assert!(!path.watch.has_period_ended(path.now));
        assert!(!path.round(40), "the first round trip must not be reported as over");
        assert!(path.round(60) && path.round(50));
        assert_eq!(path.watch.base(), Some(40 * MS));
        for periods in 1..=2 {
            path.now += 5000 * MS;
            assert!(path.watch.has_period_ended(path.now) && !path.watch.has_period_ended(path.now));
            path.round(50);
            assert_eq!(path.watch.base(), Some(if periods == 1 { 40 } else { 50 } * MS));
        }
    }

    #[test]
    fn a_raised_base_counts_until_the_period_ends() {
        let mut path = Path::new();
        path.watch.has_period_ended(path.now);
        path.round(20);
        path.watch.raise(70 * MS);
        path.round(80);
        assert_eq!(path.watch.base(), Some(70 * MS));
        path.now += 5000 * MS;
        assert!(path.watch.has_period_ended(path.now));
        assert_eq!(path.watch.base(), Some(20 * MS));
    }

    #[test]
    fn losses_are_those_of_the_line_unless_there_are_many_or_a_queue() {
        let mut path = Path::new();
        assert_eq!(
            PathWatch::default().on_loss(8 * MS),
            Loss::Congestion,
            "without measurements every loss is congestion"
        );
        path.round(20);
        path.round(20);
        for round in 0..40 {
            path.round(20);
            assert_eq!(
                path.watch.on_loss(8 * MS),
                Loss::BadLine,
                "one loss in eleven must be a bad line, round {round}"
            );
        }
        path.round(40);
        path.round(40);
        assert_eq!(path.watch.on_loss(8 * MS), Loss::Queue);
        let many = (0..20).any(|_| {
            path.round(20);
            (0..3).any(|_| path.watch.on_loss(8 * MS) == Loss::Congestion)
        });
        assert!(many);
    }
}
