//! Module `trace`: the decisions of workers about single packets. Namehop's own addition to the NFD management
//! protocol. Its verbs are commands because only authorized requesters may see other consumers' requests.
//!
//! One trace runs at a time. Its client fetches the traced packets periodically; a trace that is not read expires.

use std::collections::VecDeque;
use std::rc::Rc;

use namehop_client::nfd::numbers::{MAX_TRACED_PACKETS, status_code};
use namehop_client::nfd::{ControlParameters, ControlResponse, Element, FieldSet, TracedPacket, TracedStep};
use namehop_engine::trace::{PacketTrace, TraceRequest};
use namehop_wire::tlv::Writer;

use super::verbs::{Action, Verb, bad_request};
use super::{ControlPlane, Management};

/// A trace that is not read expires after this time, in milliseconds.
const ABANDONED_AFTER_MS: u64 = 10_000;
/// Bytes of traced packets in a response, which has to fit into a Data packet. A longer packet loses its last steps.
const RESPONSE_BYTES: usize = 7_000;

/// The running trace, or the unread rest of the last one.
#[derive(Default)]
pub(super) struct Traces {
    running: Option<Running>,
}

struct Running {
    /// Packets still to be traced.
    left: u64,
    /// Encoded packets waiting to be read.
    waiting: VecDeque<Vec<u8>>,
    /// Time of the last read.
    taken_ms: u64,
}

impl Traces {
    /// Returns the time at which the trace expires if it is not read.
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
            return bad_request(format!("Count must be from 1 to {MAX_TRACED_PACKETS}"));
        }
        if self.traces.borrow().running.is_some() {
            let text = "a trace is running; retry later: an unread trace ends after 10 seconds";
            return ControlResponse::new(status_code::CONFLICT, text);
        }
        let taken_ms = self.now_ms();
        self.traces.borrow_mut().running = Some(Running { left: count, waiting: VecDeque::new(), taken_ms });
        self.due_earlier.notify_one();
        self.control.trace(Some(TraceRequest { prefix: prefix.clone(), count })).await;
        let (name, count) = (Some(prefix), Some(count));
        ControlResponse::ok(&ControlParameters { name, count, ..ControlParameters::default() })
    }

    /// Returns as many waiting packets as fit. The trace ends when all have been read.
    fn take_traced(&self) -> ControlResponse {
        let mut traces = self.traces.borrow_mut();
        let Some(running) = &mut traces.running else {
            return ControlResponse::new(status_code::NOT_FOUND, "no trace is running: it ended or was stopped");
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

    /// Records a packet that a worker has traced; must be called for each.
    pub fn traced(self: &Rc<Self>, worker: usize, trace: &PacketTrace) {
        let mut traces = self.traces.borrow_mut();
        // Several workers may each have traced the requested number.
        let Some(running) = traces.running.as_mut().filter(|running| running.left > 0) else { return };
        running.waiting.push_back(encoded(worker, trace));
        running.left -= 1;
        if running.left == 0 {
            self.end_tracing();
        }
    }

    /// Ends a trace that was not read in time.
    pub(super) fn expire_trace(self: &Rc<Self>, now_ms: u64) {
        let mut traces = self.traces.borrow_mut();
        if traces.next_expiry_ms().is_some_and(|expiry_ms| expiry_ms <= now_ms) {
            traces.running = None;
            self.end_tracing();
        }
    }

    /// Stops tracing on all workers, without waiting for completion.
    fn end_tracing(self: &Rc<Self>) {
        let this = Rc::clone(self);
        tokio::task::spawn_local(async move {
            // Another trace may have been started meanwhile.
            if this.traces.borrow().running.as_ref().is_none_or(|running| running.left == 0) {
                this.control.trace(None).await;
            }
        });
    }
}

/// Encodes a packet as text that fits into a response; cuts off its last steps if necessary.
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
        packet.encode(&mut writer);
        let bytes = writer.into_vec();
        if bytes.len() <= RESPONSE_BYTES || packet.steps.pop().is_none() {
            return bytes;
        }
    }
}
