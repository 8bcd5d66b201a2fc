//! The delay strategy: delays Interests before they go to the next hop of lowest cost.
//!
//! For tests of applications with the delay of a long path. Retransmissions that are not suppressed are delayed too;
//! Interests for a name that is already delayed are aggregated.

use crate::strategy::Strategy;
use crate::strategy::context::StrategyContext;
use crate::strategy::parameter::{Parameter, Parameters};
use crate::strategy::suppression::ExponentialSuppression;
use crate::strategy::upstreams::cheapest_eligible;

/// PIT entry flag: the Interest is delayed.
const WAITING: u32 = 1;

/// The delay strategy and its parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Delay {
    /// The delay of Interests.
    delay_ms: u32,
    /// Per PIT entry.
    suppression: ExponentialSuppression,
}

impl Default for Delay {
    fn default() -> Self {
        Delay { delay_ms: 100, suppression: ExponentialSuppression::default() }
    }
}

impl Strategy for Delay {
    const NAME: &'static str = "delay";
    const VERSION: u64 = 1;
    const SUMMARY: &'static str = "lowest-cost next hop, after a delay";
    const WANTS_DATA: bool = false;

    fn parameters(&mut self) -> Parameters<'_> {
        let own = vec![Parameter::new(
            "delay",
            &mut self.delay_ms,
            1..=10_000,
            "delay of each Interest, in milliseconds; Interests with a shorter lifetime are not forwarded",
        )];
        Parameters::from(own).and_suppression(&mut self.suppression)
    }

    fn after_receive_interest<C: StrategyContext>(&self, ctx: &mut C) {
        self.suppression.forward_per_entry(ctx, |ctx, _| {
            if ctx.pit_scratch().flags == WAITING {
                return true;
            }
            let has_nexthop = cheapest_eligible(ctx).is_some();
            if has_nexthop {
                ctx.pit_scratch().flags = WAITING;
                ctx.schedule_timer_us(u64::from(self.delay_ms) * 1_000);
            }
            has_nexthop
        });
    }

    fn after_timer<C: StrategyContext>(&self, ctx: &mut C) {
        let was_waiting = std::mem::take(&mut ctx.pit_scratch().flags) == WAITING;
        if was_waiting && let Some(face) = cheapest_eligible(ctx) {
            ctx.send_interest(face);
        }
    }
}

#[cfg(test)]
#[path = "tests/delay.rs"]
mod tests;
