//! Retransmission suppression: which Interests for a pending name are sent upstream again.
//!
//! After an Interest was sent, further Interests for the same PIT entry are suppressed until the suppression interval
//! is over: their downstreams get an in-record and nothing is sent. A later Interest is forwarded as a retransmission,
//! and the interval grows exponentially ("Best Route Strategy" in section "List of Strategies" of the NFD Developer's
//! Guide). The current interval is one number, stored in the PIT entry or in the out-record as the strategy chooses.
//!
//! A strategy that suppresses retransmissions has an [`ExponentialSuppression`] among its parameters
//! ([`Parameters::and_suppression`](super::parameter::Parameters::and_suppression)). With one interval per PIT entry,
//! it handles Interests by [`ExponentialSuppression::forward_per_entry`].

use namehop_packet::{FaceId, Timestamp};

use super::context::StrategyContext;
use super::parameter::{Parameter, ParameterError};
use super::upstreams::{answer_no_route, has_pending, is_pending, out_record_of};

/// Maximum interval: one hour, which in microseconds fits into 32 bits.
const MAX_INTERVAL_MS: u32 = 3_600_000;
/// Maximum growth factor: about one step from the shortest to the longest interval.
const MAX_MULTIPLIER: f32 = 1_000_000.0;

/// The decision about an Interest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// No upstream is expected to answer: forward it as a new Interest.
    New,
    /// It arrives after the interval: forward it as a retransmission.
    Forward,
    /// It arrives within the interval: send nothing.
    Suppress,
}

/// Exponential suppression: the interval starts at `initial_ms` and is multiplied with each retransmission.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExponentialSuppression {
    /// First interval, in milliseconds.
    pub initial_ms: u32,
    /// Longest interval, in milliseconds.
    pub max_ms: u32,
    /// Growth factor of each retransmission.
    pub multiplier: f32,
}

impl Default for ExponentialSuppression {
    /// Returns the defaults of NFD.
    fn default() -> Self {
        ExponentialSuppression { initial_ms: 10, max_ms: 250, multiplier: 2.0 }
    }
}

impl ExponentialSuppression {
    /// Returns the parameters of all strategies that suppress retransmissions.
    pub fn parameters(&mut self) -> Vec<Parameter<'_>> {
        vec![
            Parameter::new(
                "retx-suppression-initial",
                &mut self.initial_ms,
                1..=MAX_INTERVAL_MS,
                "first suppression interval, in milliseconds",
            ),
            Parameter::new(
                "retx-suppression-max",
                &mut self.max_ms,
                1..=MAX_INTERVAL_MS,
                "longest suppression interval, in milliseconds, not less than the first",
            ),
            Parameter::new(
                "retx-suppression-multiplier",
                &mut self.multiplier,
                1.0..=MAX_MULTIPLIER,
                "growth of the suppression interval with each retransmission",
            ),
        ]
    }

    /// Checks the rule between these parameters.
    pub fn check(&self) -> Result<(), ParameterError> {
        if self.max_ms < self.initial_ms {
            let (parameter, least) = ("retx-suppression-max", "retx-suppression-initial");
            return Err(ParameterError::LessThan { parameter, least });
        }
        Ok(())
    }

    /// Handles an Interest, with one interval for the whole PIT entry. Does nothing if it arrives too early. Otherwise
    /// `forward` sends it; its argument is whether the Interest is new and no retransmission, and it returns whether
    /// there was a next hop. A new Interest without a next hop is answered with Nack NoRoute.
    #[inline]
    pub fn forward_per_entry<C: StrategyContext>(&self, ctx: &mut C, forward: impl FnOnce(&mut C, bool) -> bool) {
        let decision = self.decide_per_entry(ctx);
        if decision == Decision::Suppress {
            return;
        }
        let is_new = decision == Decision::New;
        let has_nexthop = forward(ctx, is_new);
        if is_new && !has_nexthop {
            answer_no_route(ctx);
        }
    }

    /// Decides with one interval for the whole PIT entry, which starts when the Interest was last sent to any upstream.
    /// Grows the interval if the result is `Decision::Forward`.
    #[inline]
    pub fn decide_per_entry<C: StrategyContext>(&self, ctx: &mut C) -> Decision {
        if has_pending(ctx) { self.decide_again(ctx) } else { Decision::New }
    }

    fn decide_again<C: StrategyContext>(&self, ctx: &mut C) -> Decision {
        // Records with a Nack count too: the interval starts when anything was last sent.
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

    /// Decides for one upstream with the interval of its out-record. Does not grow it: see
    /// [`grow_upstream`](Self::grow_upstream).
    pub fn decide_per_upstream<C: StrategyContext>(&self, ctx: &mut C, upstream: FaceId) -> Decision {
        let now = ctx.now();
        let Some(record) = out_record_of(ctx, upstream).filter(|record| is_pending(record, now)) else {
            return Decision::New;
        };
        let interval_us = self.current(ctx.out_scratch(upstream).map_or(0, |scratch| scratch.suppression_us));
        if is_within(record.last_renewed, interval_us, now) { Decision::Suppress } else { Decision::Forward }
    }

    /// Grows the interval of one upstream. Must be called after a retransmission was sent there.
    pub fn grow_upstream<C: StrategyContext>(&self, ctx: &mut C, upstream: FaceId) {
        if let Some(scratch) = ctx.out_scratch(upstream) {
            scratch.suppression_us = self.grown(self.current(scratch.suppression_us));
        }
    }

    fn current(&self, stored_us: u32) -> u32 {
        if stored_us == 0 { self.initial_ms * 1_000 } else { stored_us }
    }

    fn grown(&self, interval_us: u32) -> u32 {
        // A float-to-integer cast saturates, so a huge multiplier ends at the maximum.
        ((f64::from(interval_us) * f64::from(self.multiplier)) as u32).min(self.max_ms * 1_000)
    }
}

fn is_within(last: Timestamp, interval_us: u32, now: Timestamp) -> bool {
    now.since_ns(last) < u64::from(interval_us) * 1_000
}

#[cfg(test)]
#[path = "tests/suppression.rs"]
mod tests;
