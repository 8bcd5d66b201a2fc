//! The multicast strategy: every Interest goes to all eligible next hops.
//!
//! Suppression is per upstream. An Interest without any next hop stays pending, because a next hop that appears within
//! its lifetime gets it: applications that start together find each other without a retransmission.

use super::context::StrategyContext;
use super::suppression::{Decision, ExponentialSuppression};
use super::upstreams::is_used;
use crate::fib::NextHop;

/// An Interest arrived.
pub fn after_receive_interest<C: StrategyContext>(suppression: &ExponentialSuppression, ctx: &mut C) {
    for index in 0..ctx.nexthop_count() {
        let face = ctx.nexthop(index);
        if !ctx.is_eligible(face) {
            continue;
        }
        let decision = suppression.decide_per_upstream(ctx, face);
        if decision != Decision::Suppress && ctx.send_interest(face) && decision == Decision::Forward {
            suppression.grow_upstream(ctx, face);
        }
    }
}

/// The FIB entry of the pending Interest got a next hop.
pub fn after_new_next_hop<C: StrategyContext>(nexthop: NextHop, ctx: &mut C) {
    if ctx.is_eligible(nexthop.face) && !is_used(ctx, nexthop.face) {
        ctx.send_interest(nexthop.face);
    }
}

#[cfg(test)]
#[path = "tests/multicast.rs"]
mod tests;
