//! What round-trip times tell of a path: whether a queue stands on it, and so whether a loss is one of a full queue or of a bad line.
//!
//! A queue shows as delay above the smallest that was seen lately. Delay that stays when the window shrinks is not of this fetch's making:
//! the path has become longer, or the Data come from further away than before. Now and then the window is halved for one round trip,
//! so that a queue that stands empties and all fetches on the path see how long it is without.

use std::time::{Duration, Instant};

use super::congestion::long_round_trip;

/// For so long the smallest round-trip time counts, in two halves.
const HALF_MEMORY: Duration = Duration::from_secs(5);
/// Of the delay above the path's, at least this part has to go when the window shrinks, else it is the path's.
const FOLLOWING_SHARE: u32 = 8;
/// So often in succession it has to stay: another fetch may have taken the place that this one left.
const IN_VAIN: u32 = 2;
/// Then it counts as the path's for so many round trips, and no longer than this: it may be a queue of others that will shrink, too.
const RAISED_ROUND_TRIPS: u32 = 10;
const RAISED_MOST: Duration = Duration::from_secs(1);
/// Losses above this share are no bad line any more, whatever the delay: a queue may be too short to be seen.
const MOST_LOSSES: f64 = 0.1;
/// Interests over which the share is taken.
const LOSS_SAMPLES: u32 = 50;

/// What a round trip has shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Sign {
    /// Nothing, or the round trip is not over.
    Nothing,
    /// A queue stands on the path that this fetch helps to fill. Only so much of the round-trip time is the path's own, as far as is known:
    /// what is in flight beyond this share stands in the queue.
    Queue(f64),
}

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
    /// Smallest round-trip time in this half of the memory and in the one before.
    smallest: [Option<Duration>; 2],
    half_began: Option<Instant>,
    /// Delay that turned out to be the path's although it had been shorter, and when.
    raised: Option<(Duration, Instant)>,
    /// A round trip lasts from here until an Interest sent after this is answered.
    round_began: Option<Instant>,
    round_smallest: Option<Duration>,
    /// Smallest of the last round that is over.
    last_round: Option<Duration>,
    /// That of the round before the window shrank for a queue, and whether the round has passed that still has its packets.
    before_shrinking: Option<(Duration, bool)>,
    /// How often in succession the queue did not follow.
    in_vain: u32,
    /// Until when the window is halved.
    is_draining: bool,
    arrived: u32,
    lost: u32,
}

impl PathWatch {
    /// The smallest round-trip time lately.
    pub(super) fn smallest(&self) -> Option<Duration> {
        self.smallest.into_iter().flatten().min()
    }

    /// Is the window halved now?
    pub(super) fn is_draining(&self) -> bool {
        self.is_draining
    }

    /// Did the window shrink for a queue, and is it not known yet whether the queue followed?
    pub(super) fn has_shrunk(&self) -> bool {
        self.before_shrinking.is_some()
    }

    /// A Data came whose Interest was sent once, at `sent_at`.
    pub(super) fn on_data(&mut self, now: Instant, sent_at: Instant, rtt: Duration) -> Sign {
        self.arrived += 1;
        let half_began = *self.half_began.get_or_insert(now);
        if now.saturating_duration_since(half_began) >= HALF_MEMORY {
            self.half_began = Some(now);
            self.smallest = [None, self.smallest[0]];
            self.raised = None;
            self.is_draining = true;
            self.round_began = None;
        }
        let least = |one: Option<Duration>| Some(one.map_or(rtt, |one| one.min(rtt)));
        self.smallest[0] = least(self.smallest[0]);
        self.round_smallest = least(self.round_smallest);
        let round_began = *self.round_began.get_or_insert(now);
        if sent_at < round_began {
            return Sign::Nothing;
        }
        // Round trips that have drained the queue say nothing of what it is otherwise.
        let was_draining = std::mem::take(&mut self.is_draining);
        self.round_began = Some(now);
        let round = self.round_smallest.take().unwrap_or(rtt);
        self.last_round = Some(round);
        if was_draining { Sign::Nothing } else { self.judge(now, round) }
    }

    /// Looks at the smallest round-trip time of a round trip that is over.
    fn judge(&mut self, now: Instant, round: Duration) -> Sign {
        let Some(smallest) = self.smallest() else { return Sign::Nothing };
        let counts_for = (round * RAISED_ROUND_TRIPS).min(RAISED_MOST);
        self.raised = self.raised.filter(|(_, since)| now.saturating_duration_since(*since) < counts_for);
        let path = self.raised.map_or(smallest, |(raised, _)| raised.max(smallest));
        match self.before_shrinking {
            Some((before, false)) => {
                self.before_shrinking = Some((before, true));
                return Sign::Nothing;
            }
            Some((before, true)) => {
                self.before_shrinking = None;
                let has_followed = round + before.saturating_sub(path) / FOLLOWING_SHARE <= before;
                self.in_vain = if has_followed { 0 } else { self.in_vain + 1 };
                if self.in_vain >= IN_VAIN {
                    self.raised = Some((round, now));
                    return Sign::Nothing;
                }
            }
            None => {}
        }
        if round <= long_round_trip(path) {
            return Sign::Nothing;
        }
        self.before_shrinking = Some((round, false));
        // If it did not follow the last time, it is not known whose it is.
        Sign::Queue(if self.in_vain > 0 { 1.0 } else { path.as_secs_f64() / round.as_secs_f64() })
    }

    /// An Interest or its Data was lost.
    pub(super) fn on_loss(&mut self) -> Loss {
        self.lost += 1;
        let samples = self.arrived + self.lost;
        let too_many = samples >= LOSS_SAMPLES && f64::from(self.lost) > MOST_LOSSES * f64::from(samples);
        if samples >= LOSS_SAMPLES {
            (self.arrived, self.lost) = (0, 0);
        }
        match (self.smallest(), self.last_round) {
            (Some(_), Some(_)) if too_many => Loss::Congestion,
            (Some(smallest), Some(round)) if round <= long_round_trip(smallest) => Loss::BadLine,
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

    fn queue(path_ms: u32, round_ms: u32) -> Sign {
        Sign::Queue((path_ms * MS).as_secs_f64() / (round_ms * MS).as_secs_f64())
    }

    /// A path whose round trips take what the test says.
    struct Path {
        watch: PathWatch,
        now: Instant,
    }

    impl Path {
        fn new() -> Self {
            Path { watch: PathWatch::default(), now: Instant::now() }
        }

        /// Ten packets in a round trip of so many milliseconds.
        fn round(&mut self, ms: u32) -> Sign {
            let sent_at = self.now;
            self.now += ms * MS;
            let mut sign = Sign::Nothing;
            for _ in 0..10 {
                let shown = self.watch.on_data(self.now, sent_at, ms * MS);
                sign = if shown == Sign::Nothing { sign } else { shown };
            }
            sign
        }

        fn rounds<const N: usize>(&mut self, ms: [u32; N]) -> [Sign; N] {
            ms.map(|ms| self.round(ms))
        }
    }

    #[test]
    fn long_queues_are_a_sign_and_short_ones_are_not() {
        let mut path = Path::new();
        assert_eq!(path.rounds([40, 40, 45, 49, 49]), [Sign::Nothing; 5]);
        // It takes a round trip until one is known to be over.
        assert_eq!(path.rounds([60, 60]), [Sign::Nothing, queue(40, 60)]);
        assert_eq!(path.watch.on_loss(), Loss::Queue);
        // What was on its way then does not count, and a queue that shrank with the window and is still long does.
        assert_eq!(path.rounds([60, 55, 55]), [Sign::Nothing, queue(40, 55), Sign::Nothing]);
        assert_eq!(path.rounds([45, 45, 45, 45]), [Sign::Nothing; 4]);
        assert_eq!(path.watch.on_loss(), Loss::BadLine);
    }

    #[test]
    fn a_path_that_has_become_longer_costs_few_reductions() {
        let mut path = Path::new();
        path.rounds([2, 2, 2, 2]);
        // Three seconds.
        let signs: Vec<Sign> = path.rounds([50; 60]).into_iter().filter(|sign| *sign != Sign::Nothing).collect();
        assert!((4..=7).contains(&signs.len()), "{signs:?}");
        assert_eq!(signs[0], queue(2, 50));
        assert!(signs[1..].iter().all(|sign| *sign == Sign::Queue(1.0)), "the others are small: {signs:?}");
        // Later the shorter one is forgotten, and losses are judged by the longer.
        for _ in 0..300 {
            path.round(50);
        }
        assert_eq!(path.watch.smallest(), Some(50 * MS));
        assert_eq!(path.watch.on_loss(), Loss::BadLine);
    }

    #[test]
    fn many_losses_are_those_of_a_queue_however_short_it_is() {
        let mut path = Path::new();
        path.rounds([20, 20]);
        for round in 0..40 {
            path.round(20);
            assert_eq!(path.watch.on_loss(), Loss::BadLine, "one of eleven is a bad line, round {round}");
        }
        let many = (0..20).any(|_| {
            path.round(20);
            (0..3).any(|_| path.watch.on_loss() == Loss::Congestion)
        });
        assert!(many);
        assert_eq!(PathWatch::default().on_loss(), Loss::Congestion, "as long as nothing is known");
    }

    #[test]
    fn the_window_is_halved_for_a_round_trip_now_and_then() {
        let mut path = Path::new();
        let mut drained = 0;
        for _ in 0..1000 {
            path.round(20);
            drained += u32::from(path.watch.is_draining());
        }
        // 20 seconds.
        assert!((3..=4).contains(&drained), "{drained}");
    }
}
