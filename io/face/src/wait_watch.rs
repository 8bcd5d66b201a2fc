//! How long frames wait in a receive queue, and when one of them is to be marked as congested for that.
//!
//! Frames do not say since when they wait, and asking a clock for each would cost more than it is worth. But a queue keeps order: when so
//! many frames wait at one moment, the last of them has waited since then, at the least, when as many have been taken out. One frame after the
//! other is watched so; a queue that is empty in between waits for nobody.

use namehop_packet::Timestamp;

use crate::link_service::CongestionMarker;

/// How long packets may wait (RFC 8289, section 4.2: TARGET).
pub const TARGET_NS: u64 = 5_000_000;
/// For how long they may wait longer before they are marked (the same: INTERVAL).
pub const INTERVAL_NS: u64 = 100_000_000;

/// Watches one queue.
#[derive(Debug, Default)]
pub struct WaitWatch {
    marker: CongestionMarker,
    /// When the watched frame was known to wait.
    since: Timestamp,
    /// Frames to be taken out up to and with the watched one; 0 when none is watched.
    ahead: usize,
}

impl WaitWatch {
    /// To be told whenever frames are taken out: how many they were, and how many wait behind them. Whether the last of them is to be
    /// marked.
    #[inline]
    pub fn note(&mut self, now: Timestamp, taken: usize, waiting: usize) -> bool {
        if taken == 0 || waiting > 0 && taken < self.ahead {
            self.ahead -= taken;
            return false;
        }
        let waited_ns = if self.ahead > 0 { now.since_ns(self.since) } else { 0 };
        (self.since, self.ahead) = (now, waiting);
        self.marker.should_mark(now, waited_ns, TARGET_NS, INTERVAL_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Marks in a second in which so many frames are taken out each millisecond, behind which so many wait.
    fn marks(taken: usize, waiting: usize) -> usize {
        let mut watch = WaitWatch::default();
        (1..=1_000).filter(|ms| watch.note(Timestamp(ms * MS), taken, waiting)).count()
    }

    #[test]
    fn queues_in_which_frames_wait_for_long_get_marks() {
        assert_eq!(marks(64, 0), 0);
        // Less than 5 ms, and more.
        assert_eq!(marks(64, 4 * 64), 0);
        let long = marks(64, 10 * 64);
        // By the law of CoDel those of a second are at 100, 200, 271, 328, ... ms: some 32.
        assert!((20..=40).contains(&long), "{long}");
        assert!(marks(64, 0) + marks(0, 640) == 0);
    }

    #[test]
    fn a_queue_that_runs_empty_is_no_longer_congested() {
        let mut watch = WaitWatch::default();
        let mut note = |ms: u64, taken, waiting| watch.note(Timestamp(ms * MS), taken, waiting);
        for ms in 0..300 {
            note(ms, 1, 10);
        }
        // What was watched has been taken out, too.
        note(300, 3, 0);
        for ms in 301..400 {
            assert!(!note(ms, 1, 0), "{ms}");
        }
        // It takes an interval again.
        assert!((400..499).all(|ms| !note(ms, 1, 10)));
        assert!((499..530).any(|ms| note(ms, 1, 10)));
    }
}
