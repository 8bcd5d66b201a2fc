//! The maximum memory that the tables of an engine use, computed from its settings.

use super::config::EngineConfig;
use crate::dead_nonce_list::DeadNonceList;
use crate::pcct::memory::{TableEntries, content_bytes, entry_table_bytes, pending_bytes};
use crate::strategy::measurements::MeasurementTable;
use crate::timer::timer_bytes;

/// Bytes used by the tables of an engine when they are full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EngineMemory {
    /// Pending Interests with their names, copies and timers.
    pub pit: usize,
    /// Cached Data, and the cache policy's state.
    pub content_store: usize,
    /// The Dead Nonce List.
    pub dead_nonces: usize,
    /// Measurements of strategies.
    pub measurements: usize,
}

impl EngineMemory {
    /// Returns the sum.
    pub fn total(&self) -> usize {
        let EngineMemory { pit, content_store, dead_nonces, measurements } = *self;
        [content_store, dead_nonces, measurements].into_iter().fold(pit, usize::saturating_add)
    }
}

impl EngineConfig {
    /// Returns the maximum number of bytes that the tables of an engine with these settings use. It is an upper bound:
    /// sizes are rounded up as in the tables, and the cache policy with the largest state is assumed.
    pub fn memory(&self) -> EngineMemory {
        let entries = TableEntries { pending: self.pit_capacity, cached: self.cs.capacity_packets };
        // PIT and CS share the table of all names. Its size without a cache counts as the PIT's.
        let without_cache = entry_table_bytes(TableEntries { cached: 0, ..entries });
        EngineMemory {
            pit: without_cache
                .saturating_add(pending_bytes(self.pit_capacity, self.pit_memory_bytes))
                .saturating_add(timer_bytes(self.pit_capacity, self.new_timers)),
            content_store: (entry_table_bytes(entries) - without_cache)
                .saturating_add(content_bytes(entries, self.cs.capacity_bytes)),
            dead_nonces: DeadNonceList::bytes_for(self.dead_nonce_capacity),
            measurements: MeasurementTable::bytes_for(self.measurement_capacity),
        }
    }
}
