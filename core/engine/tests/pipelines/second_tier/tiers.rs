//! A router with a second tier of the Content Store.

use namehop_engine::second_tier::{SecondTier, TierReport};
use namehop_engine::{CsConfig, EngineConfig};
use namehop_hash::{HashKey, hash_name};
use namehop_packet::Timestamp;

use super::memory_tier::MemoryTier;
use crate::router::*;

/// Number of Data packets that fit into memory.
pub(super) const IN_MEMORY: usize = 2;

/// A router with little memory and a second tier.
pub(super) struct Tiers {
    pub(super) router: Router,
}

impl Tiers {
    pub(super) fn new() -> Self {
        Tiers::with("lru", MemoryTier::default())
    }

    pub(super) fn with_policy(policy: &str) -> Self {
        Tiers::with(policy, MemoryTier::default())
    }

    /// Creates the tiers with reads that take `latency_ms` milliseconds.
    pub(super) fn with_latency(latency_ms: u64) -> Self {
        Tiers::with("lru", MemoryTier::with_latency(latency_ms))
    }

    /// Creates the tiers with a packet already in the second one, under the hash of another name.
    pub(super) fn with_record(uri: &str, packet: DataMaker) -> Self {
        let mut tier = MemoryTier::default();
        let hash = hash_name(&HashKey::new(1, 2), name(uri).value());
        tier.offer(hash, Timestamp::default(), &packet.packet().bytes);
        Tiers::with("lru", tier)
    }

    fn with(policy: &str, tier: MemoryTier) -> Self {
        let policy = policy.parse().expect(policy);
        let cs = CsConfig { capacity_packets: IN_MEMORY, policy, ..CsConfig::default() };
        let mut router = Router::with_default_route_and(EngineConfig { cs, ..EngineConfig::default() });
        router.engine.use_second_tier(Box::new(tier));
        Tiers { router }
    }

    pub(super) fn report(&self) -> TierReport {
        self.router.engine.cs_info().second_tier.expect("a second tier is configured")
    }

    /// Waits until all reads have ended.
    pub(super) fn settle(&mut self) -> &mut Self {
        self.router.wait_one_step();
        while self.report().waiting > 0 {
            self.router.now = self.router.now.plus_ms(1);
            self.router.wait_one_step();
        }
        self
    }

    /// Fetches Data so that it is cached.
    pub(super) fn fetch(&mut self, packet: DataMaker) {
        let uri = packet.full_name().as_ref().prefix(packet.full_name().as_ref().len() - 1).to_owned();
        let nonce = self.router.engine.counters().in_interests as u32 + 1_000;
        self.router.recv(CONSUMER, interest_named(uri).nonce(nonce)).sent();
        self.settle();
        self.router.recv(PRODUCER, packet).sent();
    }

    /// Fills memory with other Data, so that its previous content goes to the second tier.
    pub(super) fn fill_memory(&mut self) {
        for _ in 0..IN_MEMORY {
            let number = self.router.engine.counters().in_interests;
            self.fetch(data(&format!("/other/{number}")));
        }
    }

    /// Returns what the engine sends for an Interest, including an answer from the second tier.
    pub(super) fn ask(&mut self, face: u32, packet: impl Into<Packet>) -> Vec<String> {
        self.router.recv(face, packet);
        self.settle();
        self.router.lines()
    }
}
