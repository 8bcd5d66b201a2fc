//! The random strategy: each Interest goes to one eligible next hop, all with the same probability.
//!
//! Retransmissions are suppressed as in best-route; one that is forwarded goes to a next hop chosen anew.

use crate::strategy::Strategy;
use crate::strategy::context::StrategyContext;
use crate::strategy::parameter::Parameter;
use crate::strategy::suppression::{Decision, ExponentialSuppression};
use crate::strategy::upstreams::{answer_no_route, eligible};

/// The strategy and its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Random {
    /// Per PIT entry.
    suppression: ExponentialSuppression,
}

impl Strategy for Random {
    const NAME: &'static str = "random";
    const VERSION: u64 = 1;
    const SUMMARY: &'static str = "one next hop, chosen at random";
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
        let count = eligible(ctx).count() as u64;
        if count == 0 {
            if decision == Decision::New {
                answer_no_route(ctx);
            }
            return;
        }
        let chosen = (ctx.random() % count) as usize;
        let face = eligible(ctx).nth(chosen);
        if let Some(face) = face {
            ctx.send_interest(face);
        }
    }
}

#[cfg(test)]
#[path = "tests/random.rs"]
mod tests;
