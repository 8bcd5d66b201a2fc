//! What several strategies ask about next hops and out-records, and the common answer when there is no next hop.
//!
//! An out-record is *pending* while the lifetime of its Interest runs and its face has not answered with a Nack. A next hop is
//! *used* while it has a pending out-record.

use namehop_packet::{FaceId, Timestamp};
use namehop_wire::lp::NackReason;

use super::context::{OutRecord, StrategyContext};

/// Is this out-record pending?
#[inline]
pub fn is_pending(record: &OutRecord, now: Timestamp) -> bool {
    record.nacked.is_none() && record.expiry > now
}

/// All out-records that are pending.
#[inline]
pub fn pending_out_records<C: StrategyContext>(ctx: &C) -> impl Iterator<Item = OutRecord> + '_ {
    let now = ctx.now();
    ctx.out_records().filter(move |record| is_pending(record, now))
}

/// The out-record of one face.
pub fn out_record_of<C: StrategyContext>(ctx: &C, face: FaceId) -> Option<OutRecord> {
    ctx.out_records().find(|record| record.face == face)
}

/// Is this next hop used?
pub fn is_used<C: StrategyContext>(ctx: &C, face: FaceId) -> bool {
    pending_out_records(ctx).any(|record| record.face == face)
}

/// Is any out-record pending?
#[inline]
pub fn has_pending<C: StrategyContext>(ctx: &C) -> bool {
    pending_out_records(ctx).next().is_some()
}

/// Next hops that the Interest may go to, lowest cost first.
#[inline]
pub fn eligible<C: StrategyContext>(ctx: &C) -> impl Iterator<Item = FaceId> + '_ {
    (0..ctx.nexthop_count()).map(|index| ctx.nexthop(index)).filter(|&nexthop| ctx.is_eligible(nexthop))
}

/// The first of [`eligible`]. A loop of its own, which is inlined into its caller: every new Interest comes here.
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

/// The first eligible next hop at or behind a position, and its own position; behind the last comes the first.
pub fn eligible_from<C: StrategyContext>(ctx: &C, position: u64) -> Option<(usize, FaceId)> {
    let count = ctx.nexthop_count();
    let start = usize::try_from(position).ok().filter(|&start| start < count).unwrap_or(0);
    (start..count)
        .chain(0..start)
        .map(|index| (index, ctx.nexthop(index)))
        .find(|&(_, nexthop)| ctx.is_eligible(nexthop))
}

/// Next hops that the Interest may go to and that are unused, lowest cost first.
pub fn eligible_unused<C: StrategyContext>(ctx: &C) -> impl Iterator<Item = FaceId> + '_ {
    eligible(ctx).filter(|&nexthop| !is_used(ctx, nexthop))
}

/// Among the eligible next hops, the one to which the Interest was last sent longest ago.
pub fn eligible_used_longest_ago<C: StrategyContext>(ctx: &C) -> Option<FaceId> {
    eligible(ctx)
        .filter_map(|nexthop| out_record_of(ctx, nexthop))
        .min_by_key(|record| record.last_renewed)
        .map(|record| record.face)
}

/// Answers the downstream at hand that there is no route, and ends the PIT entry unless another downstream still waits.
///
/// The others are not answered, because the reason may lie in the downstream at hand: the only next hop may be the face that its
/// Interest came from. Without a downstream at hand all are answered, with the least severe reason that an upstream gave.
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
