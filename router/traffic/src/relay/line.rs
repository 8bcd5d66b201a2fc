//! One direction of a simulated link: what becomes of each datagram, without sending any.
//!
//! A datagram that is not lost waits in a queue of bounded length for its turn on a line of limited rate, and then takes the time of
//! the way. It may be doubled, and it may be held back so that later ones overtake it.

use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// What a link does to the datagrams on it. By default nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Impairments {
    /// Time of the way.
    pub delay: Duration,
    /// Bits per second of the line, counting the bytes of datagrams; as fast as it goes when absent.
    pub bits_per_second: Option<u64>,
    /// Bytes that may wait for the line.
    pub queue_bytes: u64,
    /// Share of the datagrams that are lost before they reach the queue, 0 to 1.
    pub loss: f64,
    /// Share of the datagrams that arrive twice, 0 to 1.
    pub duplication: f64,
    /// Share of the datagrams that are held back behind the queue, 0 to 1.
    pub reordering: f64,
    /// How long these are held back.
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

/// What becomes of a datagram. Times are those of [`Line::pass`]'s clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It arrives then, and `again` a second time if it is doubled.
    Arrives { at: Duration, again: Option<Duration>, is_held_back: bool },
    /// It is lost.
    Lost,
    /// There was no room in the queue.
    QueueFull,
}

/// One direction.
#[derive(Debug)]
pub(crate) struct Line {
    impairments: Impairments,
    chance: SmallRng,
    /// When the line has sent what is in the queue.
    idle_at: Duration,
}

impl Line {
    /// Chance goes on from `seed`: the same datagrams at the same times have the same fate.
    pub(crate) fn new(impairments: Impairments, seed: u64) -> Self {
        Line { impairments, chance: SmallRng::seed_from_u64(seed), idle_at: Duration::ZERO }
    }

    /// Says what becomes of a datagram of so many bytes that comes now. Time does not go back.
    pub(crate) fn pass(&mut self, now: Duration, bytes: usize) -> Fate {
        let Impairments { delay, bits_per_second, queue_bytes, loss, duplication, reordering, reordering_delay } =
            self.impairments;
        // All three are drawn for each datagram, so that one setting does not change what another does.
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
                // What waits is what the line has yet to send, the datagram that it is sending not counted.
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
        // 1000 bytes take 8 ms.
        let line = Impairments {
            delay: 20 * MS,
            bits_per_second: Some(1_000_000),
            queue_bytes: 2500,
            ..Impairments::default()
        };
        let mut line = Line::new(line, 1);
        assert_eq!(arrival(line.pass(Duration::ZERO, 1000)), 28 * MS);
        assert_eq!(arrival(line.pass(Duration::ZERO, 1000)), 36 * MS, "behind the first");
        assert_eq!(arrival(line.pass(Duration::ZERO, 1000)), 44 * MS, "a second one waits");
        assert_eq!(line.pass(Duration::ZERO, 1000), Fate::QueueFull, "2000 bytes wait besides the one on the line");
        assert_eq!(arrival(line.pass(8 * MS, 1000)), 52 * MS, "one has left");
        assert_eq!(arrival(line.pass(100 * MS, 1000)), 128 * MS, "the line was idle");
        let mut unlimited = Line::new(Impairments { delay: MS, ..Impairments::default() }, 1);
        for _ in 0..1000 {
            assert_eq!(arrival(unlimited.pass(5 * MS, 8800)), 6 * MS);
        }
    }

    #[test]
    fn shares_are_as_asked_for() {
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
                Fate::QueueFull => panic!("there is no queue"),
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
        /// The line is never faster than its rate, never idle while something waits, and its queue is bounded.
        #[test]
        fn the_line_keeps_its_rate(
            datagrams in prop::collection::vec((0..30_u32, 1..9000_usize), 1..200),
            bits_per_second in 100_000..100_000_000_u64,
            queue_bytes in 0..100_000_u64,
        ) {
            let impairments = Impairments { bits_per_second: Some(bits_per_second), queue_bytes, ..Impairments::default() };
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
                    Fate::Lost => prop_assert!(false, "nothing is lost"),
                }
            }
        }
    }
}
