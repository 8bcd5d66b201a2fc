//! How long an idle worker keeps looking for packets before it sleeps.
//!
//! Falling asleep and being woken costs tens of microseconds, several times what a packet takes. Where packets follow each
//! other closely, as when one Interest at a time is in flight, looking again for a moment is quicker; where they do
//! not, it only costs power. So the worker looks for as long as lately would have been enough, and not at all after
//! a longer pause: without traffic it never does. Nor does it where others need the processor: the scheduler prefers
//! whoever has just slept, and a thread that looks all the time would wait for its turn like any other.

use std::time::{Duration, Instant};

/// Longest time to look before sleeping: a few times what falling asleep and waking up cost.
const LONGEST: Duration = Duration::from_micros(120);
/// First time to look, after a pause that was not longer than [`LONGEST`].
const SHORTEST: Duration = Duration::from_micros(20);

/// Between two looks nothing takes so long but another thread on this processor.
const INTERRUPTION: Duration = Duration::from_micros(500);
/// How long not to look after an interruption.
const RELUCTANCE: Duration = Duration::from_secs(1);

/// Decides how long to look; told how long each pause was.
#[derive(Debug, Default)]
pub(super) struct IdleLook {
    window: Duration,
    reluctant_until: Option<Instant>,
}

impl IdleLook {
    /// How long to look before sleeping, from now on.
    pub(super) fn window(&mut self, now: Instant) -> Duration {
        match self.reluctant_until {
            Some(until) if now < until => Duration::ZERO,
            _ => {
                self.reluctant_until = None;
                self.window
            }
        }
    }

    /// There was a look at `before`, and one now.
    pub(super) fn looked(&mut self, before: Instant, now: Instant) {
        if now.duration_since(before) > INTERRUPTION {
            self.reluctant_until = Some(now + RELUCTANCE);
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
        let mut look = IdleLook::default();
        assert_eq!(look.window(now), Duration::ZERO);
        let windows: Vec<u128> = (0..6)
            .map(|_| {
                look.ended(LONGEST);
                look.window(now).as_micros()
            })
            .collect();
        assert_eq!(windows, [20, 40, 80, 120, 120, 120]);
        look.ended(Duration::from_micros(1));
        assert_eq!(look.window(now), LONGEST, "long enough stays as it is");
        look.ended(LONGEST + Duration::from_nanos(1));
        assert_eq!(look.window(now), Duration::ZERO);
    }

    #[test]
    fn an_interruption_closes_the_window_for_a_while() {
        let now = Instant::now();
        let mut look = IdleLook::default();
        look.ended(LONGEST);
        look.looked(now, now + INTERRUPTION);
        assert_eq!(look.window(now), SHORTEST);
        look.looked(now, now + 2 * INTERRUPTION);
        look.ended(LONGEST);
        assert_eq!(look.window(now + RELUCTANCE), Duration::ZERO);
        assert_eq!(look.window(now + RELUCTANCE + 3 * INTERRUPTION), 2 * SHORTEST);
    }
}
