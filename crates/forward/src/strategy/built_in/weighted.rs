//! The weighted strategy: each Interest goes to one eligible next hop, drawn with the probability that its weight gives it.
//!
//! Weights belong to next hops in the order of their costs. Retransmissions are suppressed as in best-route; one that is forwarded
//! goes to a next hop drawn anew.

use crate::strategy::Strategy;
use crate::strategy::context::StrategyContext;
use crate::strategy::parameter::{ByteList, Parameter};
use crate::strategy::suppression::{Decision, ExponentialSuppression};
use crate::strategy::upstreams::answer_no_route;

/// The strategy and its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Weighted {
    weights: ByteList,
    /// Per PIT entry.
    suppression: ExponentialSuppression,
}

impl Strategy for Weighted {
    const NAME: &'static str = "weighted";
    const VERSION: u64 = 1;
    const SUMMARY: &'static str = "one next hop, chosen at random by weight";
    const WANTS_DATA: bool = false;

    fn parameters(&mut self) -> Vec<Parameter<'_>> {
        let mut parameters = vec![Parameter::new(
            "weights",
            &mut self.weights,
            ByteList::ALL_LEAST..=ByteList::ALL_GREATEST,
            "up to 8 weights of 1 to 255, joined by hyphens, of the next hops from the cheapest on; further ones have the last",
        )];
        parameters.extend(self.suppression.parameters());
        parameters
    }

    fn check(&self) -> Result<(), String> {
        self.suppression.check()
    }

    fn after_receive_interest<C: StrategyContext>(&self, ctx: &mut C) {
        let decision = self.suppression.decide_per_entry(ctx);
        if decision == Decision::Suppress {
            return;
        }
        let weight_of = |ctx: &C, index: usize| match ctx.is_eligible(ctx.nexthop(index)) {
            true => self.weights.get(index),
            false => 0,
        };
        let total: u64 = (0..ctx.nexthop_count()).map(|index| weight_of(ctx, index)).sum();
        if total == 0 {
            if decision == Decision::New {
                answer_no_route(ctx);
            }
            return;
        }
        let mut drawn = ctx.random() % total;
        for index in 0..ctx.nexthop_count() {
            let weight = weight_of(ctx, index);
            if drawn < weight {
                ctx.send_interest(ctx.nexthop(index));
                return;
            }
            drawn -= weight;
        }
    }
}

#[cfg(test)]
#[path = "tests/weighted.rs"]
mod tests;
