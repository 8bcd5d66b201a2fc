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

    /// Returns whether the current packet is traced.
    pub(crate) fn has_current(&self) -> bool {
        self.current.is_some()
    }

    /// Begins the trace of a packet with this name, if the request covers it; `first` is its first step. Returns the
    /// finished trace of the previous packet, if there was one.
    #[cold]
    #[inline(never)]
    pub(crate) fn begin(
        &mut self,
        time: Timestamp,
        subject: TraceSubject,
        face: FaceId,
        name: NameRef<'_>,
        first: TraceStep,
    ) -> Option<Box<PacketTrace>> {
        let previous = self.end();
        let is_wanted = |request: &&TraceRequest| {
            let is_local = NameScope::of(name.value()) == NameScope::Localhost;
            request.prefix.as_ref().is_prefix_of(name)
                && (!is_local || NameScope::of(request.prefix.as_ref().value()) == NameScope::Localhost)
        };
        self.current = self.request.as_ref().filter(is_wanted).map(|_| {
            let (name, steps) = (name.to_owned(), vec![first]);
            Box::new(PacketTrace { time, subject, face, name, steps })
        });
        previous
    }

    /// Ends the current trace and returns it. The request ends with the last trace that it covers.
    #[cold]
    #[inline(never)]
    pub(crate) fn end(&mut self) -> Option<Box<PacketTrace>> {
        let trace = self.current.take()?;
        if let Some(request) = &mut self.request {
            request.count -= 1;
            if request.count == 0 {
                self.request = None;
            }
        }
        Some(trace)
    }

    /// Discards the current trace if it has at most `steps` steps.
    pub(crate) fn discard_if_short(&mut self, steps: usize) {
        if self.current.as_ref().is_some_and(|trace| trace.steps.len() <= steps) {
            self.current = None;
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
