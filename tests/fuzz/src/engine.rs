//! The whole engine: with any packets on any faces at any time, its tables stay consistent and drain.

use std::cell::RefCell;
use std::time::Duration;

use namehop_engine::engine::{CsConfig, Engine, EngineConfig, UnsolicitedPolicy};
use namehop_engine::fib::{FibWriter, NextHop};
use namehop_engine::strategy::{STRATEGIES, StrategyInstance};
use namehop_hash::HashKey;
use namehop_orders::{Order, PathKind, ScheduleKind};
use namehop_packet::{
    BufferPool, FaceId, FaceInfo, FaceScope, Incoming, LinkFields, LinkType, Outgoing, PacketKind, Timestamp,
};
use namehop_table::HugePages;
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

/// Key of all name hashes.
const KEY: HashKey = HashKey::new(1, 2);

const fn face(id: u32, scope: FaceScope, link_type: LinkType) -> FaceInfo {
    FaceInfo { id: FaceId(id), scope, link_type, is_up: true }
}

/// Runs the engine on a list of events. An event is a packet on a face (bytes as on a link, with or without LpPacket),
/// passing time, or a change of faces, links or routes.
///
/// All schedules must send the same bytes. The router's schedule is compared with one other, chosen by the input, so
/// that the fuzzer tries more inputs. A release build runs about 10,000 inputs of the corpus per second, and 3,800 with
/// all schedules (one core of an AMD EPYC at 2.6 GHz). Each input gets new engines, so no state remains in them.
pub fn engine(bytes: &[u8]) {
    let other = bytes.iter().fold(0, |sum: u8, byte| sum.wrapping_mul(31).wrapping_add(*byte));
    compare(bytes, &[OTHERS[usize::from(other) % OTHERS.len()]]);
}

/// Like `engine`, with all schedules: for the inputs that tests repeat.
pub fn engine_with_all_schedules(bytes: &[u8]) {
    compare(bytes, &OTHERS);
}

/// The schedules that are compared with the router's.
const OTHERS: [ScheduleKind; 4] =
    [ScheduleKind::Naive, ScheduleKind::BucketPrefetch, ScheduleKind::PreHash, ScheduleKind::Speculative];

fn compare(bytes: &[u8], others: &[ScheduleKind]) {
    thread_local!(static ROUTES: RefCell<Option<Routes>> = const { RefCell::new(None) });
    ROUTES.with_borrow_mut(|routes| {
        let routes = routes.get_or_insert_with(|| {
            // Engines are created for each input, so allocate their memory in small pieces.
            HugePages::Off.use_from_now_on();
            Routes::new()
        });
        let sent = run(routes, bytes, ScheduleKind::Burst);
        for &other in others {
            assert!(sent == run(routes, bytes, other), "burst and {other} differ");
        }
    });
}

/// Runs the events in this order, and returns all bytes that the engine sends.
fn run(routes: &mut Routes, bytes: &[u8], kind: ScheduleKind) -> Vec<u8> {
    let mut sent = Vec::new();
    let pool = BufferPool::new(256, 64);
    let fib = &mut routes.fib;
    let config = EngineConfig {
        pit_capacity: 64,
        pit_memory_bytes: 64 << 10,
        cs: CsConfig { capacity_packets: 16, capacity_bytes: 64 << 10, ..CsConfig::default() },
        reserved_packets: 16,
        dead_nonce_capacity: 256,
        unsolicited: UnsolicitedPolicy::AdmitLocal,
        producer_regions: vec!["/hint/one/region".parse().expect("a name")],
        max_lifetime_ms: 10_000,
        measurement_capacity: 64,
        // So few that a burst has several groups.
        lookahead: 3,
        ..EngineConfig::default()
    };
    let mut order = Order::new(kind, PathKind::Whole);
    let mut engine = Engine::new(config, fib.reader(), pool.clone(), KEY).expect("small tables fit");
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
                // Half of the packets are held back, so that bursts arise.
                if kind & 8 == 0 {
                    order.process(&mut engine, now, &mut burst, &mut out);
                }
            }
            12 | 13 => {
                now = now + Duration::from_millis(bytes.len() as u64 * 10);
                order.process(&mut engine, now, &mut burst, &mut out);
            }
            14 if kind & 8 != 0 => {
                let is_up = engine.is_face_up(FACES[which].id) == Some(false);
                engine.set_face(FaceInfo { is_up, ..FACES[which] });
            }
            14 => {
                engine.remove_face(FACES[which].id);
                engine.set_face(FACES[which]);
            }
            _ => {
                let nexthop = NextHop { face: FACES[which].id, cost: u64::from(kind) };
                let (prefix, _) = &routes.changing[usize::from(kind & 1)];
                let _ = fib.add_nexthop(prefix.as_ref(), nexthop.face, nexthop.cost);
                engine.new_nexthop(now, prefix.as_ref(), nexthop, &mut out);
                fib.reclaim();
            }
        }
        check_outgoing(&mut out, &mut sent);
        engine.check_invariants().unwrap_or_else(|fault| panic!("{fault}"));
    }
    // All pending state must end within the longest lifetime.
    for _ in 0..4 {
        now = now + Duration::from_secs(11);
        order.process(&mut engine, now, &mut burst, &mut out);
        check_outgoing(&mut out, &mut sent);
    }
    assert!(engine.is_idle(), "something is pending for ever");
    engine.check_invariants().unwrap_or_else(|fault| panic!("{fault}"));
    drop(engine);
    assert_eq!(pool.in_use(), 0, "buffers leaked");
    routes.restore();
    sent
}

/// The FIB. Creating it takes longer than most inputs, so it is reused, and additions of an input are removed.
struct Routes {
    fib: FibWriter<StrategyInstance>,
    /// Prefixes that get next hops from inputs, with their initial next hops.
    changing: [(Name, Vec<NextHop>); 2],
    /// All initial next hops.
    at_first: Vec<(Name, Vec<NextHop>)>,
}

impl Routes {
    fn new() -> Self {
        let fib = routes(KEY);
        let changing = ["/a", "/example"].map(|prefix| {
            let prefix: Name = prefix.parse().expect("a name");
            let nexthops = fib.nexthops(prefix.as_ref()).iter().collect();
            (prefix, nexthops)
        });
        Routes { at_first: all_of(&fib), fib, changing }
    }

    /// Removes the additions of an input, and checks that the FIB is as it was initially.
    fn restore(&mut self) {
        for (prefix, nexthops) in &self.changing {
            if !self.fib.nexthops(prefix.as_ref()).iter().eq(nexthops.iter().copied()) {
                self.fib.set_nexthops(prefix.as_ref(), nexthops).expect("they had room before");
            }
        }
        self.fib.reclaim();
        // Fuzzers and tests have debug assertions; a plain release build only measures.
        debug_assert!(all_of(&self.fib) == self.at_first, "an input has changed the FIB for those after it");
    }
}

fn all_of(fib: &FibWriter<StrategyInstance>) -> Vec<(Name, Vec<NextHop>)> {
    let mut all: Vec<_> =
        fib.entries().map(|(name, nexthops)| (name.to_owned(), nexthops.iter().collect::<Vec<_>>())).collect();
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all
}

fn routes(key: HashKey) -> FibWriter<StrategyInstance> {
    let root = StrategyInstance::default();
    let mut fib = FibWriter::new(key, root).expect("a small FIB fits");
    for (prefix, faces) in
        [("/", &[257][..]), ("/a", &[257, 258, 259]), ("/example", &[258, 260, 261]), ("/hint", &[257, 256])]
    {
        let prefix: Name = prefix.parse().expect("a name");
        for (cost, &face) in (0..).zip(faces) {
            fib.add_nexthop(prefix.as_ref(), FaceId(face), cost).expect("room");
        }
    }
    // Each strategy has its own names below /a, from /a/b on.
    for (component, strategy) in ('b'..='z').zip(STRATEGIES) {
        let prefix: Name = format!("/a/{component}").parse().expect("a name");
        fib.set_strategy(prefix.as_ref(), strategy.with_defaults()).expect("room");
    }
    fib
}

/// Removes link headers like a link service. Returns `None` for packets that a link service would drop.
fn incoming(pool: &BufferPool, face: FaceId, bytes: &[u8]) -> Option<Incoming> {
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

/// Checks that sent packets are well formed and that `/localhost` stays on local faces. Appends them to `sent`.
fn check_outgoing(out: &mut Vec<Outgoing>, sent: &mut Vec<u8>) {
    for packet in out.drain(..) {
        let bytes = packet.buffer.bytes();
        sent.extend_from_slice(format!("{} {:?} {:?} ", packet.face, packet.kind, packet.fields).as_bytes());
        sent.extend_from_slice(bytes);
        let name = match packet.kind {
            PacketKind::Interest | PacketKind::Nack => {
                let interest = Interest::decode(bytes).expect("an Interest goes out whole");
                // A Nack returns the Interest unmodified, and an application may have omitted the nonce.
                let is_nack = packet.kind == PacketKind::Nack;
                assert!(is_nack || interest.nonce.is_some(), "an Interest goes out with a nonce");
                interest.name
            }
            // The engine does not check Content and signature.
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
