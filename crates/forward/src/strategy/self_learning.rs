//! The self-learning strategy: finds producers by flooding and learns routes from the announcements that come back.
//!
//! A *discovery* Interest (one without the NonDiscovery header) that matches no FIB entry is sent to all non-local
//! faces. Data that answers it may carry a prefix announcement, from which a route to the face it came from is learnt.
//! Interests that match a FIB entry go to its next hops only, as NonDiscovery. When such an Interest was a discovery one
//! on arrival, the answer is given the announcement that the route came from, so that the downstream can learn it too.

use namehop_wire::lp::NackReason;

use super::context::{StrategyContext, Trigger};
use super::nack::process_nack;
use super::suppression::{Decision, ExponentialSuppression};
use super::upstreams::answer_no_route;
use namehop_packet::{FaceId, FaceScope};

/// PIT scratch flag: a non-local downstream sent a discovery Interest.
const DISCOVERY_WANTED: u32 = 1;
/// Out-record scratch flag: the Interest was sent to this upstream as a discovery one.
const SENT_AS_DISCOVERY: u32 = 1;

/// Handles every trigger.
pub fn dispatch<C: StrategyContext>(suppression: &ExponentialSuppression, trigger: Trigger, ctx: &mut C) {
    match trigger {
        Trigger::AfterReceiveInterest => after_receive_interest(suppression, ctx),
        Trigger::AfterReceiveData => after_receive_data(ctx),
        Trigger::BeforeSatisfyInterest => before_satisfy_interest(ctx),
        Trigger::AfterReceiveNack(reason) => after_receive_nack(reason, ctx),
        Trigger::OnDroppedInterest(_) | Trigger::AfterNewNextHop(_) | Trigger::Timer | Trigger::BeforeExpire => {}
    }
}

/// An Interest arrived.
fn after_receive_interest<C: StrategyContext>(suppression: &ExponentialSuppression, ctx: &mut C) {
    let non_discovery = ctx.is_non_discovery();
    if !non_discovery && is_non_local(ctx, ctx.ingress()) {
        ctx.pit_scratch().flags |= DISCOVERY_WANTED;
    }
    if ctx.nexthop_count() > 0 {
        for index in 0..ctx.nexthop_count() {
            let face = ctx.nexthop(index);
            send(suppression, ctx, face, true);
        }
    } else if non_discovery {
        answer_no_route(ctx);
    } else {
        for index in 0..ctx.face_count() {
            let face = ctx.face_at(index);
            if face.scope == FaceScope::NonLocal {
                send(suppression, ctx, face.id, false);
            }
        }
    }
}

fn send<C: StrategyContext>(suppression: &ExponentialSuppression, ctx: &mut C, face: FaceId, non_discovery: bool) {
    if !ctx.is_eligible(face) {
        return;
    }
    let decision = suppression.decide_per_upstream(ctx, face);
    if decision == Decision::Suppress || !ctx.send_interest_discovery(face, non_discovery) {
        return;
    }
    if decision == Decision::Forward {
        suppression.grow_upstream(ctx, face);
    }
    if let Some(scratch) = ctx.out_scratch(face) {
        if non_discovery {
            scratch.flags &= !SENT_AS_DISCOVERY;
        } else {
            scratch.flags |= SENT_AS_DISCOVERY;
        }
    }
}

/// Data arrived for this entry alone.
fn after_receive_data<C: StrategyContext>(ctx: &mut C) {
    let ingress = ctx.ingress();
    match ctx.out_scratch(ingress).map(|scratch| scratch.flags & SENT_AS_DISCOVERY != 0) {
        Some(false) if ctx.pit_scratch().flags & DISCOVERY_WANTED != 0 => ctx.request_announcement(),
        Some(true) => {
            ctx.learn_announced_route();
            ctx.send_data_to_all();
        }
        // Data from a face that was not asked is passed on, but nothing is learnt from it.
        Some(false) | None => ctx.send_data_to_all(),
    }
}

/// Data arrived that the pipeline sends on itself: learn the route all the same.
fn before_satisfy_interest<C: StrategyContext>(ctx: &mut C) {
    let ingress = ctx.ingress();
    if ctx.out_scratch(ingress).is_some_and(|scratch| scratch.flags & SENT_AS_DISCOVERY != 0) {
        ctx.learn_announced_route();
    }
}

/// A Nack arrived.
///
/// NoRoute from a next hop means that a learnt route leads nowhere any more: it is forgotten, and all downstreams are
/// told at once so that they start a new discovery. NoRoute from one of many flooded faces is not worth that.
fn after_receive_nack<C: StrategyContext>(reason: NackReason, ctx: &mut C) {
    let ingress = ctx.ingress();
    let was_discovery = ctx.out_scratch(ingress).is_some_and(|scratch| scratch.flags & SENT_AS_DISCOVERY != 0);
    if reason == NackReason::NO_ROUTE && !was_discovery {
        ctx.send_nacks(reason);
        ctx.reject_pending_interest();
        ctx.forget_learned_route(ingress);
    } else {
        process_nack(ctx);
    }
}

fn is_non_local<C: StrategyContext>(ctx: &C, face: FaceId) -> bool {
    ctx.face(face).is_some_and(|info| info.scope == FaceScope::NonLocal)
}

#[cfg(test)]
#[path = "tests/self_learning.rs"]
mod tests;
