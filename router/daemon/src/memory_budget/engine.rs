//! The engine's part of the bounds.

use namehop_config::Config;
use namehop_engine::engine::EngineConfig;

use super::Bounds;
use namehop_worker::share;

/// Minimum PIT capacity of one worker.
const MIN_PIT_CAPACITY: usize = 64;

impl Bounds {
    /// Returns the settings of the engine of `worker`, one of `workers` that share these bounds.
    pub fn of_engine(&self, config: &Config, worker: usize, workers: usize) -> EngineConfig {
        let (forwarding, store) = (&config.forwarding, &config.content_store);
        let part = |total| share(total, worker, workers);
        let cs = store.cs_config(part(self.capacity_packets), part(self.capacity_bytes));
        EngineConfig {
            worker: worker as u8,
            pit_capacity: part(self.pit_capacity).max(MIN_PIT_CAPACITY),
            pit_memory_bytes: part(self.pit_memory_bytes),
            new_timers: self.new_timers,
            cs,
            reserved_packets: part(self.reserved_packets),
            dead_nonce_capacity: part(self.dead_nonce_capacity),
            unsolicited: store.unsolicited,
            accept_unasked_data: forwarding.accept_unasked_data,
            dead_nonce_lifetime_ms: forwarding.dead_nonce_list_lifetime_ms,
            default_hop_limit: forwarding.default_hop_limit,
            producer_regions: forwarding.producer_regions.iter().map(|region| region.0.clone()).collect(),
            max_name_bytes: forwarding.max_name_bytes,
            long_name_bytes_per_s: forwarding.long_name_bytes_per_s / workers as u64,
            max_lifetime_ms: forwarding.max_interest_lifetime_ms,
            measurement_capacity: part(self.measurement_capacity).max(1),
            ..EngineConfig::default()
        }
    }
}
