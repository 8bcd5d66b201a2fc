//! Views of traced packets.

use namehop_client::nfd::{TracedPacket, TracedStep};
use serde::Serialize;
use utoipa::ToSchema;

/// The decisions about one packet.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct TracedPacketView {
    /// Seconds since the first packet of the trace.
    pub time_s: f64,
    /// Index of the worker that processed the packet.
    pub worker: u64,
    /// Id of the incoming face; `null` if no packet came in.
    #[schema(required)]
    pub face: Option<u64>,
    /// `interest`, `data`, `nack`, `pending` or `timeout`.
    pub subject: String,
    /// Name of the packet.
    pub name: String,
    /// The decisions, in order.
    pub steps: Vec<TracedStep>,
}

impl TracedPacketView {
    /// Creates the view of a packet in a trace; `first_ns` is the time of the first packet of the trace.
    pub fn new(packet: TracedPacket, first_ns: u64) -> Self {
        let TracedPacket { time_ns, worker, face, subject, name, steps } = packet;
        TracedPacketView {
            time_s: (time_ns as f64 - first_ns as f64) / 1e9,
            worker,
            face: Some(face).filter(|&face| face != 0),
            subject,
            name,
            steps,
        }
    }
}
