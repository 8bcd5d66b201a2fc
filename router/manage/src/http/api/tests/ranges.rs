//! Checks that the code accepts exactly the described values: each parameter of each request at and beyond its limits.

use proptest::strategy::{Strategy, ValueTree};
use proptest::string::string_regex;
use proptest::test_runner::TestRunner;
use serde_json::{Map, json};

use super::described::{described, operation};
use super::*;

/// Returns valid requests with all their parameters: method, described path, path, query, body.
fn requests() -> Vec<(Method, &'static str, &'static str, Value, Value)> {
    let page = |more: Value| {
        let mut query = json!({"limit": "10", "after": "0"});
        query.as_object_mut().expect("a query").extend(more.as_object().expect("a query").clone());
        query
    };
    let properties = json!({
        "persistency": "permanent", "local_fields": false, "reliability": false, "congestion_marking": true,
        "keep_alive": true, "pit_tokens": "auto", "congestion_interval_ns": 1000, "congestion_threshold_bytes": 1000,
        "mtu_bytes": 1400,
    });
    let mut face = properties.clone();
    face["uri"] = json!("udp4://192.0.2.9:6363");
    let route = json!({
        "prefix": "/a", "face_id": 257, "origin": "static", "cost": 1, "flags": "capture", "expires_ms": 100_000,
    });
    let cs = json!({"capacity_packets": 10, "admit": true, "serve": true, "policy": "lru"});
    vec![
        (Method::GET, "/faces", "/faces", page(json!({"remote": "x", "local": "x", "scheme": "udp4"})), Value::Null),
        (Method::POST, "/faces", "/faces", json!({}), face),
        (Method::GET, "/faces/{id}", "/faces/{id}", json!({}), Value::Null),
        (Method::PATCH, "/faces/{id}", "/faces/{id}", json!({}), properties),
        (Method::GET, "/fib", "/fib", page(json!({"prefix": "/a"})), Value::Null),
        (
            Method::GET,
            "/routes",
            "/routes",
            page(json!({"prefix": "/a", "face_id": "257", "origin": "app"})),
            Value::Null,
        ),
        (Method::PUT, "/routes", "/routes", json!({}), route),
        (Method::DELETE, "/routes", "/routes", json!({"prefix": "/a", "face_id": "257", "origin": "app"}), Value::Null),
        (Method::GET, "/strategies", "/strategies", json!({"limit": "10", "after": "/a", "prefix": "/a"}), Value::Null),
        (Method::PUT, "/strategies", "/strategies", json!({}), json!({"prefix": "/a", "strategy": "asf"})),
        (Method::DELETE, "/strategies", "/strategies", json!({"prefix": "/a"}), Value::Null),
        (Method::POST, "/cs", "/cs", json!({}), cs),
        (Method::POST, "/cs/erase", "/cs/erase", json!({}), json!({"prefix": "/a", "count": 10})),
        (Method::POST, "/ndt/move", "/ndt/move", json!({}), json!({"name": "/a", "worker": 1})),
        (Method::POST, "/trace", "/trace", json!({}), json!({"name": "/a", "count": 10, "seconds": 0})),
        (Method::POST, "/latency", "/latency", json!({}), json!({"one_in": 1024})),
        (Method::DELETE, "/faces/{id}", "/faces/{id}", json!({}), Value::Null),
    ]
}

/// Returns the schema with references resolved, and without the alternative `null`.
fn resolved<'a>(schema: &'a Value, description: &'a Value) -> &'a Value {
    if let Some(reference) = schema["$ref"].as_str() {
        return resolved(description.pointer(reference.trim_start_matches('#')).expect("a schema"), description);
    }
    let choices = schema["oneOf"].as_array().or(schema["anyOf"].as_array());
    let other = choices.and_then(|choices| choices.iter().find(|choice| choice["type"] != "null"));
    other.map_or(schema, |other| resolved(other, description))
}

fn is_of(schema: &Value, wanted: &str) -> bool {
    schema["type"] == wanted || schema["type"].as_array().is_some_and(|types| types.iter().any(|one| one == wanted))
}

/// Returns values that the schema allows, and values that it does not.
fn values(schema: &Value, runner: &mut TestRunner) -> (Vec<Value>, Vec<Value>) {
    if is_of(schema, "integer") {
        let (low, high) =
            (schema["minimum"].as_u64().expect("a minimum"), schema["maximum"].as_u64().expect("a maximum"));
        let beyond = match high.checked_add(1) {
            Some(beyond) => json!(beyond),
            None => json!(18_446_744_073_709_551_616_f64),
        };
        let below = low.checked_sub(1).map_or(json!(-1), |below| json!(below));
        return (
            vec![json!(low), json!(high), json!(low + (high - low) / 2)],
            vec![below, beyond, json!(low as f64 + 0.5), json!("x"), json!(true)],
        );
    }
    if is_of(schema, "number") {
        let (low, high) =
            (schema["minimum"].as_f64().expect("a minimum"), schema["maximum"].as_f64().expect("a maximum"));
        // Without the maximum, because a trace of that duration would take as long.
        return (
            vec![json!(low), json!(low + 0.01)],
            vec![json!(low - 0.5), json!(high + 0.5), json!(1e300), json!("x")],
        );
    }
    if is_of(schema, "boolean") {
        return (vec![json!(true), json!(false)], vec![json!("x"), json!(1), json!([])]);
    }
    if let Some(members) = schema["enum"].as_array() {
        return (members.clone(), vec![json!(""), json!("x"), json!(1)]);
    }
    assert!(is_of(schema, "string"), "{schema}");
    let Some(pattern) = schema["pattern"].as_str() else { return (Vec::new(), Vec::new()) };
    let samples = string_regex(pattern.trim_start_matches('^').trim_end_matches('$')).expect("a pattern");
    let valid = (0..30).map(|_| json!(samples.new_tree(runner).expect("made").current())).collect();
    let invalid = ["", " ", "+1", "-1", "1.5", "x!", ",", "1,", "999999999999999999999", "App"].map(|text| json!(text));
    (valid, invalid.to_vec())
}

/// Returns true if the form of a request is accepted, regardless of its outcome.
async fn is_taken(scene: &Scene, method: &Method, path: &str, query: &Value, body: &Value) -> bool {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let pairs: Vec<String> = query
        .as_object()
        .expect("a query")
        .iter()
        .map(|(name, value)| {
            let bytes: String = text(value).bytes().map(|byte| format!("%{byte:02X}")).collect();
            format!("{name}={bytes}")
        })
        .collect();
    let path = format!("{path}?{}", pairs.join("&"));
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let answer = scene.change(method.clone(), &path, &body).await;
    assert_ne!(answer.status, StatusCode::INTERNAL_SERVER_ERROR, "{method} {path} {body}");
    answer.status != StatusCode::BAD_REQUEST
}

#[test]
fn each_parameter_is_taken_within_its_range_and_refused_beyond() {
    run(async {
        let scene = Scene::new();
        scene.router().connect_time.set(std::time::Duration::ZERO);
        let description = described();
        let mut runner = TestRunner::deterministic();
        let (mut checked, mut wrong) = (0, Vec::new());
        for (method, template, path, query, body) in requests() {
            let operation = operation(&description, &method, template);
            let concrete = path.replace("{id}", "257");
            assert!(is_taken(&scene, &method, &concrete, &query, &body).await, "{method} {path} {query} {body}");
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let (name, schema) =
                    (parameter["name"].as_str().expect("a name"), resolved(&parameter["schema"], &description));
                let (valid, invalid) = values(schema, &mut runner);
                for (value, is_valid) in
                    valid.iter().map(|value| (value, true)).chain(invalid.iter().map(|value| (value, false)))
                {
                    checked += 1;
                    let is_right = if parameter["in"] == "path" {
                        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                        is_taken(&scene, &method, &path.replace("{id}", &text), &query, &body).await
                    } else {
                        assert!(query.get(name).is_some(), "{method} {path}: the test must have a value for {name}");
                        let mut query = query.clone();
                        query[name] = value.clone();
                        is_taken(&scene, &method, &concrete, &query, &body).await
                    };
                    if is_right != is_valid {
                        wrong.push(format!("{method} {path} {name}={value}: valid is {is_right}"));
                    }
                }
            }
            let schema = resolved(&operation["requestBody"]["content"]["application/json"]["schema"], &description);
            let mut properties = Map::new();
            let parts = schema["allOf"].as_array().cloned().unwrap_or_else(|| vec![schema.clone()]);
            for part in &parts {
                properties.extend(resolved(part, &description)["properties"].as_object().cloned().unwrap_or_default());
            }
            for (name, schema) in &properties {
                let (valid, invalid) = values(resolved(schema, &description), &mut runner);
                assert!(
                    valid.is_empty() || body.get(name).is_some(),
                    "{method} {path}: the test must have a value for {name}"
                );
                for (value, is_valid) in
                    valid.iter().map(|value| (value, true)).chain(invalid.iter().map(|value| (value, false)))
                {
                    checked += 1;
                    let mut body = body.clone();
                    body[name] = value.clone();
                    let is_right = is_taken(&scene, &method, &concrete, &query, &body).await;
                    if is_right != is_valid {
                        wrong.push(format!("{method} {path} {name}: {value}: valid is {is_right}"));
                    }
                }
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
        assert!(checked > 300, "{checked}");
    });
}
