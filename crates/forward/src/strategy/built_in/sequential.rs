//! The sequential strategy: one next hop after the other, for each Interest from the cheapest on.
//!
//! A new Interest goes to the eligible next hop of lowest cost, and each retransmission that is not suppressed to the one behind
//! the last that got it; after the last comes the first again.

use crate::strategy::Strategy;
use crate::strategy::context::StrategyContext;
use crate::strategy::parameter::Parameter;
use crate::strategy::suppression::{Decision, ExponentialSuppression};
use crate::strategy::upstreams::{answer_no_route, eligible_from};

/// The strategy and its parameters. The flags of the PIT entry hold the position of the next hop that is to be tried next.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sequential {
    /// Per PIT entry.
    suppression: ExponentialSuppression,
}

impl Strategy for Sequential {
    const NAME: &'static str = "sequential";
    const VERSION: u64 = 1;
    const SUMMARY: &'static str = "lowest-cost next hop; each retransmission goes to the following one";
    const WANTS_DATA: bool = false;

    fn parameters(&mut self) -> Vec<Parameter<'_>> {
        self.suppression.parameters()
    }

    fn check(&self) -> Result<(), String> {
        self.suppression.check()
    }

    fn after_receive_interest<C: StrategyContext>(&self, ctx: &mut C) {
        let decision = self.suppression.decide_per_entry(ctx);
        if decision == Decision::Suppress {
            return;
        }
        let next = u64::from(ctx.pit_scratch().flags);
        match eligible_from(ctx, next) {
            Some((position, face)) => {
                ctx.pit_scratch().flags = position as u32 + 1;
                ctx.send_interest(face);
            }
            None if decision == Decision::New => answer_no_route(ctx),
            None => {}
        }
    }
}

#[cfg(test)]
#[path = "tests/sequential.rs"]
mod tests;
