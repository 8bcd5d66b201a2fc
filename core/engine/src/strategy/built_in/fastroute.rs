//! The fastroute strategy: uses the next hop that answered first when the Interest was sent to all.
//!
//! Interests go to all eligible next hops until one answers; from then on new Interests of the FIB prefix go only to
//! that one. An Interest goes to all again if it is a retransmission, or after a Nack from the chosen next hop. One in
//! `probe-every` Interests also goes to all, to detect whether another next hop is faster. The choice is kept per FIB
//! prefix and per worker.

use namehop_packet::FaceId;
use namehop_wire::lp::NackReason;

use crate::strategy::Strategy;
use crate::strategy::context::StrategyContext;
use crate::strategy::measurements::ScratchOwner;
use crate::strategy::nack::process_nack;
use crate::strategy::parameter::{Parameter, Parameters};
use crate::strategy::suppression::ExponentialSuppression;
use crate::strategy::upstreams::eligible;

const OWNER: ScratchOwner = ScratchOwner::built_in(FastRoute::NAME);
/// Word of the prefix that holds the fastest face; 0 if there is none.
const FASTEST: usize = 0;
/// Word of the prefix that counts Interests since the last one sent to all next hops.
const SINCE_PROBE: usize = 1;

/// The fastroute strategy and its parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FastRoute {
    /// One in this number of Interests goes to all next hops.
    probe_every: u32,
    /// Per PIT entry.
    suppression: ExponentialSuppression,
}

impl Default for FastRoute {
    fn default() -> Self {
        FastRoute { probe_every: 1024, suppression: ExponentialSuppression::default() }
    }
}

impl Strategy for FastRoute {
    const NAME: &'static str = "fastroute";
    const VERSION: u64 = 1;
    const SUMMARY: &'static str = "the next hop that was fastest in the last probe of all next hops";
    const WANTS_DATA: bool = true;

    fn parameters(&mut self) -> Parameters<'_> {
        let own = vec![Parameter::new(
            "probe-every",
            &mut self.probe_every,
            1..=u32::MAX,
            "one in this many Interests is sent to all next hops",
        )];
        Parameters::from(own).and_suppression(&mut self.suppression)
    }

    fn after_receive_interest<C: StrategyContext>(&self, ctx: &mut C) {
        self.suppression.forward_per_entry(ctx, |ctx, is_new| {
            if is_new && let Some(face) = self.fastest(ctx) {
                ctx.send_interest(face);
                return true;
            }
            let mut is_sent = false;
            for index in 0..ctx.nexthop_count() {
                let face = ctx.nexthop(index);
                if ctx.is_eligible(face) {
                    is_sent |= ctx.send_interest(face);
                }
            }
            is_sent
        });
    }

    fn after_receive_data<C: StrategyContext>(&self, ctx: &mut C) {
        note_answer(ctx);
        ctx.send_data_to_all();
    }

    fn before_satisfy_interest<C: StrategyContext>(&self, ctx: &mut C) {
        note_answer(ctx);
    }

    fn after_receive_nack<C: StrategyContext>(&self, _reason: NackReason, ctx: &mut C) {
        let ingress = u64::from(ctx.ingress().0);
        if let Some(measurements) = ctx.measurements() {
            let words = measurements.scratch(OWNER);
            if words[FASTEST] == ingress {
                words[FASTEST] = 0;
            }
        }
        process_nack(ctx);
    }
}

impl FastRoute {
    /// Counts the Interest and returns the fastest next hop, unless it is unknown, not eligible, or the Interest has to
    /// go to all.
    fn fastest<C: StrategyContext>(&self, ctx: &mut C) -> Option<FaceId> {
        let words = ctx.measurements()?.scratch(OWNER);
        let fastest = u32::try_from(words[FASTEST]).ok().filter(|&face| face != 0).map(FaceId)?;
        words[SINCE_PROBE] += 1;
        if words[SINCE_PROBE] >= u64::from(self.probe_every) {
            words[SINCE_PROBE] = 0;
            return None;
        }
        eligible(ctx).find(|&nexthop| nexthop == fastest)
    }
}

/// Records the upstream of the first answer as the fastest.
fn note_answer<C: StrategyContext>(ctx: &mut C) {
    if ctx.in_records().next().is_none() {
        return;
    }
    let ingress = u64::from(ctx.ingress().0);
    if let Some(measurements) = ctx.measurements() {
        measurements.scratch(OWNER)[FASTEST] = ingress;
    }
}

#[cfg(test)]
#[path = "tests/fastroute.rs"]
mod tests;
