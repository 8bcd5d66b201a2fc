//! Frames that a port dropped below the faces. The thread that uses the queues counts; any thread may read.

use std::iter::Sum;
use std::sync::atomic::{AtomicU64, Ordering};

/// Frames dropped since the port was opened, by cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Losses {
    /// The receive ring was full: the worker is overloaded.
    pub receive_ring_full: u64,
    /// The buffer pool was empty.
    pub no_buffer: u64,
    /// The peer or the driver delivered data that cannot be a frame.
    pub malformed: u64,
    /// The kernel or the card refused to send.
    pub send_failed: u64,
}

/// Sums the counters of several queues.
impl Sum for Losses {
    fn sum<I: Iterator<Item = Losses>>(losses: I) -> Losses {
        losses.fold(Losses::default(), |sum, of_queue| Losses {
            receive_ring_full: sum.receive_ring_full + of_queue.receive_ring_full,
            no_buffer: sum.no_buffer + of_queue.no_buffer,
            malformed: sum.malformed + of_queue.malformed,
            send_failed: sum.send_failed + of_queue.send_failed,
        })
    }
}

impl Losses {
    /// Frames dropped since the reading `before`. A port that was reopened counts from zero, so differences stop at
    /// zero.
    pub fn since(self, before: Losses) -> Losses {
        Losses {
            receive_ring_full: self.receive_ring_full.saturating_sub(before.receive_ring_full),
            no_buffer: self.no_buffer.saturating_sub(before.no_buffer),
            malformed: self.malformed.saturating_sub(before.malformed),
            send_failed: self.send_failed.saturating_sub(before.send_failed),
        }
    }
}

/// The counters behind [`Losses`]. Each has a single writing thread.
#[derive(Debug, Default)]
pub(crate) struct LossCounters {
    pub(crate) no_buffer: LossCounter,
    pub(crate) malformed: LossCounter,
    pub(crate) send_failed: LossCounter,
}

impl LossCounters {
    pub(crate) fn read(&self) -> Losses {
        Losses {
            receive_ring_full: 0,
            no_buffer: self.no_buffer.0.load(Ordering::Relaxed),
            malformed: self.malformed.0.load(Ordering::Relaxed),
            send_failed: self.send_failed.0.load(Ordering::Relaxed),
        }
    }
}

/// A counter with one writing thread.
#[derive(Debug, Default)]
pub(crate) struct LossCounter(AtomicU64);

impl LossCounter {
    pub(crate) fn add(&self, count: usize) {
        self.0.store(self.0.load(Ordering::Relaxed) + count as u64, Ordering::Relaxed);
    }
}
