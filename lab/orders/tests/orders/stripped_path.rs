//! The path that publications measured, in every order: Interests go to the first next hop, Data returns to the
//! downstreams, repeated Interests are answered from the cache, and the rest of the protocol is omitted.

use namehop_engine::engine::CsConfig;
use namehop_engine::fib::{FibWriter, NextHop};
use namehop_engine::strategy::StrategyInstance;
use namehop_engine::{Engine, EngineConfig};
use namehop_hash::HashKey;
use namehop_orders::{FlowBlock, Order, PathKind, ScheduleKind};
use namehop_packet::{
    BufferPool, DropReason, FaceId, FaceInfo, FaceScope, Incoming, LinkFields, LinkType, Outgoing, PacketBuffer,
    PacketKind, Timestamp,
};
use namehop_wire::lp::PitToken;

use crate::packets::{data, interest, name};
use crate::{CONSUMER, CONSUMER2, PRODUCER, PRODUCER2};

const NAMES: usize = 100;
const NOW: Timestamp = Timestamp(1_000_000_000);

type Sent = (PacketKind, u32, Vec<u8>);

/// An engine on the stripped path. Names below `/even` lead to one producer, those below `/odd` to the other.
struct Scene {
    engine: Engine,
    order: Order,
    pool: BufferPool,
    _fib: FibWriter<StrategyInstance>,
}

fn uri(number: usize) -> String {
    format!("/{}/{number}", if number.is_multiple_of(2) { "even" } else { "odd" })
}

fn producer(number: usize) -> u32 {
    if number.is_multiple_of(2) { PRODUCER } else { PRODUCER2 }
}

impl Scene {
    fn new(cs_capacity: usize, kind: ScheduleKind, path: PathKind) -> Self {
        let (key, pool) = (HashKey::new(1, 2), BufferPool::new(10_000, 1_000));
        let mut fib = FibWriter::new(key, StrategyInstance::default()).expect("memory");
        for (prefix, best, other) in [("/even", PRODUCER, PRODUCER2), ("/odd", PRODUCER2, PRODUCER)] {
            let nexthops = [NextHop { face: FaceId(best), cost: 1 }, NextHop { face: FaceId(other), cost: 2 }];
            fib.set_nexthops(name(prefix).as_ref(), &nexthops).expect("room");
        }
        let cs = CsConfig { capacity_packets: cs_capacity, ..CsConfig::default() };
        let config = EngineConfig { cs, ..EngineConfig::default() };
        let mut engine = Engine::new(config, fib.reader(), pool.clone(), key).expect("memory");
        for id in [CONSUMER, CONSUMER2, PRODUCER, PRODUCER2].map(FaceId) {
            engine.set_face(FaceInfo {
                id,
                scope: FaceScope::NonLocal,
                link_type: LinkType::PointToPoint,
                is_up: true,
            });
        }
        Scene { engine, order: Order::new(kind, path), pool, _fib: fib }
    }

    /// Processes these packets as one burst, each on its face, and returns what is sent.
    fn burst(&mut self, packets: impl IntoIterator<Item = (u32, Vec<u8>)>) -> Vec<Sent> {
        let incoming = |(face, bytes): (u32, Vec<u8>)| {
            // Tokens are ignored.
            let pit_token = PitToken::from_slice(&[1, 2, 3]).expect("short");
            let fields = LinkFields { pit_token, ..LinkFields::default() };
            Incoming { face: FaceId(face), buffer: self.pool.copy_of(&bytes).expect("buffer"), fields }
        };
        let (mut burst, mut out) = (packets.into_iter().map(incoming).collect(), Vec::new());
        self.order.process(&mut self.engine, NOW, &mut burst, &mut out);
        self.engine.check_invariants().expect("invariants");
        let sent = |Outgoing { face, kind, buffer, fields }: Outgoing| {
            assert!(fields.pit_token.is_empty(), "no PIT token may be attached");
            (kind, face.0, PacketBuffer::bytes(&buffer).to_vec())
        };
        out.into_iter().map(sent).collect()
    }
}

fn interest_bytes(uri: &str) -> Vec<u8> {
    crate::packets::Packet::from(interest(uri)).bytes
}

fn data_bytes(uri: &str) -> Vec<u8> {
    crate::packets::Packet::from(data(uri)).bytes
}

fn forwards_there_and_back(kind: ScheduleKind, path: PathKind) {
    for cs_capacity in [0, 1_000] {
        let mut scene = Scene::new(cs_capacity, kind, path);
        let (interests, data): (Vec<_>, Vec<_>) =
            (0..NAMES).map(uri).map(|uri| (interest_bytes(&uri), data_bytes(&uri))).unzip();

        // Both consumers request every other name: the second Interest is aggregated.
        let asked = (0..NAMES).map(|number| (CONSUMER, interests[number].clone()));
        let joined = (0..NAMES).step_by(2).map(|number| (CONSUMER2, interests[number].clone()));
        let sent = scene.burst(asked.chain(joined));
        let expected: Vec<Sent> =
            (0..NAMES).map(|number| (PacketKind::Interest, producer(number), interests[number].clone())).collect();
        assert_eq!(sent, expected);
        assert_eq!(scene.engine.table_sizes().pit, NAMES);
        assert_eq!(scene.engine.next_deadline(), None, "no timers may be set");

        // Data goes to the downstreams in order of arrival, and ends the PIT entry.
        let sent = scene.burst((0..NAMES).map(|number| (producer(number), data[number].clone())));
        let downstreams =
            |number: usize| if number.is_multiple_of(2) { vec![CONSUMER, CONSUMER2] } else { vec![CONSUMER] };
        let expected: Vec<Sent> = (0..NAMES)
            .flat_map(|number| downstreams(number).into_iter().map(move |face| (number, face)))
            .map(|(number, face)| (PacketKind::Data, face, data[number].clone()))
            .collect();
        assert_eq!(sent, expected);
        assert_eq!(scene.engine.table_sizes().pit, 0);

        // The same Data again has no downstream.
        assert_eq!(scene.burst([(producer(1), data[1].clone())]), []);
        assert_eq!(scene.engine.counters().drops[DropReason::UnsolicitedData], 1);

        // The cache answers, if there is one. A repeated nonce stops nothing.
        let sent = scene.burst([(CONSUMER2, interests[1].clone())]);
        match cs_capacity {
            0 => assert_eq!(sent, [(PacketKind::Interest, producer(1), interests[1].clone())]),
            _ => assert_eq!(sent, [(PacketKind::Data, CONSUMER2, data[1].clone())]),
        }

        // Without a route no PIT entry remains.
        let pending = scene.engine.table_sizes().pit;
        assert_eq!(scene.burst([(CONSUMER, interest_bytes("/elsewhere"))]), []);
        assert_eq!(scene.engine.counters().drops[DropReason::NoSuchNextHop], 1);
        assert_eq!(scene.engine.table_sizes().pit, pending);
    }
}

#[test]
fn interests_go_out_and_data_comes_back_in_every_order() {
    for &kind in ScheduleKind::ALL {
        forwards_there_and_back(kind, PathKind::Stripped);
    }
}

#[test]
fn the_timed_path_does_the_same_and_times_its_blocks() {
    forwards_there_and_back(ScheduleKind::Naive, PathKind::Timed);
    let mut scene = Scene::new(1_000, ScheduleKind::Naive, PathKind::Timed);
    scene.burst([(CONSUMER, interest_bytes(&uri(1)))]);
    scene.burst([(producer(1), data_bytes(&uri(1)))]);
    scene.burst([(CONSUMER, interest_bytes(&uri(1)))]);
    let ticks = scene.order.block_ticks().expect("the path is timed");
    let laps = FlowBlock::ALL.iter().map(|&block| ticks.of(block).1).sum::<u64>() + ticks.interruptions();
    // Of the forwarded Interest, of the Data, and of the Interest that the cache answers.
    assert_eq!(laps, 7 + 7 + 7);
}
