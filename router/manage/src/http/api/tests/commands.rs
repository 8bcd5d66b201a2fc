//! Changes over HTTP, carried out as commands of the management protocol.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use namehop_client::nfd::{DispatchEntry, WorkerStatus};
use serde_json::json;

use super::*;
use crate::testing::NEIGHBOUR;

#[test]
fn faces_are_created_changed_and_destroyed() {
    run(async {
        let scene = Scene::new();
        let body = r#"{"uri":"udp4://192.0.2.9:6363","persistency":"permanent","reliability":true,"mtu_bytes":1400}"#;
        let created = scene.change(Method::POST, "/faces", body).await;
        assert_eq!(created.status, StatusCode::CREATED);
        let created = created.json();
        let id = created["face_id"].as_u64().expect("a number");
        assert_eq!(
            (&created["created"], &created["persistency"], &created["mtu_bytes"]),
            (&json!(true), &json!("permanent"), &json!(1400))
        );
        let again = scene.change(Method::POST, "/faces", r#"{"uri":"udp4://192.0.2.9:6363"}"#).await;
        assert_eq!(
            (again.status, &again.json()["face_id"], &again.json()["created"]),
            (StatusCode::OK, &json!(id), &json!(false))
        );
        let shown = scene.get(&format!("/faces/{id}")).await.json();
        assert_eq!((&shown["remote_uri"], &shown["reliability"]), (&json!("udp4://192.0.2.9:6363"), &json!(true)));
        let path = format!("/faces/{id}");
        let changed = scene.change(Method::PATCH, &path, r#"{"reliability":false,"persistency":"persistent"}"#).await;
        assert_eq!(
            (&changed.json()["reliability"], &changed.json()["persistency"]),
            (&json!(false), &json!("persistent"))
        );
        let refused = scene.change(Method::PATCH, &path, r#"{"mtu_bytes":1,"persistency":"on-demand"}"#).await;
        assert_eq!(refused.status, StatusCode::CONFLICT);
        let hint = refused.json()["hint"].as_str().expect("a hint").to_owned();
        assert!(hint.contains("persistency: ") && hint.contains("MTU: "), "{hint}");
        assert_eq!(scene.change(Method::DELETE, &path, "").await.status, StatusCode::NO_CONTENT);
        assert_eq!(scene.change(Method::DELETE, &path, "").await.status, StatusCode::NOT_FOUND);
        assert_eq!(scene.get(&path).await.status, StatusCode::NOT_FOUND);
        let uri = "udp4://192.0.2.9:6363";
        assert_eq!(scene.changes(), [format!("created {uri}"), format!("updated {uri}"), format!("destroyed {uri}")]);
    });
}

#[test]
fn what_management_refuses_is_refused_with_the_status_that_fits() {
    run(async {
        let scene = Scene::new();
        scene.router().connect_time.set(Duration::from_millis(1));
        let too_deep = format!(r#"{{"prefix":"{}","face_id":257}}"#, "/a".repeat(33));
        let cases = [
            (Method::POST, "/faces", r#"{"uri":"udp4://router.example"}"#, 400, "canonical"),
            (Method::POST, "/faces", r#"{"uri":"nonsense"}"#, 400, ""),
            (Method::POST, "/faces", r#"{}"#, 400, "uri"),
            (Method::POST, "/faces", r#"{"uri":"udp4://192.0.2.9:6363","mtu":1}"#, 400, "unknown field"),
            (Method::POST, "/faces", r#"{"uri":"udp4://192.0.2.9:6363","persistency":"never"}"#, 400, "never"),
            (Method::POST, "/faces", r#"{"uri":"udp4://192.0.2.9:6363","persistency":"on-demand"}"#, 422, "on-demand"),
            (Method::POST, "/faces", r#"{"uri":"udp4://192.0.2.9:6363","mtu_bytes":-1}"#, 400, "expected u64"),
            (Method::POST, "/faces", r#"{"uri":"tcp4://192.0.2.9:6363"}"#, 504, "does not answer"),
            (Method::PATCH, "/faces/0", r#"{"mtu_bytes":1400}"#, 400, ""),
            (Method::PATCH, "/faces/9999", r#"{"mtu_bytes":1400}"#, 404, "does not exist"),
            (Method::PATCH, "/faces/18446744073709551616", r#"{}"#, 400, "number"),
            (Method::DELETE, "/faces/x", "", 400, "number"),
            (Method::DELETE, "/faces/%ff", "", 400, ""),
            (Method::PUT, "/routes", r#"{"prefix":"/a","face_id":9999}"#, 422, "does not exist"),
            (Method::PUT, "/routes", r#"{"prefix":"/a","face_id":0}"#, 400, "no face"),
            (Method::PUT, "/routes", r#"{"prefix":"/a"}"#, 400, "face_id"),
            (Method::PUT, "/routes", r#"{"prefix":"/a","face_id":257,"origin":"me"}"#, 400, "origin"),
            (Method::PUT, "/routes", r#"{"prefix":"/a","face_id":257,"flags":"sticky"}"#, 400, "sticky"),
            (Method::PUT, "/routes", r#"{"prefix":"/%","face_id":257}"#, 400, "prefix"),
            (Method::PUT, "/routes", &too_deep, 422, ""),
            (Method::PUT, "/routes", "", 400, "body"),
            (Method::PUT, "/routes", "[", 400, "body"),
            (Method::DELETE, "/routes?prefix=/a", "", 400, "face_id"),
            (Method::DELETE, "/routes?prefix=/a&face_id=257&x=1", "", 400, "unknown field"),
            (Method::PUT, "/strategies", r#"{"prefix":"/a","strategy":"best"}"#, 404, "no such strategy"),
            (
                Method::PUT,
                "/strategies",
                r#"{"prefix":"/a","strategy":"asf/v=5/max-timeouts~none"}"#,
                409,
                "max-timeouts",
            ),
            (Method::PUT, "/strategies", r#"{"prefix":"/a","strategy":"/%"}"#, 400, "strategy"),
            (Method::DELETE, "/strategies?prefix=/", "", 400, "not unset"),
            (Method::DELETE, "/strategies/loaded/mine", "", 404, "mine"),
            (Method::POST, "/cs", "{}", 400, "nothing to change"),
            (Method::POST, "/cs/erase", r#"{"prefix":"/","count":0}"#, 400, "Count"),
            (Method::POST, "/ndt/move", r#"{"name":"/a","worker":1}"#, 409, "half a minute"),
        ];
        for (method, path, body, status, text) in cases {
            let answer = scene.change(method.clone(), path, body).await;
            assert_eq!(answer.status.as_u16(), status, "{method} {path} {body}: {answer:?}");
            assert!(answer.error().contains(text), "{method} {path} {body}: {}", answer.error());
        }
        assert_eq!(scene.changes(), Vec::<String>::new());
    });
}

#[test]
fn what_cannot_be_saved_is_not_done() {
    run(async {
        let scene = Scene::new();
        scene.router().cannot_save.set(true);
        for (method, path, body) in [
            (Method::POST, "/faces", r#"{"uri":"udp4://192.0.2.9:6363"}"#),
            (Method::PUT, "/routes", r#"{"prefix":"/a","face_id":257}"#),
            (Method::PUT, "/strategies", r#"{"prefix":"/a","strategy":"multicast"}"#),
            (Method::POST, "/cs", r#"{"capacity_packets":1}"#),
        ] {
            let answer = scene.change(method, path, body).await;
            assert_eq!((answer.status, &*answer.error()), (StatusCode::INTERNAL_SERVER_ERROR, "the disk is full"));
        }
        assert_eq!(scene.get("/cs").await.json()["capacity_packets"], 65536);
        assert_eq!(scene.get("/routes").await.json(), json!({"items": [], "next": null}));
        assert_eq!(scene.get("/faces").await.json()["items"].as_array().expect("faces").len(), 2);
    });
}

#[test]
fn a_token_may_open_ports_that_commands_may_not() {
    run(async {
        let scene = Scene::new();
        let body = r#"{"uri":"memif:///run/ndn/x.sock?id=0"}"#;
        assert_eq!(scene.change(Method::POST, "/faces", body).await.status, StatusCode::CREATED);
    });
}

#[test]
fn routes_strategies_cache_and_dispatch_table_are_changed() {
    run(async {
        let scene = Scene::new();
        let body = r#"{"prefix":"/a/%20b","face_id":257,"cost":7,"flags":"capture,child-inherit","expires_ms":60000}"#;
        let expected = json!({"prefix": "/a/%20b", "face_id": 257, "origin": "static", "cost": 7,
                              "flags": "child-inherit,capture", "expires_ms": 60000});
        assert_eq!(scene.change(Method::PUT, "/routes", body).await.json(), expected);
        let listed = scene.get("/routes?prefix=/a&face_id=257&origin=static").await.json();
        assert_eq!(
            (&listed["items"][0]["remote_uri"], &listed["next"]),
            (&json!("udp4://192.0.2.1:6363"), &json!(null))
        );
        assert_eq!(scene.get("/routes?origin=app").await.json()["items"], json!([]));
        let next_hop = json!({"face_id": 257, "remote_uri": "udp4://192.0.2.1:6363", "cost": 7});
        let fib = scene.get("/fib?prefix=/a").await.json();
        assert_eq!(fib, json!({"items": [{"prefix": "/a/%20b", "nexthops": [next_hop]}], "next": null}));
        // The percent sign in the name is itself percent-encoded in the query.
        let removed = scene.change(Method::DELETE, "/routes?prefix=%2Fa%2F%2520b&face_id=257", "").await;
        assert_eq!((removed.status, removed.body.len()), (StatusCode::NO_CONTENT, 0));
        assert_eq!(scene.get("/fib").await.json()["items"], json!([]));
        assert!(scene.router().face(NEIGHBOUR).is_some());

        let chosen = scene.change(Method::PUT, "/strategies", r#"{"prefix":"/a","strategy":"multicast"}"#).await.json();
        assert!(
            chosen["strategy"].as_str().expect("a name").starts_with("/localhost/nfd/strategy/multicast/v="),
            "{chosen}"
        );
        assert_eq!(scene.get("/strategies?prefix=/a").await.json()["items"], json!([chosen]));
        assert_eq!(scene.change(Method::DELETE, "/strategies?prefix=/a", "").await.status, StatusCode::NO_CONTENT);
        assert_eq!(scene.get("/strategies?prefix=/a").await.json()["items"], json!([]));

        let settings = scene.change(Method::POST, "/cs", r#"{"capacity_packets":9,"serve":false}"#).await.json();
        assert_eq!(settings, json!({"capacity_packets": 9, "admit": true, "serve": false, "policy": "tinylfu-clock"}));
        scene.router().cached_data.set(1000);
        let erased = scene.change(Method::POST, "/cs/erase", r#"{"prefix":"/a","count":300}"#).await.json();
        assert_eq!(erased, json!({"prefix": "/a", "erased": 300}));
        let erased = scene.change(Method::POST, "/cs/erase", r#"{"prefix":"/"}"#).await.json();
        assert_eq!(erased, json!({"prefix": "/", "erased": 700}));

        scene.router().dispatch_entries.borrow_mut().push(DispatchEntry::default());
        scene.router().workers.borrow_mut().extend([WorkerStatus::default(), WorkerStatus::default()]);
        let moved = scene.change(Method::POST, "/ndt/move", r#"{"name":"/a/b","worker":1}"#).await.json();
        assert_eq!(moved, json!({"name": "/a/b", "worker": 1}));
        let missing = scene.change(Method::POST, "/ndt/move", r#"{"name":"/a/b","worker":2}"#).await;
        assert_eq!(missing.status, StatusCode::NOT_FOUND);
        let entry = json!({"entry": 0, "worker": 1, "former_worker": 0, "divided": false, "packets_per_s": 0});
        assert_eq!(scene.get("/ndt").await.json(), json!([entry]));
        assert_eq!(
            scene.changes(),
            [
                "route /a/%20b 257 7".to_owned(),
                "no route /a/%20b 257 255".to_owned(),
                format!("strategy /a {}", chosen["strategy"].as_str().expect("a name")),
                "no strategy /a".to_owned(),
                "cs CsChange { capacity: Some(9), policy: None, admit: None, serve: Some(false) }".to_owned(),
                // Data is erased in portions, and each is saved.
                "erased /a".to_owned(),
                "erased /a".to_owned(),
                "erased /".to_owned(),
                "erased /".to_owned(),
                "erased /".to_owned(),
            ]
        );
    });
}

#[test]
fn a_command_is_carried_out_although_its_client_has_gone() {
    run(async {
        let scene = Scene::new();
        let request = scene.change(Method::PUT, "/routes", r#"{"prefix":"/a","face_id":257}"#);
        let mut request = Box::pin(request);
        // The request has reached the control thread, and is dropped before its answer.
        let is_pending = poll_fn(|context| Poll::Ready(request.as_mut().poll(context).is_pending())).await;
        assert!(is_pending);
        drop(request);
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        assert_eq!(scene.changes(), ["route /a 257 0"]);
    });
}
