//! Common queries of strategies about next hops and out-records, and the common answer without a next hop.
//!
//! An out-record is *pending* until its Interest expires or its face returns a Nack. A next hop is *used* while it has
//! a pending out-record.

use namehop_packet::{FaceId, Timestamp};
use namehop_wire::lp::NackReason;

use super::context::{OutRecord, StrategyContext};

/// Returns whether this out-record is pending.
#[inline]
pub fn is_pending(record: &OutRecord, now: Timestamp) -> bool {
    record.nacked.is_none() && record.expiry > now
}

/// Returns all pending out-records.
#[inline]
pub fn pending_out_records<C: StrategyContext>(ctx: &C) -> impl Iterator<Item = OutRecord> + '_ {
    let now = ctx.now();
    ctx.out_records().filter(move |record| is_pending(record, now))
}

/// Returns the out-record of one face.
pub fn out_record_of<C: StrategyContext>(ctx: &C, face: FaceId) -> Option<OutRecord> {
    ctx.out_records().find(|record| record.face == face)
}

/// Returns whether this next hop is used.
pub fn is_used<C: StrategyContext>(ctx: &C, face: FaceId) -> bool {
    pending_out_records(ctx).any(|record| record.face == face)
}

/// Returns whether any out-record is pending.
#[inline]
pub fn has_pending<C: StrategyContext>(ctx: &C) -> bool {
    pending_out_records(ctx).next().is_some()
}

/// Returns the eligible next hops, lowest cost first.
#[inline]
pub fn eligible<C: StrategyContext>(ctx: &C) -> impl Iterator<Item = FaceId> + '_ {
    (0..ctx.nexthop_count()).map(|index| ctx.nexthop(index)).filter(|&nexthop| ctx.is_eligible(nexthop))
}

/// Returns the first of [`eligible`]. It is a separate loop that is inlined into its caller, because every new Interest
/// runs it.
#[inline]
pub fn cheapest_eligible<C: StrategyContext>(ctx: &C) -> Option<FaceId> {
    for index in 0..ctx.nexthop_count() {
        let nexthop = ctx.nexthop(index);
        if ctx.is_eligible(nexthop) {
            return Some(nexthop);
        }
    }
    None
}

/// Returns the first eligible next hop at or after a position, with its own position; the search wraps around.
pub fn eligible_from<C: StrategyContext>(ctx: &C, position: u64) -> Option<(usize, FaceId)> {
    let count = ctx.nexthop_count();
    let start = usize::try_from(position).ok().filter(|&start| start < count).unwrap_or(0);
    (start..count)
        .chain(0..start)
        .map(|index| (index, ctx.nexthop(index)))
        .find(|&(_, nexthop)| ctx.is_eligible(nexthop))
}

/// Returns the eligible next hops that are unused, lowest cost first.
pub fn eligible_unused<C: StrategyContext>(ctx: &C) -> impl Iterator<Item = FaceId> + '_ {
    eligible(ctx).filter(|&nexthop| !is_used(ctx, nexthop))
}

/// Returns the eligible next hop with the out-record that was renewed longest ago.
pub fn eligible_used_longest_ago<C: StrategyContext>(ctx: &C) -> Option<FaceId> {
    eligible(ctx)
        .filter_map(|nexthop| out_record_of(ctx, nexthop))
        .min_by_key(|record| record.last_renewed)
        .map(|record| record.face)
}

/// Sends Nack NoRoute to the downstream at hand, and ends the PIT entry unless another downstream still waits.
///
/// The others get no Nack, because the reason may lie in the downstream at hand: the only next hop may be the face that
/// its Interest came from. Without a downstream at hand all of them get a Nack, with the least severe reason that an
/// upstream gave.
pub fn answer_no_route<C: StrategyContext>(ctx: &mut C) {
    let (now, ingress) = (ctx.now(), ctx.ingress());
    if ingress == FaceId::INVALID {
        let less_severe =
            |known: NackReason, other: NackReason| if other.is_less_severe_than(known) { other } else { known };
        let reason = ctx.out_records().filter_map(|record| record.nacked).fold(NackReason::NO_ROUTE, less_severe);
        ctx.send_nacks(reason);
        return ctx.reject_pending_interest();
    }
    ctx.send_nack(ingress, NackReason::NO_ROUTE);
    let others_wait = ctx.in_records().any(|record| record.face != ingress && record.expiry > now);
    if !others_wait {
        ctx.reject_pending_interest();
    }
}
