//! Eviction of pending Interests when the PIT is full: from faces that hold many.

use namehop_engine::EngineConfig;
use namehop_packet::{DropReason, FaceId, FaceScope, LinkType, PacketKind};

use crate::floods::small_pit;
use crate::router::*;

/// Sends Interests that are never answered, `count` of them from each of `faces` in turn.
fn flood(router: &mut Router, faces: &[u32], count: u32, lifetime_ms: u64) {
    for number in 0..count {
        for &face in faces {
            let nonce = router.engine.counters().in_interests as u32 + 1_000_000;
            router.recv(face, interest(&format!("/flood/{face}/{number}/{nonce}")).nonce(nonce).lifetime(lifetime_ms));
        }
    }
    router.sent();
}

fn ask(router: &mut Router, face: u32, uris: &[String]) {
    for uri in uris {
        let nonce = router.engine.counters().in_interests as u32;
        router.recv(face, interest(uri).nonce(nonce));
    }
    router.sent();
}

/// Receives Data for all of these names, and returns how many `face` gets.
fn answered(router: &mut Router, face: u32, uris: &[String]) -> usize {
    for uri in uris {
        router.recv(PRODUCER, data(uri));
    }
    router.sent().iter().filter(|packet| packet.face == face && packet.kind == PacketKind::Data).count()
}

fn uris(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{prefix}/{number}")).collect()
}

#[test]
fn a_flood_takes_nothing_from_others() {
    let attackers = [CONSUMER, PRODUCER2, MULTI];
    const TEN_DAYS_MS: u64 = 864_000_000;
    // rule; flooding faces; lifetime of each Interest; number of other pending Interests
    let rows: [(&str, &[u32], u64, usize); 4] = [
        ("one face", &attackers[..1], 4_000, 20),
        ("one face with very long lifetimes", &attackers[..1], TEN_DAYS_MS, 20),
        ("several faces", &attackers, 4_000, 10),
        ("several faces with very long lifetimes", &attackers, TEN_DAYS_MS, 10),
    ];
    for (rule, faces, lifetime_ms, held) in rows {
        let mut router = small_pit(100);
        let (first, second) = (uris("/A", held), uris("/B", held));
        ask(&mut router, CONSUMER2, &first);
        flood(&mut router, faces, 500, lifetime_ms);
        // Also for Interests that come later.
        ask(&mut router, APP, &second);
        flood(&mut router, faces, 500, lifetime_ms);
        assert_eq!(answered(&mut router, CONSUMER2, &first), held, "{rule}");
        assert_eq!(answered(&mut router, APP, &second), held, "{rule}");
        assert!(router.pit_len() <= 100 && router.drops(DropReason::PitEvicted) > 800, "{rule}");
        let evicted_of =
            |face: &u32| router.engine.face_drops(FaceId(*face)).map_or(0, |drops| drops[DropReason::PitEvicted]);
        assert_eq!(faces.iter().map(evicted_of).sum::<u64>(), router.drops(DropReason::PitEvicted), "{rule}");
    }
}

#[test]
fn faces_with_little_do_not_make_a_share_smaller() {
    let mut router = small_pit(200);
    for id in 400..460 {
        router.face(id, FaceScope::NonLocal, LinkType::PointToPoint);
        ask(&mut router, id, &uris(&format!("/{id}"), 1));
    }
    let wanted = uris("/A", 20);
    ask(&mut router, CONSUMER2, &wanted);
    flood(&mut router, &[CONSUMER], 2_000, 4_000);
    assert_eq!(answered(&mut router, CONSUMER2, &wanted), 20);
    for id in 400..460 {
        assert_eq!(answered(&mut router, id, &uris(&format!("/{id}"), 1)), 1);
    }
}

#[test]
fn who_joins_interests_of_others_does_not_make_them_his() {
    let mut router = small_pit(100);
    let wanted = uris("/A", 20);
    ask(&mut router, CONSUMER2, &wanted);
    ask(&mut router, CONSUMER, &wanted);
    flood(&mut router, &[CONSUMER], 500, 4_000);
    assert_eq!(answered(&mut router, CONSUMER2, &wanted), 20);
}

#[test]
fn what_others_have_joined_is_not_given_up_with_the_flood() {
    let mut router = small_pit(100);
    // The attacker knows what others will request.
    let wanted = uris("/A", 20);
    ask(&mut router, CONSUMER, &wanted);
    ask(&mut router, CONSUMER2, &wanted);
    flood(&mut router, &[CONSUMER], 500, 4_000);
    assert_eq!(answered(&mut router, CONSUMER2, &wanted), 20);
}

#[test]
fn what_a_removed_face_holds_is_given_up_first() {
    let mut router = small_pit(100);
    // Older than the Interests of the removed faces.
    let wanted = uris("/A", 20);
    ask(&mut router, CONSUMER2, &wanted);
    for id in 400..410 {
        router.face(id, FaceScope::NonLocal, LinkType::PointToPoint);
        ask(&mut router, id, &uris(&format!("/{id}"), 8));
        router.engine.remove_face(FaceId(id));
    }
    flood(&mut router, &[CONSUMER], 80, 4_000);
    assert_eq!(answered(&mut router, CONSUMER2, &wanted), 20, "Interests of removed faces must be evicted first");
}

/// Unsolicited remote peers can open many faces. None of them holds much.
#[test]
fn a_flood_of_many_unsolicited_peers_takes_nothing_from_neighbours_that_hold_much() {
    const UNSOLICITED: u32 = 400;
    let mut router = small_pit(4_000);
    for id in 1_000..1_000 + UNSOLICITED {
        router.face(id, FaceScope::NonLocal, LinkType::PointToPoint);
        router.engine.set_unsolicited(FaceId(id), true);
    }
    let (mut pending, mut number, mut lost) = (std::collections::VecDeque::new(), 0, 0);
    for millisecond in 0..500_u32 {
        router.now = router.now.plus_ms(1);
        for _ in 0..100 {
            number += 1;
            let face = 1_000 + number % UNSOLICITED;
            router.recv(face, interest(&format!("/flood/{number}")).nonce(number).lifetime(864_000_000));
        }
        // A thousand are pending at a time.
        let wanted = uris(&format!("/A/{millisecond}"), 5);
        for uri in &wanted {
            router.recv(CONSUMER2, interest(uri).nonce(number + 1_000_000_000));
        }
        router.sent_unchecked();
        pending.push_back(wanted);
        if pending.len() > 200 {
            for uri in &pending.pop_front().expect("pending names") {
                router.recv(PRODUCER, data(uri));
            }
            lost += 5 - router.sent_unchecked().len();
        }
    }
    assert_eq!(lost, 0);
    router.engine.check_invariants().expect("invariants");
    // A peer that is made permanent counts as configured, and evicts Interests of unsolicited ones.
    let wanted = uris("/B", 1_000);
    router.engine.set_unsolicited(FaceId(1_000), false);
    ask(&mut router, 1_000, &wanted);
    flood(&mut router, &[1_001, 1_002], 2_000, 4_000);
    assert_eq!(answered(&mut router, 1_000, &wanted), 1_000);
    router.engine.check_invariants().expect("invariants");
}

#[test]
fn unsolicited_peers_keep_half_of_a_full_pit() {
    let mut router = small_pit(100);
    router.engine.set_unsolicited(FaceId(CONSUMER2), true);
    let wanted = uris("/A", 40);
    ask(&mut router, CONSUMER2, &wanted);
    flood(&mut router, &[CONSUMER, APP], 500, 4_000);
    assert_eq!(answered(&mut router, CONSUMER2, &wanted), 40);
}

/// As many Interests as a fast link carries, while Interests of others wait for their answers.
#[test]
fn exchanges_stay_whole_in_a_flood_of_100_000_interests_a_second() {
    let mut router = small_pit(8_192);
    let mut lost = 0;
    let (mut pending, mut number) = (std::collections::VecDeque::new(), 0);
    for millisecond in 0..1_000_u32 {
        router.now = router.now.plus_ms(1);
        for _ in 0..100 {
            number += 1;
            router.recv(CONSUMER, interest(&format!("/flood/{number}")).nonce(number).lifetime(864_000_000));
        }
        let wanted = uris(&format!("/A/{millisecond}"), 2);
        for uri in &wanted {
            router.recv(CONSUMER2, interest(uri).nonce(number + 1_000_000_000));
        }
        router.sent_unchecked();
        pending.push_back(wanted);
        if pending.len() > 300 {
            let due = pending.pop_front().expect("pending names");
            for uri in &due {
                router.recv(PRODUCER, data(uri));
            }
            lost += 2 - router.sent_unchecked().len();
        }
    }
    assert_eq!(lost, 0);
    router.engine.check_invariants().expect("invariants");
}

/// The memory for records outside PIT entries is limited too: here 506 of 1,000 entries can have such records.
#[test]
fn records_and_memory_are_not_kept_from_others() {
    const LONG: u64 = 864_000_000;
    let asked = |number: u32| interest(&format!("/evil/{number}")).lifetime(LONG).nonce(number);
    // The Interests that an attacker with two faces has pending for 600 names, before another consumer's Interests.
    type Attack = fn(&mut Router, InterestMaker);
    let rows: [(&str, Attack); 4] = [
        ("more selectors", |router, asked| {
            router.recv(CONSUMER, asked.clone()).recv(CONSUMER, asked.fresh());
        }),
        ("more downstreams", |router, asked| {
            router.recv(CONSUMER, asked.clone()).recv(PRODUCER2, asked.nonce(1_000_000));
        }),
        ("more upstreams", |router, asked| {
            router.recv(CONSUMER, asked);
        }),
        ("long tokens", |router, asked| {
            router.recv(CONSUMER, asked.clone().packet().token(&[1; 20]));
            router.recv(PRODUCER2, asked.nonce(1_000_000).packet().token(&[1; 20]));
        }),
    ];
    for (rule, attack) in rows {
        let mut router = small_pit(1_000);
        router.strategy("/", "multicast");
        router.route("/", ADHOC, 2);
        for number in 0..600 {
            attack(&mut router, asked(number));
        }
        router.sent();
        let before = router.all_drops();
        router.recv(CONSUMER2, interest("/A").nonce(1).packet().token(&[7; 30]));
        router.expect(&["I271 /A n1", "I300 /A n1"]);
        router.recv(CONSUMER2, interest("/A").fresh().nonce(2)).expect(&["I271 /A MBF n2", "I300 /A MBF n2"]);
        router.recv(APP, interest("/A").nonce(3).packet().token(&[9; 30])).expect(&[]);
        assert_eq!(router.all_drops(), before, "{rule}");
        router.recv(PRODUCER, data("/A"));
        assert_eq!(router.sent().len(), 2, "{rule}");
    }
}

#[test]
fn large_interests_do_not_drive_out_those_of_others() {
    let config = EngineConfig { pit_memory_bytes: 1 << 20, pit_capacity: 10_000, ..EngineConfig::default() };
    let mut router = Router::with(config);
    router.route("/", PRODUCER, 1);
    // Too long for their entries.
    let wanted = uris(&format!("/{}", "x".repeat(100)), 20);
    ask(&mut router, CONSUMER2, &wanted);
    for number in 0..2_000 {
        router.recv(CONSUMER, interest("/evil").parameters(&[number as u8; 4_000]).nonce(number));
        router.recv(CONSUMER, interest(&format!("/evil/{number}")).parameters(&[1; 400]).nonce(number));
    }
    assert!(router.drops(DropReason::PitEvicted) > 1_000);
    router.sent();
    assert_eq!(answered(&mut router, CONSUMER2, &wanted), 20);
}
