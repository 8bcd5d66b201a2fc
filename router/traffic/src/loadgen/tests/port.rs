//! Tests of links over memif: a consumer connected directly to a producer.

use super::session::{assert_accounted, data, plan, reply, start, window};
use super::*;

/// Configures a consumer and a producer at the two ends of a memif.
fn session(socket: &std::path::Path, plan: ConsumerPlan, payload_bytes: usize, mtu_bytes: usize) -> SessionConfig {
    let link = |role: &str| {
        let uri: LinkUri = format!("memif://{}?id=5{role}", socket.display()).parse().unwrap();
        LinkAddress::new(uri, None, Some(mtu_bytes)).unwrap()
    };
    SessionConfig {
        consumers: vec![ConsumerConfig { name: "consumer".to_owned(), link: link("&role=client"), plan }],
        producers: vec![ProducerConfig {
            name: "producer".to_owned(),
            link: link(""),
            control: None,
            registers: true,
            patterns: vec![ReplyPattern { prefix: prefix(), replies: vec![reply(1, data(payload_bytes))] }],
            seed: 1,
        }],
        signer: Arc::new(DigestSigner),
        duration: None,
    }
}

#[test]
fn packets_of_any_size_go_through_memif_in_fragments_where_they_have_to() {
    for (payload_bytes, mtu_bytes, frames) in [(100, 2048, 1), (3000, 8800, 1), (8000, 1500, 6)] {
        let folder = tempfile::tempdir().unwrap();
        let config = session(&folder.path().join("memif.sock"), plan(window(32), 500), payload_bytes, mtu_bytes);
        let report = start(&config).unwrap().wait(&AtomicBool::new(false), |_| {});
        let (consumer, producer) = (&report.consumers[0], &report.producers[0]);
        assert_eq!((&consumer.error, &producer.error), (&None, &None));
        assert_accounted(&consumer.counts);
        assert_eq!((consumer.counts.interests, producer.counts.interests), (500, 500));
        assert_eq!((consumer.counts.exchanges, consumer.counts.unexpected()), (500, 0), "{report:?}");
        let sent = |frames_sent, frames_received| LinkCounts { frames_sent, frames_received, ..LinkCounts::default() };
        assert_eq!((&consumer.link, &producer.link), (&sent(500, 500 * frames), &sent(500 * frames, 500)));
    }
}

/// The other end does not read, so the ring fills up.
#[test]
fn a_link_that_takes_nothing_holds_the_consumer_back_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let plan = ConsumerPlan { count: None, ..plan(window(20_000), 1) };
    let config = session(&folder.path().join("memif.sock"), plan, 100, 2048);
    let pool = namehop_packet::BufferPool::new(64, 1);
    let LinkAddress::Port(address) = &config.producers[0].link else { panic!("a port") };
    let port = OpenPort::open(address, &pool).unwrap();
    let config = SessionConfig { producers: Vec::new(), ..config };
    // The other end accepts the connection, and then reads nothing from it.
    let mut queue = port.queue;
    queue.receive(&mut Vec::new());
    let stop = AtomicBool::new(false);
    let report = start(&config).unwrap().wait(&stop, |session| {
        stop.store(session.progress().sent > 4_000, Ordering::Relaxed);
    });
    let consumer = &report.consumers[0];
    assert_accounted(&consumer.counts);
    assert_eq!(consumer.link.lost_sending(), 0, "{report:?}");
    assert_eq!(consumer.counts.interests, consumer.link.frames_sent + consumer.link.frames_waiting, "{report:?}");
    assert!(consumer.link.frames_sent <= 1024 && consumer.counts.unanswered + consumer.counts.timeouts > 4_000);
}

#[test]
fn ports_that_cannot_be_opened_say_why() {
    let failure = |uri: &str, local: Option<&str>| {
        let local = local.map(|local| namehop_port::drivers::parse_uri(local).unwrap());
        let mut config = session(std::path::Path::new("/tmp/x"), plan(window(1), 1), 1, 1500);
        config.producers.clear();
        config.consumers[0].link = LinkAddress::new(uri.parse().unwrap(), local, None).unwrap();
        // As if the user had interrupted the wait for the peer.
        Session::start(&config, &AtomicBool::new(true)).map(drop).unwrap_err().to_string()
    };
    let missing = failure("memif:///nowhere/to/be/found.sock?id=0&role=client", None);
    assert!(missing.contains("found.sock?id=0") && missing.contains("namehop face create"), "{missing}");
    assert!(failure("memif:///nowhere/to/be/found.sock?id=0", None).contains("No such file"));
    let absent = failure("ether://[02:00:00:00:00:01]", Some("dev://no-such-if0"));
    assert!(absent.contains("no-such-if0") && absent.contains("No such device"), "{absent}");
}
