//! The sequential strategy: tries the next hops one after another, for each Interest from the cheapest on.
//!
//! A new Interest goes to the eligible next hop of lowest cost, and each retransmission that is not suppressed to the
//! one after the last that got it; after the last, the first is next.

use crate::strategy::Strategy;
use crate::strategy::context::StrategyContext;
use crate::strategy::parameter::Parameters;
use crate::strategy::suppression::ExponentialSuppression;
use crate::strategy::upstreams::eligible_from;

/// The sequential strategy and its parameters. The flags of the PIT entry hold the position of the next hop to try
/// next.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sequential {
    /// Per PIT entry.
    suppression: ExponentialSuppression,
}

impl Strategy for Sequential {
    const NAME: &'static str = "sequential";
    const VERSION: u64 = 1;
    const SUMMARY: &'static str = "lowest-cost next hop; each retransmission goes to the next one by cost";
    const WANTS_DATA: bool = false;

    fn parameters(&mut self) -> Parameters<'_> {
        Parameters::default().and_suppression(&mut self.suppression)
    }

    fn after_receive_interest<C: StrategyContext>(&self, ctx: &mut C) {
        self.suppression.forward_per_entry(ctx, |ctx, _| {
            let next = u64::from(ctx.pit_scratch().flags);
            let Some((position, face)) = eligible_from(ctx, next) else { return false };
            ctx.pit_scratch().flags = position as u32 + 1;
            ctx.send_interest(face);
            true
        });
    }
}

#[cfg(test)]
#[path = "tests/sequential.rs"]
mod tests;
