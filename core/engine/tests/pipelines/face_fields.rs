//! Link-layer headers: NextHopFaceId, IncomingFaceId, CongestionMark; and adding and removing faces.

use namehop_packet::{DropReason, FaceId, FaceScope, LinkType};
use namehop_wire::lp::NackReason;

use crate::router::*;

#[test]
fn next_hop_face_id_overrides_fib_and_strategy() {
    let mut router = Router::with_default_route();
    router.recv(APP, interest("/A").packet().next_hop(u64::from(PRODUCER2))).expect(&["I301 /A n1"]);
    router.recv(PRODUCER2, data("/A")).expect(&["D260 /A"]);
}

#[test]
fn a_next_hop_face_that_does_not_exist_gets_nothing() {
    let mut router = Router::with_default_route();
    for (number, next_hop) in [999, u64::from(u32::MAX) + 257, u64::MAX, 0].into_iter().enumerate() {
        let asked = interest("/A").nonce(number as u32).lifetime(100);
        router.recv(APP, asked.packet().next_hop(next_hop)).expect(&[]);
        assert_eq!(router.drops(DropReason::NoSuchNextHop), number as u64 + 1);
        assert_eq!(router.pit_len(), 1, "the PIT entry must stay until it expires");
        router.wait(200);
        assert_eq!(router.pit_len(), 0);
    }
}

#[test]
fn the_null_face_swallows_interests() {
    let mut router = Router::new();
    router.route("/", FaceId::NULL.0, 1);
    router.recv(CONSUMER, interest("/A").lifetime(100)).expect(&[]);
    assert_eq!(router.pit_len(), 1);
    router.wait(102);
    assert_eq!((router.pit_len(), router.all_drops()), (0, 0));
    // The field may be combined with other next hops.
    router.strategy("/", "multicast");
    router.route("/", PRODUCER, 5);
    router.recv(CONSUMER, interest("/B")).expect(&["I300 /B n1"]);
}

#[test]
fn incoming_face_id_says_where_a_packet_came_from() {
    let mut router = Router::with_default_route();
    let from = |sent: Sent| sent.fields.incoming_face_id.map(|id| id.0);
    router.recv(CONSUMER, interest("/A"));
    assert_eq!(from(router.only()), Some(CONSUMER));
    router.recv(PRODUCER, data("/A"));
    assert_eq!(from(router.only()), Some(PRODUCER));
    router.recv(CONSUMER2, interest("/A"));
    assert_eq!(from(router.only()), Some(254), "Content Store");
    router.recv(CONSUMER, interest("/B")).sent();
    router.recv(PRODUCER, interest("/B").packet().nack(NackReason::NO_ROUTE));
    assert_eq!(from(router.only()), Some(PRODUCER));
}

#[test]
fn congestion_marks_are_passed_on_and_returned() {
    let mut router = Router::with_default_route();
    router.recv(CONSUMER, interest("/A").packet().mark(2)).expect(&["I300 /A n1 m2"]);
    router.recv(CONSUMER2, interest("/A").nonce(2)).expect(&[]);
    router.recv(PRODUCER, data("/A").packet().mark(1)).expect(&["D256 /A m2", "D257 /A m1"]);
    router.recv(CONSUMER, interest("/A").nonce(3).packet().mark(5)).expect(&["D256 /A m5"]);
    router.recv(CONSUMER, interest("/B").packet().mark(1_000)).expect(&["I300 /B n1 m1000"]);
    router.recv(PRODUCER, data("/B").packet().mark(70_000)).expect(&["D256 /B m70000"]);
}

#[test]
fn packets_for_a_face_that_is_gone_are_not_sent() {
    let mut router = Router::with_default_route();
    router.recv(CONSUMER, interest("/A")).recv(CONSUMER2, interest("/A").nonce(2)).sent();
    router.engine.remove_face(FaceId(CONSUMER));
    router.recv(PRODUCER, data("/A")).expect(&["D257 /A"]);
}

#[test]
fn a_new_face_in_the_slot_of_an_old_one_gets_nothing_of_it() {
    let mut router = Router::with_default_route();
    router.recv(CONSUMER, interest("/A")).sent();
    router.face(CONSUMER + 0x1_0000, FaceScope::NonLocal, LinkType::PointToPoint);
    router.recv(PRODUCER, data("/A")).expect(&[]);
    assert_eq!(router.cs_len(), 1);
}

#[test]
fn an_upstream_that_is_gone_is_not_waited_for() {
    let mut router = Router::new();
    router.route("/", PRODUCER, 1);
    router.route("/", PRODUCER2, 2);
    router.recv(CONSUMER, interest("/A").nonce(1)).expect(&["I300 /A n1"]);
    router.recv(CONSUMER, interest("/A").nonce(2)).expect(&[]);
    router.remove_face(PRODUCER).expect(&["I301 /A n2"]);
    router.recv(CONSUMER, interest("/A").nonce(3)).expect(&[]);
    router.recv(PRODUCER2, data("/A")).expect(&["D256 /A"]);
}

#[test]
fn nothing_is_asked_for_on_behalf_of_a_downstream_that_is_gone() {
    let mut router = Router::new();
    router.strategy("/", "multicast");
    router.route("/", PRODUCER, 1);
    router.recv(CONSUMER, interest("/A")).sent();
    router.engine.remove_face(FaceId(CONSUMER));
    router.new_route("/", PRODUCER2, 1);
    router.expect(&[]);
}

#[test]
fn when_all_downstreams_are_gone_the_next_one_is_new() {
    let unsolicited = namehop_engine::UnsolicitedPolicy::AdmitAll;
    let mut router = Router::with_default_route_and(namehop_engine::EngineConfig { unsolicited, ..Default::default() });
    router.recv(CONSUMER, interest("/A")).sent();
    router.engine.remove_face(FaceId(CONSUMER));
    let misses = router.engine.counters().cs_misses;
    router.recv(CONSUMER2, interest("/A").nonce(2)).sent();
    assert_eq!(router.engine.counters().cs_misses, misses + 1, "the Content Store must be looked up");
}

#[test]
fn counters_add_up() {
    let mut router = Router::with_default_route();
    router.recv(CONSUMER, interest("/A")).recv(PRODUCER, data("/A")).recv(CONSUMER2, interest("/A"));
    router.recv(CONSUMER, interest("/B")).recv(PRODUCER, interest("/B").packet().nack(NackReason::NO_ROUTE));
    let counters = *router.engine.counters();
    assert_eq!((counters.in_interests, counters.in_data, counters.in_nacks), (3, 1, 1));
    assert_eq!((counters.out_interests, counters.out_data, counters.out_nacks), (2, 2, 1));
    assert_eq!((counters.satisfied_interests, counters.unsatisfied_interests), (2, 1));
    assert_eq!(counters.drops.total(), 0);
}
