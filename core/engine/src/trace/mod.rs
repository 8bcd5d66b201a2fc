//! Packet trace: the decisions of the pipelines about single packets, step by step, for an operator.
//!
//! Without a trace request, a packet costs one check of whether tracing is on, and each step one check of whether this
//! packet is traced. The pipelines begin a trace when they know the name; it ends when the next packet is handled, or
//! with the burst. With a request, the name of each packet is compared. Steps are recorded for packets under the
//! prefix, up to the requested number of packets. Another thread formats the recorded steps as text.

mod step;

use namehop_packet::{FaceId, Timestamp};
use namehop_wire::{Name, NameRef};

pub use step::{TraceStage, TraceStep};

use crate::engine::EngineEvent;
use crate::engine::core::Core;
use crate::pcct::PitRef;
use crate::scope::NameScope;

/// Maximum number of steps recorded for one packet: a strategy may send to many faces.
const MOST_STEPS: usize = 100;

/// A request to trace packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceRequest {
    /// Trace packets with names under this prefix. Names under `/localhost`, such as the commands that request traces,
    /// are traced only if the prefix is under `/localhost` itself.
    pub prefix: Name,
    /// Number of packets to trace.
    pub count: u64,
}

/// The kind of event that is traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceSubject {
    /// An Interest arrived.
    Interest,
    /// Data arrived.
    Data,
    /// A Nack arrived.
    Nack,
    /// No packet arrived; the strategy acted on a pending Interest.
    Pending,
    /// No packet arrived; a pending Interest expired.
    Timeout,
}

impl TraceSubject {
    /// Returns the event as a word.
    pub fn name(self) -> &'static str {
        match self {
            TraceSubject::Interest => "interest",
            TraceSubject::Data => "data",
            TraceSubject::Nack => "nack",
            TraceSubject::Pending => "pending",
            TraceSubject::Timeout => "timeout",
        }
    }
}

/// The trace of one packet or event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacketTrace {
    /// By the clock of the engine's caller.
    pub time: Timestamp,
    /// The kind of event.
    pub subject: TraceSubject,
    /// The face it arrived on; [`FaceId::INVALID`] if no packet arrived.
    pub face: FaceId,
    /// The name of the packet.
    pub name: Name,
    /// The decisions in order; at most 100 steps.
    pub steps: Vec<TraceStep>,
}

/// The tracing state of an engine.
#[derive(Debug, Default)]
pub(crate) struct Tracing {
    request: Option<TraceRequest>,
    /// The trace of the current packet, if it is traced.
    current: Option<Box<PacketTrace>>,
}

impl Tracing {
    /// Replaces the current request.
    pub(crate) fn set(&mut self, request: Option<TraceRequest>) {
        self.request = request.filter(|request| request.count > 0);
    }

    /// Returns whether there is a trace request.
    #[inline(always)]
    pub(crate) fn is_on(&self) -> bool {
        self.request.is_some()
    }

    /// Records a step of the current packet, if it is traced.
    #[inline(always)]
    pub(crate) fn note(&mut self, step: impl FnOnce() -> TraceStep) {
        if let Some(trace) = &mut self.current {
            push(trace, step());
        }
    }
}

#[cold]
#[inline(never)]
fn push(trace: &mut PacketTrace, step: TraceStep) {
    if trace.steps.len() < MOST_STEPS {
        trace.steps.push(step);
    }
}

impl Core {
    /// Begins a trace for a packet with this name; `first` is its first step. Ends the previous trace.
    #[inline(always)]
    pub(crate) fn trace_if_on(
        &mut self,
        now: Timestamp,
        subject: TraceSubject,
        face: FaceId,
        name: NameRef<'_>,
        first: impl FnOnce() -> TraceStep,
    ) {
        if self.tracing.is_on() {
            self.begin_trace(now, subject, face, name, first());
        }
    }

    /// Ends the current trace, if there is one.
    #[inline(always)]
    pub(crate) fn end_trace_if_on(&mut self) {
        if self.tracing.is_on() {
            self.end_trace();
        }
    }

    #[cold]
    #[inline(never)]
    fn begin_trace(
        &mut self,
        time: Timestamp,
        subject: TraceSubject,
        face: FaceId,
        name: NameRef<'_>,
        first: TraceStep,
    ) {
        self.end_trace();
        let is_wanted = |request: &&TraceRequest| {
            let is_local = NameScope::of(name.value()) == NameScope::Localhost;
            request.prefix.as_ref().is_prefix_of(name)
                && (!is_local || NameScope::of(request.prefix.as_ref().value()) == NameScope::Localhost)
        };
        let request = self.tracing.request.as_ref().filter(is_wanted);
        self.tracing.current = request.map(|_| {
            let (name, steps) = (name.to_owned(), vec![first]);
            Box::new(PacketTrace { time, subject, face, name, steps })
        });
    }

    /// Ends the current trace and reports it.
    #[cold]
    #[inline(never)]
    pub(crate) fn end_trace(&mut self) {
        let Some(trace) = self.tracing.current.take() else { return };
        if let Some(request) = &mut self.tracing.request {
            request.count -= 1;
            if request.count == 0 {
                self.tracing.request = None;
            }
        }
        self.report(EngineEvent::Traced(trace));
    }

    /// Begins a trace of a strategy call for a pending Interest without a current packet. Returns whether it is traced,
    /// until [`end_pending_trace`](Self::end_pending_trace).
    #[cold]
    #[inline(never)]
    pub(crate) fn trace_pending(&mut self, time: Timestamp, pit: PitRef) -> bool {
        let Ok(name) = NameRef::from_value(self.pcct.name(pit.entry)) else { return false };
        let name = name.to_owned();
        let first = TraceStep::Pending { downstreams: self.pcct.in_records(pit).count() };
        self.begin_trace(time, TraceSubject::Pending, FaceId::INVALID, name.as_ref(), first);
        self.tracing.current.is_some()
    }

    /// Ends a trace of a strategy call. If the call had no effect, the trace is discarded.
    #[cold]
    #[inline(never)]
    pub(crate) fn end_pending_trace(&mut self) {
        // The steps `Pending` and `Asked`.
        const NOTHING: usize = 2;
        if self.tracing.current.as_ref().is_some_and(|trace| trace.steps.len() <= NOTHING) {
            self.tracing.current = None;
        }
        self.end_trace();
    }

    /// Records that a pending Interest ends without an answer. Without a current packet, begins a trace of its own,
    /// until [`end_trace`](Self::end_trace). Returns whether it did.
    #[cold]
    #[inline(never)]
    pub(crate) fn trace_unanswered(&mut self, time: Timestamp, pit: PitRef) -> bool {
        let upstreams = self.pcct.out_records(pit).filter(|record| record.nacked().is_none()).count();
        let is_own = self.tracing.current.is_none();
        if is_own && let Ok(name) = NameRef::from_value(self.pcct.name(pit.entry)) {
            let name = name.to_owned();
            let first = TraceStep::Unanswered { upstreams };
            self.begin_trace(time, TraceSubject::Timeout, FaceId::INVALID, name.as_ref(), first);
        } else {
            self.tracing.note(|| TraceStep::Unanswered { upstreams });
        }
        is_own
    }
}
