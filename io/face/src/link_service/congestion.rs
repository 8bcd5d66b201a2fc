//! Decides when packets are marked as congested: by the length of a queue, with the CoDel control law for the intervals
//! between marks (NDNLPv2 congestion marking as in NFD).
//!
//! The first mark is set when the queue has been above the threshold for one base interval. While it stays above, mark
//! n is followed by the next one after `interval / sqrt(n + 1)`. A queue at or below the threshold ends the incident.

use namehop_packet::Timestamp;

/// Decides for each packet of one queue whether it is marked. The queue length is in bytes for the link's send queue.
/// Between workers it is the waiting time of packets, in nanoseconds.
#[derive(Debug, Default)]
pub struct CongestionMarker {
    /// 0 while the queue is short.
    next_mark: Timestamp,
    marks_in_incident: u32,
}

impl CongestionMarker {
    /// Whether a packet sent now is to be marked. Call it exactly once for every packet.
    #[inline]
    pub fn should_mark(&mut self, now: Timestamp, queue: u64, threshold: u64, base_interval_ns: u64) -> bool {
        if queue <= threshold {
            *self = CongestionMarker::default();
            return false;
        }
        self.should_mark_in_incident(now, base_interval_ns)
    }

    #[cold]
    fn should_mark_in_incident(&mut self, now: Timestamp, base_interval_ns: u64) -> bool {
        let next_mark = self.next_mark;
        if next_mark == Timestamp::default() {
            self.next_mark = Timestamp(now.0.saturating_add(base_interval_ns));
            return false;
        }
        if now < next_mark {
            return false;
        }
        self.marks_in_incident = self.marks_in_incident.saturating_add(1);
        let divisor = (f64::from(self.marks_in_incident) + 1.0).sqrt();
        let step_ns = (base_interval_ns as f64 / divisor) as u64;
        self.next_mark = Timestamp(next_mark.0.saturating_add(step_ns));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn ask(marker: &mut CongestionMarker, at_ms: u64, queue: u64) -> bool {
        marker.should_mark(Timestamp(at_ms * MS), queue, 1000, 100 * MS)
    }

    #[test]
    fn marks_follow_the_codel_law_while_the_queue_is_long() {
        let mut marker = CongestionMarker::default();
        let marks: Vec<u64> = (0..=400).filter(|&ms| ask(&mut marker, ms, 1001)).collect();
        // 100, then +100/sqrt(2) = 70.7, +100/sqrt(3) = 57.7, +50, +44.7, +40.8; rounded up to whole milliseconds.
        assert_eq!(marks, [100, 171, 229, 279, 324, 364]);
    }

    #[test]
    fn a_short_queue_ends_the_incident() {
        let mut marker = CongestionMarker::default();
        assert!(!ask(&mut marker, 0, 5000));
        assert!(!ask(&mut marker, 99, 5000));
        assert!(!ask(&mut marker, 100, 1000));
        assert!(!ask(&mut marker, 101, 5000));
        assert!(!ask(&mut marker, 200, 5000));
        assert!(ask(&mut marker, 201, 5000));
        assert!(!ask(&mut marker, 202, 5000));
    }

    #[test]
    fn extreme_values_do_not_overflow() {
        let mut marker = CongestionMarker::default();
        assert!(!marker.should_mark(Timestamp(u64::MAX), u64::MAX, 0, u64::MAX));
        assert!(marker.should_mark(Timestamp(u64::MAX), u64::MAX, 0, u64::MAX));
        assert!(marker.should_mark(Timestamp(u64::MAX), u64::MAX, 0, u64::MAX));
    }
}
