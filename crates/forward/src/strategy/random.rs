//! The random strategy: each Interest goes to one eligible next hop, all equally likely.
//!
//! Interests for a name that is already pending are aggregated by the usual suppression; one that is forwarded as a
//! retransmission draws again.

use super::context::StrategyContext;
use super::suppression::{Decision, ExponentialSuppression};
use super::upstreams::{answer_no_route, eligible};

/// An Interest arrived.
pub fn after_receive_interest<C: StrategyContext>(suppression: &ExponentialSuppression, ctx: &mut C) {
    let decision = suppression.decide_per_entry(ctx);
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
    let drawn = (ctx.random() % count) as usize;
    let face = eligible(ctx).nth(drawn);
    if let Some(face) = face {
        ctx.send_interest(face);
    }
}

#[cfg(test)]
#[path = "tests/random.rs"]
mod tests;
