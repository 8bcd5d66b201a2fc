//! What the router counts, at one moment and as text in the OpenMetrics format. [`http`](crate::http) serves it.

mod faces;
mod gone;
mod latency;
mod power;
mod render;
mod workers;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use namehop_face::{Face, LinkDrop};

use crate::nfd::ReadvertiseStatus;
use crate::server::{EngineStatus, LatencyStatus, PowerStatus, WorkerStatus};

pub use gone::GoneFaces;
pub use render::render;

/// Everything that is shown.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// Time since the start of the router, in seconds.
    pub uptime_seconds: f64,
    /// Counters and table sizes of the forwarding engine.
    pub engine: EngineStatus,
    /// What tables hold, address space that they have, and bytes of it in RAM.
    pub table_memory: Vec<(&'static str, usize, usize)>,
    /// What each worker does.
    pub workers: Vec<WorkerStatus>,
    /// What the computer takes of power, where that is known.
    pub power: Option<PowerStatus>,
    /// How long packets stay in the router.
    pub latency: LatencyStatus,
    /// What was taken out of the FIB and cannot be freed yet, because a worker may still look at it.
    pub fib_waiting: u64,
    /// Drops on the link side, of all faces that there ever were.
    pub link_drops: Vec<(LinkDrop, u64)>,
    /// FIB prefixes.
    pub fib_entries: u64,
    /// Prefixes with routes.
    pub rib_entries: u64,
    /// Routes.
    pub rib_routes: u64,
    /// Routing daemon and gateway to which routes are announced.
    pub readvertise: Vec<ReadvertiseStatus>,
    /// All faces.
    pub faces: Vec<Arc<Face>>,
    /// Sums over on-demand faces that are gone.
    pub gone: GoneFaces,
}
