//! A long run of random traffic, the same on every run: afterwards all tables are empty again.
//!
//! `NAMEHOP_SOAK_PACKETS` sets the number of packets (200,000 by default).

use std::collections::VecDeque;

use namehop_engine::{CsConfig, EngineConfig, UnsolicitedPolicy};
use namehop_packet::{FaceId, FaceScope, LinkType};
use namehop_wire::lp::NackReason;

use crate::router::*;

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn once_in(&mut self, sides: u64) -> bool {
        self.roll(sides) == 0
    }
}

fn uri(dice: &mut Dice) -> String {
    let name = format!("/{}/{}/{}", dice.roll(3), dice.roll(20), dice.roll(200));
    match dice.roll(20) {
        0 => format!("{name}/{}", "long".repeat(50)),
        1 => format!("/localhost{name}"),
        2 => format!("/localhop{name}"),
        _ => name,
    }
}

fn random_interest(dice: &mut Dice) -> Packet {
    let uri = uri(dice);
    let mut asked = interest(&uri).nonce(dice.roll(1 << 20) as u32).lifetime(dice.roll(3_000));
    if dice.once_in(4) {
        asked = asked.fresh();
    }
    if dice.once_in(8) {
        let shorter = uri.rsplit_once('/').map_or("/x", |(shorter, _)| shorter);
        asked = interest(shorter).prefix().nonce(dice.roll(1 << 20) as u32);
    }
    if dice.once_in(10) {
        asked = asked.hint(["/0", "/1", "/nowhere"][dice.roll(3) as usize]);
    }
    if dice.once_in(10) {
        asked = asked.hop_limit(dice.roll(4) as u8);
    }
    if dice.once_in(20) {
        asked = interest_named(data(&uri).full_name());
    }
    if dice.once_in(20) {
        asked = asked.parameters(&vec![1; dice.roll(2_000) as usize]);
    }
    if dice.once_in(30) {
        asked = asked.no_nonce();
    }
    let mut packet = asked.packet();
    if dice.once_in(2) {
        packet = packet.token(&vec![dice.roll(256) as u8; dice.roll(33) as usize]);
    }
    if dice.once_in(50) {
        packet = packet.next_hop(256 + dice.roll(60));
    }
    packet
}

#[test]
fn random_traffic_leaves_nothing_behind() {
    let packets = std::env::var("NAMEHOP_SOAK_PACKETS").ok().and_then(|text| text.parse().ok()).unwrap_or(200_000u64);
    let mut router = Router::with(EngineConfig {
        pit_capacity: 2_000,
        pit_memory_bytes: 512 << 10,
        cs: CsConfig { capacity_packets: 3_000, capacity_bytes: 2 << 20, ..CsConfig::default() },
        unsolicited: UnsolicitedPolicy::AdmitAll,
        producer_regions: vec![name("/1/region")],
        ..EngineConfig::default()
    });
    router.route("/", PRODUCER, 1);
    router.route("/0", PRODUCER2, 1);
    router.route("/0", APP, 2);
    router.route("/1", MULTI, 1);
    router.route("/1", PRODUCER, 2);
    router.route("/2", ADHOC, 3);
    router.route("/2", PRODUCER2, 1);
    for (prefix, strategy) in
        [("/1", "multicast"), ("/2", "asf"), ("/0/1", "access"), ("/0/2", "self-learning"), ("/0/3", "random")]
    {
        router.strategy(prefix, strategy);
    }
    let faces = [CONSUMER, CONSUMER2, APP, APP2, MULTI, ADHOC, PRODUCER, PRODUCER2];
    let mut dice = Dice(7);
    let mut asked: VecDeque<Sent> = VecDeque::new();
    let (mut answered, mut announced) = (0u64, 0u64);
    for number in 0..packets {
        let face = faces[dice.roll(8) as usize];
        match dice.roll(10) {
            0..5 => router.recv(face, random_interest(&mut dice)),
            5 => {
                let unsolicited = data(&uri(&mut dice)).freshness(dice.roll(500));
                router.recv(face, unsolicited)
            }
            _ => match asked.pop_front() {
                // Most forwarded Interests are answered, by Data or by a Nack, with the token or without.
                Some(sent) => {
                    let interest = namehop_wire::Interest::decode(&sent.bytes).expect("valid");
                    let token = if dice.once_in(3) { Vec::new() } else { sent.token() };
                    let mut answer_name = interest.name.to_owned();
                    if interest.can_be_prefix {
                        answer_name = answer_name.append_segment(dice.roll(5));
                    }
                    let packet = if dice.once_in(8) {
                        Packet::raw(sent.bytes).nack(NackReason::NO_ROUTE)
                    } else {
                        data_named(answer_name)
                            .freshness(dice.roll(9_000))
                            .content(&vec![0; dice.roll(3_000) as usize])
                            .packet()
                    };
                    answered += 1;
                    router.recv(sent.face, packet.token(&token))
                }
                None => &mut router,
            },
        };
        if dice.once_in(10) {
            router.wait(dice.roll(40));
        }
        if dice.once_in(5_000) {
            router.engine.remove_face(FaceId(CONSUMER2));
        } else if dice.once_in(5_000) {
            router.face(CONSUMER2, FaceScope::NonLocal, LinkType::PointToPoint);
        }
        for event in router.engine.take_events() {
            if let namehop_engine::EngineEvent::AnnouncementWanted { request, .. } = event {
                announced += 1;
                router.announcement_reply(request, None);
            }
        }
        if number.is_multiple_of(100) {
            let to_answer = router.sent_unchecked().into_iter().filter(|sent| sent.line().starts_with('I'));
            asked.extend(to_answer);
            asked.truncate(2_000);
        }
        if number.is_multiple_of(20_000) {
            router.engine.check_invariants().unwrap_or_else(|error| panic!("after {number} packets: {error}"));
        }
    }
    assert!(
        answered > packets / 20 && router.engine.counters().cs_hits > packets / 200,
        "only {answered} answered, {announced} announced"
    );
    drop(asked);
    router.wait(200_000).sent();
    assert!(router.engine.is_idle());
    assert_eq!(router.pool.in_use(), 0);
    let sizes = router.engine.table_sizes();
    assert_eq!((sizes.pit, sizes.pcct), (0, sizes.cs));
    assert_eq!(router.erase("/", usize::MAX), sizes.cs);
    assert_eq!((router.cs_len(), router.engine.table_sizes().pcct), (0, 0));
    let counters = router.engine.counters();
    // Every Interest that became a PIT entry has ended one way or the other.
    assert!(counters.satisfied_interests + counters.unsatisfied_interests <= counters.in_interests);
    router.engine.check_invariants().expect("invariants");
}
