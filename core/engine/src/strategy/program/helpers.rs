//! The helper functions of programs. `docs/strategies.md` and `sdk/namehop_strategy.h` describe them.
//!
//! Sets of next hops are numbers: bit *i* stands for the next hop at position *i*, the cheapest first.

use std::mem::{offset_of, size_of};

use namehop_ebpf::{Argument, Helper, Interface, Memory, Returned};
use namehop_packet::FaceId;
use namehop_wire::lp::NackReason;

use super::context::{Frame, OutRecordView, ProgramContext, next_hop};
use super::{MEASUREMENTS_LIFETIME_MS, ProgramInstance};
use crate::fib::MAX_NEXTHOPS;
use crate::strategy::context::StrategyContext;
use crate::strategy::measurements::{PREFIX_SCRATCH_WORDS, send_measured};
use crate::strategy::nack::process_nack;
use crate::strategy::suppression::Decision;
use crate::strategy::upstreams::{answer_no_route, is_used, out_record_of};

// A set has 32 bits.
const _: () = assert!(MAX_NEXTHOPS <= 32);

/// Generates the helpers that act on the strategy context: their numbers, their functions, and the list of all.
macro_rules! helpers {
    ($($call:ident $name:ident ($($argument:ident),*) -> $returned:expr;)+) => {
        /// The operation of a helper.
        #[derive(Debug, Clone, Copy)]
        pub enum Call {
            $($call,)+
        }

        $(
            /// # Safety
            /// `context` must be that of a running program.
            unsafe extern "C" fn $name(context: u64, argument: u64, _: u64, _: u64, _: u64) -> u64 {
                let frame = context as *mut Frame;
                // SAFETY: the verifier accepts no other address, and the context is the start of its frame.
                unsafe { ((*frame).way)(frame, Call::$call, argument) }
            }
        )+

        // SAFETY: the first argument is the context, numbers may have any value, and memory is in the frame of the
        // program.
        static HELPERS: [Helper; 20] = unsafe {
            [
                $(Helper::new(
                    stringify!($name),
                    &[Argument::Context, $(Argument::$argument),*],
                    $returned,
                    $name,
                ),)+
                Helper::new("namehop_count", &[Argument::Number], Returned::Number, namehop_count),
                Helper::new("namehop_pick", &[Argument::Number; 2], Returned::Number, namehop_pick),
            ]
        };
    };
}

helpers! {
    Decide namehop_decide() -> Returned::Number;
    Eligible namehop_eligible() -> Returned::Number;
    FirstEligible namehop_first_eligible() -> Returned::Number;
    Used namehop_used() -> Returned::Number;
    Oldest namehop_oldest(Number) -> Returned::Number;
    Forward namehop_forward(Number) -> Returned::Number;
    ForwardUnsuppressed namehop_forward_unsuppressed(Number) -> Returned::Number;
    NoRoute namehop_no_route() -> Returned::Number;
    Nack namehop_nack(Number) -> Returned::Number;
    ProcessNack namehop_process_nack() -> Returned::Number;
    Timer namehop_timer(Number) -> Returned::Number;
    Random namehop_random() -> Returned::Number;
    PrefixScratch namehop_prefix_scratch() -> Returned::Memory(PREFIX_SCRATCH);
    OutRecord namehop_out_record(Number) -> Returned::Memory(OUT_RECORD);
    Face namehop_face(Number) -> Returned::Number;
    NextHopOf namehop_next_hop_of(Number) -> Returned::Number;
    RttUs namehop_rtt_us(Number) -> Returned::Number;
    Downstreams namehop_downstreams() -> Returned::Number;
}

const PREFIX_SCRATCH: Memory = Memory { bytes: (PREFIX_SCRATCH_WORDS * size_of::<u64>()) as u32, is_writable: true };
const OUT_RECORD: Memory = Memory { bytes: size_of::<OutRecordView>() as u32, is_writable: false };

/// The interface of programs: their context and their helpers.
pub static INTERFACE: Interface = Interface {
    context_bytes: size_of::<ProgramContext>() as u32,
    writable: offset_of!(ProgramContext, interest_scratch) as u32..size_of::<ProgramContext>() as u32,
    helpers: &HELPERS,
};

extern "C" fn namehop_count(set: u64, _: u64, _: u64, _: u64, _: u64) -> u64 {
    u64::from(set.count_ones())
}

/// Returns the member of a set at a position, modulo the size of the set.
extern "C" fn namehop_pick(set: u64, position: u64, _: u64, _: u64, _: u64) -> u64 {
    let Some(position) = position.checked_rem(u64::from(set.count_ones())) else { return 0 };
    let rest = (0..position).fold(set, |rest, _| rest & (rest - 1));
    rest & rest.wrapping_neg()
}

/// Returns the set of next hops for which `is_in` returns `true`.
fn set_of<C: StrategyContext>(ctx: &C, is_in: impl Fn(&C, FaceId) -> bool) -> u64 {
    (0..ctx.nexthop_count()).filter(|&index| is_in(ctx, ctx.nexthop(index))).fold(0, |set, index| set | 1 << index)
}

/// Returns the eligible next hops. Without an Interest at hand, this examines all downstreams for each next hop, so it
/// is done only once per event.
fn eligible<C: StrategyContext>(frame: &mut Frame, ctx: &C) -> u64 {
    *frame.eligible.get_or_insert_with(|| set_of(ctx, |ctx, face| ctx.is_eligible(face)))
}

/// Returns whether the Interest may be sent to the next hop at this position.
fn may_go_to<C: StrategyContext>(frame: &mut Frame, ctx: &C, index: usize) -> bool {
    match frame.is_of_interest() {
        true => ctx.is_eligible(ctx.nexthop(index)),
        false => eligible(frame, ctx) & 1 << index != 0,
    }
}

/// Calls `act` for each next hop of the set that is eligible and was not sent to in this event. Returns those for which
/// it returns `true`. So a program multiplies Interests at most by the number of next hops.
fn for_each<C: StrategyContext>(
    frame: &mut Frame,
    ctx: &mut C,
    set: u64,
    mut act: impl FnMut(&mut C, FaceId) -> bool,
) -> u64 {
    let mut done = 0;
    let mut rest = set & !frame.sent;
    while rest != 0 {
        let index = rest.trailing_zeros() as usize;
        rest &= rest - 1;
        if index >= ctx.nexthop_count() {
            break;
        }
        let face = ctx.nexthop(index);
        if may_go_to(frame, ctx, index) && act(ctx, face) {
            done |= 1 << index;
        }
    }
    frame.sent |= done;
    done
}

fn forward<C: StrategyContext>(instance: &ProgramInstance, ctx: &mut C, face: FaceId) -> bool {
    match instance.measures() {
        true => send_measured(ctx, face, MEASUREMENTS_LIFETIME_MS, false),
        false => ctx.send_interest(face),
    }
}

/// Carries out the operation of a helper.
pub fn carry_out<C: StrategyContext>(
    frame: &mut Frame,
    instance: &ProgramInstance,
    ctx: &mut C,
    call: Call,
    argument: u64,
) -> u64 {
    match call {
        Call::Decide => match instance.suppression.decide_per_entry(ctx) {
            Decision::New => 0,
            Decision::Forward => 1,
            Decision::Suppress => 2,
        },
        Call::Eligible => eligible(frame, ctx),
        Call::FirstEligible => {
            (0..ctx.nexthop_count()).find(|&index| may_go_to(frame, ctx, index)).map_or(0, |index| 1 << index)
        }
        Call::Used => set_of(ctx, |ctx, face| is_used(ctx, face)),
        Call::Oldest => (0..ctx.nexthop_count())
            .filter(|&index| argument & 1 << index != 0)
            .filter_map(|index| Some((out_record_of(ctx, ctx.nexthop(index))?.last_renewed, index)))
            .min_by_key(|&(sent, _)| sent)
            .map_or(0, |(_, index)| 1 << index),
        Call::Forward => for_each(frame, ctx, argument, |ctx, face| forward(instance, ctx, face)),
        Call::ForwardUnsuppressed => for_each(frame, ctx, argument, |ctx, face| {
            let decision = instance.suppression.decide_per_upstream(ctx, face);
            let is_sent = decision != Decision::Suppress && forward(instance, ctx, face);
            if is_sent && decision == Decision::Forward {
                instance.suppression.grow_upstream(ctx, face);
            }
            is_sent
        }),
        Call::NoRoute => {
            answer_no_route(ctx);
            0
        }
        Call::Nack => {
            ctx.send_nacks(NackReason(argument));
            ctx.reject_pending_interest();
            0
        }
        Call::ProcessNack => {
            process_nack(ctx);
            0
        }
        Call::Timer => {
            ctx.schedule_timer_us(argument);
            0
        }
        Call::Random => ctx.random(),
        Call::PrefixScratch => {
            if !frame.has_prefix_scratch {
                frame.has_prefix_scratch = true;
                if let Some(measurements) = ctx.measurements() {
                    frame.prefix_scratch = *measurements.scratch(instance.program.owner);
                }
            }
            (&raw mut frame.prefix_scratch) as u64
        }
        Call::OutRecord => {
            let record = next_hop(ctx, argument).and_then(|face| out_record_of(ctx, face));
            frame.out_record = record.map_or_else(OutRecordView::default, |record| OutRecordView {
                sent_ns: record.last_renewed.0,
                expires_ns: record.expiry.0,
                nonce: record.nonce,
                nack_reason: record.nacked.map_or(0, |reason| u32::try_from(reason.0).unwrap_or(u32::MAX)),
                exists: 1,
                reserved: 0,
            });
            (&raw mut frame.out_record) as u64
        }
        Call::Face => next_hop(ctx, argument).map_or(0, |face| u64::from(face.0)),
        Call::NextHopOf => set_of(ctx, |_, face| u64::from(face.0) == argument),
        Call::RttUs => {
            let (now, face) = (ctx.now(), next_hop(ctx, argument));
            face.and_then(|face| ctx.measurements()?.next_hop(face, now, MEASUREMENTS_LIFETIME_MS)?.rtt().srtt_ns())
                .map_or(0, |rtt_ns| rtt_ns / 1_000)
        }
        Call::Downstreams => ctx.in_records().count() as u64,
    }
}
