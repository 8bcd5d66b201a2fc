//! The multicast strategy: sends every Interest to all eligible next hops.
//!
//! Retransmissions are suppressed per upstream ("Multicast Strategy" in section "List of Strategies" of the NFD
//! Developer's Guide). An Interest without any next hop stays pending, because a next hop that appears within its
//! lifetime gets it: applications that start at the same time find each other without a retransmission.

use crate::strategy::Strategy;
use crate::strategy::context::StrategyContext;
use crate::strategy::parameter::Parameters;
use crate::strategy::suppression::{Decision, ExponentialSuppression};
use crate::strategy::upstreams::is_used;

use crate::fib::NextHop;

/// The multicast strategy and its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Multicast {
    /// Per out-record.
    suppression: ExponentialSuppression,
}

impl Strategy for Multicast {
    const NAME: &'static str = "multicast";
    const VERSION: u64 = 5;
    const SUMMARY: &'static str = "all next hops; a new next hop gets the pending Interests";
    const WANTS_DATA: bool = false;

    fn parameters(&mut self) -> Parameters<'_> {
        Parameters::default().and_suppression(&mut self.suppression)
    }

    fn after_receive_interest<C: StrategyContext>(&self, ctx: &mut C) {
        for index in 0..ctx.nexthop_count() {
            let face = ctx.nexthop(index);
            if !ctx.is_eligible(face) {
                continue;
            }
            let decision = self.suppression.decide_per_upstream(ctx, face);
            if decision != Decision::Suppress && ctx.send_interest(face) && decision == Decision::Forward {
                self.suppression.grow_upstream(ctx, face);
            }
        }
    }

    fn after_new_next_hop<C: StrategyContext>(&self, nexthop: NextHop, ctx: &mut C) {
        if ctx.is_eligible(nexthop.face) && !is_used(ctx, nexthop.face) {
            ctx.send_interest(nexthop.face);
        }
    }
}

#[cfg(test)]
#[path = "tests/multicast.rs"]
mod tests;
