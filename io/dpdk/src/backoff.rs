//! When to try again to send what did not fit.

use std::time::{Duration, Instant};

const FIRST_PAUSE: Duration = Duration::from_micros(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

/// Pauses between attempts that fail: each twice as long as the one before, from 50 microseconds to a millisecond. So a
/// link that is full costs next to no processor time, and room that becomes free is used at most that much later.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    /// When the next attempt is due, and how long the pause before it is; absent while all fits.
    pause: Option<(Instant, Duration)>,
}

impl Backoff {
    /// Whether it is too early for an attempt.
    pub(crate) fn is_pausing(&self) -> bool {
        self.pause.is_some_and(|(until, _)| Instant::now() < until)
    }

    /// How long it is until the next attempt.
    pub(crate) fn remaining(&self) -> Duration {
        self.pause.map_or(Duration::ZERO, |(until, _)| until.saturating_duration_since(Instant::now()))
    }

    /// An attempt succeeded, at least in part.
    pub(crate) fn reset(&mut self) {
        self.pause = None;
    }

    /// An attempt found no room.
    pub(crate) fn fail(&mut self) {
        let length = self.pause.map_or(FIRST_PAUSE, |(_, length)| (2 * length).min(LONGEST_PAUSE));
        self.pause = Some((Instant::now() + length, length));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit_and_begin_anew() {
        let mut backoff = Backoff::default();
        assert!(!backoff.is_pausing());
        for _ in 0..10 {
            backoff.fail();
        }
        assert!(
            backoff.remaining() <= LONGEST_PAUSE && backoff.pause.is_some_and(|(_, length)| length == LONGEST_PAUSE)
        );
        backoff.reset();
        backoff.fail();
        assert!(backoff.remaining() <= FIRST_PAUSE);
    }
}
