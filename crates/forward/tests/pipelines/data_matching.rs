//! Which Interests a Data satisfies (NDN packet specification, interest.rst and data.rst).

use namehop_forward::counters::DropReason;

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
        ("a component that begins alike", interest("/A/BB"), false),
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
    assert_eq!(router.pit_len(), 1, "the Interest without CanBePrefix is left");
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
    use namehop_forward::UnsolicitedPolicy::{AdmitAll, AdmitLocal, AdmitNetwork, DropAll};
    for (policy, from_local, from_network) in
        [(DropAll, 0, 0), (AdmitLocal, 1, 0), (AdmitNetwork, 0, 1), (AdmitAll, 1, 1)]
    {
        for (face, cached) in [(APP, from_local), (PRODUCER, from_network)] {
            let mut router = Router::with_default_route();
            router.engine.set_unsolicited(policy);
            router.recv(face, data("/A")).expect(&[]);
            assert_eq!(router.cs_len(), cached, "{policy:?} from {face}");
            assert_eq!(router.drops(DropReason::UnsolicitedData), 1);
            router.recv(face, data("/B").packet().no_cache()).expect(&[]);
            assert_eq!(router.cs_len(), cached, "CachePolicy NoCache holds all the same");
        }
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
        assert_eq!(sent.bytes, asked.packet().bytes, "passed on byte by byte");
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
    let face = namehop_forward::face::FaceId(CONSUMER);
    assert_eq!(router.engine.face_drops(face).map(|drops| drops.total()), Some(count));
}

#[test]
fn a_packet_from_an_unknown_face_is_dropped() {
    let mut router = Router::with_default_route();
    router.recv(999, interest("/A")).recv(999, data("/A")).recv(CONSUMER + 0x1_0000, interest("/A")).expect(&[]);
    assert_eq!(router.drops(DropReason::UnknownFace), 3);
}
