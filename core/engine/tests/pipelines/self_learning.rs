//! The self-learning strategy and the control plane.

use namehop_engine::EngineEvent;
use namehop_packet::FaceId;
use namehop_wire::lp::NackReason;

use crate::router::*;

fn router() -> Router {
    let mut router = Router::new();
    router.strategy("/", "self-learning");
    router
}

#[test]
fn a_discovery_interest_floods_and_its_announcement_is_reported_and_passed_on() {
    let mut router = router();
    router.recv(CONSUMER, interest("/A/1"));
    let flooded: Vec<u32> = router.sent().iter().map(|packet| packet.face).collect();
    assert_eq!(flooded.len(), 5, "all non-local faces except the ingress must be flooded: {flooded:?}");
    let announcement = data("/A/32=PA/54=%01/50=%00").packet().bytes;
    router.recv(PRODUCER, data("/A/1").packet().announcement(&announcement));
    let answer = router.only();
    assert_eq!(answer.line(), "D256 /A/1");
    assert_eq!(answer.announcement(), Some(&announcement[..]));
    assert_eq!(router.engine.take_events(), [EngineEvent::RouteLearned { face: FaceId(PRODUCER), announcement }]);
    assert_eq!(router.engine.take_events(), []);
}

#[test]
fn an_announcement_is_not_passed_on_by_other_strategies() {
    let mut router = Router::with_default_route();
    router.recv(CONSUMER, interest("/A/1")).sent();
    router.recv(PRODUCER, data("/A/1").packet().announcement(b"x"));
    assert_eq!(router.only().announcement(), None);
    assert_eq!(router.engine.take_events(), []);
}

#[test]
fn data_waits_for_the_announcement_of_a_known_route() {
    // the control plane's reply, if any
    let answers: [Option<Option<&[u8]>>; 3] = [Some(Some(b"announcement")), Some(None), None];
    for answer in answers {
        let mut router = router();
        router.route("/A", PRODUCER, 1);
        router.recv(CONSUMER, interest("/A/1").packet().token(&[9])).expect(&["I300 /A/1 n1 ND"]);
        router.recv(PRODUCER, data("/A/1")).expect(&[]);
        let events = router.engine.take_events();
        let [EngineEvent::AnnouncementWanted { request, name: wanted }] = &events[..] else { panic!("{events:?}") };
        assert_eq!(*wanted, name("/A/1"));
        assert!(!router.engine.is_idle());
        match answer {
            Some(announcement) => router.announcement_reply(*request, announcement),
            None => {
                router.wait(999).expect(&[]);
                router.wait(1);
            }
        }
        let sent = router.only();
        assert_eq!(sent.line(), "D256 /A/1 t:09");
        assert_eq!(sent.announcement(), answer.flatten());
        router.announcement_reply(*request, Some(b"too late"));
        router.wait(5_000).expect(&[]);
        assert!(router.engine.is_idle());
    }
}

#[test]
fn no_route_from_a_next_hop_is_reported() {
    let mut router = router();
    router.route("/A", PRODUCER, 1);
    router.recv(CONSUMER, interest("/A/1").packet().non_discovery()).sent();
    router.recv(PRODUCER, interest("/A/1").packet().nack(NackReason::NO_ROUTE)).expect(&["N256 /A/1 NoRoute n1"]);
    let face = FaceId(PRODUCER);
    assert_eq!(router.engine.take_events(), [EngineEvent::RouteForgotten { prefix: name("/A"), face }]);
}

#[test]
fn reports_that_nobody_fetches_do_not_pile_up() {
    let mut router = router();
    for number in 0..2_000 {
        let uri = format!("/A/{number}");
        router.recv(CONSUMER, interest(&uri).nonce(number));
        router.recv(PRODUCER, data(&uri).packet().announcement(b"x"));
    }
    router.sent();
    assert_eq!(router.engine.take_events().len(), 1_024);
    assert_eq!(router.engine.counters().lost_events, 2_000 - 1_024);
}
