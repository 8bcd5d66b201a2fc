//! Network Nacks (NDNLPv2 "Network Nack").

use namehop_packet::DropReason;
use namehop_wire::lp::NackReason;

use crate::router::*;
use crate::strategies::{FORWARDING, Forwarding};

fn nack(uri: &str, nonce: u32, reason: NackReason) -> Packet {
    interest(uri).nonce(nonce).packet().nack(reason)
}

#[test]
fn no_next_hop_is_answered_with_no_route() {
    // rule; from; sent
    let rows: [(&str, u32, &[&str]); 3] = [
        ("point-to-point", CONSUMER, &["N256 /A NoRoute n1"]),
        ("multi-access gets no Nack", MULTI, &[]),
        ("ad hoc gets no Nack", ADHOC, &[]),
    ];
    for (rule, from, expected) in rows {
        let mut router = Router::new();
        router.recv(from, interest("/A"));
        assert_eq!(router.lines(), expected, "{rule}");
        assert_eq!(router.pit_len(), 0, "{rule}");
        assert_eq!(router.engine.counters().unsatisfied_interests, 1, "{rule}");
    }
}

#[test]
fn which_nacks_are_dropped() {
    // rule; from; the Nack; reason
    let rows = [
        ("no PIT entry with this name", PRODUCER, nack("/B", 1, NackReason::NO_ROUTE), DropReason::UnmatchedNack),
        ("another nonce was sent", PRODUCER, nack("/A", 2, NackReason::NO_ROUTE), DropReason::UnmatchedNack),
        ("the face has no out-record", PRODUCER2, nack("/A", 1, NackReason::NO_ROUTE), DropReason::UnmatchedNack),
        (
            "other selectors",
            PRODUCER,
            interest("/A").prefix().packet().nack(NackReason::NONE),
            DropReason::UnmatchedNack,
        ),
        ("not point-to-point", MULTI, nack("/A", 1, NackReason::NO_ROUTE), DropReason::NackNotPointToPoint),
        ("a Nack of Data", PRODUCER, data("/A").packet().nack(NackReason::NO_ROUTE), DropReason::Malformed),
    ];
    for (rule, from, packet, reason) in rows {
        let mut router = Router::with_default_route();
        router.recv(CONSUMER, interest("/A")).sent();
        router.recv(from, packet);
        assert!(router.lines().is_empty(), "{rule}");
        assert_eq!((router.drops(reason), router.all_drops()), (1, 1), "{rule}");
        assert_eq!(router.pit_len(), 1, "{rule}");
    }
}

#[test]
fn a_nack_of_the_only_upstream_goes_to_all_downstreams_with_their_own_interests() {
    let mut router = Router::with_default_route();
    router.recv(CONSUMER, interest("/A").nonce(1).hop_limit(9).lifetime(1_234).packet().token(&[1]));
    router.recv(CONSUMER2, interest("/A").nonce(2)).sent();
    router.recv(MULTI, interest("/A").nonce(3)).expect(&[]);
    router.recv(PRODUCER, nack("/A", 1, NackReason::CONGESTION).mark(3));
    router.expect(&["N256 /A Congestion n1 h9 t:01 m3", "N257 /A Congestion n2 m3"]);
    assert_eq!(router.pit_len(), 0);
    assert_eq!(router.engine.counters().unsatisfied_interests, 1);
}

#[test]
fn the_least_severe_reason_is_passed_on_when_all_upstreams_have_answered() {
    let mut router = Router::new();
    router.strategy("/", "multicast");
    router.route("/", PRODUCER, 1);
    router.route("/", PRODUCER2, 1);
    router.recv(CONSUMER, interest("/A")).expect(&["I300 /A n1", "I301 /A n1"]);
    router.recv(PRODUCER, nack("/A", 1, NackReason::NO_ROUTE)).expect(&[]);
    assert_eq!(router.pit_len(), 1);
    router.recv(PRODUCER2, nack("/A", 1, NackReason::CONGESTION)).expect(&["N256 /A Congestion n1"]);
    assert_eq!(router.pit_len(), 0);
}

/// NFD's multicast and access strategies send no Nack in these cases; access does for loops.
#[test]
fn what_downstreams_learn_by_strategy() {
    // strategy; answer to an Interest without next hop; answer when the only upstream refuses
    let rows: [(&str, &[&str], &[&str]); 5] = [
        ("best-route", &["N256 /A NoRoute n1"], &["N256 /A Congestion n1"]),
        ("random", &["N256 /A NoRoute n1"], &["N256 /A Congestion n1"]),
        ("asf", &["N256 /A NoRoute n1"], &["N256 /A Congestion n1"]),
        ("access", &["N256 /A NoRoute n1"], &["N256 /A Congestion n1"]),
        // A next hop may appear within the lifetime of the Interest.
        ("multicast", &[], &["N256 /A Congestion n1"]),
    ];
    for (strategy, without_next_hop, refused) in rows {
        let mut router = Router::new();
        router.strategy("/", strategy);
        router.recv(CONSUMER, interest("/A"));
        assert_eq!(router.lines(), without_next_hop, "{strategy}");
        assert_eq!(router.pit_len(), usize::from(without_next_hop.is_empty()), "{strategy}");
        let mut router = Router::new();
        router.strategy("/", strategy);
        router.route("/", PRODUCER, 1);
        router.recv(CONSUMER, interest("/A")).expect(&["I300 /A n1"]);
        router.recv(PRODUCER, nack("/A", 1, NackReason::CONGESTION));
        assert_eq!(router.lines(), refused, "{strategy}");
        assert_eq!(router.pit_len(), 0, "{strategy}");
        router.recv(CONSUMER2, interest("/B").nonce(2)).expect(&["I300 /B n2"]);
        router.recv(CONSUMER, interest("/B").nonce(2)).expect(&["N256 /B Duplicate n2"]);
    }
}

#[test]
fn an_upstream_whose_face_is_gone_is_not_waited_for() {
    let mut router = Router::new();
    router.strategy("/", "multicast");
    router.route("/", PRODUCER, 1);
    router.route("/", PRODUCER2, 1);
    router.recv(CONSUMER, interest("/A")).sent();
    router.engine.remove_face(namehop_packet::face::FaceId(PRODUCER2));
    router.recv(PRODUCER, nack("/A", 1, NackReason::NO_ROUTE)).expect(&["N256 /A NoRoute n1"]);
    assert_eq!(router.pit_len(), 0);
}

#[test]
fn data_after_a_nack_of_one_upstream_still_arrives() {
    let mut router = Router::new();
    router.strategy("/", "multicast");
    router.route("/", PRODUCER, 1);
    router.route("/", PRODUCER2, 1);
    router.recv(CONSUMER, interest("/A")).sent();
    router.recv(PRODUCER, nack("/A", 1, NackReason::NO_ROUTE)).recv(PRODUCER2, data("/A")).expect(&["D256 /A"]);
}

#[test]
fn two_nodes_that_wait_for_each_other_are_separated() {
    let mut router = Router::new();
    router.strategy("/", "multicast");
    router.route("/", PRODUCER, 1);
    router.route("/", PRODUCER2, 1);
    router.recv(CONSUMER, interest("/A").nonce(1)).sent();
    router.recv(PRODUCER2, interest("/A").nonce(2)).sent();
    router.recv(PRODUCER, nack("/A", 1, NackReason::NO_ROUTE)).expect(&["N301 /A NoRoute n2"]);
    assert_eq!(router.pit_len(), 1);
}

#[test]
fn a_nack_is_found_by_the_routers_token_and_without() {
    for with_token in [true, false] {
        let mut router = Router::with_default_route();
        router.recv(CONSUMER, interest("/A").hint("/x").nonce(1)).sent();
        router.recv(CONSUMER2, interest("/A").nonce(2));
        let token = router.only().token();
        let mut refused = nack("/A", 2, NackReason::DUPLICATE);
        if with_token {
            refused = refused.token(&token);
        }
        router.recv(PRODUCER, refused).expect(&["N257 /A Duplicate n2"]);
        assert_eq!(router.pit_len(), 1);
    }
}

#[test]
fn a_nack_carries_the_parameters_of_its_interest() {
    let mut router = Router::with_default_route();
    let first = interest("/A").parameters(b"hello").nonce(1).hop_limit(3);
    let second = interest("/A").parameters(b"hello").nonce(2).hop_limit(3);
    router.recv(CONSUMER, first.clone()).recv(CONSUMER2, second.clone()).sent();
    router.recv(PRODUCER, first.packet().nack(NackReason::NO_ROUTE));
    let mut answers = router.sent();
    answers.sort_by_key(|packet| packet.face);
    assert_eq!(answers[0].bytes, first.packet().bytes);
    assert_eq!(answers[1].bytes, second.packet().bytes);
}

#[test]
fn a_nack_says_nothing_about_an_upstream_that_was_asked_again() {
    let mut router = Router::with_default_route();
    router.recv(CONSUMER, interest("/A").nonce(1)).sent();
    router.wait(300).recv(CONSUMER, interest("/A").nonce(2)).expect(&["I300 /A n2"]);
    router.recv(PRODUCER, nack("/A", 1, NackReason::NO_ROUTE)).expect(&[]);
    assert_eq!(router.drops(DropReason::UnmatchedNack), 1);
    router.recv(PRODUCER, data("/A")).expect(&["D256 /A"]);
}

#[test]
fn a_link_that_gives_up_tells_the_strategy() {
    let mut router = Router::new();
    router.strategy("/", "multicast");
    router.route("/", PRODUCER, 1);
    router.recv(CONSUMER, interest("/A"));
    let sent = router.only();
    router.dropped(PRODUCER, &Packet::raw(sent.bytes));
    router.dropped(PRODUCER, &interest("/other").packet());
    router.dropped(PRODUCER, &Packet::raw(vec![1, 2, 3]));
    router.expect(&[]);
    assert_eq!(router.pit_len(), 1);
}

/// A duplicate is one nonce; that upstream has not seen the other consumers' nonces.
#[test]
fn nack_duplicate_for_one_nonce_lets_the_next_consumers_interest_go() {
    for Forwarding { name, instance, wait_ms } in FORWARDING.iter() {
        let mut router = Router::with_default_route();
        router.choose("/", instance.clone());
        router.recv(CONSUMER, interest("/A").nonce(1)).recv(CONSUMER2, interest("/A").nonce(2).hop_limit(9));
        router.wait(*wait_ms);
        assert_eq!(router.unmarked_lines(), ["I300 /A n1"], "{name}");
        router.recv(PRODUCER, nack("/A", 1, NackReason::DUPLICATE));
        assert_eq!(router.unmarked_lines(), ["I300 /A n2 h8"], "{name}");
        // Data answers both of them.
        router.recv_unannounced(PRODUCER, data("/A"));
        assert_eq!(router.lines(), ["D256 /A", "D257 /A"], "{name}");
    }
}

#[test]
fn each_nonce_goes_to_an_upstream_that_calls_it_a_duplicate_once() {
    let mut router = Router::with_default_route();
    for (face, nonce) in [(CONSUMER, 1), (CONSUMER2, 2), (APP, 3)] {
        router.recv(face, interest("/A").nonce(nonce));
    }
    router.expect(&["I300 /A n1"]);
    let mut seen = vec![1];
    for _ in 0..2 {
        let last = *seen.last().expect("a nonce");
        router.recv(PRODUCER, nack("/A", last, NackReason::DUPLICATE));
        let sent = router.only();
        seen.extend((1..=3).filter(|nonce| sent.line() == format!("I300 /A n{nonce}")));
    }
    assert_eq!(seen.iter().copied().collect::<std::collections::BTreeSet<u32>>().len(), 3, "{seen:?}");
    let last = *seen.last().expect("a nonce");
    router.recv(PRODUCER, nack("/A", last, NackReason::DUPLICATE));
    router.expect(&["N256 /A Duplicate n1", "N257 /A Duplicate n2", "N260 /A Duplicate n3"]);
    assert_eq!(router.pit_len(), 0);
}

#[test]
fn each_upstream_that_says_duplicate_gets_the_other_nonce() {
    let mut router = Router::with_default_route();
    router.strategy("/", "multicast");
    router.route("/", PRODUCER2, 1);
    router.recv(CONSUMER, interest("/A").nonce(1)).recv(CONSUMER2, interest("/A").nonce(2)).sent();
    router.recv(PRODUCER, nack("/A", 1, NackReason::DUPLICATE)).expect(&["I300 /A n2"]);
    router.recv(PRODUCER2, nack("/A", 1, NackReason::DUPLICATE)).expect(&["I301 /A n2"]);
}

#[test]
fn which_downstreams_do_not_follow_a_duplicate() {
    // rule; the second downstream and its Interest; milliseconds until the Nack arrives
    let rows = [
        ("the upstream itself", PRODUCER, interest("/A").nonce(2), 0),
        ("no hops left", CONSUMER2, interest("/A").nonce(2).hop_limit(1), 0),
        ("the lifetime has ended", CONSUMER2, interest("/A").nonce(2).lifetime(50), 100),
    ];
    for (rule, face, second, wait_ms) in rows {
        let mut router = Router::with_default_route();
        router.recv(CONSUMER, interest("/A").nonce(1)).recv(face, second).wait(wait_ms).sent();
        router.recv(PRODUCER, nack("/A", 1, NackReason::DUPLICATE));
        let lines = router.lines();
        assert!(lines.contains(&"N256 /A Duplicate n1".to_owned()), "{rule}: {lines:?}");
        assert!(lines.iter().all(|line| line.starts_with('N')), "{rule}: {lines:?}");
    }
}
