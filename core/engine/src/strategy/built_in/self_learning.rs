//! The self-learning strategy: finds producers by flooding and learns routes from the prefix announcements in the
//! answers.
//!
//! A *discovery* Interest (one without the NonDiscovery field of NDNLPv2) that matches no FIB entry is sent to all
//! non-local faces. Data that answers it may carry a prefix announcement. From it a route is learned, with the Data's
//! ingress face as next hop. An Interest that matches a FIB entry goes only to its next hops, with NonDiscovery. If it
//! arrived as a discovery Interest, its Data gets the announcement of the route, so that the downstream can learn the
//! route too. (NDNLPv2, fields NonDiscovery and PrefixAnnouncement.)

use namehop_packet::{FaceId, FaceScope};

use crate::strategy::Strategy;
use crate::strategy::context::StrategyContext;
use crate::strategy::nack::process_nack;
use crate::strategy::parameter::Parameters;
use crate::strategy::suppression::{Decision, ExponentialSuppression};
use crate::strategy::upstreams::answer_no_route;
use namehop_wire::lp::NackReason;

/// PIT scratch flag: a non-local downstream sent a discovery Interest.
const DISCOVERY_WANTED: u32 = 1;
/// Out-record scratch flag: the Interest was sent to this upstream as a discovery Interest.
const SENT_AS_DISCOVERY: u32 = 1;

/// The self-learning strategy and its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SelfLearning {
    /// Per out-record.
    suppression: ExponentialSuppression,
}

impl Strategy for SelfLearning {
    const NAME: &'static str = "self-learning";
    const VERSION: u64 = 1;
    const SUMMARY: &'static str = "floods unknown names and learns routes from prefix announcements";
    const WANTS_DATA: bool = true;

    fn parameters(&mut self) -> Parameters<'_> {
        Parameters::default().and_suppression(&mut self.suppression)
    }

    fn after_receive_interest<C: StrategyContext>(&self, ctx: &mut C) {
        let non_discovery = ctx.is_non_discovery();
        if !non_discovery && is_non_local(ctx, ctx.ingress()) {
            ctx.pit_scratch().flags |= DISCOVERY_WANTED;
        }
        if all_are_down(ctx) {
            // The learned routes are obsolete: as after a Nack, downstreams start a new discovery.
            for index in 0..ctx.nexthop_count() {
                ctx.forget_learned_route(ctx.nexthop(index));
            }
            answer_no_route(ctx);
        } else if ctx.nexthop_count() > 0 {
            for index in 0..ctx.nexthop_count() {
                let face = ctx.nexthop(index);
                self.send(ctx, face, true);
            }
        } else if non_discovery {
            answer_no_route(ctx);
        } else {
            for index in 0..ctx.face_count() {
                let face = ctx.face_at(index);
                if face.scope == FaceScope::NonLocal {
                    self.send(ctx, face.id, false);
                }
            }
        }
    }

    fn after_receive_data<C: StrategyContext>(&self, ctx: &mut C) {
        let ingress = ctx.ingress();
        match ctx.out_scratch(ingress).map(|scratch| scratch.flags & SENT_AS_DISCOVERY != 0) {
            Some(false) if ctx.pit_scratch().flags & DISCOVERY_WANTED != 0 => ctx.request_announcement(),
            Some(true) => {
                ctx.learn_announced_route();
                ctx.send_data_to_all();
            }
            // Data from a face that the Interest was not sent to is forwarded, but no route is learned from it.
            Some(false) | None => ctx.send_data_to_all(),
        }
    }

    /// The pipeline sends the Data; the strategy only learns the route.
    fn before_satisfy_interest<C: StrategyContext>(&self, ctx: &mut C) {
        let ingress = ctx.ingress();
        if ctx.out_scratch(ingress).is_some_and(|scratch| scratch.flags & SENT_AS_DISCOVERY != 0) {
            ctx.learn_announced_route();
        }
    }

    /// A NoRoute from a next hop means that a learned route is obsolete: the route is removed, and all downstreams get
    /// a Nack at once so that they start a new discovery. A NoRoute from one of many flooded faces does not mean that.
    fn after_receive_nack<C: StrategyContext>(&self, reason: NackReason, ctx: &mut C) {
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
}

impl SelfLearning {
    fn send<C: StrategyContext>(&self, ctx: &mut C, face: FaceId, non_discovery: bool) {
        if !ctx.is_eligible(face) {
            return;
        }
        let decision = self.suppression.decide_per_upstream(ctx, face);
        if decision == Decision::Suppress || !ctx.send_interest_discovery(face, non_discovery) {
            return;
        }
        if decision == Decision::Forward {
            self.suppression.grow_upstream(ctx, face);
        }
        if let Some(scratch) = ctx.out_scratch(face) {
            if non_discovery {
                scratch.flags &= !SENT_AS_DISCOVERY;
            } else {
                scratch.flags |= SENT_AS_DISCOVERY;
            }
        }
    }
}

/// Returns whether there are next hops and all of them are down.
fn all_are_down<C: StrategyContext>(ctx: &C) -> bool {
    let is_up = |index| ctx.face(ctx.nexthop(index)).is_some_and(|face| face.is_up);
    ctx.nexthop_count() > 0 && !(0..ctx.nexthop_count()).any(is_up)
}

fn is_non_local<C: StrategyContext>(ctx: &C, face: FaceId) -> bool {
    ctx.face(face).is_some_and(|info| info.scope == FaceScope::NonLocal)
}

#[cfg(test)]
#[path = "tests/self_learning.rs"]
mod tests;
