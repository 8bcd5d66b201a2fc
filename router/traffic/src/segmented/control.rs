//! Congestion control of one flow: what Data, marks and losses do to its window, and when it may send.
//!
//! The adaptive window alone watches the path: it also shrinks for queues before they are full, and not for each loss. One overfull queue
//! shows in many packets, so congestion counts only on Interests sent after the window was last reduced: once per round trip.

use std::time::{Duration, Instant};

use super::adaptive::Adaptive;
use super::congestion::{Window, WindowKind};
use super::path::Loss;

/// A window and what moves it.
#[derive(Clone, Debug)]
pub struct CongestionControl {
    law: Law,
    /// When the last Data came.
    last_arrival: Option<Instant>,
    /// When the window was last reduced for congestion.
    last_reduction: Option<Instant>,
}

#[derive(Clone, Debug)]
enum Law {
    Adaptive(Box<Adaptive>),
    Window(Window),
}

impl CongestionControl {
    /// For a flow that has not begun. Its window starts at `initial` Interests and never exceeds `max`; the adaptive one starts with one,
    /// and `initial` bounds its first flight.
    pub fn new(kind: WindowKind, initial: f64, max: f64) -> Self {
        let law = match kind {
            WindowKind::Adaptive => Law::Adaptive(Box::new(Adaptive::new(initial, max))),
            _ => Law::Window(Window::new(kind, initial, max)),
        };
        Self { law, last_arrival: None, last_reduction: None }
    }

    /// Begins with two Interests instead of one, for a flow that is known to have more than one. To be called before the flow begins.
    pub(super) fn skip_first(&mut self) {
        if let Law::Adaptive(adaptive) = &mut self.law {
            adaptive.skip_first();
        }
    }

    /// Interests that may be in flight.
    pub fn window(&self) -> usize {
        match &self.law {
            Law::Adaptive(adaptive) => adaptive.size(),
            Law::Window(window) => window.size(),
        }
    }

    /// The largest window so far.
    pub fn largest(&self) -> usize {
        match &self.law {
            Law::Adaptive(adaptive) => adaptive.largest(),
            Law::Window(window) => window.largest(),
        }
    }

    /// How often the window was reduced.
    pub fn decreases(&self) -> u64 {
        match &self.law {
            Law::Adaptive(adaptive) => adaptive.decreases(),
            Law::Window(window) => window.decreases(),
        }
    }

    /// Whether an Interest may leave now, when so many are in flight. If it leaves, [`on_send`](Self::on_send) must be called.
    pub fn may_send(&mut self, now: Instant, in_flight: usize) -> bool {
        match &mut self.law {
            Law::Adaptive(adaptive) => adaptive.may_send(now, in_flight),
            Law::Window(window) => in_flight < window.size(),
        }
    }

    /// When an Interest may leave although nothing arrives before, if so many are in flight; `None` while only Data can make room.
    pub fn next_send(&self, in_flight: usize) -> Option<Instant> {
        match &self.law {
            Law::Adaptive(adaptive) => adaptive.next_send(in_flight),
            Law::Window(_) => None,
        }
    }

    /// An Interest leaves.
    pub fn on_send(&mut self, now: Instant) {
        if let Law::Adaptive(adaptive) = &mut self.law {
            adaptive.on_send(now);
        }
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
        let congested_at = sent_at.filter(|_| marked);
        if let Some(sent_at) = congested_at {
            self.on_congestion(now, sent_at);
        }
        match &mut self.law {
            Law::Adaptive(adaptive) => adaptive.on_data(now, sent_at, rtt),
            Law::Window(window) if congested_at.is_none() => window.on_data(now, rtt, min_rtt),
            Law::Window(_) => {}
        }
    }

    /// The Interest that was sent at `sent_at`, or its Data, was lost. For the adaptive window not each loss means that there is too
    /// much traffic, but one after which nothing has come always does.
    pub fn on_loss(&mut self, now: Instant, sent_at: Instant) {
        let nothing_comes = self.last_arrival.is_none_or(|last| last <= sent_at);
        if let Law::Adaptive(adaptive) = &mut self.law {
            match adaptive.judge_loss() {
                Loss::BadLine if !nothing_comes => return,
                // The line may have lost it.
                Loss::Queue if !nothing_comes => return adaptive.on_queue_loss(now, sent_at),
                _ => {}
            }
        }
        self.on_congestion(now, sent_at);
    }

    /// A router on the path says that there is too much traffic: a mark, or a Nack for congestion.
    pub fn on_congestion(&mut self, now: Instant, sent_at: Instant) {
        match &mut self.law {
            Law::Adaptive(adaptive) => adaptive.on_congestion(now, sent_at),
            // One overfull queue shows in many packets: only those that were sent after the last reduction count.
            Law::Window(window) if self.last_reduction.is_none_or(|last| sent_at > last) => {
                self.last_reduction = Some(now);
                window.on_congestion();
            }
            Law::Window(_) => {}
        }
    }
}
