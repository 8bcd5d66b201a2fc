//! Result of a move in the name dispatch table.

use serde::Serialize;
use utoipa::ToSchema;

/// Names that were moved to a worker.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct DispatchMoveView {
    /// One of the names.
    pub name: String,
    /// Index of the worker.
    pub worker: u64,
}
