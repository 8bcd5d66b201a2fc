//! Forwarding hints: which delegation is chosen, and where a hint is removed.

use namehop_engine::EngineConfig;
use namehop_packet::DropReason;

use crate::router::*;

#[test]
fn the_first_delegation_with_a_route_is_used() {
    let mut router = Router::new();
    router.route("/isp1", PRODUCER, 1);
    router.route("/isp2", PRODUCER2, 1);
    router.route("/A", APP, 1);
    let asked = |nonce: u32| interest("/A").nonce(nonce);
    router.recv(CONSUMER, asked(1)).expect(&["I260 /A n1"]);
    router.recv(CONSUMER, asked(2).hint("/isp1")).expect(&["I300 /A hint:/isp1 n2"]);
    router.recv(CONSUMER, asked(3).hint("/isp2").hint("/isp1")).expect(&["I301 /A hint:/isp2 hint:/isp1 n3"]);
    router.recv(CONSUMER, asked(4).hint("/nowhere").hint("/isp1/x")).expect(&["I300 /A hint:/nowhere hint:/isp1/x n4"]);
    router.recv(CONSUMER, asked(5).hint("/nowhere")).expect(&["N256 /A NoRoute hint:/nowhere n5"]);
}

#[test]
fn a_default_route_serves_every_hint() {
    let mut router = Router::with_default_route();
    router.recv(CONSUMER, interest("/A").hint("/nowhere")).expect(&["I300 /A hint:/nowhere n1"]);
}

#[test]
fn the_strategy_is_chosen_by_name_not_by_hint() {
    let mut router = Router::new();
    router.route("/isp", PRODUCER, 1);
    router.route("/isp", PRODUCER2, 2);
    router.strategy("/A", "multicast");
    router.recv(CONSUMER, interest("/A").hint("/isp")).expect(&["I300 /A hint:/isp n1", "I301 /A hint:/isp n1"]);
    router.recv(CONSUMER, interest("/B").hint("/isp")).expect(&["I300 /B hint:/isp n1"]);
}

#[test]
fn the_hint_is_removed_in_the_region_it_names() {
    let regions = vec![name("/isp1/router7"), name("/campus")];
    let mut router = Router::with(EngineConfig { producer_regions: regions, ..EngineConfig::default() });
    router.route("/A", APP, 1);
    router.route("/isp1", PRODUCER, 1);
    router.route("/isp2", PRODUCER, 1);
    // rule; hint; sent
    let rows = [
        ("the region itself", "/campus", "I260 /A n1 h4"),
        ("a delegation that is a prefix of the region", "/isp1", "I260 /A n2 h4"),
        ("longer than the region: not in it", "/isp1/router7/x", "I300 /A hint:/isp1/router7/x n3 h4"),
        ("another region", "/isp2", "I300 /A hint:/isp2 n4 h4"),
    ];
    for (nonce, (rule, hint, expected)) in (1..).zip(rows) {
        router.recv(CONSUMER, interest("/A").hint(hint).nonce(nonce).hop_limit(5));
        let sent = router.lines();
        if nonce == 2 {
            assert!(sent.is_empty(), "must be aggregated with the first Interest: {rule}");
        } else {
            assert_eq!(sent, [expected], "{rule}");
        }
    }
    router.recv(APP, data("/A").content(b"x"));
    assert_eq!(router.lines().len(), 1, "one downstream has three PIT entries");
    router.recv(CONSUMER2, interest("/A").hint("/isp2").hint("/campus").nonce(9)).expect(&["D257 /A"]);
}

#[test]
fn the_content_store_keeps_hints_apart() {
    let mut router = Router::new();
    router.route("/evil", PRODUCER, 1);
    router.route("/A", PRODUCER2, 1);
    router.recv(CONSUMER, interest("/A").hint("/evil")).recv(PRODUCER, data("/A").content(b"forged")).sent();
    router.recv(CONSUMER2, interest("/A").nonce(2)).expect(&["I301 /A n2"]);
    router.recv(PRODUCER2, data("/A").content(b"true")).sent();
    router.recv(APP, interest("/A").nonce(3));
    assert_eq!(router.only().bytes, data("/A").content(b"true").packet().bytes);
    router.recv(APP, interest("/A").hint("/evil").nonce(4));
    assert_eq!(router.only().bytes, data("/A").content(b"forged").packet().bytes);
    assert_eq!(router.cs_len(), 2);
}

#[test]
fn prefix_interests_with_a_hint_are_cached_under_it_too() {
    let mut router = Router::new();
    router.route("/evil", PRODUCER, 1);
    router.route("/A", PRODUCER2, 1);
    router.recv(CONSUMER, interest("/A").prefix().hint("/evil")).recv(PRODUCER, data("/A/1")).sent();
    router.recv(CONSUMER, interest("/A/1").nonce(2)).expect(&["I301 /A/1 n2"]);
    router.recv(CONSUMER2, interest("/A").prefix().nonce(3)).expect(&["I301 /A CBP n3"]);
    router.recv(APP, interest("/A").prefix().hint("/evil").nonce(4)).expect(&["D260 /A/1"]);
}

/// Builds an Interest for `/A` with hint number `number`.
fn hinted(number: u32) -> InterestMaker {
    interest("/A").hint(&format!("/hint/{number}")).nonce(number)
}

/// Fetches `/A` with hint number `number` as an attacker would, so that it is cached.
fn fetch_hinted(router: &mut Router, number: u32) {
    router.recv(CONSUMER, hinted(number)).recv(PRODUCER, data("/A"));
    assert_eq!(router.lines().len(), 2, "hint {number}");
}

#[test]
fn cached_data_under_many_hints_keeps_nobody_from_the_name() {
    let mut router = Router::with_default_route();
    for number in 0..20 {
        fetch_hinted(&mut router, number);
        assert_eq!(router.cs_len(), (number as usize + 1).min(8));
    }
    router.recv(CONSUMER2, interest("/A").nonce(99)).expect(&["I300 /A n99"]);
    router.recv(PRODUCER, data("/A")).expect(&["D257 /A"]);
    // Data cached without a hint is not evicted for any of them either.
    for number in 100..120 {
        fetch_hinted(&mut router, number);
    }
    router.recv(CONSUMER2, interest("/A").nonce(100)).expect(&["D257 /A"]);
    assert_eq!((router.cs_len(), router.all_drops()), (9, 0));
}

#[test]
fn a_new_hint_drives_out_the_one_that_was_cached_longest_ago() {
    let mut router = Router::with_default_route();
    for number in 0..8 {
        fetch_hinted(&mut router, number);
    }
    // An entry with a pending Interest stays, however old it is.
    router.recv(CONSUMER2, hinted(0).fresh().nonce(50)).expect(&["I300 /A MBF hint:/hint/0 n50"]);
    router.recv(CONSUMER, hinted(8)).expect(&["I300 /A hint:/hint/8 n8"]);
    for number in [0, 2, 3, 4, 5, 6, 7] {
        router.recv(APP, hinted(number).nonce(100 + number)).expect(&["D260 /A"]);
    }
    router.recv(APP, hinted(1).nonce(101)).expect(&["I300 /A hint:/hint/1 n101"]);
    router.recv(APP, hinted(2).nonce(202)).expect(&["I300 /A hint:/hint/2 n202"]);
    assert_eq!((router.pit_len(), router.cs_len(), router.all_drops()), (4, 5, 0));
}

#[test]
fn many_pending_hints_give_way_to_each_other_and_to_nobody_else() {
    let mut router = Router::with_default_route();
    router.recv(CONSUMER2, interest("/A").nonce(99)).recv(CONSUMER2, hinted(50)).sent();
    for number in 0..20 {
        router.recv(CONSUMER, hinted(number)).expect(&[&format!("I300 /A hint:/hint/{number} n{number}")]);
    }
    // Only the attacker's own are evicted.
    assert_eq!(router.drops(DropReason::TooManyHints), 20 - 7);
    assert_eq!((face_drops(&router, CONSUMER), face_drops(&router, CONSUMER2)), (13, 0));
    assert_eq!(router.pit_len(), 9);
    // A face with no entry among them evicts the oldest.
    router.recv(APP, hinted(60)).expect(&["I300 /A hint:/hint/60 n60"]);
    assert_eq!(face_drops(&router, CONSUMER2), 1);
    router.recv(PRODUCER, data("/A")).expect(&["D256 /A", "D257 /A", "D260 /A"]);
    assert_eq!(router.pit_len(), 0);
}

fn face_drops(router: &Router, face: u32) -> u64 {
    router.engine.face_drops(namehop_packet::face::FaceId(face)).map_or(0, |drops| drops.total())
}

#[test]
fn the_interest_kept_for_a_nack_has_its_hint() {
    use namehop_wire::lp::NackReason;
    let mut router = Router::new();
    router.route("/isp", PRODUCER, 1);
    router.recv(CONSUMER, interest("/A").hint("/isp").nonce(1).hop_limit(4).packet().token(&[1])).sent();
    router.recv(CONSUMER2, interest("/A").hint("/isp").nonce(2)).expect(&[]);
    let refused = interest("/A").hint("/isp").nonce(1).packet().nack(NackReason::NO_ROUTE);
    router.recv(PRODUCER, refused);
    router.expect(&["N256 /A NoRoute hint:/isp n1 h4 t:01", "N257 /A NoRoute hint:/isp n2"]);
}
