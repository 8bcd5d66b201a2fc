//! The random strategy: sends each Interest to one eligible next hop, all with the same probability.
//!
//! Retransmissions are suppressed as in best-route; one that is forwarded goes to a new random next hop.

use crate::strategy::Strategy;
use crate::strategy::context::StrategyContext;
use crate::strategy::parameter::Parameters;
use crate::strategy::suppression::ExponentialSuppression;
use crate::strategy::upstreams::eligible;

/// The random strategy and its parameters.
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

    fn parameters(&mut self) -> Parameters<'_> {
        Parameters::default().and_suppression(&mut self.suppression)
    }

    fn after_receive_interest<C: StrategyContext>(&self, ctx: &mut C) {
        self.suppression.forward_per_entry(ctx, |ctx, _| {
            let count = eligible(ctx).count() as u64;
            if count == 0 {
                return false;
            }
            let chosen = (ctx.random() % count) as usize;
            let nexthop = eligible(ctx).nth(chosen);
            nexthop.map(|face| ctx.send_interest(face)).is_some()
        });
    }
}

#[cfg(test)]
#[path = "tests/random.rs"]
mod tests;
