//! A worker that fills an empty cache and an empty PIT takes hardly any page faults: another thread has touched the
//! memory of all tables before.
//!
//! Runs in its own process, because readiness is determined for all tables of the process.
#![cfg(target_os = "linux")]

use std::thread;
use std::time::{Duration, Instant};

use namehop_engine::fib::FibWriter;
use namehop_engine::strategy::StrategyInstance;
use namehop_engine::{Engine, EngineConfig};
use namehop_hash::HashKey;
use namehop_packet::{
    BufferPool, FaceId, FaceInfo, FaceScope, Incoming, LinkFields, LinkType, Outgoing, PacketKind, Timestamp,
};
use namehop_table::{Readiness, is_memory_ready, make_memory_ready_ahead};
use namehop_wire::Name;
use namehop_wire::builder::{DataBuilder, InterestBuilder};
use namehop_wire::security::DigestSigner;
use nix::sys::resource::{UsageWho, getrusage};

const CONSUMER: FaceId = FaceId(256);
const PRODUCER: FaceId = FaceId(257);
const CONTENT_BYTES: usize = 8_000;
const BURST: u32 = 32;

type Packets = Vec<Outgoing>;

struct Filling {
    engine: Engine,
    pool: BufferPool,
    now: Timestamp,
    out: Packets,
    faults: i64,
}

impl Filling {
    fn new() -> Self {
        let key = HashKey::new(1, 2);
        let mut fib = FibWriter::new(key, StrategyInstance::default()).expect("a small FIB fits");
        fib.add_nexthop(Name::new().as_ref(), PRODUCER, 0).expect("room");
        let pool = BufferPool::new(1_000, 1_000);
        let config = EngineConfig { max_lifetime_ms: 1_000_000, ..EngineConfig::default() };
        let mut engine = Engine::new(config, fib.reader(), pool.clone(), key).expect("memory");
        for id in [CONSUMER, PRODUCER] {
            engine.set_face(FaceInfo {
                id,
                scope: FaceScope::NonLocal,
                link_type: LinkType::PointToPoint,
                is_up: true,
            });
        }
        Filling { engine, pool, now: Timestamp(0), out: Vec::new(), faults: 0 }
    }

    /// Waits until all memory is ready that should be ready by now.
    fn wait_until_ready() {
        let start = Instant::now();
        while !is_memory_ready() {
            assert!(start.elapsed() < Duration::from_secs(60), "memory must become ready within 60 s");
            thread::sleep(Duration::from_micros(20));
        }
    }

    /// Processes packets received on a face, and counts the engine's page faults.
    fn process(&mut self, face: FaceId, packets: &[Vec<u8>]) -> Packets {
        let buffer = |packet: &Vec<u8>| self.pool.copy_of(packet).expect("a buffer");
        let mut burst: Vec<_> = packets
            .iter()
            .map(|packet| Incoming { face, buffer: buffer(packet), fields: LinkFields::default() })
            .collect();
        let faults = || getrusage(UsageWho::RUSAGE_THREAD).expect("usage").minor_page_faults();
        let before = faults();
        self.engine.process(self.now, &mut burst, &mut self.out);
        self.faults += faults() - before;
        std::mem::take(&mut self.out)
    }
}

fn name(kind: &str, number: u32) -> Name {
    Name::new().append_generic(kind).append_generic(format!("{number}"))
}

fn interest(kind: &str, number: u32) -> Vec<u8> {
    InterestBuilder::new(name(kind, number)).nonce(number).lifetime_ms(1_000_000).build().expect("built")
}

#[test]
fn filling_cache_and_pit_takes_next_to_no_page_faults() {
    make_memory_ready_ahead(Readiness::BeforeUse);
    let mut filling = Filling::new();
    Filling::wait_until_ready();
    filling.faults = 0;
    // As fast as possible: until more memory is ready, the cache evicts old Data. In the end it holds 200 MB, which are
    // 50,000 pages of 4 KiB.
    let start = Instant::now();
    for first in (0..).step_by(BURST as usize) {
        let interests: Vec<_> = (first..first + BURST).map(|number| interest("data", number)).collect();
        let sent = filling.process(CONSUMER, &interests);
        assert!(sent.len() == interests.len() && sent.iter().all(|packet| packet.kind == PacketKind::Interest));
        let data = |number| {
            let data = DataBuilder::new(name("data", number)).content(vec![0; CONTENT_BYTES]);
            data.sign(&DigestSigner).expect("signed")
        };
        let data: Vec<_> = (first..first + BURST).map(data).collect();
        let sent = filling.process(PRODUCER, &data);
        assert_eq!(sent.len(), data.len());
        filling.now = filling.now.plus_ms(1);
        if filling.engine.cs_info().entries >= 25_000 {
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "the cache must grow within 60 s");
    }
    assert!(filling.faults <= 100, "{} page faults while the cache was filled", filling.faults);
    filling.faults = 0;
    // Entries of 256 bytes, their timers, and other state of each.
    for first in (0..60_000).step_by(BURST as usize) {
        Filling::wait_until_ready();
        let interests: Vec<_> = (first..first + BURST).map(|number| interest("pending", number)).collect();
        let sent = filling.process(CONSUMER, &interests);
        assert_eq!(sent.len(), interests.len());
        filling.now = filling.now.plus_ms(1);
    }
    assert_eq!(filling.engine.table_sizes().pit, 60_000);
    assert!(filling.faults <= 100, "{} page faults while the PIT was filled", filling.faults);
}
