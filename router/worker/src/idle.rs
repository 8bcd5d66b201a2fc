//! Busy polling: how long an idle worker polls for packets before it sleeps.
//!
//! A worker with its own thread does what [`Idling`] says. A worker that shares its thread with the
//! sockets decides by itself ([`BusyPoll`]). Falling asleep and waking up costs tens of microseconds, several times the
//! cost of a packet. Polling for a moment is faster where packets follow each other closely, for example with one
//! Interest in flight at a time; elsewhere it only costs power. So the worker polls as long as would have sufficed for
//! the last pauses, and not at all after a longer pause: without traffic it never polls. It also stops polling where
//! other threads need the CPU: the scheduler prefers threads that have just slept, and a thread that always polls would
//! have to wait for its time slice.

use std::time::{Duration, Instant};

/// How a worker with its own thread behaves while there is nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Idling {
    /// The worker never sleeps.
    pub always_polls: bool,
    /// Time for which the worker polls before it sleeps.
    pub poll_for: Duration,
    /// Longest sleep of a worker with ports that cannot wake it.
    pub longest_pause: Duration,
}

/// Longest time to poll before sleeping: a few times the cost of falling asleep and waking up.
const LONGEST: Duration = Duration::from_micros(120);
/// First polling time after a pause that was not longer than [`LONGEST`].
const SHORTEST: Duration = Duration::from_micros(20);

/// If more time than this passes between two polls, another thread has used this CPU.
const INTERRUPTION: Duration = Duration::from_micros(500);
/// Time for which the worker does not poll after an interruption.
const PAUSE_AFTER_INTERRUPTION: Duration = Duration::from_secs(1);

/// Adapts the polling time to the length of past pauses.
#[derive(Debug, Default)]
pub(super) struct BusyPoll {
    window: Duration,
    paused_until: Option<Instant>,
}

impl BusyPoll {
    /// Returns how long to poll before sleeping, at time `now`.
    pub(super) fn window(&mut self, now: Instant) -> Duration {
        match self.paused_until {
            Some(until) if now < until => Duration::ZERO,
            _ => {
                self.paused_until = None;
                self.window
            }
        }
    }

    /// Records that the worker polled at `before` and again at `now`.
    pub(super) fn polled(&mut self, before: Instant, now: Instant) {
        if now.duration_since(before) > INTERRUPTION {
            self.paused_until = Some(now + PAUSE_AFTER_INTERRUPTION);
        }
    }

    /// Records the length of a pause that ended because there is work or a timer is due.
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
        assert_eq!(busy_poll.window(now), LONGEST, "the longest window stays unchanged");
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
