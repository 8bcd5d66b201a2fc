//! The stream of face events.

use namehop_client::nfd::{Element, FaceEventKind, FaceEventNotification};
use namehop_face::socket::FaceEvent;

use super::*;

fn subscribe(sequence: Option<u64>, lifetime_ms: u64) -> Vec<u8> {
    let builder = match sequence {
        Some(sequence) => InterestBuilder::new(names::face_events().append_sequence(sequence)),
        None => InterestBuilder::new(names::face_events()).can_be_prefix(true).must_be_fresh(true),
    };
    builder.lifetime_ms(lifetime_ms).build().expect("built")
}

fn event(sent: &Sent) -> (u64, FaceEventNotification) {
    let data = sent.data();
    assert!(names::face_events().is_prefix_of(data.name));
    let sequence = data.name.last().and_then(|component| component.as_sequence()).expect("a sequence number");
    (sequence, FaceEventNotification::decode(data.content).expect("an event"))
}

#[test]
fn subscribers_follow_event_by_event() {
    run(async {
        let fixture = Fixture::new();
        let face = fixture.router().faces().get(FaceId(257)).expect("exists");
        fixture.give(&subscribe(None, 60_000), APP, b"first");
        assert!(fixture.take().is_empty(), "no event has occurred");
        tokio::time::sleep(Duration::from_secs(30)).await;
        fixture.management.face_event(&FaceEvent::Created(Arc::clone(&face)));
        let sent = fixture.take_one();
        assert_eq!(sent.token, b"first");
        let (sequence, created) = event(&sent);
        assert_eq!((sequence, created.kind, created.face_id), (0, FaceEventKind::Created, NEIGHBOUR));
        assert_eq!(created.uri, "udp4://192.0.2.1:6363");
        assert_eq!(sent.data().freshness_ms, Some(1000));

        fixture.give(&subscribe(Some(1), 60_000), APP, b"next");
        assert!(fixture.take().is_empty());
        fixture.management.face_event(&FaceEvent::Down(Arc::clone(&face)));
        fixture.management.face_event(&FaceEvent::Up(Arc::clone(&face)));
        let (sequence, down) = event(&fixture.take_one());
        assert_eq!((sequence, down.kind), (1, FaceEventKind::Down));
        tokio::time::sleep(Duration::from_secs(30)).await;
        fixture.give(&subscribe(Some(2), 60_000), APP, b"late");
        assert_eq!(event(&fixture.take_one()).1.kind, FaceEventKind::Up, "recent events are kept for late requests");
    });
}

#[test]
fn a_new_subscriber_gets_the_newest_only_while_it_is_fresh() {
    run(async {
        let fixture = Fixture::new();
        let face = fixture.router().faces().get(FaceId(257)).expect("exists");
        fixture.management.face_event(&FaceEvent::Created(Arc::clone(&face)));
        fixture.management.face_event(&FaceEvent::Down(Arc::clone(&face)));
        fixture.give(&subscribe(None, 4000), APP, b"a");
        assert_eq!(event(&fixture.take_one()).0, 1);
        tokio::time::sleep(Duration::from_secs(2)).await;
        fixture.give(&subscribe(None, 4000), APP, b"b");
        assert!(fixture.take().is_empty());
        fixture.management.face_event(&FaceEvent::Up(face));
        assert_eq!(event(&fixture.take_one()).0, 2);
    });
}

#[test]
fn interests_that_ended_are_not_answered() {
    run(async {
        let fixture = Fixture::new();
        let face = fixture.router().faces().get(FaceId(257)).expect("exists");
        fixture.give(&subscribe(None, 1000), APP, b"a");
        fixture.give(&subscribe(Some(0), 5000), APP, b"b");
        fixture.give(&subscribe(Some(7), 5000), APP, b"c");
        fixture.give(&InterestBuilder::new(names::face_events()).build().expect("built"), APP, b"d");
        let odd = InterestBuilder::new(names::face_events().append_generic("x")).build().expect("built");
        fixture.give(&odd, APP, b"e");
        tokio::time::sleep(Duration::from_secs(2)).await;
        fixture.management.face_event(&FaceEvent::Created(face));
        assert_eq!(fixture.take_one().token, b"b");
    });
}

#[test]
fn old_events_are_forgotten_one_by_one() {
    run(async {
        let fixture = Fixture::new();
        let face = fixture.router().faces().get(FaceId(257)).expect("exists");
        for _ in 0..1030 {
            fixture.management.face_event(&FaceEvent::Up(Arc::clone(&face)));
        }
        for (sequence, is_kept) in [(5, false), (6, true), (1029, true), (1030, false)] {
            fixture.give(&subscribe(Some(sequence), 10), APP, b"t");
            let sent = fixture.take();
            assert_eq!(sent.iter().map(|sent| event(sent).0).next(), is_kept.then_some(sequence));
        }
    });
}

#[test]
fn a_destroyed_face_takes_its_routes_along() {
    run(async {
        let fixture = Fixture::new();
        fixture.command("rib", "register", &named("/A")).await;
        fixture.command("fib", "add-nexthop", &named("/B")).await;
        let face = fixture.router().faces().remove(FaceId(256)).expect("exists");
        fixture.management.face_event(&FaceEvent::Destroyed(Arc::clone(&face)));
        assert!(fixture.fib("/A").is_empty() && fixture.fib("/B").is_empty());
        fixture.management.face_event(&FaceEvent::Destroyed(face));
        assert_eq!(fixture.management.rib_sizes(), (0, 0));
    });
}
