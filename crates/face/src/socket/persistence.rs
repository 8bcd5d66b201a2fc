//! Connecting until it works: how long to wait between attempts.

use std::io;
use std::time::Duration;

use super::config::SocketConfig;
use crate::registry::Face;

/// Attempts to connect until one succeeds.
pub(super) async fn dial<C>(face: &Face, mut backoff: Backoff, attempt: impl AsyncFn() -> io::Result<C>) -> C {
    loop {
        tokio::time::sleep(backoff.pause()).await;
        match attempt().await {
            Ok(connected) => return connected,
            Err(error) => {
                tracing::debug!(face = %face.id(), remote = %face.remote_uri(), %error, "connecting failed");
            }
        }
    }
}

/// Pauses that double from an initial to a longest one.
#[derive(Debug, Clone)]
pub(super) struct Backoff {
    first_at_once: bool,
    next: Duration,
    longest: Duration,
}

impl Backoff {
    /// Starts at `initial_ms` and never exceeds `longest_ms`.
    fn new(initial_ms: u64, longest_ms: u64) -> Self {
        let longest = Duration::from_millis(longest_ms.max(1));
        Backoff { first_at_once: false, next: Duration::from_millis(initial_ms.max(1)).min(longest), longest }
    }

    /// As configured, for a connection that broke or for one that there never was: then the first pause is 0.
    pub(super) fn of(config: &SocketConfig, was_connected: bool) -> Self {
        let backoff = Backoff::new(config.reconnect_initial_ms, config.reconnect_max_ms);
        Backoff { first_at_once: !was_connected, ..backoff }
    }

    /// The pause before the next attempt.
    pub(super) fn pause(&mut self) -> Duration {
        if std::mem::take(&mut self.first_at_once) {
            return Duration::ZERO;
        }
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
    fn a_connection_that_there_never_was_is_attempted_at_once() {
        let config = SocketConfig::without_listeners();
        let seconds = |was_connected| {
            let mut backoff = Backoff::of(&config, was_connected);
            [(); 3].map(|()| backoff.pause().as_secs())
        };
        assert_eq!(seconds(false), [0, 1, 2]);
        assert_eq!(seconds(true), [1, 2, 4]);
    }

    #[test]
    fn zero_never_spins() {
        assert_eq!(Backoff::new(0, 0).pause(), Duration::from_millis(1));
    }
}
