//! The whole engine: any packets on any faces at any time, and its tables stay consistent and empty themselves.

use std::time::Duration;

use namehop_forward::buffer::{BufferPool, HeapPool, PacketBuffer};
use namehop_forward::engine::{CsConfig, Engine, EngineConfig, UnsolicitedPolicy};
use namehop_forward::face::{FaceId, FaceInfo, FaceScope, LinkType};
use namehop_forward::fib::{FibWriter, NextHop};
use namehop_forward::packet::{Incoming, LinkFields, Outgoing, PacketKind};
use namehop_forward::schedule::{BucketPrefetch, Burst, Naive, PreHash, Schedule, Speculative};
use namehop_forward::strategy::{STRATEGIES, StrategyInstance};
use namehop_forward::time::Timestamp;
use namehop_hash::HashKey;
use namehop_wire::lp::LpPacket;
use namehop_wire::{Data, Interest, Name};

use crate::script::Events;

/// Faces of the engine: local and not, of every link type.
const FACES: [FaceInfo; 6] = [
    face(256, FaceScope::Local, LinkType::PointToPoint),
    face(257, FaceScope::NonLocal, LinkType::PointToPoint),
    face(258, FaceScope::NonLocal, LinkType::PointToPoint),
    face(259, FaceScope::NonLocal, LinkType::MultiAccess),
    face(260, FaceScope::NonLocal, LinkType::AdHoc),
    face(261, FaceScope::Local, LinkType::PointToPoint),
];

const fn face(id: u32, scope: FaceScope, link_type: LinkType) -> FaceInfo {
    FaceInfo { id: FaceId(id), scope, link_type }
}

/// Each event is a packet on a face (bytes as on a link, with or without LpPacket), time that passes, or a change of
/// faces and routes. All schedules must send the same bytes.
pub fn engine(bytes: &[u8]) {
    let sent = run::<Burst>(bytes);
    assert!(sent == run::<Naive>(bytes), "burst and naive differ");
    assert!(sent == run::<BucketPrefetch>(bytes), "burst and bucket-prefetch differ");
    assert!(sent == run::<PreHash>(bytes), "burst and pre-hash differ");
    assert!(sent == run::<Speculative>(bytes), "burst and speculative differ");
}

/// Runs the events; everything that the engine sends.
fn run<S: Schedule>(bytes: &[u8]) -> Vec<u8> {
    let mut sent = Vec::new();
    let key = HashKey::new(1, 2);
    let pool = HeapPool::new(4096, 1024);
    let mut fib = routes(key);
    let config = EngineConfig {
        pit_capacity: 64,
        cs: CsConfig { capacity_packets: 16, capacity_bytes: 1 << 20, ..CsConfig::default() },
        unsolicited: UnsolicitedPolicy::AdmitLocal,
        producer_regions: vec!["/hint/one/region".parse().expect("a name")],
        max_lifetime_ms: 10_000,
        measurement_capacity: 64,
        // So few that a burst has several groups.
        lookahead: 3,
        ..EngineConfig::default()
    };
    let mut engine = Engine::<_, S>::new(config, fib.reader(), pool.clone(), key).expect("small tables fit");
    FACES.iter().for_each(|face| engine.set_face(*face));
    let mut now = Timestamp(0);
    let (mut burst, mut out) = (Vec::new(), Vec::new());
    for (kind, bytes) in Events(bytes) {
        let which = usize::from(kind) % FACES.len();
        match kind >> 4 {
            0..=11 => {
                if let Some(packet) = incoming(&pool, FACES[which].id, bytes) {
                    burst.push(packet);
                }
                // Half of the packets wait for others, so that there are bursts.
                if kind & 8 == 0 {
                    engine.process(now, &mut burst, &mut out);
                }
            }
            12 | 13 => {
                now = now + Duration::from_millis(bytes.len() as u64 * 10);
                engine.process(now, &mut burst, &mut out);
            }
            14 => {
                engine.remove_face(FACES[which].id);
                engine.set_face(FACES[which]);
            }
            _ => {
                let nexthop = NextHop { face: FACES[which].id, cost: u64::from(kind) };
                let prefix: Name = if kind & 1 == 0 { "/a".parse() } else { "/example".parse() }.expect("a name");
                let _ = fib.add_nexthop(prefix.as_ref(), nexthop.face, nexthop.cost);
                engine.new_nexthop(now, prefix.as_ref(), nexthop, &mut out);
                fib.reclaim();
            }
        }
        check_outgoing(&mut out, &mut sent);
        engine.check_invariants().unwrap_or_else(|fault| panic!("{fault}"));
    }
    // Whatever came in, all that is pending ends with the longest lifetime.
    for _ in 0..4 {
        now = now + Duration::from_secs(11);
        engine.process(now, &mut burst, &mut out);
        check_outgoing(&mut out, &mut sent);
    }
    assert!(engine.is_idle(), "something is pending for ever");
    engine.check_invariants().unwrap_or_else(|fault| panic!("{fault}"));
    drop(engine);
    assert_eq!(pool.in_use(), 0, "buffers leaked");
    sent
}

fn routes(key: HashKey) -> FibWriter<StrategyInstance> {
    let root = StrategyInstance::new(STRATEGIES[0].kind);
    let mut fib = FibWriter::new(key, root).expect("a small FIB fits");
    for (prefix, faces) in
        [("/", &[257][..]), ("/a", &[257, 258, 259]), ("/example", &[258, 260, 261]), ("/hint", &[257, 256])]
    {
        let prefix: Name = prefix.parse().expect("a name");
        for (cost, &face) in (0..).zip(faces) {
            fib.add_nexthop(prefix.as_ref(), FaceId(face), cost).expect("room");
        }
    }
    // Every strategy gets names of its own, and /a the first one.
    for (index, strategy) in STRATEGIES.iter().enumerate() {
        let prefix: Name = format!("/a/{}", ["b", "c", "d", "e", "f", "g"][index % 6]).parse().expect("a name");
        fib.set_strategy(prefix.as_ref(), StrategyInstance::new(strategy.kind)).expect("room");
    }
    fib
}

/// Does what a link service does: link headers off. What a link service would drop gives nothing.
fn incoming(pool: &HeapPool, face: FaceId, bytes: &[u8]) -> Option<Incoming<<HeapPool as BufferPool>::Buffer>> {
    if bytes.first() != Some(&100) {
        return Some(Incoming { face, buffer: pool.copy_of(bytes)?, fields: LinkFields::default() });
    }
    let packet = LpPacket::decode(bytes).ok()?;
    let fields = LinkFields {
        pit_token: packet.pit_token,
        nack: packet.nack,
        congestion_mark: packet.congestion_mark.unwrap_or(0),
        next_hop_face_id: packet.next_hop_face_id,
        no_cache: packet.cache_policy.is_some(),
        non_discovery: packet.non_discovery,
        announcement: packet.prefix_announcement.and_then(|announcement| pool.copy_of(announcement)),
        ..LinkFields::default()
    };
    Some(Incoming { face, buffer: pool.copy_of(packet.fragment?)?, fields })
}

/// What goes out is well formed, and `/localhost` stays on this computer. It is appended to `sent`.
fn check_outgoing(out: &mut Vec<Outgoing<<HeapPool as BufferPool>::Buffer>>, sent: &mut Vec<u8>) {
    for packet in out.drain(..) {
        let bytes = packet.buffer.bytes();
        sent.extend_from_slice(format!("{} {:?} {:?} ", packet.face, packet.kind, packet.fields).as_bytes());
        sent.extend_from_slice(bytes);
        let name = match packet.kind {
            PacketKind::Interest | PacketKind::Nack => {
                let interest = Interest::decode(bytes).expect("an Interest goes out whole");
                // A Nack returns the Interest as it came, and an application may have left the nonce to the router.
                let is_nack = packet.kind == PacketKind::Nack;
                assert!(is_nack || interest.nonce.is_some(), "an Interest goes out with a nonce");
                interest.name
            }
            // The engine does not look at Content and signature.
            PacketKind::Data => match Data::decode(bytes) {
                Ok(data) => data.name,
                Err(_) => continue,
            },
        };
        assert_eq!(packet.kind == PacketKind::Nack, packet.fields.nack.is_some());
        let is_local = FACES.iter().any(|face| face.id == packet.face && face.scope == FaceScope::Local);
        assert!(is_local || !name.value().starts_with(b"\x08\x09localhost"), "{name} to {}", packet.face);
    }
}
