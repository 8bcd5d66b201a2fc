//! Floods: full tables, and their effect on other faces.

use namehop_engine::{EngineConfig, EngineEvent};
use namehop_packet::{DropReason, FaceId, PacketKind};
use namehop_wire::lp::NackReason;

use crate::router::*;

pub fn small_pit(pit_capacity: usize) -> Router {
    let mut router = Router::with(EngineConfig { pit_capacity, ..EngineConfig::default() });
    router.route("/", PRODUCER, 1);
    router
}

#[test]
fn a_full_pit_gives_up_its_oldest_entries() {
    let mut router = small_pit(100);
    for number in 0..1_000 {
        router.recv(CONSUMER, interest(&format!("/flood/{number}")).nonce(number));
    }
    assert_eq!(router.sent().len(), 1_000);
    assert_eq!(router.pit_len(), 100);
    assert_eq!(router.drops(DropReason::PitEvicted), 900);
    assert_eq!(router.engine.counters().unsatisfied_interests, 900);
    router.recv(PRODUCER, data("/flood/899")).expect(&[]);
    router.recv(PRODUCER, data("/flood/900")).expect(&["D256 /flood/900"]);
    router.wait(5_000);
    assert!(router.engine.is_idle());
}

#[test]
fn an_evicted_nonce_is_remembered() {
    let mut router = small_pit(1);
    router.recv(CONSUMER, interest("/A").nonce(1)).recv(CONSUMER, interest("/B").nonce(2)).sent();
    router.recv(CONSUMER2, interest("/A").nonce(1)).expect(&["N257 /A Duplicate n1"]);
}

#[test]
fn a_new_selector_of_the_only_entry_replaces_the_old_one() {
    let mut router = small_pit(1);
    router.recv(CONSUMER, interest("/A").nonce(1)).recv(CONSUMER2, interest("/A").fresh().nonce(2)).sent();
    assert_eq!(router.pit_len(), 1);
    router.recv(PRODUCER, data("/A")).expect(&["D257 /A"]);
}

#[test]
fn cached_data_does_not_take_room_from_pending_interests() {
    let mut router = small_pit(10);
    for number in 0..1_000 {
        let uri = format!("/A/{number}");
        router.recv(CONSUMER, interest(&uri).nonce(number)).recv(PRODUCER, data(&uri));
    }
    router.sent();
    assert_eq!(router.cs_len(), 1_000);
    for number in 0..10 {
        router.recv(CONSUMER, interest(&format!("/B/{number}")).nonce(number));
    }
    assert_eq!((router.sent().len(), router.pit_len()), (10, 10));
    assert_eq!(router.drops(DropReason::PitEvicted), 0);
}

#[test]
fn long_names_cannot_fill_the_memory_for_good() {
    let mut router = Router::with(EngineConfig {
        pit_memory_bytes: 256 << 10,
        pit_capacity: 10_000,
        max_name_bytes: namehop_wire::MAX_PACKET_SIZE,
        long_name_bytes_per_s: 1 << 40,
        ..EngineConfig::default()
    });
    router.route("/", PRODUCER, 1);
    let long = |number: u32, length: usize| format!("/{}/{number}", "x".repeat(length));
    for length in [200, 8_000, 1_000] {
        for number in 0..2_000 {
            router.recv(CONSUMER, interest(&long(number, length)).nonce(number));
        }
        let sent = router.sent();
        assert_eq!(sent.len(), 2_000);
        assert!(sent.iter().all(|packet| packet.line().starts_with("I300")));
        router.recv(PRODUCER, data(&long(1_999, length)));
        assert_eq!(router.sent().len(), 1, "the newest Interest must be pending");
    }
    assert_eq!(router.all_drops(), 0);
    assert!(router.drops(DropReason::PitEvicted) > 0);
    // Interests with parameters use the same memory.
    for number in 0..2_000 {
        router.recv(CONSUMER2, interest("/A").parameters(&[number as u8; 900]).nonce(number));
    }
    router.sent();
    router.wait(130_000);
    assert!(router.engine.is_idle());
}

#[test]
fn cached_data_with_long_names_gives_way_to_pending_interests() {
    let mut router =
        Router::with(EngineConfig { pit_memory_bytes: 128 << 10, pit_capacity: 10_000, ..EngineConfig::default() });
    router.route("/", PRODUCER, 1);
    let long = |number: u32| format!("/{}/{number}", "x".repeat(300));
    for number in 0..3_000 {
        router.recv(CONSUMER, interest(&long(number)).nonce(number)).recv(PRODUCER, data(&long(number)));
    }
    let lines = router.sent();
    assert_eq!(lines.len(), 6_000);
    assert!(router.cs_len() > 100);
    assert_eq!(router.all_drops(), 0);
}

#[test]
fn a_pit_without_memory_refuses_long_names_only() {
    let mut router = Router::with(EngineConfig { pit_memory_bytes: 0, ..EngineConfig::default() });
    router.route("/", PRODUCER, 1);
    let long = format!("/{}", "x".repeat(200));
    router.recv(CONSUMER, interest(&long).packet().token(&[1]));
    assert!(router.only().line().contains("Congestion"));
    assert_eq!(router.drops(DropReason::PitFull), 1);
    router.recv(CONSUMER, interest("/A")).expect(&["I300 /A n1"]);
    router.recv(CONSUMER, interest("/A").hint("/x"));
    assert!(router.only().line().contains("Congestion"));
}

#[test]
fn names_have_a_longest_length() {
    let mut router = Router::with(EngineConfig { max_name_bytes: 300, ..EngineConfig::default() });
    router.route("/", PRODUCER, 1);
    // TYPE, and a LENGTH of one byte up to 252, of three bytes above.
    let name = |bytes: usize| format!("/{}/{}", "x".repeat(252), "y".repeat(bytes - 254 - 2));
    router.recv(CONSUMER, interest(&name(300)).nonce(1));
    assert_eq!(router.sent().len(), 1);
    router.recv(CONSUMER, interest(&name(301)).nonce(2)).expect(&[]);
    router.recv(PRODUCER, data(&name(301))).expect(&[]);
    router.recv(PRODUCER, interest(&name(301)).nonce(2).packet().nack(NackReason::NO_ROUTE)).expect(&[]);
    assert_eq!((router.drops(DropReason::NameTooLong), router.pit_len()), (3, 1));
    router.recv(PRODUCER, data(&name(300)));
    assert_eq!(router.sent().len(), 1);
}

/// State vectors of large synchronisation groups, for example.
#[test]
fn names_as_long_as_packets_pass_by_default() {
    for bytes in [2_264, 4_000, 8_700] {
        let mut router = Router::with_default_route();
        let long = format!("/group/{}", "x".repeat(bytes));
        router.recv(CONSUMER, interest(&long).nonce(1)).recv(CONSUMER2, interest(&long).nonce(2));
        let token = router.only().token();
        router.recv(PRODUCER, interest(&long).nonce(1).packet().nack(NackReason::DUPLICATE).token(&token));
        assert_eq!(router.only().face, PRODUCER, "the Interest of the other consumer must be sent");
        router.recv(PRODUCER, data(&long));
        assert_eq!((router.sent().len(), router.all_drops()), (2, 0), "{bytes}");
        router.recv(CONSUMER, interest(&long).nonce(3));
        assert_eq!(router.only().kind, PacketKind::Data, "{bytes}: the cache must answer");
    }
}

#[test]
fn a_flood_of_the_longest_names_stays_within_the_allowance_and_is_reported() {
    let mut router = Router::with_default_route();
    let config = EngineConfig::default();
    let long = |number: u32| format!("/{number:04}/{}", "x".repeat(8_700));
    let mut passed = 0;
    for millisecond in 0..1_000 {
        for packet in 0..5 {
            let number = millisecond * 5 + packet;
            router.recv(CONSUMER, interest(&long(number)).nonce(number).lifetime(100));
        }
        router.recv(CONSUMER2, interest(&format!("/short/{millisecond}")).nonce(millisecond).lifetime(100));
        passed += router.sent_unchecked().iter().filter(|packet| packet.bytes.len() > 8_000).count() as u64;
        router.wait(1);
    }
    let most = config.long_name_bytes_per_s * 11 / 10 / (8_700 - 256);
    assert!((most * 8 / 10..=most).contains(&passed), "{passed} of at most {most}");
    assert_eq!(router.drops(DropReason::TooManyLongNames), 5_000 - passed);
    let reports: Vec<EngineEvent> = router.engine.take_events().into_iter().collect();
    let face = FaceId(CONSUMER);
    assert_eq!(
        reports,
        [EngineEvent::LimitReached { reason: DropReason::TooManyLongNames, face }],
        "the limit must be reported once a minute"
    );
    // The deepest of the longest names is within the share of a face, for any number of faces.
    let deepest = format!("{}/{}", "/x".repeat(62), "y".repeat(8_500));
    router.wait(1_000).recv(APP, interest(&deepest).nonce(1));
    assert_eq!(router.only().face, PRODUCER);
}

#[test]
fn each_limit_of_names_is_reported_once_a_minute() {
    for (reason, max_name_bytes, long_name_bytes_per_s) in
        [(DropReason::NameTooLong, 299, 100_000), (DropReason::TooManyLongNames, 8_000, 0)]
    {
        let config = EngineConfig { max_name_bytes, long_name_bytes_per_s, ..EngineConfig::default() };
        let mut router = Router::with_default_route_and(config);
        let long = format!("/{}", "x".repeat(300));
        let report = EngineEvent::LimitReached { reason, face: FaceId(CONSUMER) };
        // Seconds since the last packet; whether it is reported.
        for (seconds, is_reported) in [(0, true), (1, false), (58, false), (1, true), (59, false), (1, true)] {
            router.wait(seconds * 1_000).recv(CONSUMER, interest(&long)).recv(CONSUMER, interest(&long)).expect(&[]);
            let reports: Vec<EngineEvent> = router.engine.take_events().into_iter().collect();
            assert_eq!(reports, if is_reported { vec![report.clone()] } else { vec![] }, "{reason}");
        }
    }
}

#[test]
fn many_long_names_are_refused_and_others_pass() {
    // The cap is a tenth of that: enough for 10 names of 1,256 bytes.
    let mut router = Router::with(EngineConfig { long_name_bytes_per_s: 100_000, ..EngineConfig::default() });
    router.route("/", PRODUCER, 1);
    let long = |number: u32| format!("/{}/{number:04}", "x".repeat(1_256 - 4 - 6));
    for number in 0..100 {
        router.recv(CONSUMER, interest(&long(number)).nonce(number));
        router.recv(CONSUMER2, interest(&format!("/short/{number}")).nonce(number));
    }
    let sent = router.sent();
    assert_eq!((sent.len(), router.drops(DropReason::TooManyLongNames)), (110, 90));
    // Answers with their tokens cost nothing more; those without are charged like unsolicited Data.
    let tokens: Vec<_> = (0..20).step_by(2).map(|index| sent[index].token()).collect();
    router.recv(PRODUCER, data(&long(0)));
    assert_eq!((router.sent().len(), router.drops(DropReason::TooManyLongNames)), (0, 91));
    for (number, token) in (0..10).zip(&tokens) {
        router.recv(PRODUCER, data(&long(number)).packet().token(token));
    }
    assert_eq!((router.sent().len(), router.drops(DropReason::TooManyLongNames)), (10, 91));
    router.wait(50);
    for number in 100..200 {
        router.recv(CONSUMER, interest(&long(number)).nonce(number));
    }
    // In this time the allowance has grown by 5 names, and the producer, which sent one too, has half of that.
    assert_eq!((router.sent().len(), router.drops(DropReason::TooManyLongNames)), (2, 189));
    for number in 200..300 {
        router.recv(PRODUCER, interest(&long(number)).nonce(number));
    }
    assert!(router.drops(DropReason::TooManyLongNames) < 189 + 100, "a flood from one face must not affect another");
}

/// An Interest that would be refused for the length of its name is not decoded, so it gets the same reason whether it
/// is valid or not.
#[test]
fn long_names_that_are_refused_are_not_looked_at() {
    let long = interest(&format!("/{}", "x".repeat(300))).nonce(1).packet();
    let mut cut = long.clone();
    // The only component ends behind the name.
    cut.bytes[10] ^= 0xFF;
    for (long_name_bytes_per_s, max_name_bytes, valid, invalid) in [
        (0, 8_000, Some(DropReason::TooManyLongNames), DropReason::TooManyLongNames),
        (100_000, 299, Some(DropReason::NameTooLong), DropReason::NameTooLong),
        (100_000, 8_000, None, DropReason::Malformed),
    ] {
        let config = EngineConfig { long_name_bytes_per_s, max_name_bytes, ..EngineConfig::default() };
        let mut router = Router::with(config);
        router.route("/", PRODUCER, 1);
        router.recv(CONSUMER, long.clone());
        assert_eq!(router.sent().len(), usize::from(valid.is_none()));
        assert_eq!(valid.map(|reason| router.drops(reason)), valid.map(|_| 1));
        let before = router.drops(invalid);
        router.recv(CONSUMER, cut.clone()).expect(&[]);
        assert_eq!(router.drops(invalid), before + 1, "{invalid:?}");
        assert_eq!(router.engine.counters().in_interests, 2);
    }
}

#[test]
fn running_out_of_buffers_drops_packets_and_recovers() {
    let mut router = Router::new();
    router.strategy("/", "multicast");
    router.route("/", PRODUCER, 1);
    router.route("/", PRODUCER2, 1);
    let mut hoard = Vec::new();
    while let Some(buffer) = router.pool.allocate(1) {
        hoard.push(buffer);
    }
    hoard.pop();
    router.recv(CONSUMER, interest("/A").nonce(1)).expect(&["I300 /A n1"]);
    assert_eq!(router.drops(DropReason::NoBuffer), 1);
    router.recv(CONSUMER2, interest("/A").nonce(2)).expect(&["I301 /A n2"]);
    router.recv(PRODUCER, data("/A"));
    assert_eq!(router.sent().len(), 1, "one of two downstreams");
    assert_eq!(router.drops(DropReason::NoBuffer), 2);
    drop(hoard);
    assert_eq!(router.pool.in_use(), 0);
    router.recv(CONSUMER, interest("/B").nonce(1)).expect(&["I300 /B n1", "I301 /B n1"]);
}

#[test]
fn many_next_hops_are_asked_up_to_a_limit() {
    use namehop_packet::face::{FaceScope, LinkType};
    let mut router = Router::new();
    router.strategy("/", "self-learning");
    for id in 400..700 {
        router.face(id, FaceScope::NonLocal, LinkType::PointToPoint);
    }
    router.recv(APP, interest("/A"));
    let sent = router.sent().len();
    assert_eq!(sent, 253);
    assert_eq!(router.drops(DropReason::TooManyUpstreams), 300 + 6 - 253);
    router.wait(5_000);
    assert!(router.engine.is_idle());
    assert_eq!(router.pool.in_use(), 0);
}
