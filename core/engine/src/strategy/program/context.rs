//! What a program is given: its context, and behind that, out of its reach, the way back to the router.

use std::marker::PhantomData;

use namehop_packet::FaceId;

use super::ProgramInstance;
use super::helpers::{Call, carry_out};
use crate::strategy::context::StrategyContext;
use crate::strategy::measurements::PREFIX_SCRATCH_WORDS;

/// Parameters of a program.
pub const PARAMETERS: usize = 8;
/// Number of events.
pub const EVENTS: u32 = 7;

/// Why a program is called. The numbers are those of `enum namehop_event` in C.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Event {
    Interest,
    Data,
    Nack,
    Timer,
    NewNextHop,
    Dropped,
    Expiry,
}

/// The context: `struct namehop_context` in C.
#[repr(C)]
pub struct ProgramContext {
    now_ns: u64,
    event: u32,
    next_hop_count: u32,
    ingress: u32,
    /// Reason of a Nack; face that the event is about.
    subject: u32,
    parameters: [u64; PARAMETERS],
    /// The only part that the program may change.
    pub interest_scratch: [u32; 2],
}

/// What a program sees of an out-record: `struct namehop_out_record` in C.
#[repr(C)]
#[derive(Default)]
pub struct OutRecordView {
    pub sent_ns: u64,
    pub expires_ns: u64,
    pub nonce: u32,
    /// 0 when there is no Nack.
    pub nack_reason: u32,
    pub exists: u32,
    pub reserved: u32,
}

/// The way from a helper to the strategy context that the program was called for.
pub type Way = unsafe fn(*mut Frame, Call, u64) -> u64;

/// A context with all that belongs to it. Programs reach the first field only.
#[repr(C)]
pub struct Frame {
    pub context: ProgramContext,
    pub prefix_scratch: [u64; PREFIX_SCRATCH_WORDS],
    pub out_record: OutRecordView,
    pub has_prefix_scratch: bool,
    /// Next hops that the Interest was sent to in this event, as a set.
    pub sent: u64,
    /// Next hops that it may go to, as a set, once they are known.
    pub eligible: Option<u64>,
    pub way: Way,
    /// The strategy context, of the type that `way` knows.
    pub target: *mut (),
    pub instance: *const ProgramInstance,
}

impl Frame {
    /// Was the program called because an Interest came?
    pub fn is_of_interest(&self) -> bool {
        self.context.event == Event::Interest as u32
    }
}

/// The way for one type of strategy context.
struct WayOf<C>(PhantomData<C>);

impl<C: StrategyContext> WayOf<C> {
    /// # Safety
    /// `frame` was made by [`run`] for `C`, which is still running.
    unsafe fn go(frame: *mut Frame, call: Call, argument: u64) -> u64 {
        // SAFETY: `run` borrows the context and the instance for as long as the program runs. It uses neither meanwhile, and the
        // program reaches them through here only, one call at a time. Of the frame, the parts borrowed are those that the
        // program is not given, or gets as plain addresses.
        unsafe {
            let ctx = &mut *(*frame).target.cast::<C>();
            let instance = &*(*frame).instance;
            carry_out(&mut *frame, instance, ctx, call, argument)
        }
    }
}

/// Calls a program.
pub fn run<C: StrategyContext>(instance: &ProgramInstance, event: Event, subject: u64, ctx: &mut C) {
    let scratch = *ctx.pit_scratch();
    let mut frame = Frame {
        context: ProgramContext {
            now_ns: ctx.now().0,
            event: event as u32,
            next_hop_count: ctx.nexthop_count() as u32,
            ingress: ctx.ingress().0,
            subject: u32::try_from(subject).unwrap_or(u32::MAX),
            parameters: instance.parameters,
            interest_scratch: [scratch.flags, scratch.face],
        },
        prefix_scratch: [0; PREFIX_SCRATCH_WORDS],
        out_record: OutRecordView::default(),
        has_prefix_scratch: false,
        sent: 0,
        eligible: None,
        way: WayOf::<C>::go,
        target: (&raw mut *ctx).cast(),
        instance,
    };
    // SAFETY: the program was verified for contexts of this layout; what the helpers reach lives until it ends.
    unsafe { instance.program.code.run((&raw mut frame).cast()) };
    let [flags, face] = frame.context.interest_scratch;
    if (flags, face) != (scratch.flags, scratch.face) {
        let scratch = ctx.pit_scratch();
        (scratch.flags, scratch.face) = (flags, face);
    }
    if frame.has_prefix_scratch
        && let Some(measurements) = ctx.measurements()
    {
        *measurements.scratch(instance.program.owner) = frame.prefix_scratch;
    }
}

/// The next hop at a position.
pub fn next_hop<C: StrategyContext>(ctx: &C, position: u64) -> Option<FaceId> {
    usize::try_from(position).ok().filter(|&index| index < ctx.nexthop_count()).map(|index| ctx.nexthop(index))
}
