//! Faces with a link that is down: new Interests avoid them, and pending ones are retried elsewhere.

use namehop_wire::lp::NackReason;

use crate::router::*;
use crate::strategies::{FORWARDING, Forwarding};

/// Returns a router with a strategy of [`FORWARDING`].
fn router(strategy: &str, nexthops: &[u32]) -> Router {
    let strategy = FORWARDING.iter().find(|known| known.name == strategy).expect("a strategy that sends Interests");
    let mut router = Router::new();
    router.choose("/", strategy.instance.clone());
    for (cost, &nexthop) in nexthops.iter().enumerate() {
        router.route("/", nexthop, cost as u64 + 1);
    }
    router
}

#[test]
fn a_next_hop_that_is_down_is_not_used_while_another_is_up() {
    for Forwarding { name, wait_ms, .. } in FORWARDING.iter() {
        let mut router = router(name, &[PRODUCER, PRODUCER2]);
        router.link(PRODUCER, false);
        for number in 1..=20 {
            router.recv(CONSUMER, interest(&format!("/A/{number}")).nonce(number)).wait(*wait_ms);
            assert_eq!(router.unmarked_lines(), [format!("I301 /A/{number} n{number}")], "{name}");
        }
        // It is used again when its link is up again.
        router.link(PRODUCER, true).link(PRODUCER2, false).wait(*wait_ms).sent();
        router.recv(CONSUMER, interest("/B").nonce(30)).wait(*wait_ms);
        assert_eq!(router.unmarked_lines(), ["I300 /B n30"], "{name}");
    }
}

#[test]
fn when_all_next_hops_are_down_the_consumer_hears_so_at_once() {
    for Forwarding { name, .. } in FORWARDING.iter() {
        let mut router = router(name, &[PRODUCER, PRODUCER2]);
        router.link(PRODUCER, false).link(PRODUCER2, false);
        router.recv(CONSUMER, interest("/A"));
        assert_eq!(router.lines(), ["N256 /A NoRoute n1"], "{name}");
        // One router of many must not answer for all.
        router.recv(MULTI, interest("/A").nonce(2));
        assert_eq!((router.lines().len(), router.pit_len()), (0, 0), "{name}");
        // The face that the Interest came from is no next hop, and the other one is down.
        router.link(PRODUCER, true).recv(PRODUCER, interest("/A").nonce(3));
        assert_eq!(router.lines(), ["N300 /A NoRoute n3"], "{name}");
        assert_eq!(router.pit_len(), 0, "{name}");
    }
}

#[test]
fn what_waits_for_a_face_that_goes_down_is_sent_elsewhere() {
    for Forwarding { name, wait_ms, .. } in FORWARDING.iter() {
        for is_removed in [false, true] {
            let mut router = router(name, &[PRODUCER]);
            router
                .recv(CONSUMER, interest("/A").nonce(1))
                .recv(CONSUMER2, interest("/A").nonce(2))
                .wait(*wait_ms)
                .sent();
            router.route("/", PRODUCER2, 9);
            match is_removed {
                true => router.remove_face(PRODUCER),
                false => router.link(PRODUCER, false),
            };
            router.wait(*wait_ms);
            let sent = router.only();
            assert_eq!((sent.face, sent.line().contains(" n1")), (PRODUCER2, false), "{name}: {}", sent.line());
            // Nothing is lost: all consumers get the Data.
            router.recv_unannounced(PRODUCER2, data("/A")).expect(&["D256 /A", "D257 /A"]);
            assert_eq!(router.pit_len(), 0, "{name}");
        }
    }
}

#[test]
fn what_waits_for_the_last_face_that_goes_down_is_answered_with_a_nack() {
    for Forwarding { name, wait_ms, .. } in FORWARDING.iter() {
        let mut router = router(name, &[PRODUCER, PRODUCER2]);
        router.link(PRODUCER2, false);
        for (face, nonce) in [(CONSUMER, 1), (CONSUMER2, 2), (MULTI, 3)] {
            router.recv(face, interest("/A").nonce(nonce));
        }
        router.wait(*wait_ms).sent();
        router.link(PRODUCER, false);
        assert_eq!(router.lines(), ["N256 /A NoRoute n1", "N257 /A NoRoute n2"], "{name}");
        assert_eq!(router.pit_len(), 0, "{name}");
        // Neither late Data nor the restored link has any effect.
        router.link(PRODUCER, true).recv(PRODUCER, data("/A")).expect(&[]);
    }
}

#[test]
fn an_interest_that_waits_to_be_sent_is_answered_when_its_next_hop_goes_down() {
    let mut router = router("delay", &[PRODUCER]);
    router.recv(CONSUMER, interest("/A")).wait(50).link(PRODUCER, false).expect(&[]);
    router.wait(100).expect(&["N256 /A NoRoute n1"]);
    assert_eq!(router.pit_len(), 0);
}

#[test]
fn while_another_upstream_may_answer_it_is_waited_for() {
    let mut router = router("multicast", &[PRODUCER, PRODUCER2]);
    router.recv(CONSUMER, interest("/A")).sent();
    router.link(PRODUCER, false).expect(&[]);
    // A face that went down counts as a Nack.
    let refused = interest("/A").packet().nack(NackReason::CONGESTION);
    router.recv(PRODUCER2, refused).expect(&["N256 /A Congestion n1"]);
    assert_eq!(router.pit_len(), 0);
}

#[test]
fn an_interest_is_not_sent_again_to_an_upstream_that_has_refused_it() {
    let mut router = router("multicast", &[PRODUCER, PRODUCER2]);
    router.recv(CONSUMER, interest("/A")).sent();
    router.recv(PRODUCER2, interest("/A").packet().nack(NackReason::CONGESTION)).expect(&[]);
    router.link(PRODUCER, false).expect(&["N256 /A Congestion n1"]);
    assert_eq!(router.pit_len(), 0);
}

#[test]
fn data_from_a_face_that_went_down_meanwhile_is_still_taken() {
    let mut router = router("multicast", &[PRODUCER, PRODUCER2]);
    router.recv(CONSUMER, interest("/A")).sent();
    router.link(PRODUCER, false).recv(PRODUCER, data("/A")).expect(&["D256 /A"]);
}

#[test]
fn a_chosen_next_hop_that_is_down_is_answered_with_no_route() {
    let mut router = router("best-route", &[PRODUCER2]);
    router.link(PRODUCER, false);
    router.recv(APP, interest("/A").packet().next_hop(PRODUCER.into())).expect(&["N260 /A NoRoute n1"]);
    assert_eq!(router.pit_len(), 0);
}

#[test]
fn links_that_flap_neither_lose_nor_multiply_interests() {
    let mut router = router("best-route", &[PRODUCER, PRODUCER2]);
    router.recv(CONSUMER, interest("/A")).expect(&["I300 /A n1"]);
    let mut sent = Vec::new();
    for _ in 0..10 {
        router.link(PRODUCER, false).link(PRODUCER2, false).link(PRODUCER, true).link(PRODUCER2, true);
        sent.extend(router.sent());
    }
    // To the other one, and then the consumer gets a Nack.
    assert_eq!(sent.iter().map(|packet| packet.face).collect::<Vec<_>>(), [PRODUCER2, CONSUMER]);
    assert_eq!(router.pit_len(), 0);
}

#[test]
fn many_pending_interests_leave_a_face_in_steps() {
    let mut router = router("best-route", &[PRODUCER, PRODUCER2]);
    let count = 1_000;
    for number in 0..count {
        router.recv(CONSUMER, interest(&format!("/A/{number}")).nonce(number as u32)).sent_unchecked();
    }
    router.engine.set_face(namehop_packet::FaceInfo {
        id: namehop_packet::FaceId(PRODUCER),
        scope: namehop_packet::FaceScope::NonLocal,
        link_type: namehop_packet::LinkType::PointToPoint,
        is_up: false,
    });
    let mut steps = Vec::new();
    while router.engine.next_deadline().is_some_and(|deadline| deadline <= router.now) {
        router.wait_one_step();
        steps.push(router.sent_unchecked().len());
    }
    assert_eq!((steps.iter().sum::<usize>(), steps.iter().max()), (count, Some(&256)), "{steps:?}");
}
