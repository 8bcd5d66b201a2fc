//! Retransmission suppression: which Interests for a pending name are sent upstream again.
//!
//! After an Interest went out, further Interests for the same PIT entry within the suppression interval are only
//! aggregated. An Interest that comes later is forwarded as a retransmission and the interval grows. State is a single
//! number, kept per PIT entry or per out-record as the strategy chooses, so that nothing is allocated.

use super::context::StrategyContext;
use super::upstreams::{has_pending, is_pending, out_record_of};
use namehop_packet::{FaceId, Timestamp};

/// What to do with an Interest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Nobody is expected to answer: forward it as a new Interest.
    New,
    /// It comes late enough after the last one: forward it as a retransmission.
    Forward,
    /// It comes too early: aggregate it and send nothing.
    Suppress,
}

/// Exponential suppression: the interval starts at `initial_us` and is multiplied with each retransmission.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExponentialSuppression {
    /// First interval, in microseconds; not 0.
    pub initial_us: u32,
    /// Longest interval, in microseconds; at least `initial_us`.
    pub max_us: u32,
    /// Growth with each retransmission; at least 1.
    pub multiplier: f32,
}

impl Default for ExponentialSuppression {
    /// 10 ms, doubling up to 250 ms.
    fn default() -> Self {
        ExponentialSuppression { initial_us: 10_000, max_us: 250_000, multiplier: 2.0 }
    }
}

impl ExponentialSuppression {
    /// Decides with one interval for the whole PIT entry, measured from the last time that any upstream was sent to.
    /// Grows the interval when the answer is `Decision::Forward`.
    #[inline]
    pub fn decide_per_entry<C: StrategyContext>(&self, ctx: &mut C) -> Decision {
        if has_pending(ctx) { self.decide_again(ctx) } else { Decision::New }
    }

    fn decide_again<C: StrategyContext>(&self, ctx: &mut C) -> Decision {
        // Records with a Nack count too: the interval runs from the last time anything was sent.
        let last = ctx.out_records().map(|record| record.last_renewed).max().unwrap_or_default();
        let now = ctx.now();
        let scratch = ctx.pit_scratch();
        let interval_us = self.current(scratch.suppression_us);
        if is_within(last, interval_us, now) {
            return Decision::Suppress;
        }
        scratch.suppression_us = self.grown(interval_us);
        Decision::Forward
    }

    /// Decides for one upstream with the interval of its out-record. Does not grow it: see [`grow_upstream`](Self::grow_upstream).
    pub fn decide_per_upstream<C: StrategyContext>(&self, ctx: &mut C, upstream: FaceId) -> Decision {
        let now = ctx.now();
        let Some(record) = out_record_of(ctx, upstream).filter(|record| is_pending(record, now)) else {
            return Decision::New;
        };
        let interval_us = self.current(ctx.out_scratch(upstream).map_or(0, |scratch| scratch.suppression_us));
        if is_within(record.last_renewed, interval_us, now) { Decision::Suppress } else { Decision::Forward }
    }

    /// Grows the interval of one upstream; call it when a retransmission was really sent there.
    pub fn grow_upstream<C: StrategyContext>(&self, ctx: &mut C, upstream: FaceId) {
        if let Some(scratch) = ctx.out_scratch(upstream) {
            scratch.suppression_us = self.grown(self.current(scratch.suppression_us));
        }
    }

    fn current(&self, stored_us: u32) -> u32 {
        if stored_us == 0 { self.initial_us } else { stored_us }
    }

    fn grown(&self, interval_us: u32) -> u32 {
        // A float-to-integer cast saturates, so a huge multiplier ends at the maximum.
        ((f64::from(interval_us) * f64::from(self.multiplier)) as u32).min(self.max_us)
    }
}

fn is_within(last: Timestamp, interval_us: u32, now: Timestamp) -> bool {
    now.since_ns(last) < u64::from(interval_us) * 1_000
}

#[cfg(test)]
#[path = "tests/suppression.rs"]
mod tests;
