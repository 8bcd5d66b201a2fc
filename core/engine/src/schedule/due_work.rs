//! What is due at a time rather than for a packet: before and after a burst, and between bursts.

use namehop_packet::{Outgoing, Timestamp};

use crate::engine::Engine;

impl Engine {
    /// Does what is due before a burst of this number of packets, as [`advance`](Self::advance). `prefetches_timers`
    /// says whether the PIT entries of due timers are prefetched. Must be called before the packets are decoded.
    #[inline(always)]
    pub fn begin_burst(&mut self, now: Timestamp, packets: usize, prefetches_timers: bool, out: &mut Vec<Outgoing>) {
        self.do_due_work(now, prefetches_timers, out);
        if packets > 0 {
            self.state.dead_nonces.expect_use(packets);
        }
        self.state.strategies.update(self.fib.strategies_version(), self.state.pcct.pit.last_serial());
    }

    /// Ends a burst, after its last packet was handled.
    #[inline(always)]
    pub fn end_burst(&mut self) {
        self.state.emitter.end_trace_if_on();
        self.flush_tier();
        self.fib.quiescent();
    }

    /// Handles due timers, and a bounded part of the work that new next hops and lost faces require.
    pub fn advance(&mut self, now: Timestamp, out: &mut Vec<Outgoing>) {
        self.do_due_work(now, true, out);
    }

    /// See [`begin_burst`](Self::begin_burst) for `prefetches_timers`.
    fn do_due_work(&mut self, now: Timestamp, prefetches_timers: bool, out: &mut Vec<Outgoing>) {
        self.state.emitter.set_now(now);
        self.state.limits.grow(now);
        self.fire_timers(now, prefetches_timers.then_some(self.lookahead), out);
        if !self.state.learning.is_idle() {
            self.state.learning.send_overdue(&mut self.state.emitter, now, out);
        }
        if self.state.tier_reads.is_some() {
            self.poll_tier(now, out);
        }
        if !self.state.lost_upstreams.is_idle() {
            self.retry_lost(now, out);
        }
        self.continue_new_nexthops(now, out);
    }
}
