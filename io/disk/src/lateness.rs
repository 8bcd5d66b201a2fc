//! Detects a disk that answers later than Interests wait: it is of little use, and the operator should know.

use std::time::{Duration, Instant};

/// Period over which reads are counted.
const WINDOW: Duration = Duration::from_secs(1);

/// Counts late reads; see the module's description.
#[derive(Debug, Default)]
pub(crate) struct Lateness {
    /// How long Interests wait; `None` disables the detection.
    limit: Option<Duration>,
    since: Option<Instant>,
    reads: u64,
    late: u64,
    logged: Option<Instant>,
}

impl Lateness {
    /// Makes a counter for Interests that wait for `limit`.
    pub(crate) fn new(limit: Duration) -> Self {
        Lateness { limit: Some(limit), ..Lateness::default() }
    }

    /// Records a read that took `took`. At the end of a period, returns the number of late reads and of all reads if
    /// at least half were late. It returns this at most once per `interval`.
    pub(crate) fn note(&mut self, took: Duration, now: Instant, interval: Duration) -> Option<(u64, u64)> {
        let since = *self.since.get_or_insert(now);
        self.reads += 1;
        self.late += u64::from(took >= self.limit?);
        if now.saturating_duration_since(since) < WINDOW {
            return None;
        }
        let (late, reads) = (std::mem::take(&mut self.late), std::mem::take(&mut self.reads));
        self.since = Some(now);
        let is_logged = self.logged.is_some_and(|logged| now.saturating_duration_since(logged) < interval);
        if late * 2 < reads || is_logged {
            return None;
        }
        self.logged = Some(now);
        Some((late, reads))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_called_slow_when_half_of_its_reads_are_late_and_not_all_the_time() {
        let (start, interval) = (Instant::now(), Duration::from_secs(10));
        let at = |ms: u64| start + Duration::from_millis(ms);
        let of = |late_each: u64| {
            let mut lateness = Lateness::new(Duration::from_millis(50));
            let logged = (0..3_000_u64).filter_map(|number| {
                let took = if number % late_each == 0 { 50 } else { 49 };
                lateness.note(Duration::from_millis(took), at(number * 10), interval)
            });
            logged.collect::<Vec<_>>()
        };
        assert_eq!(of(1), [(101, 101), (100, 100), (100, 100)], "reports in 30 s");
        assert_eq!(of(2).len(), 3);
        assert_eq!(of(3), []);
        let mut unlimited = Lateness::default();
        assert_eq!((0..500).find_map(|second| unlimited.note(interval, at(second * 1_000), interval)), None);
    }
}
