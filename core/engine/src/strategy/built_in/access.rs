//! The access strategy, for the edge of the network: uses one next hop at a time, the one that answered last.
//!
//! A new Interest goes to the last working next hop of its FIB prefix. If that one is unknown, not eligible, or does
//! not answer within its retransmission time-out, the Interest goes to all eligible next hops. The first that answers
//! becomes the last working one ("Access Router Strategy" in section "List of Strategies" of the NFD Developer's
//! Guide). Measurements expire 8 s after the last answer.

use namehop_packet::FaceId;

use crate::strategy::Strategy;
use crate::strategy::context::StrategyContext;
use crate::strategy::measurements::{record_answer, send_measured};
use crate::strategy::nack::process_nack;
use crate::strategy::parameter::Parameters;
use crate::strategy::suppression::ExponentialSuppression;
use crate::strategy::upstreams::{eligible, is_used};
use namehop_wire::lp::NackReason;

/// Lifetime of the last working next hop and its round-trip times. NFD's value.
const MEASUREMENTS_LIFETIME_MS: u64 = 8_000;

/// The access strategy and its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Access {
    /// Per PIT entry.
    suppression: ExponentialSuppression,
}

impl Strategy for Access {
    const NAME: &'static str = "access";
    const VERSION: u64 = 1;
    const SUMMARY: &'static str = "the next hop that answered last; all next hops when it does not answer";
    const WANTS_DATA: bool = true;

    fn parameters(&mut self) -> Parameters<'_> {
        Parameters::default().and_suppression(&mut self.suppression)
    }

    fn after_receive_interest<C: StrategyContext>(&self, ctx: &mut C) {
        self.suppression
            .forward_per_entry(ctx, |ctx, is_new| (is_new && send_to_last_working(ctx)) || multicast(ctx, |_, _| true));
    }

    fn after_receive_data<C: StrategyContext>(&self, ctx: &mut C) {
        measure_data(ctx);
        ctx.send_data_to_all();
    }

    fn before_satisfy_interest<C: StrategyContext>(&self, ctx: &mut C) {
        measure_data(ctx);
    }

    fn after_receive_nack<C: StrategyContext>(&self, _reason: NackReason, ctx: &mut C) {
        let ingress = ctx.ingress();
        if let Some(measurements) = ctx.measurements() {
            measurements.forget_last_working(ingress);
        }
        process_nack(ctx);
    }

    /// The retransmission time-out of the last working next hop is over.
    fn after_timer<C: StrategyContext>(&self, ctx: &mut C) {
        let tried = FaceId(std::mem::take(&mut ctx.pit_scratch().face));
        // The Interest may be sent to the last working next hop more than once; only the first timer finds its face in
        // the scratch.
        if tried != FaceId::INVALID && ctx.in_records().next().is_some() {
            multicast(ctx, |ctx, face| face != tried && !is_used(ctx, face));
        }
    }
}

/// Records the upstream of arriving Data as the last working next hop.
fn measure_data<C: StrategyContext>(ctx: &mut C) {
    if ctx.in_records().next().is_none() {
        // Another upstream was faster.
        return;
    }
    let (now, ingress) = (ctx.now(), ctx.ingress());
    if record_answer(ctx, MEASUREMENTS_LIFETIME_MS)
        && let Some(measurements) = ctx.measurements()
    {
        measurements.set_last_working(ingress, now);
    }
}

fn send_to_last_working<C: StrategyContext>(ctx: &mut C) -> bool {
    let now = ctx.now();
    let Some(face) =
        ctx.measurements().and_then(|measurements| measurements.last_working(now, MEASUREMENTS_LIFETIME_MS))
    else {
        return false;
    };
    if !eligible(ctx).any(|nexthop| nexthop == face) || !send_measured(ctx, face, MEASUREMENTS_LIFETIME_MS, false) {
        return false;
    }
    let rto_ns = ctx.measurements().map(|measurements| measurements.rto_ns(face, now, MEASUREMENTS_LIFETIME_MS));
    if let Some(rto_ns) = rto_ns {
        ctx.pit_scratch().face = face.0;
        ctx.schedule_timer_us(rto_ns / 1_000);
    }
    true
}

/// Sends to all eligible next hops for which `wanted` returns `true`. Returns whether it sent to any.
fn multicast<C: StrategyContext>(ctx: &mut C, wanted: impl Fn(&C, FaceId) -> bool) -> bool {
    let mut is_sent = false;
    for index in 0..ctx.nexthop_count() {
        let face = ctx.nexthop(index);
        if ctx.is_eligible(face) && wanted(ctx, face) {
            is_sent |= send_measured(ctx, face, MEASUREMENTS_LIFETIME_MS, false);
        }
    }
    is_sent
}

#[cfg(test)]
#[path = "tests/access.rs"]
mod tests;
