//! Packet trace: which packets are traced, and with which steps.

use namehop_engine::EngineEvent;
use namehop_engine::trace::TraceRequest;
use namehop_packet::{FaceScope, LinkType};
use namehop_wire::lp::NackReason;

use crate::router::*;

fn traced(prefix: &str, count: u64) -> Router {
    let mut router = Router::with_default_route();
    router.engine.trace(Some(TraceRequest { prefix: name(prefix), count }));
    router
}

/// Returns what was traced since the last call: a line for each packet, and one for each of its steps.
fn lines(router: &mut Router) -> Vec<String> {
    let mut lines = Vec::new();
    for event in router.engine.take_events() {
        let EngineEvent::Traced(trace) = event else { panic!("{event:?}") };
        lines.push(format!("{} {} from {}", trace.subject.name(), trace.name, trace.face));
        lines.extend(trace.steps.iter().map(|step| format!("{}: {step}", step.stage().name())));
    }
    lines
}

const ROUTE: &str = "fib: / to face(s) 300; strategy /localhost/nfd/strategy/best-route/v=5";

#[test]
fn an_exchange_is_told_step_by_step() {
    let mut router = traced("/A", 10);
    router.recv(CONSUMER, interest("/A/1").prefix()).sent();
    let expected = [
        "interest /A/1 from 256",
        "packet: nonce 00000001, can be prefix",
        "pit: not pending: new entry",
        "cs: miss",
        ROUTE,
        "strategy: after receive Interest",
        "send: Interest to face 300",
    ];
    assert_eq!(lines(&mut router), expected);
    router.recv(PRODUCER, data("/A/1/2")).sent();
    let expected = [
        "data /A/1/2 from 300",
        "packet: fresh for 0 ms",
        "pit: satisfies 1 pending Interest(s), found by name",
        "cs: cached",
        "send: Data to face 256",
    ];
    assert_eq!(lines(&mut router), expected);
    router.recv(CONSUMER, interest("/A/1/2").nonce(2)).sent();
    let expected = [
        "interest /A/1/2 from 256",
        "packet: nonce 00000002",
        "pit: not pending: new entry",
        "cs: hit",
        "send: Data to face 256",
    ];
    assert_eq!(lines(&mut router), expected);
}

#[test]
fn what_is_discarded_says_why() {
    let mut router = traced("/", 10);
    router.recv(PRODUCER, data("/A/1")).expect(&[]);
    let expected =
        ["data /A/1 from 300", "packet: fresh for 0 ms", "pit: matches no pending Interest", "drop: unsolicited-data"];
    assert_eq!(lines(&mut router), expected);
    router.recv(CONSUMER, interest("/A/1")).sent();
    lines(&mut router);
    // The same nonce from another face.
    router.recv(PRODUCER, interest("/A/1")).sent();
    let expected = [
        "interest /A/1 from 300",
        "packet: nonce 00000001",
        "pit: already pending for 1 face(s)",
        "send: Nack to face 300",
        "drop: duplicate-nonce",
    ];
    assert_eq!(lines(&mut router), expected);
}

#[test]
fn a_nack_and_the_end_of_what_it_answers() {
    let mut router = traced("/", 10);
    router.recv(CONSUMER, interest("/A/1")).sent();
    lines(&mut router);
    router.recv(PRODUCER, interest("/A/1").packet().nack(NackReason::NO_ROUTE)).sent();
    let expected = [
        "nack /A/1 from 300",
        "packet: NoRoute",
        "strategy: after receive Nack",
        "send: Nack to face 256",
        "pit: ends unanswered; 0 face(s) had not replied",
        "strategy: before expire pending Interest",
    ];
    assert_eq!(lines(&mut router), expected);
}

#[test]
fn an_interest_whose_time_is_over() {
    let mut router = traced("/A", 10);
    router.recv(CONSUMER, interest("/A/1")).sent();
    router.recv(CONSUMER, interest("/B/1")).sent();
    lines(&mut router);
    router.wait(5_000).sent();
    let expected = [
        "timeout /A/1 from 0",
        "pit: ends unanswered; 1 face(s) had not replied",
        "strategy: before expire pending Interest",
    ];
    assert_eq!(lines(&mut router), expected);
}

#[test]
fn what_a_strategy_does_later_is_told_on_its_own() {
    let mut router = traced("/A", 10);
    router.strategy("/", "delay/v=1/delay~50");
    router.recv(CONSUMER, interest("/A/1")).sent();
    router.recv(CONSUMER, interest("/B/1")).sent();
    assert_eq!(lines(&mut router).last().map(String::as_str), Some("strategy: after receive Interest"));
    router.wait(100).sent();
    let expected =
        ["pending /A/1 from 0", "pit: already pending for 1 face(s)", "strategy: timer", "send: Interest to face 300"];
    assert_eq!(lines(&mut router), expected);
    // A new next hop has no effect with this strategy, but it has with another.
    router.face(310, FaceScope::NonLocal, LinkType::PointToPoint);
    router.new_route("/", 310, 1);
    assert_eq!(lines(&mut router), Vec::<String>::new());
    router.strategy("/", "multicast");
    router.face(311, FaceScope::NonLocal, LinkType::PointToPoint);
    router.new_route("/", 311, 1);
    router.sent();
    let lines = lines(&mut router);
    assert_eq!(lines[..1], ["pending /A/1 from 0"], "{lines:?}");
    assert_eq!(lines[2..], ["strategy: after new next hop", "send: Interest to face 311"], "{lines:?}");
}

#[test]
fn so_many_packets_under_the_prefix_are_traced_and_no_others() {
    let mut router = traced("/A", 2);
    for (nonce, uri) in ["/A", "/B/A", "/AA", "/A/2", "/A/3"].into_iter().enumerate() {
        router.recv(CONSUMER, interest(uri).nonce(1 + nonce as u32)).sent();
    }
    let of: Vec<String> = lines(&mut router).into_iter().filter(|line| line.starts_with("interest")).collect();
    assert_eq!(of, ["interest /A from 256", "interest /A/2 from 256"]);
    // Until the next request; a request can be withdrawn.
    router.engine.trace(Some(TraceRequest { prefix: name("/A"), count: 2 }));
    router.engine.trace(None);
    router.recv(CONSUMER, interest("/A/4")).sent();
    assert_eq!(lines(&mut router), Vec::<String>::new());
}

#[test]
fn commands_are_traced_by_their_own_prefix_only() {
    for (prefix, expected) in [("/", 1), ("/localhost", 1), ("/localhost/nfd", 1), ("/localhop", 0)] {
        let mut router = traced(prefix, 10);
        let uri = if prefix == "/" { "/A" } else { "/localhost/nfd/rib" };
        for uri in ["/localhost/nfd/rib", uri] {
            router.recv(APP, interest(uri).nonce(uri.len() as u32)).sent();
            router.wait(10_000).sent();
        }
        let interests = lines(&mut router).into_iter().filter(|line| line.starts_with("interest")).count();
        assert_eq!(interests.min(1), expected, "{prefix}");
        assert!(prefix != "/" || interests == 1, "only /A");
    }
}

#[test]
fn a_packet_with_very_many_steps_is_cut() {
    let mut router = Router::with_default_route();
    for face in 1_000..1_200 {
        router.face(face, FaceScope::NonLocal, LinkType::PointToPoint);
        router.recv(face, interest("/A/1").nonce(face)).sent();
    }
    router.engine.trace(Some(TraceRequest { prefix: name("/A"), count: 1 }));
    router.recv(PRODUCER, data("/A/1"));
    assert_eq!(router.sent().len(), 200);
    assert_eq!(lines(&mut router).len(), 1 + 100);
}
