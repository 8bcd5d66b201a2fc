//! A trace over HTTP.

use std::time::Duration;

use namehop_client::nfd::numbers::MAX_TRACED_PACKETS;
use namehop_engine::trace::{PacketTrace, TraceStep, TraceSubject};
use namehop_packet::{DropReason, FaceId, Timestamp};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::described::{described, operation};
use super::schema::fault;
use super::*;

fn packet(time_ns: u64, face: u32) -> PacketTrace {
    let steps = vec![TraceStep::NotPending, TraceStep::Dropped(DropReason::PitFull)];
    PacketTrace {
        time: Timestamp(time_ns),
        subject: TraceSubject::Interest,
        face: FaceId(face),
        name: name("/A/1"),
        steps,
    }
}

/// Requests a trace, and waits until it runs.
async fn begin(scene: &Rc<Scene>, body: Value) -> tokio::task::JoinHandle<Answer> {
    let asking = Rc::clone(scene);
    let answer = spawn_local(async move { asking.change(Method::POST, "/trace", &body.to_string()).await });
    while scene.router().traced.borrow().is_none() {
        sleep(Duration::from_millis(1)).await;
    }
    answer
}

#[test]
fn the_answer_comes_when_there_are_enough_packets() {
    run(async {
        let scene = Rc::new(Scene::new());
        let answer = begin(&scene, json!({"name": "/A", "count": 2, "seconds": 20})).await;
        let second = scene.change(Method::POST, "/trace", r#"{"name":"/"}"#).await;
        assert_eq!(second.status, StatusCode::CONFLICT);
        assert!(second.error().contains("a trace is running"));
        for (time_ns, face) in [(1_000_000_000, 256), (1_500_000_000, 0), (1_600_000_000, 256)] {
            scene.management.traced(1, &packet(time_ns, face));
        }
        let answer = answer.await.expect("an answer");
        let step = |stage: &str, text: &str| json!({"stage": stage, "text": text});
        let steps = [step("pit", "not pending: new entry"), step("drop", "pit-full")];
        let traced = |time_s: f64, face: Value| {
            json!({
                "time_s": time_s, "worker": 1, "face": face, "subject": "interest", "name": "/A/1", "steps": steps,
            })
        };
        assert_eq!(
            (answer.status, answer.json()),
            (StatusCode::OK, json!([traced(0.0, json!(256)), traced(0.5, Value::Null)]))
        );
        let description = described();
        let schema =
            &operation(&description, &Method::POST, "/trace")["responses"]["200"]["content"]["application/json"];
        assert_eq!(fault(&answer.json(), &schema["schema"], &description), None);
        assert!(scene.router().traced.borrow().is_none(), "the workers must stop tracing");
    });
}

#[test]
fn the_answer_comes_when_the_time_is_over_and_then_another_trace_can_run() {
    run(async {
        let scene = Rc::new(Scene::new());
        for _ in 0..2 {
            let began = Instant::now();
            let answer = begin(&scene, json!({"name": "/", "seconds": 0.2})).await;
            scene.management.traced(0, &packet(7, 256));
            let answer = answer.await.expect("an answer");
            assert_eq!(answer.json().as_array().expect("packets").len(), 1);
            assert!(began.elapsed() >= Duration::from_millis(200));
            assert!(scene.router().traced.borrow().is_none());
        }
        let none = scene.change(Method::POST, "/trace", r#"{"name":"/","seconds":0}"#).await;
        assert_eq!((none.status, none.json()), (StatusCode::OK, json!([])));
    });
}

#[test]
fn a_trace_has_limits_and_needs_the_token() {
    run(async {
        let scene = Scene::new();
        let most = MAX_TRACED_PACKETS + 1;
        for (body, text) in [
            (json!({}), "name"),
            (json!({"name": "/%"}), "name"),
            (json!({"name": "/", "count": 0}), "count must be from 1 to 1000"),
            (json!({"name": "/", "count": most}), "count must be from 1 to 1000"),
            (json!({"name": "/", "seconds": -1}), "seconds must be from 0 to 20"),
            (json!({"name": "/", "seconds": 20.1}), "seconds must be from 0 to 20"),
            (json!({"name": "/", "packets": 1}), "unknown field"),
        ] {
            let answer = scene.change(Method::POST, "/trace", &body.to_string()).await;
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{body}: {answer:?}");
            assert!(answer.error().contains(text), "{body}: {}", answer.error());
        }
        let json = [("content-type", "application/json")];
        let unauthorized = scene.send(Method::POST, "/api/v1/trace", &json, r#"{"name":"/"}"#).await;
        assert_eq!(unauthorized.status, StatusCode::UNAUTHORIZED);
        assert!(scene.router().traced.borrow().is_none());
        let count = &described()["components"]["schemas"]["NewTrace"]["properties"]["count"]["maximum"];
        assert_eq!(*count, json!(MAX_TRACED_PACKETS), "the description has the same limit");
    });
}
