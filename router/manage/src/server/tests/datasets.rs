//! Status datasets: contents, versions and segments.

use namehop_client::nfd::{
    ChannelStatus, CsInfo, DropCount, Element, FaceQueryFilter, FaceStatus, FibEntry, GeneralStatus, NextHopRecord,
    Record, RibEntry, Route as NfdRoute, StrategyChoice, decode_items,
};
use namehop_engine::engine::EngineStatus;
use namehop_face::LinkDrop;
use namehop_packet::{DropReason, FaceScope};
use namehop_wire::data::content_type;

use super::*;

pub(super) fn list(module: &str, verb: &str) -> Name {
    names::localhost_verb(module, verb)
}

fn query(dataset: Name) -> Vec<u8> {
    InterestBuilder::new(dataset).can_be_prefix(true).must_be_fresh(true).build().expect("built")
}

/// Fetches a dataset as a client would; returns its content and the number of segments.
async fn fetch(fixture: &Fixture, dataset: Name) -> (Vec<u8>, u64) {
    fixture.give(&query(dataset.clone()), APP, b"0");
    let first = fixture.wait_for_one().await;
    assert!(first.no_cache && first.token == b"0", "a dataset requested after a command shows its change");
    let data = first.data();
    assert_eq!((data.content_type, data.freshness_ms), (content_type::BLOB, Some(1000)));
    assert!(dataset.is_prefix_of(data.name) && data.name.len() == dataset.len() + 2);
    assert_eq!(data.name.last().and_then(|component| component.as_segment()), Some(0));
    let mut last = data.final_block_id.and_then(|component| component.as_segment());
    let mut content = data.content.to_vec();
    let mut segment = 0;
    while last != Some(segment) {
        segment += 1;
        let name = data.name.without_last(1).to_owned().append_segment(segment);
        fixture.give(&InterestBuilder::new(name.clone()).build().expect("built"), APP, b"n");
        let sent = fixture.wait_for_one().await;
        assert!(sent.no_cache && sent.token == b"n");
        assert_eq!(sent.data().name, name);
        last = sent.data().final_block_id.and_then(|component| component.as_segment());
        content.extend_from_slice(sent.data().content);
    }
    (content, segment + 1)
}

pub(super) async fn items<T: Element>(fixture: &Fixture, dataset: Name) -> Vec<T> {
    decode_items(&fetch(fixture, dataset).await.0).expect("a list")
}

#[test]
fn the_general_status_is_complete() {
    run(async {
        let fixture = Fixture::new();
        let mut engine = EngineStatus::default();
        (engine.sizes.pit, engine.sizes.cs, engine.sizes.pcct) = (3, 4, 9);
        engine.counters.in_interests = 100;
        engine.counters.unsatisfied_interests = 7;
        fixture.router().engine.set(engine);
        fixture.command("rib", "register", &named("/A")).await;
        let content = fetch(&fixture, list("status", "general")).await.0;
        let status = GeneralStatus::from_content(&content).expect("a status");
        assert!(status.version.starts_with("Namehop/"));
        assert!(status.start_timestamp_ms > 0 && status.current_timestamp_ms >= status.start_timestamp_ms);
        // Only the monotonic clock advances here, as if the time of day were set back continuously.
        tokio::time::sleep(Duration::from_secs(3600)).await;
        let later = fixture.management.general_status().await;
        assert_eq!(later.current_timestamp_ms - later.start_timestamp_ms, fixture.management.now_ms());
        assert_eq!((status.pit_entries, status.cs_entries, status.name_tree_entries), (3, 4, 9));
        assert_eq!((status.in_interests, status.unsatisfied_interests, status.fib_entries), (100, 7, 1));
    });
}

#[test]
fn every_reason_of_a_drop_is_explained_to_operators() {
    let documentation = include_str!("../../../../../docs/operation.md");
    let reasons =
        DropReason::ALL.iter().map(|reason| reason.name()).chain(LinkDrop::ALL.iter().map(|reason| reason.name()));
    let missing: Vec<_> = reasons.filter(|reason| !documentation.contains(&format!("`{reason}`"))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn drops_are_listed_by_reason_in_total_and_by_face() {
    run(async {
        let fixture = Fixture::new();
        let mut engine = EngineStatus::default();
        engine.counters.drops[DropReason::PitFull] = 5;
        fixture.router().engine.set(engine);
        let face = fixture.router().faces().get(FaceId(257)).expect("exists");
        face.counters.worker(0).engine_drops.set(DropReason::PitFull as u8, 1);
        face.counters.count_transport_drop(LinkDrop::SendFailed);
        let drops: Vec<DropCount> = items(&fixture, list("status", "drops")).await;
        let drop = |face_id, layer: &str, reason: &str, count| DropCount {
            face_id,
            layer: layer.to_owned(),
            reason: reason.to_owned(),
            count,
        };
        let face_id = Some(NEIGHBOUR);
        assert_eq!(
            drops,
            [
                drop(None, "engine", "pit-full", 5),
                drop(None, "link", "send-failed", 1),
                drop(face_id, "engine", "pit-full", 1),
                drop(face_id, "link", "send-failed", 1),
            ]
        );
    });
}

#[test]
fn faces_are_listed_and_queried() {
    run(async {
        let fixture = Fixture::new();
        let faces: Vec<FaceStatus> = items(&fixture, list("faces", "list")).await;
        assert_eq!(faces.iter().map(|face| face.face_id).collect::<Vec<_>>(), [APP, NEIGHBOUR]);
        assert_eq!(faces[0].scope, FaceScope::Local);
        assert_eq!((faces[0].mtu_bytes, faces[1].mtu_bytes), (None, Some(8800)));
        let query = async |filter: FaceQueryFilter| {
            let faces: Vec<FaceStatus> = items(&fixture, list("faces", "query").append_generic(filter.to_vec())).await;
            faces.iter().map(|face| face.face_id).collect::<Vec<_>>()
        };
        let by_scheme = FaceQueryFilter { uri_scheme: Some("udp4".to_owned()), ..FaceQueryFilter::default() };
        assert_eq!(query(by_scheme.clone()).await, [NEIGHBOUR]);
        assert!(query(FaceQueryFilter { scope: Some(FaceScope::Local), ..by_scheme }).await.is_empty());
        assert_eq!(query(FaceQueryFilter::default()).await, [APP, NEIGHBOUR]);
    });
}

#[test]
fn a_malformed_filter_is_rejected_with_an_application_nack() {
    run(async {
        let fixture = Fixture::new();
        let dataset = list("faces", "query").append_generic(b"\x96\x05");
        fixture.give(&query(dataset.clone()), APP, b"t");
        let sent = fixture.take_one();
        assert_eq!((sent.data().content_type, sent.response().code), (content_type::NACK, 400));
        assert_eq!(sent.data().name, dataset.as_ref());
    });
}

#[test]
fn the_small_datasets_hold_what_there_is() {
    run(async {
        let fixture = Fixture::new();
        let channels: Vec<ChannelStatus> = items(&fixture, list("faces", "channels")).await;
        assert_eq!(channels.len(), 2);
        let cs: Vec<CsInfo> = items(&fixture, list("cs", "info")).await;
        let policy = Some("tinylfu-clock".to_owned());
        assert_eq!(cs, [CsInfo { capacity: 65536, flags: 3, policy, ..CsInfo::default() }]);
        let choices: Vec<StrategyChoice> = items(&fixture, list("strategy-choice", "list")).await;
        let best_route = name("/localhost/nfd/strategy/best-route/v=5");
        assert_eq!(choices, [StrategyChoice { name: Name::new(), strategy: best_route }]);
    });
}

#[test]
fn routes_and_next_hops_are_listed() {
    run(async {
        let fixture = Fixture::new();
        assert_eq!(fetch(&fixture, list("rib", "list")).await, (Vec::new(), 1), "an empty dataset has one segment");
        let expiring = ControlParameters { cost: Some(2), expiration_period_ms: Some(60_000), ..named("/A") };
        fixture.command("rib", "register", &expiring).await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        let rib: Vec<RibEntry> = items(&fixture, list("rib", "list")).await;
        let route = NfdRoute { face_id: APP, origin: 0, cost: 2, flags: 1, expiration_period_ms: Some(50_000) };
        assert_eq!(rib, [RibEntry { name: name("/A"), routes: vec![route] }]);
        let fib: Vec<FibEntry> = items(&fixture, list("fib", "list")).await;
        let next_hops = vec![NextHopRecord { face_id: APP, cost: 2 }];
        assert_eq!(fib, [FibEntry { name: name("/A"), next_hops }]);
    });
}

#[test]
fn long_lists_take_several_segments() {
    run(async {
        let fixture = Fixture::new();
        for i in 0..5000 {
            let route = crate::rib::Route {
                face: FaceId(256),
                origin: 0,
                cost: i,
                flags: 1,
                expires_at_ms: None,
                announcement: None,
                is_remote: false,
            };
            fixture.management.add_route(name(&format!("/prefix/{i}")).as_ref(), route).expect("added");
        }
        let (content, segments) = fetch(&fixture, list("rib", "list")).await;
        let rib: Vec<RibEntry> = decode_items(&content).expect("a list");
        assert_eq!(rib.len(), 5000);
        assert_eq!(segments, content.len().div_ceil(8000) as u64);
        assert!(segments > 10);
        let mut costs: Vec<u64> = rib.iter().map(|entry| entry.routes[0].cost).collect();
        costs.sort_unstable();
        assert_eq!(costs, (0..5000).collect::<Vec<_>>());
        let fib: Vec<FibEntry> = items(&fixture, list("fib", "list")).await;
        assert_eq!(fib.len(), 5000);
    });
}

#[test]
fn long_lists_are_made_as_they_are_fetched_in_bounded_memory() {
    run(async {
        let fixture = Fixture::new();
        tokio::task::spawn_local(Rc::clone(&fixture.management).run());
        fixture.router().with_fib(|fib| {
            for number in 0..100_000u32 {
                let prefix = name("/long").append_generic([7; 200]).append_generic(number.to_be_bytes());
                fib.add_nexthop(prefix.as_ref(), FaceId(257), 0).expect("added");
            }
        });
        // Many streams are started and abandoned; each keeps only what was requested of it.
        for _ in 0..200 {
            fixture.give(&query(list("fib", "list")), APP, b"t");
        }
        assert_eq!(fixture.take().len(), 200);
        let (streams, kept_bytes) = fixture.management.streams.borrow().sizes();
        assert!((1..=64).contains(&streams) && kept_bytes < 64 * 100_000, "{streams} streams, {kept_bytes} bytes");
        // A segment in the middle is built with pauses; the oldest segments are dropped.
        fixture.give(&query(list("fib", "list")), APP, b"t");
        let version = fixture.wait_for_one().await.data().name.without_last(1).to_owned();
        let request_segment = |segment| {
            let name = version.clone().append_segment(segment);
            fixture.give(&InterestBuilder::new(name).build().expect("built"), APP, b"s");
        };
        for far in [2000, 2800] {
            request_segment(far);
            assert!(fixture.take().is_empty(), "other streams are served first");
            assert_eq!(fixture.wait_for_one().await.data().name.last().and_then(|c| c.as_segment()), Some(far));
        }
        request_segment(0);
        request_segment(u64::MAX);
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(fixture.take().is_empty());
        request_segment(2000);
        assert_eq!(fixture.wait_for_one().await.token, b"s");
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert_eq!(fixture.management.streams.borrow().sizes(), (0, 0), "the streams are forgotten");
    });
}

#[test]
fn a_version_is_kept_for_a_second_after_its_last_request() {
    run(async {
        let fixture = Fixture::new();
        tokio::task::spawn_local(Rc::clone(&fixture.management).run());
        fixture.give(&query(list("faces", "list")), APP, b"t");
        let first = fixture.wait_for_one().await;
        let again = InterestBuilder::new(first.data().name).build().expect("built");
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_millis(800)).await;
            fixture.give(&again, APP, b"t");
            assert_eq!(fixture.take_one().packet, first.packet);
        }
        tokio::time::sleep(Duration::from_millis(1100)).await;
        fixture.give(&again, APP, b"t");
        assert!(fixture.take().is_empty());
        assert_eq!(fixture.management.datasets.borrow().next_expiry_ms(), None, "the dataset is forgotten");
    });
}

#[test]
fn requests_during_the_building_of_a_version_share_it() {
    run(async {
        let fixture = Fixture::new();
        for token in [b"a", b"b", b"c"] {
            fixture.give(&query(list("faces", "list")), APP, token);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        let sent = fixture.take();
        assert_eq!(sent.iter().map(|sent| sent.token.as_slice()).collect::<Vec<_>>(), [b"a", b"b", b"c"]);
        assert!(sent.iter().all(|one| one.packet == sent[0].packet));
        fixture.give(&query(list("faces", "list")), APP, b"d");
        let later = fixture.wait_for_one().await;
        assert!(later.data().name > sent[0].data().name, "versions increase");
    });
}

#[test]
fn odd_dataset_names_get_no_answer() {
    run(async {
        let fixture = Fixture::new();
        fixture.give(&query(list("rib", "list")), APP, b"t");
        let version = fixture.wait_for_one().await.data().name.get_from_end(1).and_then(|c| c.as_version());
        let versioned = list("rib", "list").append_version(version.expect("a version"));
        for interest in [
            InterestBuilder::new(list("rib", "list")),
            InterestBuilder::new(list("rib", "list").append_generic("x")).can_be_prefix(true),
            InterestBuilder::new(list("faces", "query")).can_be_prefix(true),
            InterestBuilder::new(versioned.clone()),
            InterestBuilder::new(versioned.clone().append_segment(1)),
            InterestBuilder::new(versioned.clone().append_segment(u64::MAX)),
            InterestBuilder::new(versioned.clone().append_segment(0).append_generic("x")),
            InterestBuilder::new(list("rib", "list").append_version(1).append_segment(0)),
        ] {
            fixture.give(&interest.build().expect("built"), APP, b"t");
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(fixture.take().is_empty());
        fixture.give(&query(versioned), APP, b"t");
        assert_eq!(fixture.take_one().token, b"t", "a name with a version only finds segment 0");
    });
}
