//! What round-trip times tell of a path: its round-trip time without a queue, the queue on it, and what a loss is one of.
//!
//! A queue shows as delay above the base, the smallest round-trip time of the last five to ten seconds. Only a round trip that began while
//! no other packet of this fetch was on its way can raise the base: its delay is not of this fetch's making.

use std::time::{Duration, Instant};

/// The base is the smallest round-trip time of two such periods, this one and the one before.
const PERIOD: Duration = Duration::from_secs(5);
/// Losses above this share are no bad line any more, whatever the delay: a queue may be too short to be seen.
const MOST_LOSSES: f64 = 0.1;
/// Interests over which the share is taken.
const LOSS_SAMPLES: u32 = 50;

/// What a loss is one of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// Of a line that loses packets.
    BadLine,
    /// Perhaps of a full queue: at least a long one stands on the path. A bad line loses packets then, too.
    Queue,
    /// Of a full queue, or of one too short to be seen: there are too many.
    Congestion,
}

/// Watches one path.
#[derive(Clone, Debug, Default)]
pub(super) struct PathWatch {
    /// Smallest round-trip time of this period and of the one before.
    smallest: [Option<Duration>; 2],
    period_began: Option<Instant>,
    /// Delay that is not of this fetch's making: the base until the period ends.
    raised: Option<Duration>,
    /// A round trip lasts from here until an Interest sent after this is answered.
    round_began: Option<Instant>,
    round_smallest: Option<Duration>,
    /// Smallest of the last round that is over.
    last_round: Option<Duration>,
    arrived: u32,
    lost: u32,
}

impl PathWatch {
    /// The round-trip time without a queue.
    pub(super) fn base(&self) -> Option<Duration> {
        self.smallest.into_iter().flatten().min().max(self.raised)
    }

    /// Counts a round trip that began while nothing else of this fetch was on its way as one without a queue, until the period ends.
    pub(super) fn raise(&mut self, rtt: Duration) {
        self.raised = Some(rtt);
    }

    /// Begins a new round with the next Data.
    pub(super) fn restart_round(&mut self) {
        self.round_began = None;
        self.round_smallest = None;
    }

    /// Begins a new period if this one is over, so that a base of long ago is forgotten. True once in a period.
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

    /// A Data came whose Interest was sent once, at `sent_at`. True if it ends a round.
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

    /// An Interest or its Data was lost. `short_queue` is the delay of a queue that need not be full.
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
            // Nothing is known of the path yet.
            _ => Loss::Congestion,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// A path whose round trips take what the test says.
    struct Path {
        watch: PathWatch,
        now: Instant,
    }

    impl Path {
        fn new() -> Self {
            Path { watch: PathWatch::default(), now: Instant::now() }
        }

        /// Ten packets in a round trip of so many milliseconds. True if it ended a round.
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
        assert!(!path.round(40), "it takes a round trip until one is known to be over");
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
        assert_eq!(PathWatch::default().on_loss(8 * MS), Loss::Congestion, "nothing is known yet");
        path.round(20);
        path.round(20);
        for round in 0..40 {
            path.round(20);
            assert_eq!(path.watch.on_loss(8 * MS), Loss::BadLine, "one of eleven is a bad line, round {round}");
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
