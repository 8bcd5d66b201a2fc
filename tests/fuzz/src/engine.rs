//! The whole engine: any packets on any faces at any time, and its tables stay consistent and empty themselves.

use std::cell::RefCell;
use std::time::Duration;

use namehop_engine::engine::{CsConfig, Engine, EngineConfig, UnsolicitedPolicy};
use namehop_engine::fib::{FibWriter, NextHop};
use namehop_engine::schedule::{BucketPrefetch, Burst, Naive, PreHash, Schedule, Speculative};
use namehop_engine::strategy::{STRATEGIES, StrategyInstance};
use namehop_hash::HashKey;
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

/// The key of all hashes of names.
const KEY: HashKey = HashKey::new(1, 2);

const fn face(id: u32, scope: FaceScope, link_type: LinkType) -> FaceInfo {
    FaceInfo { id: FaceId(id), scope, link_type, is_up: true }
}

/// Each event is a packet on a face (bytes as on a link, with or without LpPacket), time that passes, or a change of
/// faces, their links and routes. All schedules must send the same bytes: the router's is compared with one of the others, which the input
/// chooses, so that the fuzzer tries more inputs than with all of them: in a release build some 10,000 a second of the corpus, and
/// 3,800 with all (one core of an AMD EPYC at 2.6 GHz). Engines are made anew for each input, so nothing is left in them.
pub fn engine(bytes: &[u8]) {
    let other = bytes.iter().fold(0, |sum: u8, byte| sum.wrapping_mul(31).wrapping_add(*byte));
    compare(bytes, &[OTHERS[usize::from(other) % OTHERS.len()]]);
}

/// The same with all schedules: for the inputs that tests repeat.
pub fn engine_with_all_schedules(bytes: &[u8]) {
    compare(bytes, &OTHERS);
}

type Run = fn(&mut Routes, &[u8]) -> Vec<u8>;

/// The schedules that are held against the router's.
const OTHERS: [(&str, Run); 4] = [
    ("naive", run::<Naive>),
    ("bucket-prefetch", run::<BucketPrefetch>),
    ("pre-hash", run::<PreHash>),
    ("speculative", run::<Speculative>),
];

fn compare(bytes: &[u8], others: &[(&str, Run)]) {
    thread_local!(static ROUTES: RefCell<Option<Routes>> = const { RefCell::new(None) });
    ROUTES.with_borrow_mut(|routes| {
        let routes = routes.get_or_insert_with(|| {
            // Engines come and go with each input, so their memory is taken in small pieces.
            HugePages::Off.use_from_now_on();
            Routes::new()
        });
        let sent = run::<Burst>(routes, bytes);
        for (other, run) in others {
            assert!(sent == run(routes, bytes), "burst and {other} differ");
        }
    });
}

/// Runs the events; everything that the engine sends.
fn run<S: Schedule>(routes: &mut Routes, bytes: &[u8]) -> Vec<u8> {
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
    let mut engine = Engine::<S>::new(config, fib.reader(), pool.clone(), KEY).expect("small tables fit");
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
    routes.restore();
    sent
}

/// The FIB. Making one takes longer than most inputs, so it stays, and what an input adds is taken out again.
struct Routes {
    fib: FibWriter<StrategyInstance>,
    /// Prefixes whose next hops inputs change, with those that they have at first.
    changing: [(Name, Vec<NextHop>); 2],
    /// All next hops at first.
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

    /// Takes out what an input added, and makes sure that the next one finds the FIB as if it was new.
    fn restore(&mut self) {
        for (prefix, nexthops) in &self.changing {
            if !self.fib.nexthops(prefix.as_ref()).iter().eq(nexthops.iter().copied()) {
                self.fib.set_nexthops(prefix.as_ref(), nexthops).expect("they had room before");
            }
        }
        self.fib.reclaim();
        // Fuzzers and tests are built with debug assertions; a plain release build only measures.
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
    // Every strategy gets names of its own, from /a/b on, and /a the first one.
    for (component, strategy) in ('b'..='z').zip(STRATEGIES) {
        let prefix: Name = format!("/a/{component}").parse().expect("a name");
        fib.set_strategy(prefix.as_ref(), strategy.with_defaults()).expect("room");
    }
    fib
}

/// Does what a link service does: link headers off. What a link service would drop gives nothing.
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

/// What goes out is well formed, and `/localhost` stays on this computer. It is appended to `sent`.
fn check_outgoing(out: &mut Vec<Outgoing>, sent: &mut Vec<u8>) {
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
