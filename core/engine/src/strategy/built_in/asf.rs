//! The asf strategy (adaptive smoothed-RTT forwarding): uses the next hop that answers fastest and probes the others.
//!
//! Next hops rank by class, then by smoothed round-trip time, then by cost. The classes are working, unmeasured, and
//! timed out. A probe is a copy of an ordinary Interest with its own nonce; in each probing interval, one is sent to
//! one other next hop ("Adaptive SRTT-based Forwarding (ASF) Strategy" in section "List of Strategies" of the NFD
//! Developer's Guide).

use arrayvec::ArrayVec;
use namehop_packet::{FaceId, Timestamp};
use namehop_wire::lp::NackReason;

use crate::strategy::Strategy;
use crate::strategy::context::StrategyContext;
use crate::strategy::measurements::{record_answer, send_measured};
use crate::strategy::nack::process_nack;
use crate::strategy::parameter::{Parameter, ParameterError, Parameters};
use crate::strategy::suppression::{Decision, ExponentialSuppression};
use crate::strategy::upstreams::{answer_no_route, eligible, eligible_used_longest_ago, is_used, pending_out_records};

use crate::fib::MAX_NEXTHOPS;

/// The first probe for a prefix is sent at a random time within this many nanoseconds, so that routers do not probe in
/// step.
const FIRST_PROBE_WITHIN_NS: u64 = 5_000_000_000;

/// How long a satisfied PIT entry is kept for the Data of a slower upstream.
const LATE_DATA_MS: u64 = 50;

/// Maximum number of ranked next hops: all that a FIB entry can have.
const MAX_RANKED: usize = MAX_NEXTHOPS;

/// Minimum of the parameters in milliseconds.
const MIN_MS: u64 = 1_000;
/// Maximum of these parameters: 30 days.
const MAX_MS: u64 = 30 * 24 * 3_600_000;

/// The asf strategy and its parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Asf {
    probing_interval_ms: u64,
    max_timeouts: u32,
    measurements_lifetime_ms: u64,
    /// Per out-record.
    suppression: ExponentialSuppression,
}

impl Default for Asf {
    /// Returns the defaults of NFD.
    fn default() -> Self {
        Asf {
            probing_interval_ms: 60_000,
            max_timeouts: 3,
            measurements_lifetime_ms: 300_000,
            suppression: ExponentialSuppression::default(),
        }
    }
}

impl Strategy for Asf {
    const NAME: &'static str = "asf";
    const VERSION: u64 = 5;
    const SUMMARY: &'static str = "next hop with the shortest round-trip time; probes the others";
    const WANTS_DATA: bool = true;

    fn parameters(&mut self) -> Parameters<'_> {
        let own = vec![
            Parameter::new(
                "probing-interval",
                &mut self.probing_interval_ms,
                MIN_MS..=MAX_MS,
                "time between two probes for a prefix, in milliseconds",
            ),
            Parameter::new(
                "max-timeouts",
                &mut self.max_timeouts,
                1..=u32::MAX,
                "unanswered Interests in a row after which a next hop is avoided",
            ),
            Parameter::new(
                "measurements-lifetime",
                &mut self.measurements_lifetime_ms,
                MIN_MS..=MAX_MS,
                "how long measurements of an unused next hop are kept, in milliseconds, not less than the probing \
                 interval",
            ),
        ];
        Parameters::from(own).and_suppression(&mut self.suppression)
    }

    fn check(&self) -> Result<(), ParameterError> {
        if self.measurements_lifetime_ms < self.probing_interval_ms {
            let (parameter, least) = ("measurements-lifetime", "probing-interval");
            return Err(ParameterError::LessThan { parameter, least });
        }
        Ok(())
    }

    fn after_receive_interest<C: StrategyContext>(&self, ctx: &mut C) {
        // Simultaneous Interests of two consumers must not use two paths, so the interval of the last used upstream
        // decides even if another one is still unused.
        let Some(last) = pending_out_records(ctx).max_by_key(|record| record.last_renewed) else {
            match self.best(ctx, |_, _| true) {
                Some(face) => {
                    self.send(ctx, face, false);
                    self.probe_if_due(ctx, face);
                }
                None => answer_no_route(ctx),
            }
            return;
        };
        if self.suppression.decide_per_upstream(ctx, last.face) == Decision::Suppress {
            return;
        }
        if let Some(face) = self.best(ctx, |ctx, face| !is_used(ctx, face)) {
            self.send(ctx, face, false);
            return;
        }
        if let Some(face) = eligible_used_longest_ago(ctx)
            && self.suppression.decide_per_upstream(ctx, face) != Decision::Suppress
            && self.send(ctx, face, false)
        {
            self.suppression.grow_upstream(ctx, face);
        }
    }

    fn after_receive_data<C: StrategyContext>(&self, ctx: &mut C) {
        self.measure_data(ctx);
        ctx.send_data_to_all();
    }

    fn before_satisfy_interest<C: StrategyContext>(&self, ctx: &mut C) {
        self.measure_data(ctx);
    }

    fn after_receive_nack<C: StrategyContext>(&self, reason: NackReason, ctx: &mut C) {
        let (now, ingress) = (ctx.now(), ctx.ingress());
        if let Some(measurements) = ctx.measurements() {
            let measured = measurements.next_hop_or_new(ingress, now, self.measurements_lifetime_ms);
            if reason == NackReason::DUPLICATE {
                // Two paths met further up; this does not count against this next hop.
                measured.not_measured();
            } else {
                measured.refused();
            }
        }
        process_nack(ctx);
    }

    fn on_dropped_interest<C: StrategyContext>(&self, nexthop: FaceId, ctx: &mut C) {
        let now = ctx.now();
        if let Some(measurements) = ctx.measurements()
            && let Some(measured) = measurements.next_hop(nexthop, now, self.measurements_lifetime_ms)
        {
            measured.count_timeout(self.max_timeouts);
        }
    }

    fn before_expire_pending_interest<C: StrategyContext>(&self, ctx: &mut C) {
        let now = ctx.now();
        let faces: ArrayVec<FaceId, MAX_RANKED> =
            ctx.out_records().map(|record| record.face).take(MAX_RANKED).collect();
        if let Some(measurements) = ctx.measurements() {
            for face in faces {
                if let Some(measured) = measurements.next_hop(face, now, self.measurements_lifetime_ms) {
                    measured.check_timeout(now, self.max_timeouts);
                }
            }
        }
    }
}

/// Rank of a next hop; lower is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Working,
    Unmeasured,
    TimedOut,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Ranked {
    class: Class,
    /// Order within the class: round-trip time in nanoseconds, or the time of last use for timed-out next hops.
    order: u64,
    /// Position in the order of cost.
    position: usize,
    face: FaceId,
}

impl Asf {
    fn measure_data<C: StrategyContext>(&self, ctx: &mut C) {
        let ingress = ctx.ingress();
        if record_answer(ctx, self.measurements_lifetime_ms)
            && pending_out_records(ctx).any(|record| record.face != ingress)
        {
            ctx.set_expiry_ms(LATE_DATA_MS);
        }
    }

    fn send<C: StrategyContext>(&self, ctx: &mut C, face: FaceId, probe: bool) -> bool {
        send_measured(ctx, face, self.measurements_lifetime_ms, probe)
    }

    /// Returns the eligible next hops for which `wanted` returns `true`, with their ranks; in order of cost.
    fn ranked<C: StrategyContext>(
        &self,
        ctx: &mut C,
        wanted: impl Fn(&C, FaceId) -> bool,
    ) -> ArrayVec<Ranked, MAX_RANKED> {
        let now = ctx.now();
        let nexthops: ArrayVec<FaceId, MAX_RANKED> =
            eligible(ctx).filter(|&nexthop| wanted(ctx, nexthop)).take(MAX_RANKED).collect();
        let mut measurements = ctx.measurements();
        nexthops
            .into_iter()
            .enumerate()
            .map(|(position, face)| {
                let measured = measurements
                    .as_deref_mut()
                    .and_then(|measurements| measurements.next_hop(face, now, self.measurements_lifetime_ms));
                let (class, order) = match measured {
                    None => (Class::Unmeasured, 0),
                    Some(measured) => {
                        measured.check_timeout(now, self.max_timeouts);
                        match measured.rtt().srtt_ns() {
                            // Timed-out next hops take turns, so that one that works again is found.
                            _ if measured.is_timed_out() => (Class::TimedOut, measured.last_used().0),
                            Some(srtt_ns) => (Class::Working, srtt_ns),
                            None => (Class::Unmeasured, 0),
                        }
                    }
                };
                Ranked { class, order, position, face }
            })
            .collect()
    }

    fn best<C: StrategyContext>(&self, ctx: &mut C, wanted: impl Fn(&C, FaceId) -> bool) -> Option<FaceId> {
        self.ranked(ctx, wanted).into_iter().min().map(|ranked| ranked.face)
    }

    /// Sends a probe to a next hop other than `used` if one is due.
    fn probe_if_due<C: StrategyContext>(&self, ctx: &mut C, used: FaceId) {
        let now = ctx.now();
        let Some(next_probe) = ctx.measurements().map(|measurements| measurements.next_probe) else {
            return;
        };
        let due = next_probe.unwrap_or_else(|| {
            let first = Timestamp(now.0 + ctx.random() % FIRST_PROBE_WITHIN_NS);
            if let Some(measurements) = ctx.measurements() {
                measurements.next_probe = Some(first);
            }
            first
        });
        if due > now {
            return;
        }
        let mut candidates = self.ranked(ctx, |_, face| face != used);
        candidates.sort_unstable();
        let random = ctx.random();
        let Some(face) = choose_probe(&candidates, random) else {
            return;
        };
        if self.send(ctx, face, true)
            && let Some(measurements) = ctx.measurements()
        {
            measurements.next_probe = Some(now.plus_ms(self.probing_interval_ms));
        }
    }
}

/// Chooses among candidates sorted by rank: the first unmeasured one, otherwise a random one. Of n candidates, the best
/// has weight n and the last has weight 1.
fn choose_probe(candidates: &[Ranked], random: u64) -> Option<FaceId> {
    if let Some(unmeasured) = candidates.iter().find(|ranked| ranked.class == Class::Unmeasured) {
        return Some(unmeasured.face);
    }
    let count = candidates.len() as u64;
    let tickets = count * (count + 1) / 2;
    let mut drawn = random.checked_rem(tickets)?;
    for (ranked, share) in candidates.iter().zip((1..=count).rev()) {
        if drawn < share {
            return Some(ranked.face);
        }
        drawn -= share;
    }
    None
}

#[cfg(test)]
#[path = "tests/asf.rs"]
mod tests;
