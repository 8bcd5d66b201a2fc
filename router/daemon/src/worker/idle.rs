//! Busy polling: how long an idle worker keeps looking for packets before it sleeps.
//!
//! A worker with a thread of its own does as the configuration says ([`Idling`]). One that shares its thread with the sockets decides by
//! itself ([`BusyPoll`]). Falling asleep and being woken costs tens of microseconds, several times what a packet takes. Where packets follow each
//! other closely, as when one Interest at a time is in flight, polling for a moment is quicker; where they do not, it only
//! costs power. So the worker polls for as long as would have been enough for the last pauses, and not at all after a longer
//! pause: without traffic it never polls. Nor does it poll where other threads need the processor: the scheduler prefers
//! threads that have just slept, and a thread that polls all the time would wait for its turn like any other.

use std::time::{Duration, Instant};

/// What a worker with a thread of its own does while there is nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Idling {
    /// It never sleeps.
    pub always_polls: bool,
    /// It looks for packets for so long before it sleeps.
    pub poll_for: Duration,
    /// Beside ports that cannot wake it, it sleeps no longer than this.
    pub longest_pause: Duration,
}

/// Longest time to poll before sleeping: a few times what falling asleep and waking up cost.
const LONGEST: Duration = Duration::from_micros(120);
/// First time to poll, after a pause that was not longer than [`LONGEST`].
const SHORTEST: Duration = Duration::from_micros(20);

/// When so much time lies between two polls, another thread has had this processor.
const INTERRUPTION: Duration = Duration::from_micros(500);
/// How long the worker does not poll after an interruption.
const PAUSE_AFTER_INTERRUPTION: Duration = Duration::from_secs(1);

/// Decides how long to poll; is told how long each pause was.
#[derive(Debug, Default)]
pub(super) struct BusyPoll {
    window: Duration,
    paused_until: Option<Instant>,
}

impl BusyPoll {
    /// How long to poll before sleeping, from now on.
    pub(super) fn window(&mut self, now: Instant) -> Duration {
        match self.paused_until {
            Some(until) if now < until => Duration::ZERO,
            _ => {
                self.paused_until = None;
                self.window
            }
        }
    }

    /// The worker polled at `before`, and again now.
    pub(super) fn polled(&mut self, before: Instant, now: Instant) {
        if now.duration_since(before) > INTERRUPTION {
            self.paused_until = Some(now + PAUSE_AFTER_INTERRUPTION);
        }
    }

    /// A pause is over: there is work again, or a timer is due.
    pub(super) fn ended(&mut self, pause: Duration) {
        self.window = if pause > LONGEST {
            Duration::ZERO
        } else if pause > self.window {
            (self.window * 2).clamp(SHORTEST, LONGEST)
        } else {
            self.window
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_pauses_open_the_window_and_a_long_one_closes_it() {
        let now = Instant::now();
        let mut busy_poll = BusyPoll::default();
        assert_eq!(busy_poll.window(now), Duration::ZERO);
        let windows: Vec<u128> = (0..6)
            .map(|_| {
                busy_poll.ended(LONGEST);
                busy_poll.window(now).as_micros()
            })
            .collect();
        assert_eq!(windows, [20, 40, 80, 120, 120, 120]);
        busy_poll.ended(Duration::from_micros(1));
        assert_eq!(busy_poll.window(now), LONGEST, "long enough stays as it is");
        busy_poll.ended(LONGEST + Duration::from_nanos(1));
        assert_eq!(busy_poll.window(now), Duration::ZERO);
    }

    #[test]
    fn an_interruption_closes_the_window_for_a_while() {
        let now = Instant::now();
        let mut busy_poll = BusyPoll::default();
        busy_poll.ended(LONGEST);
        busy_poll.polled(now, now + INTERRUPTION);
        assert_eq!(busy_poll.window(now), SHORTEST);
        busy_poll.polled(now, now + 2 * INTERRUPTION);
        busy_poll.ended(LONGEST);
        assert_eq!(busy_poll.window(now + PAUSE_AFTER_INTERRUPTION), Duration::ZERO);
        assert_eq!(busy_poll.window(now + PAUSE_AFTER_INTERRUPTION + 3 * INTERRUPTION), 2 * SHORTEST);
    }
}
