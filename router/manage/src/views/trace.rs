//! Views of traced packets.

use serde::Serialize;
use utoipa::ToSchema;

use crate::nfd::{TracedPacket, TracedStep};

/// What was decided about one packet.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct TracedPacketView {
    /// Seconds since the first packet of the trace.
    pub time_s: f64,
    /// The worker that had it.
    pub worker: u64,
    /// Where it came in; `null` when nothing came in.
    #[schema(required)]
    pub face: Option<u64>,
    /// `interest`, `data`, `nack`, `pending` or `timeout`.
    pub subject: String,
    /// Its name.
    pub name: String,
    /// What was decided, in order.
    pub steps: Vec<TracedStepView>,
}

/// A step of it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct TracedStepView {
    /// What it has to do with: `packet`, `pit`, `cs`, `fib`, `strategy`, `send` or `drop`.
    pub stage: String,
    /// In words.
    pub text: String,
}

impl TracedPacketView {
    /// Creates the view of a packet in a trace; `first_ns` is the time of the first packet of the trace.
    pub fn new(packet: TracedPacket, first_ns: u64) -> Self {
        let TracedPacket { time_ns, worker, face, subject, name, steps } = packet;
        let view = |TracedStep { stage, text }| TracedStepView { stage, text };
        TracedPacketView {
            time_s: (time_ns as f64 - first_ns as f64) / 1e9,
            worker,
            face: Some(face).filter(|&face| face != 0),
            subject,
            name,
            steps: steps.into_iter().map(view).collect(),
        }
    }
}
