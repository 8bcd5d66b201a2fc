//! Congestion control of one flow: how Data, congestion marks and losses change its window, and when it may send.
//!
//! Only the adaptive window measures the path: it also shrinks for queues that are not full yet, and not for every
//! loss. One overfull queue shows in many packets, so congestion counts only for Interests sent after the last
//! reduction: once per round trip.

use std::time::{Duration, Instant};

use super::adaptive::Adaptive;
use super::congestion::{Window, WindowKind};
use super::path::Loss;

/// A congestion window and the law that moves it.
#[derive(Clone, Debug)]
pub struct CongestionControl {
    law: Law,
    /// Arrival time of the last Data.
    last_arrival: Option<Instant>,
    /// Time of the last reduction for congestion.
    last_reduction: Option<Instant>,
}

#[derive(Clone, Debug)]
enum Law {
    Adaptive(Box<Adaptive>),
    Window(Window),
}

impl CongestionControl {
    /// Creates the control of a new flow. Its window starts at `initial` Interests and never exceeds `max`. The
    /// adaptive window starts at one Interest, and `initial` limits its first flight.
    pub fn new(kind: WindowKind, initial: f64, max: f64) -> Self {
        let law = match kind {
            WindowKind::Adaptive => Law::Adaptive(Box::new(Adaptive::new(initial, max))),
            _ => Law::Window(Window::new(kind, initial, max)),
        };
        Self { law, last_arrival: None, last_reduction: None }
    }

    /// Starts with two Interests instead of one, for an object that is known to have several segments. Must be called
    /// before the first Interest is sent.
    pub(super) fn skip_first(&mut self) {
        if let Law::Adaptive(adaptive) = &mut self.law {
            adaptive.skip_first();
        }
    }

    /// Returns the number of Interests that may be in flight.
    pub fn window(&self) -> usize {
        match &self.law {
            Law::Adaptive(adaptive) => adaptive.size(),
            Law::Window(window) => window.size(),
        }
    }

    /// Returns the largest window so far, in Interests.
    pub fn largest(&self) -> usize {
        match &self.law {
            Law::Adaptive(adaptive) => adaptive.largest(),
            Law::Window(window) => window.largest(),
        }
    }

    /// Returns the number of window reductions.
    pub fn decreases(&self) -> u64 {
        match &self.law {
            Law::Adaptive(adaptive) => adaptive.decreases(),
            Law::Window(window) => window.decreases(),
        }
    }

    /// Returns true if an Interest may be sent now, with `in_flight` Interests outstanding. The caller must call
    /// [`on_send`](Self::on_send) if it sends one.
    pub fn may_send(&mut self, now: Instant, in_flight: usize) -> bool {
        match &mut self.law {
            Law::Adaptive(adaptive) => adaptive.may_send(now, in_flight),
            Law::Window(window) => in_flight < window.size(),
        }
    }

    /// Returns when an Interest may be sent if nothing arrives before, with `in_flight` Interests outstanding. `None`
    /// if sending has to wait for Data.
    pub fn next_send(&self, in_flight: usize) -> Option<Instant> {
        match &self.law {
            Law::Adaptive(adaptive) => adaptive.next_send(in_flight),
            Law::Window(_) => None,
        }
    }

    /// Records that an Interest was sent at `now`.
    pub fn on_send(&mut self, now: Instant) {
        if let Law::Adaptive(adaptive) = &mut self.law {
            adaptive.on_send(now);
        }
    }

    /// Records the arrival of a Data. `sent_at` is when its Interest was sent, if known. `rtt` is its round-trip time,
    /// `None` if the Interest was retransmitted. `min_rtt` is the smallest round-trip time of the flow. `marked` is
    /// true if the Data has a CongestionMark.
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

    /// Records the loss of the Interest sent at `sent_at`, or of its Data. The adaptive window does not take every loss
    /// for congestion, but always a loss after which nothing has arrived.
    pub fn on_loss(&mut self, now: Instant, sent_at: Instant) {
        let nothing_comes = self.last_arrival.is_none_or(|last| last <= sent_at);
        if let Law::Adaptive(adaptive) = &mut self.law {
            match adaptive.judge_loss() {
                Loss::BadLine if !nothing_comes => return,
                // The line may also have lost the packet.
                Loss::Queue if !nothing_comes => return adaptive.on_queue_loss(now, sent_at),
                _ => {}
            }
        }
        self.on_congestion(now, sent_at);
    }

    /// Records congestion reported by a router on the path: a CongestionMark, or a Nack with reason Congestion.
    pub fn on_congestion(&mut self, now: Instant, sent_at: Instant) {
        match &mut self.law {
            Law::Adaptive(adaptive) => adaptive.on_congestion(now, sent_at),
            // One overfull queue shows in many packets: only Interests sent after the last reduction count.
            Law::Window(window) if self.last_reduction.is_none_or(|last| sent_at > last) => {
                self.last_reduction = Some(now);
                window.on_congestion();
            }
            Law::Window(_) => {}
        }
    }
}
