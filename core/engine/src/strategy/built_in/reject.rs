//! The reject strategy: no Interest goes anywhere.
//!
//! Each is answered with Nack NoRoute, so that consumers know at once. For names that must not leave this router.

use crate::strategy::Strategy;
use crate::strategy::context::StrategyContext;
use crate::strategy::upstreams::answer_no_route;

/// The strategy. It has no parameters.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Reject;

impl Strategy for Reject {
    const NAME: &'static str = "reject";
    const VERSION: u64 = 1;
    const SUMMARY: &'static str = "no next hop; every Interest is answered with Nack NoRoute";
    const WANTS_DATA: bool = false;

    fn after_receive_interest<C: StrategyContext>(&self, ctx: &mut C) {
        answer_no_route(ctx);
    }
}

#[cfg(test)]
#[path = "tests/reject.rs"]
mod tests;
