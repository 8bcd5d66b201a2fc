//! The memory of the process for each cached packet: with the default policy, 10^6 Data packets of 1 KiB must fit into
//! 1.25 GiB together with the rest of a router. The cache pins no packet buffer: with any cache size, all are free for
//! arriving packets.
//!
//! Runs in its own process, because the memory of the process is measured.
#![cfg(target_os = "linux")]

use namehop_engine::fib::FibWriter;
use namehop_engine::strategy::StrategyInstance;
use namehop_engine::{CsConfig, Engine, EngineConfig};
use namehop_hash::HashKey;
use namehop_packet::{BufferPool, FaceId, FaceInfo, FaceScope, Incoming, LinkFields, LinkType, Timestamp};
use namehop_table::HugePages;
use namehop_wire::Name;
use namehop_wire::builder::{DataBuilder, InterestBuilder};
use namehop_wire::security::DigestSigner;

const CONSUMER: FaceId = FaceId(256);
const PRODUCER: FaceId = FaceId(257);
const DATA_BYTES: usize = 1_024;
/// 10^6 divided by 16, so that tables with sizes that are powers of two are as full as with 10^6.
const CAPACITY: usize = 62_500;
const BURST: usize = 50;
/// Bytes for each packet. A million packets of this size leave 107 MiB of 1.25 GiB for everything that does not depend
/// on the cache.
const MOST_BYTES: usize = 1_230;

/// Returns the anonymous memory of this process, in bytes.
fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("readable");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("a line");
    1024 * line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number")
}

fn name(number: usize) -> Name {
    Name::new()
        .append_generic("content")
        .append_generic(format!("{:03}", number / 1_000))
        .append_generic(format!("{number:06}"))
}

fn data(number: usize) -> Vec<u8> {
    let with_content =
        |bytes| DataBuilder::new(name(number)).content(vec![7; bytes]).sign(&DigestSigner).expect("signed");
    let rest = with_content(900).len() - 900;
    let data = with_content(DATA_BYTES - rest);
    assert_eq!(data.len(), DATA_BYTES);
    data
}

#[test]
fn a_packet_takes_little_besides_its_own_bytes() {
    HugePages::Off.use_from_now_on();
    let key = HashKey::new(1, 2);
    let mut fib = FibWriter::new(key, StrategyInstance::default()).expect("a small FIB fits");
    fib.add_nexthop(Name::new().as_ref(), PRODUCER, 0).expect("room");
    let pool = BufferPool::new(1_000, 10);
    let cs = CsConfig { capacity_packets: CAPACITY, capacity_bytes: 2 * CAPACITY * DATA_BYTES, ..CsConfig::default() };
    let config = EngineConfig { cs, pit_capacity: 8_192, dead_nonce_capacity: 8_192, ..EngineConfig::default() };
    let mut engine = Engine::new(config, fib.reader(), pool.clone(), key).expect("memory");
    for id in [CONSUMER, PRODUCER] {
        engine.set_face(FaceInfo { id, scope: FaceScope::NonLocal, link_type: LinkType::PointToPoint, is_up: true });
    }
    let (mut now, mut out) = (Timestamp(0), Vec::new());
    let mut exchange = |engine: &mut Engine, first: usize| {
        now = now.plus_ms(1);
        let names = first..first + BURST;
        let interests = names.clone().map(|number| InterestBuilder::new(name(number)).nonce(1).build().expect("built"));
        let interests: Vec<Vec<u8>> = interests.collect();
        for (face, packets) in [(CONSUMER, interests), (PRODUCER, names.map(data).collect())] {
            let incoming = |packet: &Vec<u8>| Incoming {
                face,
                buffer: pool.copy_of(packet).expect("a buffer"),
                fields: LinkFields::default(),
            };
            let mut burst: Vec<Incoming> = packets.iter().map(incoming).collect();
            engine.process(now, &mut burst, &mut out);
            assert_eq!(out.len(), BURST);
            out.clear();
        }
    };
    // Touches the memory that does not depend on the cache's content.
    let before = 2_500;
    (0..before).step_by(BURST).for_each(|first| exchange(&mut engine, first));
    let resident = resident_bytes();
    (before..CAPACITY).step_by(BURST).for_each(|first| exchange(&mut engine, first));
    assert_eq!(engine.cs_info().entries, CAPACITY);
    assert_eq!(pool.in_use(), 0, "cached Data must not hold packet buffers");
    let bytes = (resident_bytes() - resident) / (CAPACITY - before);
    println!("{bytes} bytes for a packet of {DATA_BYTES}");
    assert!(bytes <= MOST_BYTES, "{bytes} bytes for a packet of {DATA_BYTES}");
}
