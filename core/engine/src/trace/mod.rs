//! Packet trace: what the pipelines decide about single packets, step by step, for an operator who wants to know why.
//!
//! While nobody traces, a packet pays for one look whether somebody does, and each step for one look whether this packet is traced.
//! The pipelines begin a trace where they know the name; it ends when the next packet has its turn, or with the burst.
//! While somebody does, the name of each packet is compared; steps are noted for those under the prefix, so many as were asked for.
//! Whatever is noted is put into words by those who read it, on another thread.

mod step;

use namehop_packet::{FaceId, Timestamp};
use namehop_wire::{Name, NameRef};

pub use step::{TraceStage, TraceStep};

use crate::engine::EngineEvent;
use crate::engine::core::Core;
use crate::pcct::PitRef;
use crate::scope::NameScope;

/// Steps that are noted of one packet: a strategy may send to many faces.
const MOST_STEPS: usize = 100;

/// Which packets to trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceRequest {
    /// Packets with names under it; with names under `/localhost`, such as the commands that ask for traced packets, only if it
    /// is under `/localhost` itself.
    pub prefix: Name,
    /// So many of them.
    pub count: u64,
}

/// What is traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceSubject {
    /// An Interest came in.
    Interest,
    /// Data came in.
    Data,
    /// A Nack came in.
    Nack,
    /// Nothing came in, but the strategy did something about a pending Interest.
    Pending,
    /// Nothing came in, but the time of a pending Interest is over.
    Timeout,
}

impl TraceSubject {
    /// In words.
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

/// One packet, and what was decided about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacketTrace {
    /// By the clock of the engine's caller.
    pub time: Timestamp,
    /// What it is.
    pub subject: TraceSubject,
    /// Where it came in; [`FaceId::INVALID`] when nothing came in.
    pub face: FaceId,
    /// Its name.
    pub name: Name,
    /// What was decided, in this order; at most 100 steps.
    pub steps: Vec<TraceStep>,
}

/// What an engine traces now.
#[derive(Debug, Default)]
pub(crate) struct Tracing {
    request: Option<TraceRequest>,
    /// The packet that has its turn, if it is traced.
    current: Option<Box<PacketTrace>>,
}

impl Tracing {
    /// Traces from now on what is asked for here, and nothing else.
    pub(crate) fn set(&mut self, request: Option<TraceRequest>) {
        self.request = request.filter(|request| request.count > 0);
    }

    /// Does anybody trace?
    #[inline(always)]
    pub(crate) fn is_on(&self) -> bool {
        self.request.is_some()
    }

    /// Notes a step of the packet that has its turn, if it is traced.
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
    /// A packet with this name has its turn, and `first` is what is known about it. Whatever had its turn before ends.
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

    /// The packet that was begun last has had its turn, if any was.
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

    /// The packet that was begun last has had its turn.
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

    /// The strategy will be called for a pending Interest although no packet has its turn. Returns whether that is
    /// traced, until [`end_pending_trace`](Self::end_pending_trace).
    #[cold]
    #[inline(never)]
    pub(crate) fn trace_pending(&mut self, time: Timestamp, pit: PitRef) -> bool {
        let Ok(name) = NameRef::from_value(self.pcct.name(pit.entry)) else { return false };
        let name = name.to_owned();
        let first = TraceStep::Pending { downstreams: self.pcct.in_records(pit).count() };
        self.begin_trace(time, TraceSubject::Pending, FaceId::INVALID, name.as_ref(), first);
        self.tracing.current.is_some()
    }

    /// The strategy has been called. If nothing came of it, there is nothing to be shown.
    #[cold]
    #[inline(never)]
    pub(crate) fn end_pending_trace(&mut self) {
        // That it was pending, and that the strategy was asked.
        const NOTHING: usize = 2;
        if self.tracing.current.as_ref().is_some_and(|trace| trace.steps.len() <= NOTHING) {
            self.tracing.current = None;
        }
        self.end_trace();
    }

    /// A pending Interest ends without an answer. If no packet has its turn, that is something of its own to be traced, until
    /// [`end_trace`](Self::end_trace); returns whether it is.
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
