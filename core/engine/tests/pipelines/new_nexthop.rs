//! New next hops while Interests are pending: which strategies are notified, and that no step takes long.

use namehop_engine::EngineConfig;
use namehop_engine::fib::NextHop;
use namehop_wire::lp::NackReason;

use crate::router::*;

/// Maximum number of Interests that one step passes to their strategy, and of PIT slots that it examines.
const TOLD_PER_STEP: usize = 256;
const LOOKED_AT_PER_STEP: usize = 4_096;

fn router_with_pending(prefix: &str, count: usize) -> Router {
    let mut router = Router::with(EngineConfig { pit_capacity: 20_000, ..EngineConfig::default() });
    router.strategy("/", "multicast");
    router.route("/", PRODUCER, 1);
    pend(&mut router, prefix, 0..count);
    router
}

fn pend(router: &mut Router, prefix: &str, numbers: std::ops::Range<usize>) {
    for number in numbers {
        router.recv(CONSUMER, interest(&format!("{prefix}/{number}")).nonce(number as u32).lifetime(60_000));
    }
    router.sent();
}

/// Does the next step, and returns the number of packets it sends.
fn step(router: &mut Router) -> usize {
    router.engine.next_deadline().filter(|&deadline| deadline <= router.now).expect("a step is due");
    router.wait_one_step();
    router.sent_unchecked().len()
}

fn has_work_left(router: &Router) -> bool {
    router.engine.next_deadline().is_some_and(|deadline| deadline <= router.now)
}

#[test]
fn nothing_is_to_be_done_when_nothing_is_pending() {
    let mut router = router_with_pending("/A", 0);
    router.new_route("/A", PRODUCER2, 1);
    assert_eq!(router.engine.next_deadline(), None);
    // A later Interest uses the new next hop anyway.
    router.recv(CONSUMER, interest("/A/1")).expect(&["I301 /A/1 n1"]);
}

#[test]
fn many_pending_interests_are_told_in_steps() {
    let count = 3 * TOLD_PER_STEP;
    let mut router = router_with_pending("/A", count);
    router.new_route("/", PRODUCER2, 1);
    let mut told = vec![router.sent().len()];
    while has_work_left(&router) {
        told.push(step(&mut router));
    }
    assert!(told.iter().all(|&told| told <= TOLD_PER_STEP), "{told:?}");
    assert_eq!(told.iter().sum::<usize>(), count);
    router.engine.check_invariants().expect("invariants");
}

#[test]
fn many_pending_interests_that_are_not_concerned_are_looked_at_in_steps() {
    let mut router = router_with_pending("/A", 4 * LOOKED_AT_PER_STEP);
    pend(&mut router, "/B", 0..1);
    router.route("/B", APP, 1);
    router.new_route("/B", PRODUCER2, 1);
    assert_eq!(router.sent().len(), 0);
    // Interests that arrive during the walk are forwarded by the new FIB, and their strategy is not notified again.
    router.recv(CONSUMER, interest("/B/new").nonce(5)).expect(&["I260 /B/new n5", "I301 /B/new n5"]);
    router.recv(PRODUCER2, interest("/B/new").nonce(5).packet().nack(NackReason::NO_ROUTE)).expect(&[]);
    let mut told = 0;
    while has_work_left(&router) {
        told += step(&mut router);
    }
    assert_eq!(told, 1);
}

#[test]
fn the_work_between_two_steps_is_bounded_over_all_new_next_hops() {
    let mut router = router_with_pending("/A", TOLD_PER_STEP);
    for face in [PRODUCER2, APP] {
        router.route("/", face, 1);
    }
    let tell = |router: &mut Router, face| {
        let nexthop = NextHop { face: namehop_packet::face::FaceId(face), cost: 1 };
        router.tell_new_nexthop("/", nexthop);
        router.sent_unchecked().len()
    };
    assert_eq!(tell(&mut router, PRODUCER2), TOLD_PER_STEP);
    assert_eq!(tell(&mut router, APP), 0, "the work of this step must be done already");
    assert_eq!(step(&mut router), TOLD_PER_STEP);
}

#[test]
fn of_too_many_new_next_hops_the_oldest_is_given_up() {
    let mut router = router_with_pending("/A", 5 * LOOKED_AT_PER_STEP / 2);
    pend(&mut router, "/B", 0..1);
    pend(&mut router, "/C", 0..1);
    for number in 0..=64 {
        // The first is for /B, the second for /C; no pending Interest is under the others.
        let prefix = match number {
            0 => "/B".to_owned(),
            1 => "/C".to_owned(),
            _ => format!("/D/{number}"),
        };
        router.new_route(&prefix, PRODUCER2, 1);
    }
    assert_eq!(router.sent().len(), 0);
    let mut lines = Vec::new();
    while has_work_left(&router) {
        router.wait_one_step();
        lines.extend(router.sent_unchecked().iter().map(Sent::line));
    }
    assert_eq!(lines, ["I301 /C/0 n0"]);
}

#[test]
fn a_next_hop_that_is_gone_again_is_not_used() {
    let mut router = router_with_pending("/A", 2 * LOOKED_AT_PER_STEP);
    pend(&mut router, "/B", 0..1);
    router.route("/B", PRODUCER, 1);
    router.new_route("/B", PRODUCER2, 1);
    router.fib.remove_nexthop(name("/B").as_ref(), namehop_packet::face::FaceId(PRODUCER2)).expect("removed");
    while has_work_left(&router) {
        assert_eq!(step(&mut router), 0);
    }
}

#[test]
fn a_longer_hint_or_a_shorter_name_is_looked_at_rightly() {
    let mut router = router_with_pending("/A", 0);
    router.recv(CONSUMER, interest("/A").hint("/h/i/j").nonce(1));
    router.recv(CONSUMER, interest("/h/i").nonce(2)).recv(CONSUMER, interest("/h/ii").nonce(3)).sent();
    router.new_route("/h/i", PRODUCER2, 1);
    router.expect(&["I301 /A hint:/h/i/j n1", "I301 /h/i n2"]);
}
