//! The fields of each view. Programs depend on their names.

use std::collections::HashMap;
use std::time::Duration;

use namehop_client::nfd::numbers::{cs_flags, face_flags, origin, route_flags};
use namehop_client::nfd::{
    Code, ControlParameters, CsDisk, CsInfo, CsPolicyCounters, DropCount, FaceStatus, FibEntry, GeneralStatus,
    HandoverCounters, NextHopRecord, PowerPart, PowerStatus, QueueStatus, ReadvertiseCounters, ReadvertiseError,
    ReadvertiseStatus, Route, StrategyChoice, WorkerStatus,
};
use namehop_face::FacePersistency;
use namehop_packet::{FaceScope, LinkType};
use namehop_wire::Name;
use serde::Serialize;
use serde_json::{Value, json};

use super::*;

fn as_json(view: impl Serialize) -> Value {
    serde_json::to_value(view).expect("views must have text keys")
}

fn name(uri: &str) -> Name {
    uri.parse().expect("a name")
}

#[test]
fn faces() {
    let face = FaceStatus {
        face_id: 300,
        uri: "udp4://192.0.2.1:6363".to_owned(),
        local_uri: "udp4://192.0.2.2:6363".to_owned(),
        expiration_period_ms: Some(5),
        scope: FaceScope::NonLocal,
        persistency: FacePersistency::OnDemand,
        link_type: LinkType::AdHoc,
        base_congestion_marking_interval_ns: Some(6),
        default_congestion_threshold_bytes: None,
        mtu_bytes: Some(1400),
        in_interests: 1,
        in_data: 2,
        in_nacks: 3,
        in_bytes: 4,
        out_interests: 5,
        out_data: 6,
        out_nacks: 7,
        out_bytes: 8,
        flags: face_flags::RELIABILITY | face_flags::PIT_TOKENS_OFF,
        is_up: Some(false),
    };
    assert_eq!(
        as_json(FaceView::from(face)),
        json!({
            "face_id": 300, "remote_uri": "udp4://192.0.2.1:6363", "local_uri": "udp4://192.0.2.2:6363",
            "scope": "non-local", "persistency": "on-demand", "link_type": "ad-hoc", "is_up": false,
            "expiration_ms": 5, "mtu_bytes": 1400, "local_fields": false, "reliability": true,
            "congestion_marking": false, "keep_alive": false, "pit_tokens": "off",
            "congestion_interval_ns": 6, "congestion_threshold_bytes": null, "in_interests": 1, "in_data": 2,
            "in_nacks": 3, "in_bytes": 4, "out_interests": 5, "out_data": 6, "out_nacks": 7, "out_bytes": 8,
        })
    );
    let changed = ControlParameters {
        face_id: Some(300),
        flags: Some(face_flags::LOCAL_FIELDS | face_flags::CONGESTION_MARKING),
        face_persistency: Some(FacePersistency::Permanent.code()),
        ..ControlParameters::default()
    };
    assert_eq!(
        as_json(ChangedFaceView::new(changed, Some(true))),
        json!({
            "face_id": 300, "remote_uri": null, "local_uri": null, "created": true, "persistency": "permanent",
            "local_fields": true, "reliability": false, "congestion_marking": true, "keep_alive": false,
            "pit_tokens": "auto", "mtu_bytes": null,
        })
    );
}

#[test]
fn prefixes() {
    let route = Route {
        face_id: 300,
        origin: origin::NLSR,
        cost: 7,
        flags: route_flags::CHILD_INHERIT,
        expiration_period_ms: None,
    };
    let mut view = RouteView::new(&name("/a"), &route);
    let mut expected = json!({
        "prefix": "/a", "face_id": 300, "origin": "nlsr", "cost": 7, "flags": "child-inherit", "expires_ms": null
    });
    assert_eq!(as_json(&view), expected);
    view.remote_uri = Some("tcp4://192.0.2.1:6363".to_owned());
    expected["remote_uri"] = json!("tcp4://192.0.2.1:6363");
    assert_eq!(as_json(&view), expected);

    let hop = |face_id| NextHopRecord { face_id, cost: 1 };
    let entry = FibEntry { name: name("/a"), next_hops: vec![hop(300), hop(301)] };
    let uris = HashMap::from([(300, "unix:///run/a".to_owned())]);
    assert_eq!(
        as_json(FibView::new(&entry, &uris)),
        json!({"prefix": "/a", "nexthops": [
            {"face_id": 300, "remote_uri": "unix:///run/a", "cost": 1},
            {"face_id": 301, "remote_uri": null, "cost": 1},
        ]})
    );
    let choice = StrategyChoice { name: name("/a"), strategy: name("/localhost/nfd/strategy/asf") };
    let expected = json!({"prefix": "/a", "strategy": "/localhost/nfd/strategy/asf"});
    assert_eq!(as_json(StrategyChoiceView::from(&choice)), expected);
}

#[test]
fn route_flags_are_words_or_numbers() {
    for (flags, words) in [(0, "none"), (1, "child-inherit"), (3, "child-inherit,capture"), (5, "child-inherit,4")] {
        assert_eq!(route_flags::words(flags), words);
        assert_eq!(route_flags::from_words(words), Ok(flags));
    }
    assert_eq!((route_flags::from_words("2"), route_flags::from_words("capture,sticky")), (Ok(2), Err("sticky")));
}

#[test]
fn the_content_store() {
    let info = CsInfo {
        capacity: 100,
        flags: cs_flags::SERVE,
        entries: 9,
        hits: 3,
        misses: 1,
        policy: Some("filter:threshold=3".to_owned()),
        by_policy: vec![CsPolicyCounters {
            policy: "filter".to_owned(),
            hits: 3,
            misses: 1,
            insertions: 10,
            evictions: 1,
            rejections: 2,
        }],
        disk: None,
    };
    assert_eq!(
        as_json(CsInfoView::from(info)),
        json!({
            "capacity_packets": 100, "policy": "filter:threshold=3", "entries": 9, "admit": false, "serve": true,
            "hits": 3, "misses": 1, "hit_ratio": 0.75, "by_policy": [
                {"policy": "filter", "hits": 3, "misses": 1, "insertions": 10, "evictions": 1, "rejections": 2},
            ],
        })
    );
    assert_eq!(CsInfoView::from(CsInfo::default()).hit_ratio, None, "the ratio is undefined before the first lookup");
    let disk = Some(CsDisk::default());
    let view = as_json(CsInfoView::from(CsInfo { disk, ..CsInfo::default() }));
    assert_eq!((&view["disk"]["state"], &view["disk"]["hits"]), (&json!("starting"), &json!(0)));
    let policy = Some("lru".to_owned());
    let done =
        ControlParameters { capacity: Some(50), flags: Some(cs_flags::ADMIT), policy, ..ControlParameters::default() };
    let expected = json!({"capacity_packets": 50, "admit": true, "serve": false, "policy": "lru"});
    for requested in [None, Some(10), Some(50)] {
        assert_eq!(as_json(CsConfigView::new(&done, requested)), expected);
    }
    let less = CsConfigView::new(&done, Some(51));
    assert_eq!(less.requested_capacity_packets, Some(51));
    assert!(less.warning.expect("a warning").contains("room for 50 packets, not for 51"));
    let erased = CsErasureView { prefix: "/a".to_owned(), erased: 2 };
    assert_eq!(as_json(erased), json!({"prefix": "/a", "erased": 2}));
}

#[test]
fn the_router_as_a_whole() {
    let status = GeneralStatus {
        version: "Namehop/1".to_owned(),
        start_timestamp_ms: 1_000,
        current_timestamp_ms: 3_500,
        ..GeneralStatus::default()
    };
    let silent = StatusView::new(status.clone(), None);
    assert_eq!((silent.uptime_s, silent.drops.is_none(), silent.face_drops.is_none()), (2.5, true, true));
    let drop = |face_id, count| DropCount { face_id, layer: "link".to_owned(), reason: "link-down".to_owned(), count };
    let counters = ReadvertiseCounters { announced: 4, withdrawn: 1, refused: 2, ..ReadvertiseCounters::default() };
    let daemon = ReadvertiseStatus {
        destination: "daemon".to_owned(),
        command_prefix: name("/localhost/nlsr/rib"),
        face_ids: vec![301],
        announced_prefixes: 3,
        waiting_prefixes: 0,
        refused_prefixes: 1,
        withdrawing_prefixes: 0,
        counters,
        last_error: Some(ReadvertiseError { prefix: name("/a"), reason: "403 no".to_owned(), age_ms: 1_500 }),
    };
    let worker = WorkerStatus {
        packets: 9,
        handover: HandoverCounters { handed_out: 3, dropped_data: 1, ..HandoverCounters::default() },
        busy: Duration::from_secs(1),
        running: Duration::from_secs(4),
        queues: vec![QueueStatus { port: "dev://eth1".to_owned(), received_frames: 7, ..QueueStatus::default() }],
        ..WorkerStatus::default()
    };
    let drops = [drop(None, 5), drop(Some(300), 2)];
    let power = PowerStatus {
        estimated_with: Some("rack-3".to_owned()),
        nanojoules_per_packet: None,
        parts: vec![PowerPart { name: "cpu".to_owned(), milliwatts: 1_500, millijoules: 250 }],
    };
    let disk = CsDisk { stalls: 3, ..CsDisk::default() };
    let own = OwnDatasets {
        drops: &drops,
        readvertise: &[daemon],
        workers: &[worker],
        power: Some(&power),
        cs_disk: Some(disk),
    };
    let view = as_json(StatusView::new(status, Some(own)));
    assert_eq!(view["cs_disk"]["stalls"], json!(3));
    let parts = json!([{"name": "cpu", "watts": 1.5, "joules": 0.25}]);
    let estimate =
        json!({"source": "estimated", "server": "rack-3", "watts": 1.5, "nanojoules_per_packet": null, "parts": parts});
    assert_eq!(view["power"], estimate);
    assert_eq!(as_json(PowerView::from(&PowerStatus { estimated_with: None, ..power }))["source"], json!("measured"));
    let commands = json!({"announced": 4, "withdrawn": 1, "refused": 2, "nack": 0, "timed_out": 0});
    let daemon = json!({
        "destination": "daemon", "command_prefix": "/localhost/nlsr/rib", "is_available": true, "face_ids": [301],
        "announced_prefixes": 3, "waiting_prefixes": 0, "refused_prefixes": 1, "withdrawing_prefixes": 0,
        "left_out_prefixes": 0, "commands": commands,
        "last_error": {"prefix": "/a", "reason": "403 no", "age_s": 1.5},
    });
    assert_eq!(view["readvertise"], json!([daemon]));
    let worker = json!({
        "processor": null, "busy_share": 0.25, "packets": 9, "pit_entries": 0, "cs_entries": 0,
        "dispatch_entries": 0, "handed_in": 0,
        "handed_out": 3, "congestion_marks": 0, "dropped_interests": 0, "dropped_data": 1, "dropped_nacks": 0,
        "queues": [{"port": "dev://eth1", "queue": 0, "received_frames": 7, "sent_frames": 0, "steered_faces": 0}],
    });
    assert_eq!(view["workers"], json!([worker]));
    assert_eq!(view["drops"], json!({"engine": {}, "link": {"link-down": 5}}));
    let of_face = json!([{"face_id": 300, "layer": "link", "reason": "link-down", "count": 2}]);
    assert_eq!(view["face_drops"], of_face);
    assert_eq!(view["start_time_unix_ms"], json!(1_000));
}
