//! Measures how long frames wait in a receive queue, and decides when a frame is marked as congested for that.
//!
//! Frames have no arrival time, and reading a clock for each would cost too much. But a queue keeps order: if N frames
//! wait at one moment, the last of them has waited at least since then when N frames have been taken out. One frame at
//! a time is watched in this way; when the queue runs empty, no frame has waited.

use namehop_packet::Timestamp;

use crate::link_service::CongestionMarker;

/// Acceptable waiting time in nanoseconds (RFC 8289, section 4.2: TARGET).
pub const TARGET_NS: u64 = 5_000_000;
/// Time in nanoseconds for which longer waits are tolerated before packets are marked (RFC 8289, section 4.2:
/// INTERVAL).
pub const INTERVAL_NS: u64 = 100_000_000;

/// Watches one queue.
#[derive(Debug, Default)]
pub struct WaitWatch {
    marker: CongestionMarker,
    /// Time at which the watched frame was seen in the queue.
    since: Timestamp,
    /// Number of frames to be taken out, up to and including the watched one; 0 if none is watched.
    ahead: usize,
}

impl WaitWatch {
    /// Processes one read of the queue: `taken` frames were taken out, and `waiting` frames remain. Returns whether the
    /// last of the taken frames is to be marked.
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

    /// Returns the number of marks in a second in which `taken` frames are taken out each millisecond, and `waiting`
    /// frames remain.
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
        // By the CoDel law the marks of a second are at 100, 200, 271, 328, ... ms: about 32.
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
        // The watched frame has been taken out, too.
        note(300, 3, 0);
        for ms in 301..400 {
            assert!(!note(ms, 1, 0), "{ms}");
        }
        // A new interval has to pass.
        assert!((400..499).all(|ms| !note(ms, 1, 10)));
        assert!((499..530).any(|ms| note(ms, 1, 10)));
    }
}
