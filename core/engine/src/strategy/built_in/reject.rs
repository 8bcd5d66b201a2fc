//! The reject strategy: sends no Interest.
//!
//! Each Interest is answered with Nack NoRoute, so that consumers need not wait for a time-out. For names that must not
//! leave this router.

use crate::strategy::Strategy;
use crate::strategy::context::StrategyContext;
use crate::strategy::upstreams::answer_no_route;

/// The reject strategy. It has no parameters.
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
