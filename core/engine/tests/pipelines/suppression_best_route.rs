//! Retransmissions through the default strategy.

use crate::router::*;

#[test]
fn retransmissions_are_suppressed_for_a_growing_interval() {
    let mut router = Router::with_default_route();
    router.recv(CONSUMER, interest("/A").nonce(0).lifetime(60_000)).expect(&["I300 /A n0"]);
    // milliseconds since the last Interest that was forwarded; whether this one is forwarded
    let rows = [(9, false), (10, true), (19, false), (20, true), (39, false), (40, true), (79, false), (80, true)];
    let mut since_sent = 0;
    for (nonce, (at_ms, forwarded)) in (1..).zip(rows) {
        router.wait(at_ms - since_sent).recv(CONSUMER, interest("/A").nonce(nonce).lifetime(60_000));
        since_sent = if forwarded { 0 } else { at_ms };
        let expected = format!("I300 /A n{nonce}");
        let expected: &[&str] = if forwarded { &[&expected] } else { &[] };
        assert_eq!(router.lines(), expected, "after {at_ms} ms");
    }
}

#[test]
fn a_retransmission_goes_to_an_unused_next_hop_first() {
    let mut router = Router::new();
    router.route("/", PRODUCER, 10);
    router.route("/", PRODUCER2, 20);
    router.recv(CONSUMER, interest("/A").nonce(1)).expect(&["I300 /A n1"]);
    router.wait(300).recv(CONSUMER, interest("/A").nonce(2)).expect(&["I301 /A n2"]);
    router.wait(300).recv(CONSUMER, interest("/A").nonce(3)).expect(&["I300 /A n3"]);
    router.wait(300).recv(CONSUMER, interest("/A").nonce(4)).expect(&["I301 /A n4"]);
}

#[test]
fn another_downstreams_interest_is_sent_on_like_a_retransmission() {
    let mut router = Router::with_default_route();
    router.recv(CONSUMER, interest("/A").nonce(1)).expect(&["I300 /A n1"]);
    router.wait(5).recv(CONSUMER2, interest("/A").nonce(2)).expect(&[]);
    router.wait(20).recv(APP, interest("/A").nonce(3)).expect(&["I300 /A n3"]);
}

#[test]
fn the_only_next_hop_does_not_get_its_own_interest() {
    let mut router = Router::with_default_route();
    router.recv(PRODUCER, interest("/A")).expect(&["N300 /A NoRoute n1"]);
    assert_eq!(router.pit_len(), 0);
}

#[test]
fn multicast_sends_every_next_hop_its_own_packet() {
    let mut router = Router::new();
    router.strategy("/", "multicast");
    for face in [PRODUCER, PRODUCER2, APP, MULTI, CONSUMER] {
        router.route("/", face, 1);
    }
    router.recv(CONSUMER, interest("/A").hop_limit(5).lifetime(777));
    let sent = router.sent();
    let expected = interest("/A").hop_limit(4).lifetime(777).packet().bytes;
    assert_eq!(sent.len(), 4);
    assert!(sent.iter().all(|packet| packet.bytes == expected && packet.token() == sent[0].token()));
}

#[test]
fn a_new_next_hop_gets_pending_interests_of_its_prefix() {
    let mut router = Router::new();
    router.strategy("/", "multicast");
    router.route("/A", PRODUCER, 1);
    router.route("/A/deep", PRODUCER, 1);
    router.recv(CONSUMER, interest("/A/1").nonce(1).fresh().lifetime(1_000));
    router.recv(CONSUMER, interest("/A/deep/1").nonce(2));
    router.recv(CONSUMER, interest("/A/2").parameters(b"x").nonce(3)).sent();
    router.new_route("/A", PRODUCER2, 1);
    let sent = router.lines();
    assert_eq!(sent.len(), 2, "{sent:?}");
    assert_eq!(sent[0], "I301 /A/1 MBF n1");
    assert!(sent[1].starts_with("I301 /A/2/params-sha256=") && sent[1].ends_with(" n3"));
    router.recv(PRODUCER2, data("/A/1")).expect(&["D256 /A/1"]);
}
