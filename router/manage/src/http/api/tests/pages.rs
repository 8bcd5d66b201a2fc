//! Lists in pages.

use std::collections::BTreeMap;

use namehop_engine::fib::NextHop;
use serde_json::json;

use super::*;
use crate::rib::Route;
use crate::server::ControlPlane;
use crate::testing::{APP, NEIGHBOUR};

/// Number of entries in the tables of these tests.
const ENTRIES: usize = 3000;

/// Follows a list to its end. Returns how often each value of `key` occurred, and the lengths of the pages.
async fn follow(scene: &Scene, path: &str, limit: usize, key: &str) -> (BTreeMap<String, usize>, Vec<usize>) {
    let (mut seen, mut lengths, mut after) = (BTreeMap::new(), Vec::new(), String::new());
    let and = if path.contains('?') { '&' } else { '?' };
    loop {
        let page = scene.get(&format!("{path}{and}limit={limit}{after}")).await.json();
        let items = page["items"].as_array().expect("items");
        lengths.push(items.len());
        for item in items {
            *seen.entry(item[key].to_string()).or_default() += 1;
        }
        let Some(next) = page["next"].as_str() else { return (seen, lengths) };
        after = format!("&after={next}");
        assert!(lengths.len() < 10 * ENTRIES, "the pages must end");
    }
}

fn fill(scene: &Scene) {
    for number in 0..ENTRIES {
        let route = Route {
            face: if number % 3 == 0 { APP } else { NEIGHBOUR },
            origin: 0,
            cost: 1,
            flags: 1,
            expires_at_ms: None,
            announcement: None,
            is_remote: false,
        };
        scene.management.add_route(name(&format!("/p{}/{number}", number % 10)).as_ref(), route).expect("room");
    }
}

#[test]
fn every_entry_is_in_one_page_for_all_page_lengths() {
    run(async {
        let scene = Scene::new();
        fill(&scene);
        for limit in [1, 7, 100, 1000] {
            for path in ["/fib", "/routes"] {
                let (seen, lengths) = follow(&scene, path, limit, "prefix").await;
                assert_eq!(seen.len(), ENTRIES, "{path} by {limit}");
                assert!(seen.values().all(|&times| times == 1), "{path} by {limit}");
                // A page never divides a group of adjacent slots, so it may exceed the limit.
                assert!(lengths.iter().all(|&length| length < limit + 300), "{path} by {limit}: {lengths:?}");
            }
        }
        let (seen, _) = follow(&scene, "/fib?prefix=/p3", 50, "prefix").await;
        assert_eq!((seen.len(), seen.keys().all(|prefix| prefix.starts_with("\"/p3/"))), (ENTRIES / 10, true));
        let (seen, _) = follow(&scene, &format!("/routes?face_id={}", APP.0), 50, "prefix").await;
        assert_eq!(seen.len(), ENTRIES / 3);
    });
}

#[test]
fn entries_that_stay_are_listed_while_others_come_and_go() {
    run(async {
        let scene = Scene::new();
        fill(&scene);
        let (mut seen, mut after) = (BTreeMap::new(), String::new());
        for round in 0.. {
            let page = scene.get(&format!("/fib?limit=200{after}")).await.json();
            for item in page["items"].as_array().expect("items") {
                *seen.entry(item["prefix"].to_string()).or_insert(0) += 1;
            }
            let Some(next) = page["next"].as_str() else { break };
            after = format!("&after={next}");
            // The table grows, and half of the first entries are removed.
            scene.router().with_fib(|fib| {
                for number in (0..2000).filter(|_| round < 10) {
                    let prefix = name(&format!("/new/{round}/{number}"));
                    fib.set_nexthops(prefix.as_ref(), &[NextHop { face: APP, cost: 0 }]).expect("room");
                }
                for number in (1..ENTRIES).step_by(2).filter(|number| number % 20 == round % 20) {
                    let prefix = name(&format!("/p{}/{number}", number % 10));
                    fib.set_nexthops(prefix.as_ref(), &[]).expect("removed");
                }
            });
            assert!(round < 1000, "the pages must end");
        }
        for number in (0..ENTRIES).step_by(2) {
            assert!(seen.contains_key(&format!("\"/p{}/{number}\"", number % 10)), "{number}");
        }
    });
}

#[test]
fn a_page_with_long_names_has_fewer_of_them() {
    run(async {
        let scene = Scene::new();
        let long = "x".repeat(1900);
        scene.router().with_fib(|fib| {
            for number in 0..1000 {
                let prefix = name(&format!("/{number}/{long}"));
                fib.set_nexthops(prefix.as_ref(), &[NextHop { face: APP, cost: 0 }]).expect("room");
            }
        });
        let page = scene.get("/fib").await;
        assert!(page.body.len() < 1 << 20, "{} bytes", page.body.len());
        let (seen, _) = follow(&scene, "/fib", 1000, "prefix").await;
        assert_eq!(seen.len(), 1000);
    });
}

#[test]
fn faces_and_strategy_choices_come_in_order() {
    run(async {
        let scene = Scene::new();
        for number in 0..20 {
            let body = format!(r#"{{"uri":"udp4://192.0.2.77:{}"}}"#, 7000 + number);
            assert_eq!(scene.change(Method::POST, "/faces", &body).await.status, StatusCode::CREATED);
            let body = format!(r#"{{"prefix":"/s/{number}","strategy":"multicast"}}"#);
            assert_eq!(scene.change(Method::PUT, "/strategies", &body).await.status, StatusCode::OK);
        }
        let (faces, lengths) = follow(&scene, "/faces", 5, "face_id").await;
        assert_eq!((faces.len(), lengths), (22, vec![5, 5, 5, 5, 2]));
        let (choices, lengths) = follow(&scene, "/strategies?prefix=/s", 10, "prefix").await;
        assert_eq!((choices.len(), lengths), (20, vec![10, 10]));
        let found = scene.get("/faces?remote=udp4://192.0.2.77:7003").await.json();
        assert_eq!(found["items"].as_array().expect("faces").len(), 1);
        assert_eq!(scene.get("/faces?scheme=tcp4").await.json(), json!({"items": [], "next": null}));
        assert_eq!(
            scene.get("/faces?scheme=unix&local=unix:///run/nfd/nfd.sock").await.json()["items"][0]["face_id"],
            APP.0
        );
    });
}

#[test]
fn wrong_cursors_and_limits_are_refused_or_empty() {
    run(async {
        let scene = Scene::new();
        fill(&scene);
        for query in [
            "limit=0",
            "limit=1001",
            "limit=-1",
            "limit=x",
            "after=x",
            "after=",
            "after=-1",
            "after=999999999999999999999",
            "lmit=1",
        ] {
            for path in ["/fib", "/routes", "/faces"] {
                assert_eq!(
                    scene.get(&format!("{path}?{query}")).await.status,
                    StatusCode::BAD_REQUEST,
                    "{path}?{query}"
                );
            }
        }
        // Any number is a valid position, or past the end.
        for after in [0, 1, 12345, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            for path in ["/fib", "/routes", "/faces"] {
                assert_eq!(
                    scene.get(&format!("{path}?limit=3&after={after}")).await.status,
                    StatusCode::OK,
                    "{path} {after}"
                );
            }
        }
    });
}
