//! Module `trace`: what workers decide about single packets, Namehop's own addition to the NFD management protocol. Its verbs are commands,
//! because what others ask for is nobody's business who may not command the router.
//!
//! One trace runs at a time. Whoever started it takes what there is from time to time; if nobody does, it ends.

use std::collections::VecDeque;
use std::rc::Rc;

use namehop_engine::trace::{PacketTrace, TraceRequest};
use namehop_wire::tlv::Writer;

use super::verbs::{Action, Verb, bad_request};
use super::{ControlPlane, Management};
use crate::nfd::numbers::{MAX_TRACED_PACKETS, status_code};
use crate::nfd::{ControlParameters, ControlResponse, FieldSet, TracedPacket, TracedStep, encode_item};

/// A trace that nobody takes anything of ends after this time.
const ABANDONED_AFTER_MS: u64 = 10_000;
/// Bytes of traced packets in a response, which has to fit into a Data packet; one that is longer has some of its steps cut off.
const RESPONSE_BYTES: usize = 7_000;

/// The trace that runs, or what is left of the last one.
#[derive(Default)]
pub(super) struct Traces {
    running: Option<Running>,
}

struct Running {
    /// Packets that are still to come.
    left: u64,
    /// Packets that wait to be taken, encoded.
    waiting: VecDeque<Vec<u8>>,
    /// When somebody last took some.
    taken_ms: u64,
}

impl Traces {
    /// When the trace ends if nobody takes anything of it.
    pub(super) fn next_expiry_ms(&self) -> Option<u64> {
        self.running.as_ref().map(|running| running.taken_ms + ABANDONED_AFTER_MS)
    }
}

impl<C: ControlPlane> Management<C> {
    /// Verbs of the module.
    pub(super) const TRACE_VERBS: &[Verb<C>] = &[
        Verb {
            name: "start",
            required: FieldSet::NAME.with(FieldSet::COUNT),
            optional: FieldSet::NONE,
            action: Action::Task(|this, parameters, _| Box::pin(async move { this.start_trace(parameters).await })),
        },
        Verb {
            name: "take",
            required: FieldSet::NONE,
            optional: FieldSet::NONE,
            action: Action::Now(|this, _, _| this.take_traced()),
        },
        Verb {
            name: "stop",
            required: FieldSet::NONE,
            optional: FieldSet::NONE,
            action: Action::Task(|this, _, _| Box::pin(async move { this.stop_trace().await })),
        },
    ];

    async fn start_trace(&self, parameters: ControlParameters) -> ControlResponse {
        let (prefix, count) = (parameters.name.unwrap_or_default(), parameters.count.unwrap_or(0));
        if !(1..=MAX_TRACED_PACKETS).contains(&count) {
            return bad_request(format!("Count is from 1 to {MAX_TRACED_PACKETS}"));
        }
        if self.traces.borrow().running.is_some() {
            let text = "a trace is running; one that nobody reads ends after 10 seconds";
            return ControlResponse::new(status_code::CONFLICT, text);
        }
        let taken_ms = self.now_ms();
        self.traces.borrow_mut().running = Some(Running { left: count, waiting: VecDeque::new(), taken_ms });
        self.due_earlier.notify_one();
        self.control.trace(Some(TraceRequest { prefix: prefix.clone(), count })).await;
        let (name, count) = (Some(prefix), Some(count));
        ControlResponse::ok(&ControlParameters { name, count, ..ControlParameters::default() })
    }

    /// What there is, as much as fits. When all has been taken, the trace is over.
    fn take_traced(&self) -> ControlResponse {
        let mut traces = self.traces.borrow_mut();
        let Some(running) = &mut traces.running else {
            return ControlResponse::new(status_code::NOT_FOUND, "no trace is running: it has ended, or was stopped");
        };
        running.taken_ms = self.now_ms();
        let mut response = ControlResponse::new(status_code::OK, "OK");
        while let Some(next) = running.waiting.front()
            && response.body.len() + next.len() <= RESPONSE_BYTES
        {
            response.body.extend(running.waiting.pop_front().unwrap_or_default());
        }
        if running.left == 0 && running.waiting.is_empty() {
            traces.running = None;
        }
        response
    }

    async fn stop_trace(&self) -> ControlResponse {
        self.traces.borrow_mut().running = None;
        self.control.trace(None).await;
        ControlResponse::ok(&ControlParameters::default())
    }

    /// Must be called for every packet that a worker has traced.
    pub fn traced(self: &Rc<Self>, worker: usize, trace: &PacketTrace) {
        let mut traces = self.traces.borrow_mut();
        // Several workers may have found as many as were asked for.
        let Some(running) = traces.running.as_mut().filter(|running| running.left > 0) else { return };
        running.waiting.push_back(encoded(worker, trace));
        running.left -= 1;
        if running.left == 0 {
            self.end_tracing();
        }
    }

    /// Ends a trace that nobody takes anything of.
    pub(super) fn expire_trace(self: &Rc<Self>, now_ms: u64) {
        let mut traces = self.traces.borrow_mut();
        if traces.next_expiry_ms().is_some_and(|expiry_ms| expiry_ms <= now_ms) {
            traces.running = None;
            self.end_tracing();
        }
    }

    /// Has all workers stop, without waiting for it.
    fn end_tracing(self: &Rc<Self>) {
        let this = Rc::clone(self);
        tokio::task::spawn_local(async move {
            // Somebody may have started another one meanwhile.
            if this.traces.borrow().running.as_ref().is_none_or(|running| running.left == 0) {
                this.control.trace(None).await;
            }
        });
    }
}

/// A packet in words, in not more than fits into a response.
fn encoded(worker: usize, trace: &PacketTrace) -> Vec<u8> {
    let words = |step: &namehop_engine::trace::TraceStep| TracedStep {
        stage: step.stage().name().to_owned(),
        text: step.to_string(),
    };
    let mut packet = TracedPacket {
        time_ns: trace.time.0,
        worker: worker as u64,
        face: trace.face.0.into(),
        subject: trace.subject.name().to_owned(),
        name: trace.name.to_string(),
        steps: trace.steps.iter().map(words).collect(),
    };
    packet.cut();
    loop {
        let mut writer = Writer::new();
        encode_item(&packet, &mut writer);
        let bytes = writer.into_vec();
        if bytes.len() <= RESPONSE_BYTES || packet.steps.pop().is_none() {
            return bytes;
        }
    }
}
