//! Reconnecting: how long to wait between attempts.

use std::time::Duration;

/// Pauses that double from an initial to a longest one.
#[derive(Debug, Clone)]
pub(super) struct Backoff {
    next: Duration,
    longest: Duration,
}

impl Backoff {
    /// Starts at `initial_ms` and never exceeds `longest_ms`.
    pub(super) fn new(initial_ms: u64, longest_ms: u64) -> Self {
        let longest = Duration::from_millis(longest_ms.max(1));
        Backoff { next: Duration::from_millis(initial_ms.max(1)).min(longest), longest }
    }

    /// The pause before the next attempt.
    pub(super) fn pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = pause.saturating_mul(2).min(self.longest);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_doubles_up_to_the_longest() {
        let mut backoff = Backoff::new(1000, 300_000);
        let seconds: Vec<u64> = (0..11).map(|_| backoff.pause().as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
    }

    #[test]
    fn zero_never_spins() {
        assert_eq!(Backoff::new(0, 0).pause(), Duration::from_millis(1));
    }
}
