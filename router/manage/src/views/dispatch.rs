//! Views of the name dispatch table, which assigns names to workers.

use serde::Serialize;
use utoipa::ToSchema;

use crate::server::DispatchEntry;

/// An entry of the name dispatch table.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct DispatchEntryView {
    /// Its number.
    pub entry: u64,
    /// The worker that its names belong to.
    pub worker: u64,
    /// The one that they belonged to before; `null` when that was long ago, or never.
    #[schema(required)]
    pub former_worker: Option<u64>,
    /// Whether names with more components have entries of their own, because one worker alone should not have them all.
    pub divided: bool,
    /// Packets a second, estimated from samples of the last seconds.
    pub packets_per_s: u64,
}

impl From<DispatchEntry> for DispatchEntryView {
    fn from(entry: DispatchEntry) -> Self {
        let DispatchEntry { entry, worker, former_worker, is_divided, packets_per_s } = entry;
        DispatchEntryView { entry, worker, former_worker, divided: is_divided, packets_per_s }
    }
}

/// Names that were given to a worker.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct DispatchMoveView {
    /// One of them.
    pub name: String,
    /// The worker.
    pub worker: u64,
}
