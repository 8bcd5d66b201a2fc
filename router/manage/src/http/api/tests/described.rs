//! The description: equals docs/openapi.json, names all requests and no others, and matches the answers.

use std::collections::BTreeSet;
use std::path::Path;

use namehop_client::nfd::{
    DispatchEntry, PowerPart, PowerStatus, QueueStatus, ReadvertiseCounters, ReadvertiseError, ReadvertiseStatus,
    WorkerStatus,
};
use serde_json::json;

use super::schema::fault;
use super::*;
use crate::http::description;

const METHODS: [Method; 5] = [Method::GET, Method::PUT, Method::POST, Method::PATCH, Method::DELETE];

pub(super) fn described() -> Value {
    serde_json::to_value(description()).expect("JSON")
}

/// Returns the description of a request.
pub(super) fn operation<'a>(description: &'a Value, method: &Method, path: &str) -> &'a Value {
    &description["paths"][format!("{ROOT}{path}")][method.as_str().to_ascii_lowercase()]
}

#[test]
fn the_description_is_the_one_in_the_documentation() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    let text = serde_json::to_string_pretty(&description()).expect("JSON") + "\n";
    if std::env::var_os("NAMEHOP_WRITE_OPENAPI").is_some() {
        std::fs::write(&file, &text).expect("written");
    }
    let documented = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(documented == text, "docs/openapi.json must match the code: run 'make openapi'");
}

#[test]
fn the_description_is_complete() {
    let description = described();
    assert_eq!(description["openapi"], "3.1.0");
    let mut names = BTreeSet::new();
    for (path, item) in description["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("operations") {
            assert!(names.insert(operation["operationId"].as_str().expect("a name")), "{path}: {operation}");
            let about = format!("{method} {path}");
            assert!(operation["summary"].as_str().is_some_and(|text| !text.is_empty()), "{about}");
            assert!(operation["security"].is_array() && operation["responses"]["default"].is_object(), "{about}");
            assert_eq!(method == "get", operation["security"].as_array().expect("a list").len() == 2, "{about}");
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                assert!(parameter["description"].is_string(), "{about}: {parameter}");
            }
        }
    }
    // Every reference resolves.
    let text = description.to_string();
    for reference in text.split("\"$ref\":\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(description.pointer(reference).is_some(), "{reference}");
    }
    let documentation = include_str!("../../../../../../docs/http-api.md");
    for path in description["paths"].as_object().expect("paths").keys() {
        assert!(documentation.contains(path.as_str()), "docs/http-api.md must name {path}");
    }
}

#[test]
fn what_is_described_is_answered_and_nothing_else() {
    run(async {
        let scene = Scene::new();
        let description = described();
        for (path, item) in description["paths"].as_object().expect("paths") {
            let concrete = path.trim_start_matches(ROOT).replace("{id}", "256").replace("{name}", "x");
            for method in METHODS {
                let is_described = !item[method.as_str().to_ascii_lowercase()].is_null();
                let answer = scene.change(method.clone(), &concrete, "{}").await;
                let is_answered = answer.status != StatusCode::METHOD_NOT_ALLOWED;
                assert_eq!(is_answered, is_described, "{method} {path}: {answer:?}");
                if !is_answered {
                    assert!(answer.headers.contains_key("allow") && answer.error().contains("method"), "{answer:?}");
                }
            }
        }
        for path in
            ["", "/", "/face", "/faces/", "/faces/256/x", "/../metrics", "/%2e%2e/metrics", "/strategies/loaded/a/b"]
        {
            let answer = scene.get(path).await;
            assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}");
        }
    });
}

/// Sends a request, and checks its answer against the description.
async fn expect(scene: &Scene, done: &mut BTreeSet<String>, method: Method, template: &str, path: &str, body: Value) {
    let description = described();
    let schema = &operation(&description, &method, template)["requestBody"]["content"]["application/json"]["schema"];
    assert_eq!(schema.is_null(), body.is_null(), "{method} {path}");
    if !body.is_null() {
        assert_eq!(fault(&body, schema, &description), None, "{method} {path}");
    }
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let answer = scene.change(method.clone(), path, &body).await;
    assert!(answer.status.is_success(), "{method} {path}: {answer:?}");
    let response = &operation(&description, &method, template)["responses"][answer.status.as_str()];
    assert!(response.is_object(), "{method} {path}: the description must have {}", answer.status);
    match &response["content"]["application/json"]["schema"] {
        Value::Null => assert!(answer.body.is_empty(), "{method} {path}: {answer:?}"),
        schema => {
            assert_eq!(answer.headers["content-type"], "application/json");
            assert_eq!(fault(&answer.json(), schema, &description), None, "{method} {path}");
        }
    }
    done.insert(format!("{method} {template}"));
}

#[test]
fn answers_are_as_described() {
    run(async {
        let scene = Scene::new();
        let worker = WorkerStatus {
            processor: Some(3),
            queues: vec![QueueStatus { port: "dev://eth1".to_owned(), ..QueueStatus::default() }],
            ..WorkerStatus::default()
        };
        scene.router().workers.borrow_mut().extend([worker.clone(), worker]);
        scene.router().dispatch_entries.borrow_mut().push(DispatchEntry::default());
        let power = PowerStatus { parts: vec![PowerPart::default()], ..PowerStatus::default() };
        *scene.router().power.borrow_mut() = Some(power);
        scene
            .router()
            .face(crate::testing::APP)
            .expect("a face")
            .counters
            .count_transport_drop(namehop_face::LinkDrop::ReceiveRingFull);
        let mut done = BTreeSet::new();
        let (get, put, post, patch, delete) = (Method::GET, Method::PUT, Method::POST, Method::PATCH, Method::DELETE);
        let uri = json!({"uri": "udp4://192.0.2.9:6363"});
        for request in [
            (&get, "/status", "/status", Value::Null),
            (&post, "/faces", "/faces", uri.clone()),
            (&post, "/faces", "/faces", uri),
            (&get, "/faces", "/faces?limit=1", Value::Null),
            (&get, "/faces", "/faces", Value::Null),
            (&get, "/faces/{id}", "/faces/257", Value::Null),
            (&patch, "/faces/{id}", "/faces/257", json!({"congestion_threshold_bytes": 1000})),
            (&put, "/routes", "/routes", json!({"prefix": "/a", "face_id": 257, "expires_ms": 100000})),
            (&put, "/routes", "/routes", json!({"prefix": "/b", "face_id": 257})),
            (&get, "/routes", "/routes", Value::Null),
            (&get, "/fib", "/fib", Value::Null),
            (&delete, "/routes", "/routes?prefix=/a&face_id=257", Value::Null),
            (&put, "/strategies", "/strategies", json!({"prefix": "/a", "strategy": "asf"})),
            (&get, "/strategies", "/strategies?limit=1", Value::Null),
            (&get, "/strategies/available", "/strategies/available", Value::Null),
            (&delete, "/strategies", "/strategies?prefix=/a", Value::Null),
            (&get, "/cs", "/cs", Value::Null),
            (&post, "/cs", "/cs", json!({"capacity_packets": 10})),
            (&post, "/cs/erase", "/cs/erase", json!({"prefix": "/"})),
            (&get, "/ndt", "/ndt", Value::Null),
            (&post, "/ndt/move", "/ndt/move", json!({"name": "/a", "worker": 1})),
            (&get, "/latency", "/latency", Value::Null),
            (&post, "/latency", "/latency", json!({"one_in": 1024})),
            (&post, "/trace", "/trace", json!({"name": "/a", "count": 1000, "seconds": 0})),
            (&delete, "/faces/{id}", "/faces/257", Value::Null),
            (&get, "/openapi.json", "/openapi.json", Value::Null),
        ] {
            let (method, template, path, body) = request;
            expect(&scene, &mut done, method.clone(), template, path, body).await;
        }
        let description = described();
        for (path, item) in description["paths"].as_object().expect("paths") {
            for method in item.as_object().expect("operations").keys().map(|method| method.to_ascii_uppercase()) {
                let request = format!("{method} {}", path.trim_start_matches(ROOT));
                // Only a whole router can compile programs, so these requests are tested elsewhere.
                assert!(request.contains("/strategies/loaded") || done.contains(&request), "{request} must be tested");
            }
        }
        // Errors are described as well.
        let error = scene.change(Method::POST, "/cs", "{").await;
        let schema = json!({"$ref": "#/components/schemas/ErrorView"});
        assert_eq!(fault(&error.json(), &schema, &description), None);
    });
}

#[test]
fn parts_of_the_status_that_a_small_router_has_not_are_as_described() {
    let description = described();
    let reported = ReadvertiseStatus {
        destination: "daemon".to_owned(),
        command_prefix: name("/localhost/nlsr/rib"),
        face_ids: vec![301],
        announced_prefixes: 3,
        waiting_prefixes: 0,
        refused_prefixes: 1,
        withdrawing_prefixes: 0,
        counters: ReadvertiseCounters::default(),
        last_error: Some(ReadvertiseError { prefix: name("/a"), reason: "403 no".to_owned(), age_ms: 1_500 }),
    };
    let view = serde_json::to_value(crate::views::ReadvertiseView::from(&reported)).expect("JSON");
    let schema = json!({"$ref": "#/components/schemas/ReadvertiseView"});
    assert_eq!(fault(&view, &schema, &description), None);
}
