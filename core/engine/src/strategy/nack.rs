//! The common rule for incoming Nacks: wait for all upstreams, then forward the least severe reason ("Best Route
//! Strategy" in section "List of Strategies" of the NFD Developer's Guide).

use namehop_packet::FaceId;
use namehop_wire::lp::NackReason;

use super::context::StrategyContext;
use super::upstreams::is_pending;

/// Handles a Nack that is already stored in its out-record.
///
/// While an upstream is still expected to answer, no Nack is sent, with one exception: if only one upstream is left and
/// that face is also a downstream, both nodes wait for each other. Then only that face gets a Nack.
pub fn process_nack<C: StrategyContext>(ctx: &mut C) {
    let now = ctx.now();
    let mut least_severe = NackReason::NONE;
    let mut pending = 0;
    let mut last_pending = None;
    for record in ctx.out_records() {
        if is_pending(&record, now) {
            pending += 1;
            last_pending = Some(record.face);
        } else if let Some(reason) = record.nacked
            && reason.is_less_severe_than(least_severe)
        {
            least_severe = reason;
        }
    }
    match (pending, last_pending) {
        (0, _) => {
            ctx.send_nacks(least_severe);
            // Downstreams that cannot get a Nack (not point-to-point) have no answer to expect either.
            ctx.reject_pending_interest();
        }
        (1, Some(face)) if is_downstream(ctx, face) => ctx.send_nack(face, least_severe),
        _ => {}
    }
}

fn is_downstream<C: StrategyContext>(ctx: &C, face: FaceId) -> bool {
    ctx.in_records().any(|record| record.face == face)
}

#[cfg(test)]
#[path = "tests/nack.rs"]
mod tests;
