//! A router with a second tier of the Content Store, on a real file.

use std::thread::sleep;
use std::time::{Duration, Instant};

use namehop_disk::{DiskCache, DiskSettings, DiskState, MIN_CAPACITY_BYTES, Worker};
use namehop_engine::{CsConfig, EngineConfig};
use namehop_hash::{HashKey, hash_name};
use namehop_packet::Timestamp;
use tempfile::TempDir;

use crate::router::*;

/// Number of Data packets that fit into memory.
pub(super) const IN_MEMORY: usize = 2;

/// A router with little memory and a disk.
pub(super) struct Tiers {
    pub(super) router: Router,
    cache: Option<DiskCache>,
    folder: TempDir,
}

impl Tiers {
    pub(super) fn new() -> Self {
        Tiers::over(tempfile::tempdir().expect("a folder"))
    }

    pub(super) fn over(folder: TempDir) -> Self {
        Tiers::with_policy(folder, "lru")
    }

    pub(super) fn with_policy(folder: TempDir, policy: &str) -> Self {
        Tiers::with_records(folder, policy, &[])
    }

    /// Creates the tiers with packets already on disk, each under the hash of a name that may be another one.
    pub(super) fn with_records(folder: TempDir, policy: &str, records: &[(&str, DataMaker)]) -> Self {
        let policy = policy.parse().expect(policy);
        let cs = CsConfig { capacity_packets: IN_MEMORY, policy, ..CsConfig::default() };
        let mut router = Router::with_default_route_and(EngineConfig { cs, ..EngineConfig::default() });
        let started = Instant::now() - Duration::from_nanos(router.now.0);
        let worker = Worker { wake: Box::new(|| {}), started };
        let settings = DiskSettings {
            path: folder.path().join("cache"),
            capacity_bytes: MIN_CAPACITY_BYTES,
            keep: true,
            read_timeout_ms: 50,
        };
        let (cache, mut tiers) =
            DiskCache::start(settings, HashKey::new(1, 2), vec![worker], |_| 0).expect("the disk cache can be created");
        let mut tier = tiers.remove(0);
        let deadline = Instant::now() + Duration::from_secs(20);
        while tier.report().counters.stored < records.len() as u64 {
            assert!(Instant::now() < deadline, "the records must be written within 20 s");
            assert!(tier.next_finished().is_none(), "no read was requested");
            if cache.status().state == DiskState::Working && tier.report().counters.stored == 0 {
                for (uri, packet) in records {
                    let hash = hash_name(&HashKey::new(1, 2), name(uri).value());
                    tier.offer(hash, Timestamp::default(), &packet.clone().packet().bytes);
                }
                tier.flush();
            }
        }
        router.engine.use_disk(tier);
        let mut tiers = Tiers { router, cache: Some(cache), folder };
        tiers.wait_until("the disk cache works", |tiers| tiers.report().status.state == DiskState::Working);
        // The next poll iteration gets the index.
        tiers.router.wait_one_step();
        tiers
    }

    /// Restarts with the same file.
    pub(super) fn restart(self) -> Self {
        let Tiers { router, cache, folder } = self;
        drop(router);
        cache.into_iter().for_each(DiskCache::stop);
        // The thread closes the file a moment after it has reported that it is done.
        sleep(Duration::from_millis(100));
        Tiers::over(folder)
    }

    pub(super) fn report(&self) -> namehop_disk::DiskReport {
        self.router.engine.cs_info().disk.expect("a disk cache is configured")
    }

    pub(super) fn wait_until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !is_so(self) {
            assert!(Instant::now() < deadline, "timed out waiting until {what}: {:?}", self.report());
            self.router.wait_one_step();
            sleep(Duration::from_millis(1));
        }
    }

    /// Waits until the disk has answered everything.
    pub(super) fn settle(&mut self) -> &mut Self {
        self.wait_until("no Interest waits for the disk", |tiers| {
            tiers.router.engine.is_idle() || tiers.router.pit_len() > 0
        });
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

    /// Fills memory with other Data, so that its previous content goes to the disk.
    pub(super) fn fill_memory(&mut self) {
        for _ in 0..IN_MEMORY {
            let number = self.router.engine.counters().in_interests;
            self.fetch(data(&format!("/other/{number}")));
        }
    }

    /// Returns what the engine sends for an Interest, including the disk's answer.
    pub(super) fn ask(&mut self, face: u32, packet: impl Into<Packet>) -> Vec<String> {
        self.router.recv(face, packet);
        self.settle();
        self.router.lines()
    }
}
