//! The asf strategy (adaptive smoothed-RTT forwarding): uses the next hop that answers fastest and probes the others.
//!
//! Next hops rank by class, then by smoothed round-trip time, then by cost. Classes: working, unmeasured, timed out. Probes are copies
//! of ordinary Interests with a nonce of their own, sent to one other next hop per probing interval.

use arrayvec::ArrayVec;
use namehop_wire::lp::NackReason;

use super::context::{StrategyContext, Trigger};
use super::measurements::{record_answer, send_measured};
use super::nack::process_nack;
use super::suppression::{Decision, ExponentialSuppression};
use super::upstreams::{answer_no_route, eligible, eligible_used_longest_ago, is_used, pending_out_records};
use namehop_packet::{FaceId, Timestamp};

/// The first probe for a prefix is sent at a random time within this many nanoseconds, so that routers do not probe in step.
const FIRST_PROBE_WITHIN_NS: u64 = 5_000_000_000;

/// How long a satisfied entry is kept for the Data of a slower probe.
const LATE_DATA_MS: u64 = 50;

/// More next hops than this are not ranked; a FIB entry has no more.
const MAX_RANKED: usize = 32;

/// Parameters of the strategy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AsfParameters {
    /// Suppression per out-record.
    pub suppression: ExponentialSuppression,
    /// Time between two probes for a prefix.
    pub probing_interval_ms: u64,
    /// Unanswered Interests in a row after which a next hop counts as timed out.
    pub max_timeouts: u32,
    /// How long measurements of an unused next hop are kept.
    pub measurements_lifetime_ms: u64,
}

impl Default for AsfParameters {
    fn default() -> Self {
        AsfParameters {
            suppression: ExponentialSuppression::default(),
            probing_interval_ms: 60_000,
            max_timeouts: 3,
            measurements_lifetime_ms: 300_000,
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
    /// Within the class: round-trip time in nanoseconds, or the time of last use for those that do not answer.
    order: u64,
    /// Position in the order of cost.
    position: usize,
    face: FaceId,
}

/// Handles every trigger.
pub fn dispatch<C: StrategyContext>(parameters: &AsfParameters, trigger: Trigger, ctx: &mut C) {
    match trigger {
        Trigger::AfterReceiveInterest => after_receive_interest(parameters, ctx),
        Trigger::AfterReceiveData => {
            measure_data(parameters, ctx);
            ctx.send_data_to_all();
        }
        Trigger::BeforeSatisfyInterest => measure_data(parameters, ctx),
        Trigger::AfterReceiveNack(reason) => after_receive_nack(parameters, reason, ctx),
        Trigger::OnDroppedInterest(face) => {
            let now = ctx.now();
            if let Some(measurements) = ctx.measurements()
                && let Some(measured) = measurements.next_hop(face, now, parameters.measurements_lifetime_ms)
            {
                measured.lost(parameters.max_timeouts);
            }
        }
        Trigger::BeforeExpire => settle_all(parameters, ctx),
        Trigger::AfterNewNextHop(_) | Trigger::Timer => {}
    }
}

fn after_receive_interest<C: StrategyContext>(parameters: &AsfParameters, ctx: &mut C) {
    // Two consumers that ask at the same time must not use two paths, so the interval of the upstream asked last decides
    // even when another one is still unused.
    let Some(last) = pending_out_records(ctx).max_by_key(|record| record.last_renewed) else {
        match best(parameters, ctx, |_, _| true) {
            Some(face) => {
                send(parameters, ctx, face, false);
                probe_if_due(parameters, ctx, face);
            }
            None => answer_no_route(ctx),
        }
        return;
    };
    let suppression = &parameters.suppression;
    if suppression.decide_per_upstream(ctx, last.face) == Decision::Suppress {
        return;
    }
    if let Some(face) = best(parameters, ctx, |ctx, face| !is_used(ctx, face)) {
        send(parameters, ctx, face, false);
        return;
    }
    if let Some(face) = eligible_used_longest_ago(ctx)
        && suppression.decide_per_upstream(ctx, face) != Decision::Suppress
        && send(parameters, ctx, face, false)
    {
        suppression.grow_upstream(ctx, face);
    }
}

fn measure_data<C: StrategyContext>(parameters: &AsfParameters, ctx: &mut C) {
    let ingress = ctx.ingress();
    if record_answer(ctx, parameters.measurements_lifetime_ms)
        && pending_out_records(ctx).any(|record| record.face != ingress)
    {
        ctx.set_expiry_ms(LATE_DATA_MS);
    }
}

fn after_receive_nack<C: StrategyContext>(parameters: &AsfParameters, reason: NackReason, ctx: &mut C) {
    let (now, ingress) = (ctx.now(), ctx.ingress());
    if let Some(measurements) = ctx.measurements() {
        let measured = measurements.next_hop_or_new(ingress, now, parameters.measurements_lifetime_ms);
        if reason == NackReason::DUPLICATE {
            // Two paths met further up: that says nothing against this one.
            measured.not_measured();
        } else {
            measured.refused();
        }
    }
    process_nack(ctx);
}

fn settle_all<C: StrategyContext>(parameters: &AsfParameters, ctx: &mut C) {
    let now = ctx.now();
    let faces: ArrayVec<FaceId, MAX_RANKED> = ctx.out_records().map(|record| record.face).take(MAX_RANKED).collect();
    if let Some(measurements) = ctx.measurements() {
        for face in faces {
            if let Some(measured) = measurements.next_hop(face, now, parameters.measurements_lifetime_ms) {
                measured.settle(now, parameters.max_timeouts);
            }
        }
    }
}

fn send<C: StrategyContext>(parameters: &AsfParameters, ctx: &mut C, face: FaceId, probe: bool) -> bool {
    send_measured(ctx, face, parameters.measurements_lifetime_ms, probe)
}

/// The eligible next hops for which `wanted` holds, with their ranks; in order of cost.
fn ranked<C: StrategyContext>(
    parameters: &AsfParameters,
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
                .and_then(|measurements| measurements.next_hop(face, now, parameters.measurements_lifetime_ms));
            let (class, order) = match measured {
                None => (Class::Unmeasured, 0),
                Some(measured) => {
                    measured.settle(now, parameters.max_timeouts);
                    match measured.rtt().srtt_ns() {
                        // Of several that do not answer each has its turn, so that the one that works again is found.
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

fn best<C: StrategyContext>(
    parameters: &AsfParameters,
    ctx: &mut C,
    wanted: impl Fn(&C, FaceId) -> bool,
) -> Option<FaceId> {
    ranked(parameters, ctx, wanted).into_iter().min().map(|ranked| ranked.face)
}

/// Sends a probe to a next hop other than `used` if it is time.
fn probe_if_due<C: StrategyContext>(parameters: &AsfParameters, ctx: &mut C, used: FaceId) {
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
    let mut candidates = ranked(parameters, ctx, |_, face| face != used);
    candidates.sort_unstable();
    let random = ctx.random();
    let Some(face) = choose_probe(&candidates, random) else {
        return;
    };
    if send(parameters, ctx, face, true)
        && let Some(measurements) = ctx.measurements()
    {
        measurements.next_probe = Some(now.plus_ms(parameters.probing_interval_ms));
    }
}

/// Chooses among candidates sorted by rank: the first unmeasured one, otherwise by lot, where the n-th best of n gets one ticket
/// and the best gets n.
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
