//! The counters and sizes of the router at one moment, rendered as text in the OpenMetrics format.
//! [`http`](crate::http) serves it.

mod faces;
mod gone;
mod latency;
mod power;
mod render;
mod workers;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use namehop_client::nfd::{LatencyStatus, PowerStatus, ReadvertiseStatus, WorkerStatus};
use namehop_face::{Face, LinkDrop};

use namehop_engine::engine::EngineStatus;

pub use gone::GoneFaces;
pub use render::render;

/// Input of all metrics.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// Time since the start of the router, in seconds.
    pub uptime_seconds: f64,
    /// Counters and table sizes of the forwarding engine.
    pub engine: EngineStatus,
    /// Memory of tables: contents, reserved address space in bytes, and bytes of it in RAM.
    pub table_memory: Vec<(&'static str, usize, usize)>,
    /// Status of each worker.
    pub workers: Vec<WorkerStatus>,
    /// Power of the host, if known.
    pub power: Option<PowerStatus>,
    /// Times that packets stay in the router.
    pub latency: LatencyStatus,
    /// Entries removed from the FIB that cannot be freed yet, because a worker may still read them.
    pub fib_waiting: u64,
    /// Drops of the link layer, summed over all faces including destroyed ones.
    pub link_drops: Vec<(LinkDrop, u64)>,
    /// FIB prefixes.
    pub fib_entries: u64,
    /// Prefixes with routes.
    pub rib_entries: u64,
    /// Routes.
    pub rib_routes: u64,
    /// Routing daemon and gateway to which routes are announced.
    pub readvertise: Vec<ReadvertiseStatus>,
    /// All existing faces.
    pub faces: Vec<Arc<Face>>,
    /// Sums over destroyed on-demand faces.
    pub gone: GoneFaces,
}
