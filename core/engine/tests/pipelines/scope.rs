//! Scope control: `/localhost` and `/localhop`.

use namehop_packet::DropReason;

use crate::router::*;

#[test]
fn where_interests_go() {
    // rule; from; name; route to; sent
    let rows: [(&str, u32, &str, u32, &[&str]); 10] = [
        ("/localhost between local faces", APP, "/localhost/A", APP2, &["I261 /localhost/A n1"]),
        ("/localhost never to other hosts", APP, "/localhost/A", PRODUCER, &["N260 /localhost/A NoRoute n1"]),
        ("/localhost never from other hosts", CONSUMER, "/localhost/A", APP, &[]),
        ("/localhost itself is under /localhost", CONSUMER, "/localhost", APP, &[]),
        ("only the first component counts", CONSUMER, "/A/localhost", PRODUCER, &["I300 /A/localhost n1"]),
        ("/localhosts is another name", CONSUMER, "/localhosts", PRODUCER, &["I300 /localhosts n1"]),
        ("/localhop from another host to a local face", CONSUMER, "/localhop/A", APP, &["I260 /localhop/A n1"]),
        ("/localhop at most one hop", CONSUMER, "/localhop/A", PRODUCER, &["N256 /localhop/A NoRoute n1"]),
        ("/localhop from a local face anywhere", APP, "/localhop/A", PRODUCER, &["I300 /localhop/A n1"]),
        ("/localhop between local faces", APP, "/localhop/A", APP2, &["I261 /localhop/A n1"]),
    ];
    for (rule, from, uri, to, expected) in rows {
        let mut router = Router::new();
        router.route("/", to, 1);
        router.recv(from, interest(uri));
        assert_eq!(router.lines(), expected, "{rule}");
        assert_eq!(router.drops(DropReason::ScopeViolation), u64::from(expected.is_empty()), "{rule}");
    }
}

#[test]
fn localhost_data_from_another_computer_is_dropped() {
    let mut router = Router::new();
    router.route("/localhost", APP2, 1);
    router.recv(APP, interest("/localhost/A")).sent();
    router.recv(CONSUMER, data("/localhost/A")).expect(&[]);
    assert_eq!(router.drops(DropReason::ScopeViolation), 1);
    router.recv(APP2, data("/localhost/A")).expect(&["D260 /localhost/A"]);
}

#[test]
fn localhop_data_is_not_restricted() {
    let mut router = Router::new();
    router.route("/localhop", APP, 1);
    router.recv(CONSUMER, interest("/localhop/A")).sent();
    router.recv(APP, data("/localhop/A")).expect(&["D256 /localhop/A"]);
}

#[test]
fn an_application_with_next_hop_face_id_is_beyond_scope() {
    let mut router = Router::new();
    let packet = interest("/localhop/nfd/A").packet().next_hop(u64::from(PRODUCER));
    router.recv(CONSUMER, packet).expect(&["I300 /localhop/nfd/A n1"]);
}
