//! Malformed and malicious requests: the server answers or closes each, and then still answers others.

use std::net::SocketAddr;
use std::time::Duration;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::*;
use crate::http::tests::listening;
use crate::metrics::Snapshot;
use crate::server::ControlPlane;

/// Timeout of each step; far longer than a step takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server on a socket.
struct Served {
    address: SocketAddr,
    management: Rc<Management<FakeRouter>>,
}

async fn served() -> Served {
    let server = listening();
    let (address, management) = (server.local_address(), management());
    let (inside, answering) = management.inside();
    spawn_local(answering);
    spawn_local(server.with_api(inside, Some(ApiToken::new(TOKEN)), true).run(Snapshot::default));
    Served { address, management }
}

impl Served {
    /// Sends bytes and returns the answer until the server closes.
    async fn exchange(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = TcpStream::connect(self.address).await.expect("connected");
        let mut answer = Vec::new();
        // If the server closes before it has read everything, the rest is reset.
        let _ = stream.write_all(bytes).await;
        let _ = timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("the server answers or closes");
        answer
    }

    async fn status_of(&self, request: &str) -> u16 {
        let answer = self.exchange(request.as_bytes()).await;
        let line = String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned();
        line.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0)
    }

    /// Checks that the server still answers a valid request.
    async fn expect_well(&self) {
        assert_eq!(self.status_of("GET /api/v1/cs HTTP/1.1\r\nHost: localhost\r\n\r\n").await, 200);
    }
}

#[test]
fn requests_that_are_too_long_or_incomplete_are_refused() {
    run(async {
        let served = served().await;
        let long = "x".repeat(100_000);
        let put = format!(
            "PUT /api/v1/routes HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\
             Content-Type: application/json\r\n"
        );
        let many: String = (0..200).map(|number| format!("X-{number}: y\r\n")).collect();
        for (request, statuses) in [
            (format!("GET /api/v1/{long} HTTP/1.1\r\nHost: localhost\r\n\r\n"), &[0, 414, 431][..]),
            (format!("GET /api/v1/cs HTTP/1.1\r\nHost: localhost\r\nX: {long}\r\n\r\n"), &[0, 431]),
            (format!("GET /api/v1/cs HTTP/1.1\r\nHost: localhost\r\n{many}\r\n"), &[431]),
            (format!("{put}Content-Length: 99999999999\r\n\r\n"), &[413]),
            (format!("{put}Content-Length: 99999999999999999999999\r\n\r\n"), &[0, 400]),
            (format!("{put}Content-Length: -1\r\n\r\n"), &[400]),
            (format!("{put}Transfer-Encoding: chunked\r\n\r\n186A0\r\n{long}\r\n0\r\n\r\n"), &[0, 413]),
            (format!("{put}Transfer-Encoding: chunked\r\n\r\nnonsense\r\n"), &[400]),
            (format!("{put}Content-Length: 100\r\n\r\n{{"), &[408]),
            (format!("{put}\r\n"), &[400]),
            ("GET /api/v1/cs HTTP/1.1\r\nHost: evil.example\r\n\r\n".to_owned(), &[421]),
            ("GET http://evil.example/api/v1/cs HTTP/1.1\r\nHost: evil.example\r\n\r\n".to_owned(), &[421]),
            ("GET /metrics/../api/v1/cs HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(), &[404]),
            ("GET /api/v2/cs HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(), &[404]),
            ("FETCH /api/v1/cs HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(), &[401]),
            ("CONNECT localhost:1 HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(), &[404, 401]),
            ("\u{16}\u{3}\u{1}\0\0".to_owned(), &[0, 400]),
            (String::new(), &[0]),
        ] {
            let status = served.status_of(&request).await;
            assert!(statuses.contains(&status), "{status}: {:.80}", request);
            served.expect_well().await;
        }
        assert!(served.management.control().changes.borrow().is_empty());
    });
}

#[test]
fn a_body_that_does_not_come_ends_its_request() {
    run(async {
        let served = served().await;
        let mut stream = TcpStream::connect(served.address).await.expect("connected");
        let head = format!(
            "PUT /api/v1/routes HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\
             Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{"
        );
        stream.write_all(head.as_bytes()).await.expect("written");
        let mut answer = String::new();
        timeout(PATIENCE, stream.read_to_string(&mut answer)).await.expect("in time").expect("read");
        assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    });
}

#[test]
fn the_host_is_checked_before_anything_else_and_refused_in_json() {
    run(async {
        let served = served().await;
        let answer = served.exchange(b"GET /api/v1/cs HTTP/1.1\r\nHost: rebound.example\r\n\r\n").await;
        let text = String::from_utf8(answer).expect("text");
        assert!(text.starts_with("HTTP/1.1 421") && text.contains("application/json"), "{text}");
        let body: Value = serde_json::from_str(text.split("\r\n\r\n").nth(1).expect("a body")).expect("JSON");
        assert!(body["error"].as_str().expect("an error").contains("allowed_hosts"));
        let listed = served.exchange(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
        assert!(String::from_utf8(listed).expect("text").contains("/api/v1/openapi.json"));
    });
}

#[test]
fn clients_that_read_nothing_block_no_others() {
    run(async {
        let served = served().await;
        for number in 0..20_000 {
            let prefix = name(&format!("/a-prefix-that-is-not-short/{number}"));
            let face = crate::testing::APP;
            served.management.control().with_fib(|fib| fib.add_nexthop(prefix.as_ref(), face, 1)).expect("room");
        }
        let mut silent = Vec::new();
        for _ in 0..100 {
            let mut stream = TcpStream::connect(served.address).await.expect("connected");
            stream.write_all(b"GET /api/v1/fib HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("written");
            silent.push(stream);
        }
        for _ in 0..10 {
            timeout(PATIENCE, served.expect_well()).await.expect("in time");
        }
    });
}

/// Generates the parts of something similar to a request.
fn request() -> impl Strategy<Value = (String, String, Vec<(String, String)>, Vec<u8>)> {
    let method = prop_oneof![
        Just("GET".to_owned()),
        Just("PUT".to_owned()),
        Just("POST".to_owned()),
        Just("PATCH".to_owned()),
        Just("DELETE".to_owned()),
        "[A-Z]{1,8}"
    ];
    let resource = prop_oneof![
        prop::sample::select(vec![
            "faces",
            "faces/257",
            "fib",
            "routes",
            "strategies",
            "strategies/loaded",
            "strategies/loaded/x",
            "cs",
            "cs/erase",
            "ndt",
            "ndt/move",
            "status"
        ])
        .prop_map(str::to_owned),
        "[a-z0-9%./]{0,20}",
    ];
    let query = prop_oneof![
        Just(String::new()),
        "\\?(limit|after|prefix|face_id|origin|scheme|name)=[a-z0-9%/.~-]{0,12}(&[a-z]{1,8}=[a-z0-9%/]{0,8})?",
        "\\?[!-~&&[^#\"<>\\\\^`{|}]]{0,30}"
    ];
    let text = "[ -~]{0,40}";
    let headers = prop::collection::vec(
        (
            prop::sample::select(vec!["content-type", "origin", "sec-fetch-site", "content-length", "x-any", "expect"]),
            text,
        ),
        0..3,
    );
    let headers =
        headers.prop_map(|headers| headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect());
    let value = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        any::<i64>().prop_map(|number| number.to_string()),
        any::<u64>().prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| number.to_string()),
        "[a-z/%0-9:.~-]{0,24}".prop_map(|text| format!("\"{text}\"")),
        Just("[[[]]]".to_owned()),
        Just("\"udp4://192.0.2.9:6363\"".to_owned()),
        Just("257".to_owned()),
    ];
    let field = prop::sample::select(vec![
        "uri",
        "local_uri",
        "prefix",
        "face_id",
        "cost",
        "origin",
        "flags",
        "expires_ms",
        "persistency",
        "mtu_bytes",
        "count",
        "strategy",
        "name",
        "worker",
        "capacity_packets",
        "admit",
        "serve",
        "reliability",
    ]);
    let object = prop::collection::vec((field, value), 0..6).prop_map(|fields| {
        let fields: Vec<String> = fields.iter().map(|(field, value)| format!("\"{field}\":{value}")).collect();
        format!("{{{}}}", fields.join(",")).into_bytes()
    });
    let body = prop_oneof![3 => object, 1 => prop::collection::vec(any::<u8>(), 0..200), 1 => Just(vec![b'['; 10_000])];
    let path = (resource, query).prop_map(|(resource, query)| format!("/api/v1/{resource}{query}"));
    (method, path, headers, body)
}

#[test]
fn every_request_has_an_answer_in_json() {
    run(async {
        let scene = Scene::new();
        scene.router().connect_time.set(Duration::ZERO);
        let mut runner = TestRunner::deterministic();
        let strategy = request();
        for _ in 0..3000 {
            let (method, path, headers, body) = strategy.new_tree(&mut runner).expect("made").current();
            let authorization = format!("Bearer {TOKEN}");
            let mut all = vec![("authorization", &*authorization)];
            let is_typed = headers.iter().any(|(name, _)| name == "content-type");
            if !is_typed {
                all.push(("content-type", "application/json"));
            }
            all.extend(headers.iter().map(|(name, value)| (&**name, &**value)));
            let method = Method::from_bytes(method.as_bytes()).expect("a method");
            let answer = scene.send(method.clone(), &path, &all, body.clone()).await;
            assert_ne!(
                answer.status,
                StatusCode::INTERNAL_SERVER_ERROR,
                "{method} {path} {headers:?} {:?}",
                String::from_utf8_lossy(&body)
            );
            if !answer.status.is_success() && method != Method::HEAD {
                answer.error();
            }
        }
    });
}

#[test]
fn random_bytes_do_no_harm() {
    run(async {
        let served = served().await;
        let mut runner = TestRunner::deterministic();
        let noise = prop::collection::vec(any::<u8>(), 0..300);
        let head = "(GET|POST|PUT) /api/v1/[a-z]{0,8} HTTP/1.[01]\r\n([A-Za-z-]{1,10}: [ -~]{0,20}\r\n){0,5}\r\n";
        let mut bytes = (0..150).map(|number| {
            let mut bytes = match number % 3 {
                0 => Vec::new(),
                _ => head.new_tree(&mut runner).expect("made").current().into_bytes(),
            };
            bytes.extend(noise.new_tree(&mut runner).expect("made").current());
            bytes
        });
        // Incomplete requests last until their timeout, so they are sent together.
        while let Some(first) = bytes.next() {
            let others: Vec<Vec<u8>> = bytes.by_ref().take(24).collect();
            let exchanges = others.iter().map(|bytes| served.exchange(bytes));
            futures_util::future::join(served.exchange(&first), futures_util::future::join_all(exchanges)).await;
        }
        served.expect_well().await;
        assert!(served.management.control().changes.borrow().is_empty());
    });
}
