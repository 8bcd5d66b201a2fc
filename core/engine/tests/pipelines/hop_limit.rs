//! HopLimit (NDN packet specification, interest.rst "HopLimit").

use namehop_engine::EngineConfig;
use namehop_packet::DropReason;
use namehop_wire::lp::NackReason;

use crate::router::*;

#[test]
fn what_goes_out_for_what_comes_in() {
    // rule; HopLimit in; route to; sent
    let rows: [(&str, Option<u8>, u32, &[&str]); 8] = [
        ("0 is dropped on arrival", Some(0), PRODUCER, &[]),
        ("0 is dropped even when a local face would take it", Some(0), APP, &[]),
        ("1 becomes 0, which may not leave this host", Some(1), PRODUCER, &["N256 /A NoRoute n1 h1"]),
        ("1 becomes 0, which may go to local faces", Some(1), APP, &["I260 /A n1 h0"]),
        ("2 becomes 1", Some(2), PRODUCER, &["I300 /A n1 h1"]),
        ("255 becomes 254", Some(255), PRODUCER, &["I300 /A n1 h254"]),
        ("an Interest without HopLimit gets none", None, PRODUCER, &["I300 /A n1"]),
        ("an Interest without HopLimit goes to local faces, too", None, APP, &["I260 /A n1"]),
    ];
    for (rule, hop_limit, to, expected) in rows {
        let mut router = Router::new();
        router.route("/", to, 1);
        let mut packet = interest("/A");
        if let Some(hop_limit) = hop_limit {
            packet = packet.hop_limit(hop_limit);
        }
        router.recv(CONSUMER, packet);
        assert_eq!(router.lines(), expected, "{rule}");
        let dropped = u64::from(hop_limit == Some(0));
        assert_eq!(router.drops(DropReason::HopLimitZero), dropped, "{rule}");
    }
}

#[test]
fn hop_limit_0_after_decrement_is_answered_from_the_content_store() {
    let mut router = Router::with_default_route();
    router.recv(CONSUMER, interest("/A")).recv(PRODUCER, data("/A")).sent();
    router.recv(CONSUMER2, interest("/A").hop_limit(1).nonce(2)).expect(&["D257 /A"]);
}

#[test]
fn a_default_is_added_only_where_there_is_none() {
    let mut router = Router::with(EngineConfig { default_hop_limit: 20, ..EngineConfig::default() });
    router.route("/", PRODUCER, 1);
    router.recv(CONSUMER, interest("/A")).expect(&["I300 /A n1 h20"]);
    router.recv(CONSUMER, interest("/B").hop_limit(5)).expect(&["I300 /B n1 h4"]);
}

#[test]
fn next_hop_face_id_does_not_override_the_hop_limit() {
    let mut router = Router::new();
    router.recv(CONSUMER, interest("/A").hop_limit(1).packet().next_hop(u64::from(PRODUCER))).expect(&[]);
    assert_eq!(router.drops(DropReason::HopLimitExhausted), 1);
}

#[test]
fn a_retry_elsewhere_carries_the_hop_limit_of_the_downstream_with_most_hops_left() {
    let mut router = Router::new();
    router.strategy("/", "multicast");
    router.route("/", PRODUCER, 1);
    router.recv(CONSUMER, interest("/A").hop_limit(3).nonce(1)).expect(&["I300 /A n1 h2"]);
    router.recv(CONSUMER2, interest("/A").hop_limit(9).nonce(2)).expect(&[]);
    router.new_route("/", PRODUCER2, 1);
    router.expect(&["I301 /A n2 h8"]);
}

#[test]
fn a_rebuilt_interest_has_the_hop_limit_of_its_own_downstream_or_none() {
    // Interests with a forwarding hint are stored as first received; the others are rebuilt from the name.
    for (hint, line) in [(None, ""), (Some("/x"), " hint:/x")] {
        let asked = || hint.map_or(interest("/A"), |hint| interest("/A").hint(hint));
        let mut router = Router::new();
        router.strategy("/", "multicast");
        router.route("/", PRODUCER, 1);
        router.recv(CONSUMER, asked().hop_limit(9).nonce(1)).recv(CONSUMER2, asked().nonce(2)).sent();
        // The one without HopLimit may travel farthest, so it is the one that is sent.
        router.new_route("/", PRODUCER2, 1);
        router.expect(&[&format!("I301 /A{line} n2")]);
        for face in [PRODUCER, PRODUCER2] {
            let nonce = if face == PRODUCER { 1 } else { 2 };
            router.recv(face, asked().nonce(nonce).packet().nack(NackReason::NO_ROUTE));
        }
        router.expect(&[&format!("N256 /A NoRoute{line} n1 h9"), &format!("N257 /A NoRoute{line} n2")]);
    }
}

#[test]
fn a_nack_gives_back_the_interest_that_came() {
    let config = || EngineConfig {
        default_hop_limit: 20,
        producer_regions: vec![name("/region/here")],
        ..EngineConfig::default()
    };
    // Refused at once: exactly the packet.
    for asked in
        [interest("/A"), interest("/A").no_nonce(), interest("/A").hint("/region"), interest("/A").hop_limit(3)]
    {
        let mut router = Router::with(config());
        router.recv(CONSUMER, asked.clone());
        let nack = router.only();
        assert_eq!((nack.fields.nack, nack.bytes), (Some(NackReason::NO_ROUTE), asked.packet().bytes));
    }
    // Refused by the next hop: without the HopLimit that this router added.
    for hint in [None, Some("/x")] {
        let asked = || hint.map_or(interest("/A"), |hint| interest("/A").hint(hint));
        let mut router = Router::with(config());
        router.route("/", PRODUCER, 1);
        router.recv(CONSUMER, asked().nonce(1)).recv(CONSUMER2, asked().hop_limit(5).nonce(2));
        assert!(router.only().line().ends_with(" n1 h20"));
        router.recv(PRODUCER, asked().nonce(1).packet().nack(NackReason::NO_ROUTE));
        let mut nacks = router.sent();
        nacks.sort_by_key(|nack| nack.face);
        let sent = [asked().nonce(1), asked().hop_limit(5).nonce(2)];
        assert_eq!(nacks.len(), 2);
        for (nack, sent) in nacks.iter().zip(sent) {
            assert_eq!(nack.bytes, sent.packet().bytes);
        }
    }
    // Refused because the Interest loops: the packet that looped.
    let mut router = Router::with(config());
    router.route("/", PRODUCER, 1);
    router.recv(CONSUMER, interest("/A")).sent();
    router.recv(CONSUMER2, interest("/A"));
    assert_eq!(router.only().bytes, interest("/A").packet().bytes);
}

#[test]
fn the_largest_default_is_not_cut() {
    let mut router = Router::with(EngineConfig { default_hop_limit: 255, ..EngineConfig::default() });
    router.strategy("/", "multicast");
    router.route("/", PRODUCER, 1);
    router.recv(CONSUMER, interest("/A")).expect(&["I300 /A n1 h255"]);
    router.new_route("/", PRODUCER2, 1);
    router.expect(&["I301 /A n1 h255"]);
}
