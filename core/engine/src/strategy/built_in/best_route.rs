//! The best-route strategy: uses the next hop of lowest cost, and the others only for retransmissions. The default
//! strategy.
//!
//! A new Interest goes to the eligible next hop of lowest cost. A retransmission that is not suppressed goes to the
//! cheapest eligible next hop that is unused or, if all are used, to the one used longest ago ("Best Route Strategy" in
//! section "List of Strategies" of the NFD Developer's Guide).

use crate::strategy::Strategy;
use crate::strategy::context::StrategyContext;
use crate::strategy::parameter::Parameters;
use crate::strategy::suppression::{Decision, ExponentialSuppression};
use crate::strategy::upstreams::{answer_no_route, cheapest_eligible, eligible_unused, eligible_used_longest_ago};

/// The best-route strategy and its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct BestRoute {
    /// Per PIT entry.
    suppression: ExponentialSuppression,
}

impl Strategy for BestRoute {
    const NAME: &'static str = "best-route";
    const VERSION: u64 = 5;
    const SUMMARY: &'static str = "lowest-cost next hop; retransmissions try the others";
    const WANTS_DATA: bool = false;

    fn parameters(&mut self) -> Parameters<'_> {
        Parameters::default().and_suppression(&mut self.suppression)
    }

    // Not by `forward_per_entry`, which costs two more instructions for each new Interest of the default strategy.
    #[inline]
    fn after_receive_interest<C: StrategyContext>(&self, ctx: &mut C) {
        match self.suppression.decide_per_entry(ctx) {
            Decision::Suppress => {}
            Decision::New => match cheapest_eligible(ctx) {
                Some(nexthop) => {
                    ctx.send_interest(nexthop);
                }
                None => answer_no_route(ctx),
            },
            Decision::Forward => retransmit(ctx),
        }
    }
}

fn retransmit<C: StrategyContext>(ctx: &mut C) {
    let unused = eligible_unused(ctx).next();
    if let Some(face) = unused.or_else(|| eligible_used_longest_ago(ctx)) {
        ctx.send_interest(face);
    }
}

#[cfg(test)]
#[path = "tests/best_route.rs"]
mod tests;
