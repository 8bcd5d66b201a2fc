//! The roundrobin strategy: the next hops take turns.
//!
//! Each Interest goes to the eligible next hop after the one that got the previous Interest, in order of cost. The turn
//! is kept per FIB prefix and per worker. Retransmissions are suppressed as in best-route; one that is forwarded takes
//! the next turn.

use crate::strategy::Strategy;
use crate::strategy::context::StrategyContext;
use crate::strategy::measurements::ScratchOwner;
use crate::strategy::parameter::Parameters;
use crate::strategy::suppression::ExponentialSuppression;
use crate::strategy::upstreams::eligible_from;

const OWNER: ScratchOwner = ScratchOwner::built_in(RoundRobin::NAME);
/// Word of the prefix that holds the position of the next hop to use.
const TURN: usize = 0;

/// The roundrobin strategy and its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RoundRobin {
    /// Per PIT entry.
    suppression: ExponentialSuppression,
}

impl Strategy for RoundRobin {
    const NAME: &'static str = "roundrobin";
    const VERSION: u64 = 1;
    const SUMMARY: &'static str = "next hops in round-robin order";
    const WANTS_DATA: bool = false;

    fn parameters(&mut self) -> Parameters<'_> {
        Parameters::default().and_suppression(&mut self.suppression)
    }

    fn after_receive_interest<C: StrategyContext>(&self, ctx: &mut C) {
        self.suppression.forward_per_entry(ctx, |ctx, _| {
            let turn = ctx.measurements().map_or(0, |measurements| measurements.scratch(OWNER)[TURN]);
            let Some((position, face)) = eligible_from(ctx, turn) else { return false };
            if let Some(measurements) = ctx.measurements() {
                measurements.scratch(OWNER)[TURN] = position as u64 + 1;
            }
            ctx.send_interest(face);
            true
        });
    }
}

#[cfg(test)]
#[path = "tests/roundrobin.rs"]
mod tests;
