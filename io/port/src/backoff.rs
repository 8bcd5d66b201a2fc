//! Back-off after a send that found no room.

use std::time::{Duration, Instant};

const FIRST_PAUSE: Duration = Duration::from_micros(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

/// Exponential back-off between failed send attempts: the pause doubles from 50 microseconds up to one millisecond. A
/// full link costs almost no CPU time, and room that becomes free is used at most one pause later.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    /// When the next attempt is due, and the length of the current pause. `None` while every attempt succeeds.
    pause: Option<(Instant, Duration)>,
}

impl Backoff {
    /// True if the next attempt is not due yet.
    pub(crate) fn is_pausing(&self) -> bool {
        self.pause.is_some_and(|(until, _)| Instant::now() < until)
    }

    /// Time until the next attempt; zero if it may be made now.
    pub(crate) fn remaining(&self) -> Duration {
        self.pause.map_or(Duration::ZERO, |(until, _)| until.saturating_duration_since(Instant::now()))
    }

    /// Records an attempt that succeeded, at least in part.
    pub(crate) fn reset(&mut self) {
        self.pause = None;
    }

    /// Records an attempt that found no room.
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
