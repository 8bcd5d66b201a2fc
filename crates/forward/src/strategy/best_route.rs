//! The best-route strategy: the next hop of lowest cost, the others only for retransmissions. The default strategy.
//!
//! A new Interest goes to the eligible next hop of lowest cost. A retransmission that is not suppressed goes to the
//! cheapest one not used yet and, when all are used, to the one used longest ago.

use super::context::StrategyContext;
use super::suppression::{Decision, ExponentialSuppression};
use super::upstreams::{answer_no_route, cheapest_eligible, eligible_unused, eligible_used_longest_ago};

/// An Interest arrived.
#[inline]
pub fn after_receive_interest<C: StrategyContext>(suppression: &ExponentialSuppression, ctx: &mut C) {
    match suppression.decide_per_entry(ctx) {
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

fn retransmit<C: StrategyContext>(ctx: &mut C) {
    let unused = eligible_unused(ctx).next();
    if let Some(face) = unused.or_else(|| eligible_used_longest_ago(ctx)) {
        ctx.send_interest(face);
    }
}

#[cfg(test)]
#[path = "tests/best_route.rs"]
mod tests;
