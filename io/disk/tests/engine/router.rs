//! The test fixture: an engine with little memory, a second tier on a file, one consumer and one producer.

use std::thread::sleep;
use std::time::{Duration, Instant};

use namehop_disk::{DiskCache, DiskSettings, MIN_CAPACITY_BYTES, Worker};
use namehop_engine::fib::FibWriter;
use namehop_engine::second_tier::{TierReport, TierState};
use namehop_engine::strategy::StrategyInstance;
use namehop_engine::{CsConfig, CsErasure, Engine, EngineConfig};
use namehop_hash::HashKey;
use namehop_packet::{
    BufferPool, FaceId, FaceInfo, FaceScope, Incoming, LinkFields, LinkType, Outgoing, PacketKind, Timestamp,
};
use namehop_wire::security::DigestSigner;
use namehop_wire::{Data, DataBuilder, InterestBuilder, Name};
use tempfile::TempDir;

/// Number of Data packets that fit into memory.
pub const IN_MEMORY: usize = 2;
const CONSUMER: FaceId = FaceId(256);
const PRODUCER: FaceId = FaceId(300);
/// Time limit for the disk.
const PATIENCE: Duration = Duration::from_secs(20);

/// The router. Its clock follows the real one.
pub struct Router {
    engine: Engine,
    // The engine reads the FIB.
    _fib: FibWriter<StrategyInstance>,
    pool: BufferPool,
    started: Instant,
    out: Vec<Outgoing>,
    next_nonce: u32,
    cache: DiskCache,
    folder: TempDir,
}

impl Router {
    /// Starts a router with an empty disk.
    pub fn new() -> Self {
        Router::over(tempfile::tempdir().expect("a folder"))
    }

    fn over(folder: TempDir) -> Self {
        let key = HashKey::new(1, 2);
        let pool = BufferPool::new(10_000, 10_000);
        let mut fib = FibWriter::new(key, StrategyInstance::default()).expect("memory");
        fib.add_nexthop(name("/").as_ref(), PRODUCER, 1).expect("a route");
        let policy = "lru".parse().expect("a policy");
        let cs = CsConfig { capacity_packets: IN_MEMORY, policy, ..CsConfig::default() };
        let config = EngineConfig { cs, ..EngineConfig::default() };
        let mut engine: Engine = Engine::new(config, fib.reader(), pool.clone(), key).expect("memory");
        for id in [CONSUMER, PRODUCER] {
            let link_type = LinkType::PointToPoint;
            engine.set_face(FaceInfo { id, scope: FaceScope::NonLocal, link_type, is_up: true });
        }
        let started = Instant::now();
        let worker = Worker { wake: Box::new(|| {}), started };
        let settings = DiskSettings {
            path: folder.path().join("cache"),
            capacity_bytes: MIN_CAPACITY_BYTES,
            keep: true,
            read_timeout_ms: 10_000,
        };
        let (cache, tiers) =
            DiskCache::start(settings, key, vec![worker], |_| 0).expect("the disk cache can be created");
        tiers.into_iter().for_each(|tier| engine.use_second_tier(Box::new(tier)));
        let mut router = Router { engine, _fib: fib, pool, started, out: Vec::new(), next_nonce: 1, cache, folder };
        router.wait_until("the disk cache works", |router| router.report().status.state == TierState::Working);
        // The next poll iteration gets the index.
        router.process(Vec::new());
        router
    }

    /// Restarts with the same file.
    pub fn restart(self) -> Self {
        let Router { engine, cache, folder, .. } = self;
        drop(engine);
        cache.stop();
        // The thread closes the file a moment after it has reported that it is done.
        sleep(Duration::from_millis(100));
        Router::over(folder)
    }

    pub fn report(&self) -> TierReport {
        self.engine.cs_info().second_tier.expect("a disk cache is configured")
    }

    /// Runs one poll iteration.
    fn process(&mut self, mut burst: Vec<Incoming>) {
        let now = Timestamp::default() + self.started.elapsed();
        self.engine.process(now, &mut burst, &mut self.out);
        self.engine.check_invariants().expect("invariants");
    }

    fn receive(&mut self, face: FaceId, bytes: &[u8]) {
        let buffer = self.pool.copy_of(bytes).expect("a buffer");
        self.process(vec![Incoming { face, buffer, fields: LinkFields::default() }]);
    }

    fn wait_until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so(self) {
            assert!(Instant::now() < deadline, "timed out waiting until {what}: {:?}", self.report());
            self.process(Vec::new());
            sleep(Duration::from_millis(1));
        }
    }

    /// Sends an Interest and waits for the disk. Returns the content of the Data that answers it, or `None` if the
    /// Interest was forwarded.
    pub fn content_of(&mut self, uri: &str) -> Option<Vec<u8>> {
        self.express(uri, false)
    }

    fn express(&mut self, uri: &str, must_be_fresh: bool) -> Option<Vec<u8>> {
        let interest = InterestBuilder::new(name(uri)).must_be_fresh(must_be_fresh).nonce(self.next_nonce);
        self.next_nonce += 1;
        self.receive(CONSUMER, &interest.build().expect("fits"));
        self.wait_until("no Interest waits for the disk", |router| router.report().waiting == 0);
        assert_eq!(self.out.len(), 1, "an Interest must be answered or forwarded: {uri}");
        let sent = self.out.pop()?;
        (sent.kind == PacketKind::Data).then(|| {
            let data = Data::decode(sent.buffer.bytes()).expect("the engine sends valid Data");
            data.content.to_vec()
        })
    }

    /// Fetches Data that is not cached.
    pub fn fetch(&mut self, uri: &str, content: &[u8]) {
        assert_eq!(self.content_of(uri), None, "{uri} must not be cached");
        self.produce(uri, content);
    }

    /// Fetches newer Data than the stale one that is cached.
    pub fn fetch_fresh(&mut self, uri: &str, content: &[u8]) {
        assert_eq!(self.express(uri, true), None, "the cached {uri} must be stale");
        self.produce(uri, content);
    }

    /// Receives Data for a pending Interest, and waits until Data that it evicted is written: the disk of a busy host
    /// would fall behind and not accept all.
    fn produce(&mut self, uri: &str, content: &[u8]) {
        let before = self.report();
        let data = DataBuilder::new(name(uri)).content(content).sign(&DigestSigner).expect("fits");
        self.receive(PRODUCER, &data);
        assert_eq!(self.out.drain(..).count(), 1, "the consumer must get {uri}");
        if self.report().counters.stored > before.counters.stored {
            let written = before.status.counters.written_bytes;
            self.wait_until("evicted Data is written", |router| {
                router.report().status.counters.written_bytes > written
            });
        }
    }

    /// Fills memory with other Data, so that its previous content goes to the disk.
    pub fn fill_memory(&mut self) {
        for _ in 0..IN_MEMORY {
            self.fetch(&format!("/other/{}", self.next_nonce), b"");
        }
    }

    /// Erases cached Data, in as many steps as it takes.
    pub fn erase(&mut self, prefix: &str, limit: usize) -> usize {
        let (mut erased, mut erasure) = (0, CsErasure::default());
        while erased < limit && !erasure.is_complete() {
            erased += self.engine.cs_erase(name(prefix).as_ref(), limit - erased, &mut erasure);
        }
        erased
    }
}

fn name(uri: &str) -> Name {
    uri.parse().expect("a name")
}
