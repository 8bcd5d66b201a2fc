//! How long an idle worker keeps looking for packets before it sleeps.
//!
//! Falling asleep and being woken costs tens of microseconds, several times what a packet takes. Where packets follow each
//! other closely, as when one Interest at a time is in flight, looking again for a moment is quicker; where they do
//! not, it only costs power. So the worker looks for as long as lately would have been enough, and not at all after
//! a longer pause: without traffic it never does.

use std::time::Duration;

/// Longest time to look before sleeping: a few times what falling asleep and waking up cost.
const LONGEST: Duration = Duration::from_micros(120);
/// First time to look, after a pause that was not longer than [`LONGEST`].
const SHORTEST: Duration = Duration::from_micros(20);

/// Decides how long to look; told how long each pause was.
#[derive(Debug, Default)]
pub(super) struct IdleLook {
    window: Duration,
}

impl IdleLook {
    /// How long to look before sleeping.
    pub(super) fn window(&self) -> Duration {
        self.window
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
        let mut look = IdleLook::default();
        assert_eq!(look.window(), Duration::ZERO);
        let windows: Vec<u128> = (0..6)
            .map(|_| {
                look.ended(LONGEST);
                look.window().as_micros()
            })
            .collect();
        assert_eq!(windows, [20, 40, 80, 120, 120, 120]);
        look.ended(Duration::from_micros(1));
        assert_eq!(look.window(), LONGEST, "long enough stays as it is");
        look.ended(LONGEST + Duration::from_nanos(1));
        assert_eq!(look.window(), Duration::ZERO);
    }
}
