//! Which Interests are satisfied by which Data (NDN packet specification, interest.rst and data.rst).

use namehop_packet::{DropReason, FaceId};

use crate::router::*;

#[test]
fn which_data_satisfies_which_interest() {
    let digest = data("/A/B").full_name();
    let wrong_digest = data("/A/B").content(b"other").full_name();
    let rows = [
        ("same name", interest("/A/B"), true),
        ("a prefix without CanBePrefix does not match", interest("/A"), false),
        ("a prefix with CanBePrefix", interest("/A").prefix(), true),
        ("the whole name with CanBePrefix", interest("/A/B").prefix(), true),
        ("a longer name", interest("/A/B/C"), false),
        ("a longer name with CanBePrefix", interest("/A/B/C").prefix(), false),
        ("a component with the same beginning", interest("/A/BB"), false),
        ("another name", interest("/B"), false),
        ("the full name", interest_named(digest.clone()), true),
        ("the full name with CanBePrefix", interest_named(digest).prefix(), true),
        ("a full name with another digest", interest_named(wrong_digest), false),
        ("MustBeFresh does not matter on a link", interest("/A/B").fresh(), true),
        ("MustBeFresh with CanBePrefix", interest("/A").prefix().fresh(), true),
    ];
    for (rule, asked, matches) in rows {
        let mut router = Router::with_default_route();
        router.recv(CONSUMER, asked);
        assert_eq!(router.sent().len(), 1, "{rule}");
        router.recv(PRODUCER, data("/A/B"));
        assert_eq!(router.lines().len(), usize::from(matches), "{rule}");
        assert_eq!(router.drops(DropReason::UnsolicitedData), u64::from(!matches), "{rule}");
        assert_eq!(router.pit_len(), usize::from(!matches), "{rule}");
    }
}

#[test]
fn data_satisfies_all_matching_interests_at_once() {
    let mut router = Router::with_default_route();
    router.recv(CONSUMER, interest("/A/B").nonce(1));
    router.recv(CONSUMER2, interest("/A").prefix().nonce(2));
    router.recv(APP, interest("/A/B").fresh().nonce(3));
    router.recv(APP2, interest_named(data("/A/B").full_name()).nonce(4));
    router.recv(MULTI, interest("/A").nonce(5));
    assert_eq!(router.sent().len(), 5);
    router.recv(PRODUCER, data("/A/B")).expect(&["D256 /A/B", "D257 /A/B", "D260 /A/B", "D261 /A/B"]);
    assert_eq!(router.pit_len(), 1, "the Interest without CanBePrefix must stay pending");
    assert_eq!(router.engine.counters().satisfied_interests, 4);
}

#[test]
fn a_face_that_asked_twice_gets_the_data_once() {
    let mut router = Router::with_default_route();
    router.recv(CONSUMER, interest("/A/B").nonce(1));
    router.recv(CONSUMER, interest("/A").prefix().nonce(2));
    router.recv(PRODUCER, interest("/A").prefix().fresh().nonce(3)).sent();
    router.recv(PRODUCER, data("/A/B")).expect(&["D256 /A/B"]);
}

#[test]
fn unsolicited_data_is_never_forwarded_and_cached_by_policy() {
    use namehop_engine::UnsolicitedPolicy::{AdmitAll, AdmitLocal, AdmitNetwork, DropAll};
    for (policy, from_local, from_network) in
        [(DropAll, 0, 0), (AdmitLocal, 1, 0), (AdmitNetwork, 0, 1), (AdmitAll, 1, 1)]
    {
        for (face, cached) in [(APP, from_local), (PRODUCER, from_network)] {
            let config = namehop_engine::EngineConfig { unsolicited: policy, ..Default::default() };
            let mut router = Router::with_default_route_and(config);
            router.recv(face, data("/A")).expect(&[]);
            assert_eq!(router.cs_len(), cached, "{policy:?} from {face}");
            assert_eq!(router.drops(DropReason::UnsolicitedData), 1);
            router.recv(face, data("/B").packet().no_cache()).expect(&[]);
            assert_eq!(router.cs_len(), cached, "CachePolicy NoCache must take precedence");
        }
    }
}

#[test]
fn data_answers_interests_that_were_sent_where_it_comes_from() {
    let other_hint = || interest("/A/B").hint("/x").nonce(7);
    // rule; an Interest that the attacker triggers; the face that Data comes from; what is sent
    type Row = (&'static str, Option<InterestMaker>, u32, &'static [&'static str]);
    let rows: [Row; 7] = [
        ("the upstream", None, PRODUCER, &["D256 /A/B"]),
        ("a face without an out-record", None, PRODUCER2, &[]),
        ("a downstream", None, CONSUMER2, &[]),
        ("a multicast face without an out-record", None, MULTI, &[]),
        ("a local application", None, APP, &["D256 /A/B"]),
        ("the upstream of an Interest with another hint", Some(other_hint()), PRODUCER2, &["D257 /A/B"]),
        ("the upstream of an Interest for a prefix", Some(interest("/A").prefix().nonce(7)), PRODUCER2, &["D257 /A/B"]),
    ];
    for (rule, asked_too, from, expected) in rows {
        for with_token in [false, true] {
            let mut router = Router::new();
            router.route("/A/B", PRODUCER, 1);
            router.route("/", PRODUCER2, 1);
            router.recv(CONSUMER, interest("/A/B"));
            let token = if with_token { router.only().token() } else { Vec::new() };
            if let Some(asked) = asked_too.clone() {
                router.recv(CONSUMER2, asked);
            }
            router.sent();
            router.recv(from, data("/A/B").packet().token(&token)).expect(expected);
            let is_refused = u64::from(expected.is_empty());
            assert_eq!((router.drops(DropReason::UnaskedData), router.all_drops()), (is_refused, is_refused), "{rule}");
            // An unanswered Interest still waits for the face it was sent to, and no forged Data is cached.
            if !expected.contains(&"D256 /A/B") {
                router.recv(APP2, interest("/A/B").nonce(3)).expect(&[]);
                router.recv(PRODUCER, data("/A/B")).expect(&["D256 /A/B", "D261 /A/B"]);
            }
            assert_eq!(router.pit_len(), 0, "{rule}");
        }
    }
}

#[test]
fn a_face_that_was_asked_may_answer_late_and_after_a_nack() {
    let mut router = Router::new();
    router.strategy("/", "multicast");
    router.route("/", PRODUCER, 1);
    router.route("/", PRODUCER2, 1);
    router.recv(CONSUMER, interest("/A").lifetime(100)).sent();
    router.recv(PRODUCER2, interest("/A").packet().nack(namehop_wire::lp::NackReason::CONGESTION)).expect(&[]);
    router.recv(CONSUMER2, interest("/A").nonce(2).lifetime(1_000)).sent();
    router.wait(500).recv(PRODUCER2, data("/A")).expect(&["D257 /A"]);
}

#[test]
fn digests_are_computed_only_of_data_whose_name_is_asked_for_by_one() {
    let mut router = Router::with_default_route();
    // An attacker requests Data of all depths that never arrives.
    for depth in 1..=30 {
        let uri = format!("/evil{}", "/x".repeat(depth - 1));
        router.recv(CONSUMER2, interest_named(data(&uri).content(b"never").full_name()).lifetime(864_000_000));
    }
    for depth in 1..=30 {
        let uri = format!("/good{}", "/x".repeat(depth - 1));
        router.recv(CONSUMER, interest(&uri).lifetime(10_000));
        let token = router.sent().pop().expect("the Interest is forwarded").token();
        router.recv(PRODUCER, data(&uri).packet().token(if depth % 2 == 0 { &token } else { &[] }));
        assert_eq!(router.only().face, CONSUMER);
    }
    assert_eq!(router.engine.counters().digests, 0);
    // Data with one of these names costs a digest, each time it arrives.
    router.recv(CONSUMER, interest("/evil/x")).sent();
    router.recv(PRODUCER, data("/evil/x")).expect(&["D256 /evil/x"]);
    assert_eq!(router.engine.counters().digests, 1);
    router.recv(PRODUCER, data("/evil/x").content(b"never")).expect(&["D257 /evil/x"]);
    router.recv(CONSUMER, interest("/evil/x").fresh()).sent();
    router.recv(PRODUCER, data("/evil/x").content(b"new")).expect(&["D256 /evil/x"]);
    assert_eq!(router.engine.counters().digests, 2, "the Interest is no longer pending, so no digest is needed");
}

/// The full name proves the Data of one Interest, but not Data that would be cached for requests by its name alone.
#[test]
fn a_full_name_does_not_let_forged_data_into_the_cache() {
    let mut router = Router::with_default_route();
    let forged = data("/A").content(b"forged");
    router.recv(CONSUMER2, interest_named(forged.full_name())).sent();
    router.recv(CONSUMER2, forged).expect(&[]);
    assert_eq!((router.cs_len(), router.drops(DropReason::UnaskedData)), (0, 1));
}

#[test]
fn data_from_anybody_can_be_accepted() {
    let config = namehop_engine::EngineConfig { accept_unasked_data: true, ..Default::default() };
    let mut router = Router::with_default_route_and(config);
    router.recv(CONSUMER, interest("/A")).sent();
    router.recv(PRODUCER2, data("/A")).expect(&["D256 /A"]);
    assert_eq!((router.cs_len(), router.all_drops()), (1, 0));
}

#[test]
fn unasked_data_is_cached_by_the_policy_for_unsolicited_data() {
    let unsolicited = namehop_engine::UnsolicitedPolicy::AdmitNetwork;
    let mut router = Router::with_default_route_and(namehop_engine::EngineConfig { unsolicited, ..Default::default() });
    router.recv(CONSUMER, interest("/A")).sent();
    router.recv(PRODUCER2, data("/A")).expect(&[]);
    assert_eq!((router.cs_len(), router.pit_len()), (1, 1));
}

#[test]
fn data_that_goes_to_nobody_has_a_reason() {
    type Meanwhile = fn(&mut Router);
    let is_gone: Meanwhile = |router| router.engine.remove_face(FaceId(CONSUMER));
    let asks_more: Meanwhile = |router| {
        router.recv(CONSUMER, interest("/A").prefix().nonce(2)).sent();
        router.engine.remove_face(FaceId(CONSUMER));
    };
    // rule; strategy; downstream; event before the answer; upstream that answers
    let rows: [(&str, &str, u32, Meanwhile, u32); 5] = [
        ("the downstream is removed", "best-route", CONSUMER, is_gone, PRODUCER),
        ("several Interests of a removed downstream", "best-route", CONSUMER, asks_more, PRODUCER),
        ("a strategy that measures", "asf", CONSUMER, is_gone, PRODUCER),
        ("a strategy that learns routes", "self-learning", CONSUMER, is_gone, PRODUCER),
        ("the downstream itself answers", "best-route", APP, |_| {}, APP),
    ];
    for (rule, strategy, from, meanwhile, answers) in rows {
        let mut router = Router::with_default_route();
        router.strategy("/", strategy);
        router.recv(from, interest("/A")).sent();
        meanwhile(&mut router);
        router.recv(answers, data("/A")).expect(&[]);
        assert_eq!((router.drops(DropReason::NoDownstream), router.all_drops()), (1, 1), "{rule}");
        assert_eq!(router.cs_len(), 1, "{rule}: solicited Data must be cached");
    }
}

#[test]
fn data_that_comes_twice_is_unsolicited_the_second_time() {
    let mut router = Router::with_default_route();
    router.recv(CONSUMER, interest("/A")).sent();
    router.recv(PRODUCER, data("/A")).expect(&["D256 /A"]);
    router.recv(PRODUCER, data("/A")).expect(&[]);
    assert_eq!(router.drops(DropReason::UnsolicitedData), 1);
}

#[test]
fn data_of_an_interest_with_parameters() {
    let mut router = Router::with_default_route();
    let asked = interest("/A").parameters(b"x");
    let answer = {
        router.recv(CONSUMER, asked.clone());
        let sent = router.only();
        assert_eq!(sent.bytes, asked.packet().bytes, "the Interest must be forwarded unmodified");
        let interest = namehop_wire::Interest::decode(&sent.bytes).expect("valid");
        data_named(interest.name.to_owned())
    };
    router.recv(PRODUCER, answer);
    assert_eq!(router.only().face, CONSUMER);
}

#[test]
fn names_of_64_components_are_forwarded_and_longer_ones_dropped() {
    let deep = "/x".repeat(64);
    let mut router = Router::with_default_route();
    router.recv(CONSUMER, interest(&deep).prefix());
    assert_eq!(router.sent().len(), 1);
    router.recv(PRODUCER, data(&deep));
    assert_eq!(router.sent().len(), 1);
    let too_deep = "/x".repeat(65);
    router.recv(CONSUMER, interest(&too_deep)).recv(PRODUCER, data(&too_deep)).expect(&[]);
    assert_eq!(router.drops(DropReason::NameTooDeep), 2);
}

#[test]
fn a_packet_that_does_not_decode_is_dropped() {
    let mut router = Router::with_default_route();
    let whole = interest("/A").packet().bytes;
    let mut packets: Vec<Vec<u8>> = (0..whole.len()).map(|length| whole[..length].to_vec()).collect();
    packets.extend([vec![5, 2, 7, 0], vec![6, 0], vec![0x64, 0], vec![255; 9]]);
    let count = packets.len() as u64;
    for packet in packets {
        router.recv(CONSUMER, Packet::raw(packet)).expect(&[]);
    }
    assert_eq!(router.drops(DropReason::Malformed), count);
    let face = FaceId(CONSUMER);
    assert_eq!(router.engine.face_drops(face).map(|drops| drops.total()), Some(count));
}

#[test]
fn a_packet_from_an_unknown_face_is_dropped() {
    let mut router = Router::with_default_route();
    router.recv(999, interest("/A")).recv(999, data("/A")).recv(CONSUMER + 0x1_0000, interest("/A")).expect(&[]);
    assert_eq!(router.drops(DropReason::UnknownFace), 3);
}
