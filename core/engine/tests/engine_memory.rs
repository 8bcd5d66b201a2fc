//! The maximum table memory that an engine's settings predict, compared with the tables it allocates.
//!
//! Runs in its own process, because the tables of the whole process are summed.

use namehop_engine::fib::FibWriter;
use namehop_engine::strategy::StrategyInstance;
use namehop_engine::{CsConfig, Engine, EngineConfig, EngineMemory};
use namehop_hash::HashKey;
use namehop_packet::BufferPool;
use namehop_store::PolicyKind;
use namehop_table::{HugePages, table_memory};

/// Returns the bytes of all tables of this process.
fn table_bytes() -> usize {
    table_memory().iter().map(|memory| memory.bytes).sum()
}

/// Returns the bytes of the tables that an engine with these settings allocates. Measurements and names with digests,
/// which are on the heap, are not included.
fn made_bytes(config: &EngineConfig) -> usize {
    let key = HashKey::new(1, 2);
    let fib = FibWriter::new(key, StrategyInstance::default()).expect("a small FIB fits");
    let pool = BufferPool::new(64, 16);
    let before = table_bytes();
    let _engine: Engine = Engine::new(config.clone(), fib.reader(), pool, key).expect("memory");
    table_bytes() - before
}

#[test]
fn an_engine_takes_no_more_than_it_says() {
    HugePages::Off.use_from_now_on();
    for &kind in PolicyKind::ALL {
        for (pit_capacity, capacity_packets, capacity_bytes) in
            [(4_096, 1_024, 2 << 20), (5_000, 0, 0), (131_072, 65_536, 512 << 20), (20_000, 1 << 20, 1 << 30)]
        {
            let cs = CsConfig { capacity_packets, capacity_bytes, policy: kind.into(), ..CsConfig::default() };
            let config = EngineConfig {
                pit_capacity,
                cs,
                pit_memory_bytes: pit_capacity * 512,
                dead_nonce_capacity: pit_capacity * 8,
                new_timers: 1 << 19,
                // Address space reserved for later growth is not part of the bound.
                reserved_packets: 0,
                ..EngineConfig::default()
            };
            let EngineMemory { pit, content_store, dead_nonces, .. } = config.memory();
            let (said, made) = (pit + content_store + dead_nonces, made_bytes(&config));
            assert!(
                said >= made,
                "{kind:?} {pit_capacity} {capacity_packets}: {said} bytes predicted, {made} allocated"
            );
            // At most a third more, for policies with less state than others.
            assert!(
                said <= made + made / 3,
                "{kind:?} {pit_capacity} {capacity_packets}: {said} bytes predicted, {made} allocated"
            );
        }
    }
}
