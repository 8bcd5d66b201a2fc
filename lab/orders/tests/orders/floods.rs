//! Floods: a full PIT and a full cache, and what they evict.

use namehop_engine::engine::CsConfig;
use namehop_engine::fib::FibWriter;
use namehop_engine::strategy::StrategyInstance;
use namehop_engine::{Engine, EngineConfig};
use namehop_hash::HashKey;
use namehop_orders::{Order, PathKind, ScheduleKind};
use namehop_packet::{
    BufferPool, DropReason, FaceId, FaceInfo, FaceScope, Incoming, LinkFields, LinkType, PacketBuffer, PacketKind,
    Timestamp,
};
use namehop_wire::Interest;
use namehop_wire::lp::PitToken;

use crate::packets::{Packet, data, interest, name};
use crate::{CONSUMER, PRODUCER};

/// Processes bursts of Interests, including long and deep names, and of Data for some earlier ones, with a full PIT and
/// a full cache. Returns what was sent, and the number of evicted PIT entries.
fn flooded(capacity_packets: usize, kind: ScheduleKind) -> (Vec<(u32, Vec<u8>)>, u64) {
    let (key, pool) = (HashKey::new(1, 2), BufferPool::new(10_000, 1_000));
    let mut fib = FibWriter::new(key, StrategyInstance::default()).expect("memory");
    fib.add_nexthop(name("/").as_ref(), FaceId(PRODUCER), 1).expect("route");
    let cs = CsConfig { capacity_packets, ..CsConfig::default() };
    let config = EngineConfig { pit_capacity: 40, cs, ..EngineConfig::default() };
    let mut engine = Engine::new(config, fib.reader(), pool.clone(), key).expect("memory");
    let mut order = Order::new(kind, PathKind::Whole);
    for id in [CONSUMER, PRODUCER] {
        engine.set_face(FaceInfo {
            id: FaceId(id),
            scope: FaceScope::NonLocal,
            link_type: LinkType::PointToPoint,
            is_up: true,
        });
    }
    let incoming = |face, packet: Packet, pit_token| Incoming {
        face: FaceId(face),
        buffer: pool.copy_of(&packet.bytes).expect("buffer"),
        fields: LinkFields { pit_token, ..LinkFields::default() },
    };
    let (mut burst, mut out, mut sent, mut pending) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::<(String, PitToken)>::new());
    for number in 0..3_000_u32 {
        let deep = "/x".repeat(number as usize % 7 * 6);
        let asked = interest(&format!("/A/{number}{deep}")).nonce(number).into();
        burst.push(incoming(CONSUMER, asked, PitToken::default()));
        if number % 3 == 0
            && let Some((uri, token)) = pending.pop()
        {
            burst.push(incoming(PRODUCER, data(&uri).into(), token));
        }
        if burst.len() >= 60 {
            order.process(&mut engine, Timestamp(1_000_000_000), &mut burst, &mut out);
            engine.check_invariants().expect("invariants");
            pending.clear();
            for packet in out.drain(..) {
                let bytes = PacketBuffer::bytes(&packet.buffer);
                if packet.kind == PacketKind::Interest {
                    let uri = Interest::decode(bytes).expect("a valid Interest").name.to_string();
                    pending.push((uri, packet.fields.pit_token));
                }
                sent.push((packet.face.0, bytes.to_vec()));
            }
        }
    }
    (sent, engine.counters().drops[DropReason::PitEvicted])
}

#[test]
fn a_full_pit_gives_up_the_same_under_all_schedules() {
    for capacity_packets in [0, 20] {
        let naive = flooded(capacity_packets, ScheduleKind::Naive);
        let is_data = |(face, _): &&(u32, Vec<u8>)| *face == CONSUMER;
        assert!(naive.1 > 1_000 && naive.0.iter().filter(is_data).count() > 500, "{} evictions", naive.1);
        for &kind in ScheduleKind::ALL {
            assert!(naive == flooded(capacity_packets, kind), "{kind}");
        }
    }
}
