//! The weighted strategy: sends each Interest to one eligible next hop, chosen at random by weight.
//!
//! Weights belong to next hops in order of cost. Retransmissions are suppressed as in best-route; one that is forwarded
//! goes to a new random next hop.

use namehop_packet::FaceId;

use crate::strategy::Strategy;
use crate::strategy::context::StrategyContext;
use crate::strategy::parameter::{ByteList, Parameter, Parameters};
use crate::strategy::suppression::ExponentialSuppression;

/// The weighted strategy and its parameters.
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

    fn parameters(&mut self) -> Parameters<'_> {
        let own = vec![Parameter::new(
            "weights",
            &mut self.weights,
            ByteList::ALL_LEAST..=ByteList::ALL_GREATEST,
            "up to 8 weights from 1 to 255, joined by hyphens, for the next hops in order of cost; the last one \
             applies to all further next hops",
        )];
        Parameters::from(own).and_suppression(&mut self.suppression)
    }

    fn after_receive_interest<C: StrategyContext>(&self, ctx: &mut C) {
        self.suppression.forward_per_entry(ctx, |ctx, _| {
            let nexthop = self.draw(ctx);
            nexthop.map(|face| ctx.send_interest(face)).is_some()
        });
    }
}

impl Weighted {
    /// Draws one of the eligible next hops; returns `None` if there is none.
    fn draw<C: StrategyContext>(&self, ctx: &mut C) -> Option<FaceId> {
        let weight_of = |ctx: &C, index| if ctx.is_eligible(ctx.nexthop(index)) { self.weights.get(index) } else { 0 };
        let total: u64 = (0..ctx.nexthop_count()).map(|index| weight_of(ctx, index)).sum();
        if total == 0 {
            return None;
        }
        let mut drawn = ctx.random() % total;
        for index in 0..ctx.nexthop_count() {
            let weight = weight_of(ctx, index);
            if drawn < weight {
                return Some(ctx.nexthop(index));
            }
            drawn -= weight;
        }
        None
    }
}

#[cfg(test)]
#[path = "tests/weighted.rs"]
mod tests;
