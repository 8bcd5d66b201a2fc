//! What the tables of an engine take of memory at most, from its settings.

use super::config::EngineConfig;
use crate::dead_nonce_list::DeadNonceList;
use crate::pcct::memory::{TableEntries, content_bytes, entry_table_bytes, pending_bytes};
use crate::strategy::measurements::MeasurementTable;
use crate::timer::timer_bytes;

/// Bytes that the tables of an engine take when they are full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EngineMemory {
    /// Pending Interests with their names, copies and timers.
    pub pit: usize,
    /// Cached Data, and what the policy notes of them.
    pub content_store: usize,
    /// The Dead Nonce List.
    pub dead_nonces: usize,
    /// Measurements of strategies.
    pub measurements: usize,
}

impl EngineMemory {
    /// All of it.
    pub fn total(&self) -> usize {
        let EngineMemory { pit, content_store, dead_nonces, measurements } = *self;
        [content_store, dead_nonces, measurements].into_iter().fold(pit, usize::saturating_add)
    }
}

impl EngineConfig {
    /// Bytes that the tables of an engine with these settings take at most. It is an upper bound: sizes are rounded up as the tables
    /// round them, and the cache policy is taken to be the one that notes most.
    pub fn memory(&self) -> EngineMemory {
        let entries = TableEntries { pending: self.pit_capacity, cached: self.cs.capacity_packets };
        // The table of all names is shared by both. What it takes without a cache counts as the PIT's.
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
