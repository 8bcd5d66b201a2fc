//! The stamps of packets that are measured: a packet sent because of a measured one gets its stamp, once.

use namehop_packet::{PacketWay, Stamp};

use crate::router::*;

/// Returns the faces to which something was sent, with the way in its stamp.
fn sent(router: &mut Router) -> Vec<(u32, Option<PacketWay>)> {
    router.sent().iter().map(|sent| (sent.face, sent.stamp.way())).collect()
}

#[test]
fn each_packet_that_is_measured_is_measured_once() {
    use PacketWay::{CacheHit, CacheMiss, Data};
    let stamp = Stamp::at(4_000);
    let mut router = Router::with_default_route();
    router.route("/", PRODUCER2, 2);
    router.strategy("/", "multicast");

    // To two upstreams, for two downstreams, and then from the cache.
    router.recv(CONSUMER, interest("/A").packet().stamp(stamp));
    assert_eq!(sent(&mut router), [(PRODUCER, Some(CacheMiss)), (PRODUCER2, None)]);
    router.recv(CONSUMER2, interest("/A").nonce(2));
    assert!(sent(&mut router).iter().all(|(_, way)| way.is_none()), "the second Interest is not measured");
    router.recv(PRODUCER, data("/A").packet().stamp(stamp));
    let answers = sent(&mut router);
    assert_eq!(answers.iter().filter(|(_, way)| *way == Some(Data)).count(), 1, "{answers:?}");
    assert_eq!(answers.len(), 2);
    router.recv(CONSUMER, interest("/A").nonce(3).packet().stamp(stamp));
    assert_eq!(sent(&mut router), [(CONSUMER, Some(CacheHit))]);

    // Each packet has only its own stamp.
    router.recv_together([
        (CONSUMER, interest("/B").nonce(4).packet()),
        (CONSUMER, interest("/C").nonce(5).packet().stamp(stamp)),
    ]);
    let stamps: Vec<Stamp> = router.sent().iter().map(|sent| sent.stamp).filter(|stamp| stamp.is_some()).collect();
    assert_eq!(stamps, [stamp.on(CacheMiss)]);
}

#[test]
fn what_is_not_forwarded_is_not_measured() {
    let stamp = Stamp::at(4_000);
    let mut router = Router::new();
    router.recv(CONSUMER, interest("/A").packet().stamp(stamp));
    assert!(sent(&mut router).iter().all(|(_, way)| way.is_none()), "a Nack");
    // An aggregated Interest sends nothing, and the Data that answers both does not get its stamp.
    let mut router = Router::with_default_route();
    router.recv(CONSUMER, interest("/A"));
    router.recv(CONSUMER2, interest("/A").nonce(2).packet().stamp(stamp));
    assert_eq!(sent(&mut router), [(PRODUCER, None)]);
    router.recv(PRODUCER, data("/A"));
    assert_eq!(sent(&mut router), [(CONSUMER, None), (CONSUMER2, None)]);
}
