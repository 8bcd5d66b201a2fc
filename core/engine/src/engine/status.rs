//! The state of an engine in numbers, for management and metrics.

use std::ops::AddAssign;

use crate::counters::EngineCounters;
use crate::engine::{CsInfo, TableSizes};

/// Counters and table sizes of the forwarding engine at one moment, of all workers together.
#[derive(Debug, Clone, Copy, Default)]
pub struct EngineStatus {
    /// Packets and drops since the start.
    pub counters: EngineCounters,
    /// Entries in the tables.
    pub sizes: TableSizes,
    /// The Content Store.
    pub cs: CsInfo,
    /// Packet buffers in use.
    pub buffers_in_use: usize,
}

impl AddAssign for EngineStatus {
    /// Adds the numbers of another worker. All workers share the packet buffers.
    fn add_assign(&mut self, other: EngineStatus) {
        let EngineStatus { counters, sizes, cs, buffers_in_use } = other;
        self.counters += counters;
        self.sizes += sizes;
        self.cs += cs;
        self.buffers_in_use = self.buffers_in_use.max(buffers_in_use);
    }
}
