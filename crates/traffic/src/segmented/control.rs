//! Congestion control of one flow: what Data, marks and losses do to its window.
//!
//! The adaptive window alone watches the path: it also shrinks for queues before they are full, and not for each loss. One overfull queue
//! shows in many packets, so congestion counts only on Interests sent after the window was last reduced: once per round trip.

use std::time::{Duration, Instant};

use super::congestion::{Window, WindowKind};
use super::path::{Loss, PathWatch, Sign};

/// A window and what moves it.
#[derive(Clone, Debug)]
pub struct CongestionControl {
    window: Window,
    /// Of the adaptive window.
    path: PathWatch,
    /// When the last Data came.
    last_arrival: Option<Instant>,
    /// When the window was last reduced for congestion.
    last_reduction: Option<Instant>,
}

impl CongestionControl {
    /// For a flow that has not begun.
    pub fn new(window: Window) -> Self {
        Self { window, path: PathWatch::default(), last_arrival: None, last_reduction: None }
    }

    /// Its window.
    pub fn window(&self) -> &Window {
        &self.window
    }

    fn is_adaptive(&self) -> bool {
        self.window.kind() == WindowKind::Adaptive
    }

    /// Interests that may be in flight now.
    pub fn allowed(&self) -> usize {
        let size = self.window.size();
        if self.is_adaptive() && self.path.is_draining() { size.div_ceil(2) } else { size }
    }

    /// A Data came. `sent_at` is when its Interest was sent, if that is known; `rtt` is its round-trip time unless the Interest was sent
    /// more than once, `min_rtt` the smallest of the flow; `marked` says whether it had a CongestionMark.
    pub fn on_data(
        &mut self,
        now: Instant,
        sent_at: Option<Instant>,
        rtt: Option<Duration>,
        min_rtt: Option<Duration>,
        marked: bool,
    ) {
        self.last_arrival = Some(now);
        match sent_at {
            Some(sent_at) if marked => self.on_congestion(now, sent_at),
            // As long as it is not known what a smaller window led to, it does not grow.
            _ if self.is_adaptive() && self.path.has_shrunk() => {}
            _ => self.window.on_data(now, rtt, min_rtt),
        }
        if self.is_adaptive()
            && let (Some(sent_at), Some(rtt)) = (sent_at, rtt)
            && let Sign::Queue(path_share) = self.path.on_data(now, sent_at, rtt)
        {
            self.on_queue(now, sent_at, path_share);
        }
    }

    /// The Interest that was sent at `sent_at`, or its Data, was lost. For the adaptive window not each loss means that there is too
    /// much traffic, but one after which nothing has come always does.
    pub fn on_loss(&mut self, now: Instant, sent_at: Instant) {
        let nothing_comes = self.last_arrival.is_none_or(|last| last <= sent_at);
        match self.is_adaptive().then(|| self.path.on_loss()) {
            Some(Loss::BadLine) if !nothing_comes => {}
            // The line may have lost it.
            Some(Loss::Queue) if !nothing_comes => self.on_queue(now, sent_at, 1.0),
            _ => self.on_congestion(now, sent_at),
        }
    }

    /// Somebody on the path says that there is too much traffic: a mark, or a Nack for congestion.
    pub fn on_congestion(&mut self, now: Instant, sent_at: Instant) {
        if self.may_reduce(now, sent_at) {
            self.window.on_congestion();
        }
    }

    /// A queue stands on the path that need not be full.
    fn on_queue(&mut self, now: Instant, sent_at: Instant, path_share: f64) {
        if self.may_reduce(now, sent_at) {
            self.window.on_queue(path_share);
        }
    }

    /// Was what was sent then sent after the last reduction? Then there is another one now.
    fn may_reduce(&mut self, now: Instant, sent_at: Instant) -> bool {
        let may = self.last_reduction.is_none_or(|last| sent_at > last);
        if may {
            self.last_reduction = Some(now);
        }
        may
    }
}
