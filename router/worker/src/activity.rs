//! A worker's clock, and figures of its activity.

use std::time::{Duration, Instant};

use namehop_packet::Timestamp;

/// The clock of a worker, and what it has done; see the module's description.
pub(super) struct Activity {
    /// When the worker's clock started.
    pub(super) started: Instant,
    /// Total time of poll iterations that found work.
    pub(super) busy: Duration,
    /// Number of the CPU that the thread is pinned to.
    pub(super) processor: Option<usize>,
    /// Number of packets marked as congested because frames behind them had waited too long in a ring or at a port.
    pub(super) congestion_marks: u64,
}

impl Activity {
    pub(super) fn new(started: Instant) -> Self {
        Activity { started, busy: Duration::ZERO, processor: None, congestion_marks: 0 }
    }

    /// Returns the time on the worker's clock.
    pub(super) fn now(&self) -> Timestamp {
        Timestamp(u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}
