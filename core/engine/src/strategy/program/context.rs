//! The data of a program call: its context, followed by state that the program cannot reach and the helpers need.

use std::marker::PhantomData;

use namehop_packet::FaceId;

use super::ProgramInstance;
use super::helpers::{Call, carry_out};
use crate::strategy::context::StrategyContext;
use crate::strategy::measurements::PREFIX_SCRATCH_WORDS;

/// Number of parameters of a program.
pub const PARAMETERS: usize = 8;
/// Number of events.
pub const EVENTS: u32 = 7;

/// The event for which a program is called. The numbers are the same as in `enum namehop_event` in C.
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
    /// Reason of a Nack, or id of the face that the event concerns.
    subject: u32,
    parameters: [u64; PARAMETERS],
    /// The only part that the program may change.
    pub interest_scratch: [u32; 2],
}

/// An out-record as a program sees it: `struct namehop_out_record` in C.
#[repr(C)]
#[derive(Default)]
pub struct OutRecordView {
    pub sent_ns: u64,
    pub expires_ns: u64,
    pub nonce: u32,
    /// 0 if there is no Nack.
    pub nack_reason: u32,
    pub exists: u32,
    pub reserved: u32,
}

/// The function through which a helper reaches the strategy context of the program's call.
pub type Way = unsafe fn(*mut Frame, Call, u64) -> u64;

/// A context with all its state. Programs reach only the first field.
#[repr(C)]
pub struct Frame {
    pub context: ProgramContext,
    pub prefix_scratch: [u64; PREFIX_SCRATCH_WORDS],
    pub out_record: OutRecordView,
    pub has_prefix_scratch: bool,
    /// Set of next hops that the Interest was sent to in this event.
    pub sent: u64,
    /// Set of eligible next hops, once it is computed.
    pub eligible: Option<u64>,
    pub way: Way,
    /// The strategy context, of the type that `way` knows.
    pub target: *mut (),
    pub instance: *const ProgramInstance,
}

impl Frame {
    /// Returns whether the program was called for an arriving Interest.
    pub fn is_of_interest(&self) -> bool {
        self.context.event == Event::Interest as u32
    }
}

/// The `Way` for one type of strategy context.
struct WayOf<C>(PhantomData<C>);

impl<C: StrategyContext> WayOf<C> {
    /// # Safety
    /// `frame` must be made by a call of [`run`] for `C` that is still running.
    unsafe fn go(frame: *mut Frame, call: Call, argument: u64) -> u64 {
        // SAFETY: `run` borrows the context and the instance for as long as the program runs. It uses neither
        // meanwhile, and the program reaches them only through this function, one call at a time. The borrowed parts of
        // the frame are not accessible to the program, or only as plain addresses.
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
    // SAFETY: the program was verified for contexts of this layout; everything that the helpers reach lives until it
    // ends.
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

/// Returns the next hop at a position.
pub fn next_hop<C: StrategyContext>(ctx: &C, position: u64) -> Option<FaceId> {
    usize::try_from(position).ok().filter(|&index| index < ctx.nexthop_count()).map(|index| ctx.nexthop(index))
}
