//! Pacing of a consumer: by a window of Interests in flight, or by a clock.

use std::time::{Duration, Instant};

use crate::workload::zipf::Draws;

use super::LoadError;
use crate::segmented::{CongestionControl, WindowKind};

/// Maximum delay behind its clock, in nanoseconds, that a consumer catches up with: longer bursts would measure
/// something else.
const LONGEST_DELAY_NS: u64 = 100_000_000;
/// Maximum number of Interests in flight.
pub const MAX_IN_FLIGHT: usize = 1 << 20;

/// When a consumer sends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pacing {
    /// Keeps this many Interests in flight: always with [`WindowKind::Fixed`], at the start with other laws.
    Window {
        /// Number of Interests in flight.
        size: usize,
        /// Law of the window.
        law: WindowKind,
        /// Maximum window size.
        max: usize,
    },
    /// Sends at a given rate.
    Rate {
        /// Interests per second.
        per_second: f64,
        /// Sends at random times (a Poisson process) instead of equal intervals.
        poisson: bool,
        /// Maximum number of Interests in flight; due Interests beyond it count as not sent.
        max_in_flight: usize,
    },
}

impl Pacing {
    /// # Errors
    /// Returns [`LoadError::Configuration`] if a number is out of range.
    pub(super) fn check(&self) -> Result<(), LoadError> {
        let fail = |text: String| Err(LoadError::Configuration(text));
        if self.most_in_flight() == 0 || self.most_in_flight() > MAX_IN_FLIGHT {
            return fail(format!("the number of Interests in flight must be between 1 and {MAX_IN_FLIGHT}"));
        }
        match *self {
            Pacing::Window { size, max, .. } if size == 0 || size > max => {
                fail(format!("the initial window of {size} Interests must be between 1 and its maximum {max}"))
            }
            Pacing::Rate { per_second, .. } if !(0.001..=1e9).contains(&per_second) => {
                fail(format!("a rate of {per_second} Interests per second is not between 0.001 and 10^9"))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn most_in_flight(&self) -> usize {
        match *self {
            Pacing::Window { max, .. } => max,
            Pacing::Rate { max_in_flight, .. } => max_in_flight,
        }
    }
}

/// Pacing state of a running consumer.
pub(super) enum Pacer {
    /// Fixed number of Interests in flight.
    Fixed(usize),
    Moving {
        control: Box<CongestionControl>,
        /// Time 0 of the consumer.
        began: Instant,
        min_rtt: Option<Duration>,
    },
    Clock {
        per_ns: f64,
        poisson: bool,
        most: usize,
        /// When the next Interest is due, in nanoseconds since the consumer's start; set at the first call of
        /// [`Pacer::due`]. The time until the link is ready is thus not caught up with.
        due_ns: Option<f64>,
        /// Number of Interests that were due but not sent.
        not_sent: u64,
    },
}

impl Pacer {
    pub(super) fn new(pacing: Pacing, began: Instant) -> Pacer {
        match pacing {
            Pacing::Window { size, law: WindowKind::Fixed, .. } => Pacer::Fixed(size),
            Pacing::Window { size, law, max } => {
                let control = Box::new(CongestionControl::new(law, size as f64, max as f64));
                Pacer::Moving { control, began, min_rtt: None }
            }
            Pacing::Rate { per_second, poisson, max_in_flight } => {
                Pacer::Clock { per_ns: per_second / 1e9, poisson, most: max_in_flight, due_ns: None, not_sent: 0 }
            }
        }
    }

    /// Returns the number of Interests to send now, at most `most_at_once`, with `pending` Interests in flight.
    pub(super) fn due(&mut self, now_ns: u64, pending: usize, most_at_once: usize, draws: &mut Draws) -> usize {
        match self {
            Pacer::Fixed(size) => size.saturating_sub(pending).min(most_at_once),
            Pacer::Moving { control, began, .. } => {
                let now = at(*began, now_ns);
                let mut due = 0;
                while due < most_at_once && control.may_send(now, pending + due) {
                    control.on_send(now);
                    due += 1;
                }
                due
            }
            Pacer::Clock { per_ns, poisson, most, due_ns, not_sent } => {
                let now = now_ns as f64;
                let due_ns = due_ns.get_or_insert(now);
                let behind = now - LONGEST_DELAY_NS as f64 - *due_ns;
                if behind > 0.0 {
                    let missed = (behind * *per_ns).ceil();
                    *not_sent += missed as u64;
                    *due_ns += missed / *per_ns;
                }
                let mut due = 0;
                while *due_ns <= now && due < most_at_once {
                    *due_ns += if *poisson { draws.interval(*per_ns) } else { 1.0 / *per_ns };
                    due += 1;
                }
                let room = most.saturating_sub(pending);
                *not_sent += due.saturating_sub(room) as u64;
                due.min(room)
            }
        }
    }

    /// Returns true if Interests are due by a clock, independent of the number in flight.
    pub(super) fn is_clock(&self) -> bool {
        matches!(self, Pacer::Clock { .. })
    }

    /// Returns how long no Interest is due if nothing arrives, with `pending` Interests in flight; `None` if unknown.
    pub(super) fn until_due(&self, now_ns: u64, pending: usize) -> Option<Duration> {
        match self {
            Pacer::Moving { control, began, .. } => {
                control.next_send(pending).map(|due| due.saturating_duration_since(at(*began, now_ns)))
            }
            Pacer::Clock { due_ns, .. } => {
                Some(Duration::from_nanos((due_ns.unwrap_or(0.0) - now_ns as f64).max(0.0) as u64))
            }
            Pacer::Fixed(_) => None,
        }
    }

    /// Returns the number of Interests that were due but not sent, and resets it.
    pub(super) fn take_not_sent(&mut self) -> u64 {
        match self {
            Pacer::Clock { not_sent, .. } => std::mem::take(not_sent),
            Pacer::Fixed(_) | Pacer::Moving { .. } => 0,
        }
    }

    pub(super) fn on_data(&mut self, now_ns: u64, sent_ns: u64, is_marked: bool) {
        if let Pacer::Moving { control, began, min_rtt } = self {
            let rtt = Duration::from_nanos(now_ns.saturating_sub(sent_ns));
            *min_rtt = Some(min_rtt.map_or(rtt, |min| min.min(rtt)));
            control.on_data(at(*began, now_ns), Some(at(*began, sent_ns)), Some(rtt), *min_rtt, is_marked);
        }
    }

    pub(super) fn on_loss(&mut self, now_ns: u64, sent_ns: u64) {
        if let Pacer::Moving { control, began, .. } = self {
            control.on_loss(at(*began, now_ns), at(*began, sent_ns));
        }
    }

    /// Handles a Nack with reason Congestion.
    pub(super) fn on_congestion(&mut self, now_ns: u64, sent_ns: u64) {
        if let Pacer::Moving { control, began, .. } = self {
            control.on_congestion(at(*began, now_ns), at(*began, sent_ns));
        }
    }

    /// Returns the current window, its largest size, and the number of reductions; `None` without a moving window.
    pub(super) fn window(&self) -> Option<(usize, usize, u64)> {
        match self {
            Pacer::Moving { control, .. } => Some((control.window(), control.largest(), control.decreases())),
            Pacer::Fixed(_) | Pacer::Clock { .. } => None,
        }
    }
}

fn at(began: Instant, ns: u64) -> Instant {
    began + Duration::from_nanos(ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(per_second: f64, poisson: bool, max_in_flight: usize) -> Pacer {
        Pacer::new(Pacing::Rate { per_second, poisson, max_in_flight }, Instant::now())
    }

    /// Returns the number of Interests due within one second, polled every millisecond.
    fn second(pacer: &mut Pacer) -> usize {
        let mut draws = Draws::new(1);
        (1..=1000).map(|ms| pacer.due(ms * 1_000_000, 0, usize::MAX, &mut draws)).sum()
    }

    #[test]
    fn clocks_keep_their_rate() {
        assert_eq!(second(&mut clock(1000.0, false, 10)), 1000, "the first Interest must be sent at once");
        // The standard deviation of a Poisson process of 100,000 is 316.
        let random = second(&mut clock(100_000.0, true, 1000));
        assert!((98_500..=101_500).contains(&random), "{random}");
    }

    #[test]
    fn a_clock_begins_when_it_is_first_looked_at() {
        let (mut pacer, mut draws) = (clock(1000.0, false, 500), Draws::new(1));
        let late_ns = 95_000_000;
        assert_eq!(pacer.due(late_ns, 0, usize::MAX, &mut draws), 1);
        assert_eq!(pacer.due(late_ns + 10_000_000, 0, usize::MAX, &mut draws), 10);
        assert_eq!(pacer.take_not_sent(), 0);
    }

    #[test]
    fn what_a_clock_cannot_send_is_counted() {
        let (mut pacer, mut draws) = (clock(1000.0, false, 5), Draws::new(1));
        pacer.due(0, 0, 0, &mut draws);
        assert_eq!(pacer.due(9_500_000, 3, usize::MAX, &mut draws), 2, "ten are due, and only two fit in the window");
        assert_eq!(pacer.take_not_sent(), 8);
        assert_eq!(pacer.until_due(9_500_000, 5), Some(Duration::from_micros(500)));
        // One second later, only the last tenth of it is caught up with.
        let sent = pacer.due(1_009_500_000, 0, 3, &mut draws);
        assert_eq!((sent, pacer.take_not_sent()), (3, 900));
    }

    #[test]
    fn windows_shrink_for_marks_and_losses() {
        for law in [WindowKind::Cubic, WindowKind::Aimd] {
            let mut pacer = Pacer::new(Pacing::Window { size: 100, law, max: 1000 }, Instant::now());
            let mut draws = Draws::new(1);
            assert_eq!(pacer.due(0, 0, 1000, &mut draws), 100);
            pacer.on_data(10_000_000, 1, true);
            let smaller = pacer.due(10_000_000, 0, 1000, &mut draws);
            assert!(smaller < 100, "{law:?}");
            pacer.on_loss(11_000_000, 2);
            assert_eq!(
                pacer.due(11_000_000, 0, 1000, &mut draws),
                smaller,
                "the window must shrink once per round trip, {law:?}"
            );
            pacer.on_congestion(30_000_000, 20_000_000);
            assert!(pacer.due(30_000_000, 0, 1000, &mut draws) < smaller, "{law:?}");
        }
    }

    #[test]
    fn the_adaptive_window_paces_and_reports_the_next_time() {
        let mut pacer = Pacer::new(Pacing::Window { size: 100, law: WindowKind::Adaptive, max: 1000 }, Instant::now());
        let mut draws = Draws::new(1);
        assert_eq!(pacer.due(0, 0, 1000, &mut draws), 1);
        assert_eq!(pacer.until_due(0, 1), None, "the window must open only for Data");
        for (at_ns, pending) in [(50_000_000, 0), (100_000_000, 1), (100_100_000, 0)] {
            pacer.on_data(at_ns, at_ns - 50_000_000, false);
            let due = pacer.due(at_ns, pending, 1000, &mut draws);
            assert!(due <= 2, "{due}");
        }
        assert!(pacer.window().is_some_and(|(size, ..)| size == 100));
        let pause = pacer.until_due(100_100_000, 1).expect("the window is paced");
        assert!(!pause.is_zero() && pause < Duration::from_millis(1), "{pause:?}");
    }
}
