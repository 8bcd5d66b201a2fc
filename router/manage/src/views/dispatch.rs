//! Views of the name dispatch table, which assigns names to workers.

use namehop_client::nfd::DispatchEntry;
use serde::Serialize;
use utoipa::ToSchema;

/// An entry of the name dispatch table.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct DispatchEntryView {
    /// Index of the entry.
    pub entry: u64,
    /// The worker that owns its names.
    pub worker: u64,
    /// The previous owner; `null` if the entry was not moved recently.
    #[schema(required)]
    pub former_worker: Option<u64>,
    /// True if names with more components have entries of their own, to spread them over several workers.
    pub divided: bool,
    /// Packets per second, estimated from samples of the last seconds.
    pub packets_per_s: u64,
}

impl From<DispatchEntry> for DispatchEntryView {
    fn from(entry: DispatchEntry) -> Self {
        let DispatchEntry { entry, worker, former_worker, is_divided, packets_per_s } = entry;
        DispatchEntryView { entry, worker, former_worker, divided: is_divided, packets_per_s }
    }
}

/// Names that were moved to a worker.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct DispatchMoveView {
    /// One of the names.
    pub name: String,
    /// Index of the worker.
    pub worker: u64,
}
