//! One direction of a simulated link: computes the fate of each datagram without sending it.
//!
//! A datagram that is not lost waits in a bounded queue for a line of limited rate, and then takes the propagation
//! delay. It may be duplicated, and it may be delayed so that later ones overtake it.

use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// Impairments of a link. The default has none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Impairments {
    /// Propagation delay.
    pub delay: Duration,
    /// Rate of the line in bits per second, counting the bytes of datagrams; `None` for unlimited.
    pub bits_per_second: Option<u64>,
    /// Maximum bytes queued for the line.
    pub queue_bytes: u64,
    /// Share of datagrams lost before the queue, 0 to 1.
    pub loss: f64,
    /// Share of datagrams duplicated, 0 to 1.
    pub duplication: f64,
    /// Share of datagrams delayed after the queue, 0 to 1.
    pub reordering: f64,
    /// Additional delay of these datagrams.
    pub reordering_delay: Duration,
}

impl Default for Impairments {
    fn default() -> Self {
        Impairments {
            delay: Duration::ZERO,
            bits_per_second: None,
            queue_bytes: 256 << 10,
            loss: 0.0,
            duplication: 0.0,
            reordering: 0.0,
            reordering_delay: Duration::from_millis(5),
        }
    }
}

/// Fate of a datagram. Times are on the clock of [`Line::pass`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It arrives at `at`; if it is duplicated, also at `again`.
    Arrives { at: Duration, again: Option<Duration>, is_held_back: bool },
    /// It is lost.
    Lost,
    /// It is dropped because the queue is full.
    QueueFull,
}

/// One direction of a link.
#[derive(Debug)]
pub(crate) struct Line {
    impairments: Impairments,
    chance: SmallRng,
    /// When the line has sent everything in the queue.
    idle_at: Duration,
}

impl Line {
    /// Creates an idle line. With the same `seed`, the same datagrams at the same times have the same fate.
    pub(crate) fn new(impairments: Impairments, seed: u64) -> Self {
        Line { impairments, chance: SmallRng::seed_from_u64(seed), idle_at: Duration::ZERO }
    }

    /// Returns the fate of a datagram of `bytes` bytes that enters at `now`. `now` must not decrease between calls.
    pub(crate) fn pass(&mut self, now: Duration, bytes: usize) -> Fate {
        let Impairments { delay, bits_per_second, queue_bytes, loss, duplication, reordering, reordering_delay } =
            self.impairments;
        // All three are drawn for each datagram, so that one setting does not change the random results of another.
        let [is_lost, is_doubled, is_held_back] =
            [loss, duplication, reordering].map(|share| self.chance.random::<f64>() < share);
        if is_lost {
            return Fate::Lost;
        }
        let begins = self.idle_at.max(now);
        let sent = match bits_per_second {
            None => now,
            Some(bits_per_second) => {
                let time_of = |bytes: f64| Duration::from_secs_f64(bytes * 8.0 / bits_per_second as f64);
                // The queue holds what the line has yet to send, except the datagram being sent.
                if begins > now && (begins - now) + time_of(bytes as f64) > time_of(queue_bytes as f64 + bytes as f64) {
                    return Fate::QueueFull;
                }
                begins + time_of(bytes as f64)
            }
        };
        self.idle_at = sent;
        let at = sent + delay + if is_held_back { reordering_delay } else { Duration::ZERO };
        Fate::Arrives { at, again: is_doubled.then_some(at), is_held_back }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn arrival(fate: Fate) -> Duration {
        match fate {
            Fate::Arrives { at, .. } => at,
            fate => panic!("{fate:?}"),
        }
    }

    #[test]
    fn datagrams_wait_for_the_line_and_then_take_the_way() {
        // 1000 bytes take 8 ms on the line.
        let line = Impairments {
            delay: 20 * MS,
            bits_per_second: Some(1_000_000),
            queue_bytes: 2500,
            ..Impairments::default()
        };
        let mut line = Line::new(line, 1);
        assert_eq!(arrival(line.pass(Duration::ZERO, 1000)), 28 * MS);
        assert_eq!(arrival(line.pass(Duration::ZERO, 1000)), 36 * MS, "the second datagram waits for the first");
        assert_eq!(arrival(line.pass(Duration::ZERO, 1000)), 44 * MS, "the third datagram waits for two");
        assert_eq!(
            line.pass(Duration::ZERO, 1000),
            Fate::QueueFull,
            "2000 bytes are queued, besides the datagram in transmission"
        );
        assert_eq!(arrival(line.pass(8 * MS, 1000)), 52 * MS, "one datagram has left the queue");
        assert_eq!(arrival(line.pass(100 * MS, 1000)), 128 * MS, "the line was idle");
        let mut unlimited = Line::new(Impairments { delay: MS, ..Impairments::default() }, 1);
        for _ in 0..1000 {
            assert_eq!(arrival(unlimited.pass(5 * MS, 8800)), 6 * MS);
        }
    }

    #[test]
    fn shares_are_as_configured() {
        let impairments = Impairments {
            loss: 0.1,
            duplication: 0.2,
            reordering: 0.3,
            reordering_delay: 2 * MS,
            ..Impairments::default()
        };
        let mut line = Line::new(impairments, 7);
        let (mut lost, mut doubled, mut held_back) = (0, 0, 0);
        for number in 0..100_000_u32 {
            match line.pass(number * MS, 100) {
                Fate::Lost => lost += 1,
                Fate::QueueFull => panic!("a line without a rate limit has no queue"),
                Fate::Arrives { at, again, is_held_back } => {
                    assert_eq!(at - number * MS, if is_held_back { 2 * MS } else { Duration::ZERO });
                    assert!(again.is_none_or(|again| again == at));
                    doubled += u32::from(again.is_some());
                    held_back += u32::from(is_held_back);
                }
            }
        }
        for (count, expected) in [(lost, 10_000), (doubled, 18_000), (held_back, 27_000)] {
            assert!(count.abs_diff(expected) < 600, "{count} instead of {expected}");
        }
    }

    proptest! {
        /// The line never exceeds its rate, is never idle while datagrams wait, and its queue is bounded.
        #[test]
        fn the_line_keeps_its_rate(
            datagrams in prop::collection::vec((0..30_u32, 1..9000_usize), 1..200),
            bits_per_second in 100_000..100_000_000_u64,
            queue_bytes in 0..100_000_u64,
        ) {
            let bits = Some(bits_per_second);
            let impairments = Impairments { bits_per_second: bits, queue_bytes, ..Impairments::default() };
            let mut line = Line::new(impairments, 3);
            let time_of = |bytes: usize| Duration::from_secs_f64(bytes as f64 * 8.0 / bits_per_second as f64);
            let (mut now, mut idle_at) = (Duration::ZERO, Duration::ZERO);
            for (pause, bytes) in datagrams {
                now += pause * MS;
                match line.pass(now, bytes) {
                    Fate::Arrives { at, .. } => {
                        prop_assert_eq!(at, idle_at.max(now) + time_of(bytes));
                        prop_assert!(at - now <= time_of(queue_bytes as usize + bytes) + Duration::from_nanos(2));
                        idle_at = at;
                    }
                    Fate::QueueFull => prop_assert!(idle_at > now),
                    Fate::Lost => prop_assert!(false, "a line without random loss must not drop datagrams"),
                }
            }
        }
    }
}
