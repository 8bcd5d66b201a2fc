//! Aggregation of Interests for the same Data.

use namehop_packet::DropReason;

use crate::router::*;

#[test]
fn which_interests_share_a_pit_entry() {
    // rule; second Interest; is it sent on by itself
    let rows = [
        ("same name and selectors", interest("/A"), false),
        ("another name", interest("/A/B"), true),
        ("CanBePrefix is part of the key", interest("/A").prefix(), true),
        ("MustBeFresh is part of the key", interest("/A").fresh(), true),
        ("both", interest("/A").prefix().fresh(), true),
        ("HopLimit and lifetime are not", interest("/A").hop_limit(7).lifetime(10), false),
        ("the forwarding hint is", interest("/A").hint("/elsewhere"), true),
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
    router.wait(500).recv(PRODUCER, data("/A")).expect(&["D257 /A"]);
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
