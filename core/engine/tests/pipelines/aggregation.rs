//! Aggregation of Interests for the same Data.

use namehop_packet::DropReason;

use crate::router::*;
use crate::strategies::{FORWARDING, Forwarding};

#[test]
fn which_interests_share_a_pit_entry() {
    // rule; second Interest; whether it is sent on by itself
    let rows = [
        ("same name and selectors", interest("/A"), false),
        ("another name", interest("/A/B"), true),
        ("CanBePrefix is part of the key", interest("/A").prefix(), true),
        ("MustBeFresh is part of the key", interest("/A").fresh(), true),
        ("both", interest("/A").prefix().fresh(), true),
        ("HopLimit and lifetime are not part of the key", interest("/A").hop_limit(7).lifetime(10), false),
        ("the forwarding hint is part of the key", interest("/A").hint("/elsewhere"), true),
    ];
    for (rule, second, separate) in rows {
        let mut router = Router::with_default_route();
        router.recv(CONSUMER, interest("/A")).expect(&["I300 /A n1"]);
        router.recv(CONSUMER2, second.nonce(2));
        assert_eq!(router.sent().len(), usize::from(separate), "{rule}");
        assert_eq!(router.pit_len(), 1 + usize::from(separate), "{rule}");
    }
}

#[test]
fn every_downstream_gets_the_data_once() {
    let mut router = Router::with_default_route();
    router.recv(CONSUMER, interest("/A").nonce(1));
    router.recv(CONSUMER2, interest("/A").nonce(2));
    router.recv(APP, interest("/A").nonce(3));
    router.recv(CONSUMER, interest("/A").nonce(4));
    router.expect(&["I300 /A n1"]);
    router.recv(PRODUCER, data("/A")).expect(&["D256 /A", "D257 /A", "D260 /A"]);
    assert_eq!(router.pit_len(), 0);
    assert_eq!(router.engine.counters().satisfied_interests, 1);
}

#[test]
fn aggregation_skips_the_content_store() {
    let mut router = Router::with_default_route();
    router.recv(CONSUMER, interest("/A")).sent();
    let misses = router.engine.counters().cs_misses;
    router.recv(CONSUMER2, interest("/A").nonce(2)).expect(&[]);
    assert_eq!(router.engine.counters().cs_misses, misses);
    assert_eq!(router.engine.counters().aggregated_interests, 1);
}

#[test]
fn a_downstream_whose_interest_has_expired_gets_nothing() {
    let mut router = Router::with_default_route();
    router.recv(CONSUMER, interest("/A").nonce(1).lifetime(100));
    router.recv(CONSUMER2, interest("/A").nonce(2).lifetime(1_000)).sent();
    router.wait(500).expect(&["I300 /A n2"]);
    router.recv(PRODUCER, data("/A")).expect(&["D257 /A"]);
}

#[test]
fn the_upstream_gets_its_own_data_back_only_on_an_ad_hoc_link() {
    for (face, expected) in [(PRODUCER, vec![]), (MULTI, vec![]), (ADHOC, vec!["D271 /A"])] {
        let mut router = Router::new();
        router.route("/", face, 1);
        router.route("/", PRODUCER2, 2);
        router.recv(CONSUMER, interest("/A")).sent();
        router.recv(face, interest("/A").nonce(2)).sent();
        router.recv(face, data("/A"));
        let mut all = vec!["D256 /A"];
        all.extend(expected);
        router.expect(&all);
    }
}

#[test]
fn an_ad_hoc_face_may_be_next_hop_of_its_own_interest() {
    let mut router = Router::new();
    router.route("/", ADHOC, 1);
    router.recv(ADHOC, interest("/A")).expect(&["I271 /A n1"]);
    let mut router = Router::new();
    router.route("/", MULTI, 1);
    router.recv(MULTI, interest("/A")).expect(&[]);
}

#[test]
fn many_downstreams_are_served_up_to_a_limit() {
    use namehop_packet::face::{FaceScope, LinkType};
    let mut router = Router::with_default_route();
    for id in 400..2_500 {
        router.face(id, FaceScope::NonLocal, LinkType::PointToPoint);
        let token = if id % 2 == 0 { vec![id as u8; 20] } else { vec![id as u8; 3] };
        router.recv(id, interest("/A").nonce(id).packet().token(&token));
    }
    let sent = router.lines();
    assert_eq!(sent.iter().filter(|line| line.starts_with('I')).count(), 1);
    let refused = sent.iter().filter(|line| line.contains("Congestion")).count();
    assert_eq!(refused as u64, router.drops(DropReason::TooManyDownstreams));
    assert_eq!(refused, 2_100 - 2_045);
    router.recv(PRODUCER, data("/A"));
    let served = router.sent();
    assert_eq!(served.len(), 2_045);
    for packet in served {
        let expected = if packet.face % 2 == 0 { vec![packet.face as u8; 20] } else { vec![packet.face as u8; 3] };
        assert_eq!(packet.token(), expected);
    }
}

#[test]
fn an_aggregated_interest_that_lives_longer_is_sent_again() {
    for Forwarding { name, instance, wait_ms } in FORWARDING.iter() {
        // The second one plain, with a forwarding hint, and with parameters: these packets are stored whole.
        let make = |nonce, lifetime_ms: u64| {
            let plain = interest("/A").nonce(nonce).lifetime(lifetime_ms);
            [plain.clone(), plain.clone().hint("/h"), plain.parameters(b"hello")]
        };
        for (first, second) in make(1, 300).into_iter().zip(make(2, 4_000)) {
            let mut router = Router::with_default_route();
            router.choose("/", instance.clone());
            router.recv(CONSUMER, first.clone()).wait(*wait_ms).recv(CONSUMER2, second);
            assert_eq!(router.sent().len(), 1, "{name}");
            router.wait(500);
            let again = router.only();
            let sent = namehop_wire::Interest::decode(&again.bytes).expect("an Interest");
            assert_eq!((again.face, sent.nonce), (PRODUCER, Some(2)), "{name}");
            // With the lifetime of the remaining downstream.
            assert!(sent.lifetime_ms.is_some_and(|lifetime_ms| (3_500..=3_750).contains(&lifetime_ms)), "{name}");
            router.wait(3_000).expect(&[]);
            let data_name = sent.name.to_string();
            router.recv_unannounced(PRODUCER, data(&data_name)).expect(&[&format!("D257 {data_name}")]);
            assert_eq!(router.pit_len(), 0, "{name}");
        }
    }
}

/// An upstream keeps the lifetime of the last Interest; it has forgotten an earlier, longer one.
#[test]
fn an_interest_that_outlives_a_shorter_retransmission_is_sent_again() {
    let mut router = Router::with_default_route();
    router.recv(CONSUMER, interest("/A").nonce(1).lifetime(4_000)).expect(&["I300 /A n1"]);
    router.wait(100).recv(CONSUMER2, interest("/A").nonce(2).lifetime(300)).expect(&["I300 /A n2"]);
    let again = router.wait(400).only();
    assert_eq!((again.face, again.kind), (PRODUCER, namehop_packet::PacketKind::Interest));
    router.wait(3_000).expect(&[]);
    router.recv(PRODUCER, data("/A")).expect(&["D256 /A"]);
}

#[test]
fn each_interest_is_sent_again_at_most_once() {
    let mut router = Router::with_default_route();
    for (face, nonce, lifetime_ms) in [(CONSUMER, 1, 100), (CONSUMER2, 2, 1_000), (APP, 3, 5_000), (APP2, 4, 700)] {
        router.recv(face, interest("/A").nonce(nonce).lifetime(lifetime_ms));
    }
    router.expect(&["I300 /A n1"]);
    // The longest-lived one is retried on behalf of all.
    router.wait(200);
    assert_eq!(router.sent().len(), 1);
    router.wait(10_000).expect(&[]);
    assert_eq!(router.pit_len(), 0);
}

#[test]
fn interests_that_come_together_are_not_sent_twice() {
    let mut router = Router::with_default_route();
    router.recv(CONSUMER, interest("/A").nonce(1).lifetime(1_000)).wait(8);
    router.recv(CONSUMER2, interest("/A").nonce(2).lifetime(1_000)).expect(&["I300 /A n1"]);
    router.wait(5_000).expect(&[]);
    assert_eq!(router.pit_len(), 0);
}

#[test]
fn an_aggregated_interest_without_a_next_hop_is_answered_when_the_first_has_ended() {
    let mut router = Router::with_default_route();
    router.recv(CONSUMER, interest("/A").nonce(1).lifetime(300)).recv(PRODUCER, interest("/A").nonce(2));
    router.expect(&["I300 /A n1"]);
    router.wait(400).expect(&["N300 /A NoRoute n2"]);
    assert_eq!(router.pit_len(), 0);
}
