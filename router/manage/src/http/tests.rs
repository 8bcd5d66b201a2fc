//! The HTTP server over connections.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;

#[test]
fn every_endpoint_is_documented() {
    let documentation = include_str!("../../../../docs/operation.md");
    for endpoint in &ENDPOINTS {
        assert!(documentation.contains(endpoint.path), "{}", endpoint.path);
    }
}

/// Creates a server that listens on a loopback address.
pub(super) fn listening() -> HttpServer {
    BoundHttp::new(SocketAddr::from(([127, 0, 0, 1], 0))).and_then(BoundHttp::listen).expect("listens")
}

async fn get(address: SocketAddr, path: &str) -> String {
    get_from(address, path, "localhost").await
}

async fn get_from(address: SocketAddr, path: &str, host: &str) -> String {
    let mut stream = TcpStream::connect(address).await.expect("connected");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("written");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("read");
    answer
}

#[tokio::test]
async fn the_server_answers_over_http() {
    let server = listening();
    let address = server.local_address();
    let task = tokio::spawn(server.run(Snapshot::default));
    let metrics = get(address, "/metrics").await;
    assert!(metrics.starts_with("HTTP/1.1 200"), "{metrics}");
    assert!(metrics.contains("content-type: application/openmetrics-text"));
    assert!(metrics.contains("namehop_rib_routes 0"));
    let listed = get(address, "/").await;
    assert!(ENDPOINTS.iter().all(|endpoint| listed.contains(endpoint.path)), "{listed}");
    assert!(get(address, "/else").await.starts_with("HTTP/1.1 404"));
    task.abort();
}

#[tokio::test]
async fn a_failing_snapshot_is_a_server_error() {
    let server = listening();
    let address = server.local_address();
    let task = tokio::spawn(server.run(|| panic!("no snapshot")));
    assert!(get(address, "/metrics").await.starts_with("HTTP/1.1 500"));
    task.abort();
}

#[tokio::test]
async fn a_taken_port_is_named() {
    let first = listening();
    let error = BoundHttp::new(first.local_address()).expect_err("the port is in use");
    assert!(error.to_string().contains(&first.local_address().port().to_string()), "{error}");
    let missing = SocketAddr::from(([192, 0, 2, 1], 0));
    assert_eq!(BoundHttp::new(missing).expect("waits").local_address().ip(), missing.ip());
}

#[tokio::test]
async fn requests_for_another_host_are_refused() {
    let server = listening();
    let address = server.local_address();
    let task = tokio::spawn(server.allow_hosts(vec!["router.example".to_owned()]).run(Snapshot::default));
    for path in ["/metrics", "/"] {
        let refused = get_from(address, path, "rebound.example").await;
        assert!(refused.starts_with("HTTP/1.1 421") && refused.contains("allowed_hosts"), "{refused}");
        assert!(!refused.contains("namehop_"), "{refused}");
        assert!(get_from(address, path, "router.example:9697").await.starts_with("HTTP/1.1 200"));
        assert!(get_from(address, path, &address.to_string()).await.starts_with("HTTP/1.1 200"));
    }
    task.abort();
}

#[tokio::test]
async fn clients_that_send_nothing_are_closed_and_block_no_others() {
    let server = listening();
    let address = server.local_address();
    let task = tokio::spawn(server.run(Snapshot::default));
    let mut silent = Vec::new();
    for _ in 0..100 {
        let mut stream = TcpStream::connect(address).await.expect("connected");
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: local").await.expect("written");
        silent.push(stream);
    }
    assert!(get(address, "/metrics").await.starts_with("HTTP/1.1 200"));
    // The first was closed because there were too many, the last because its request was not complete in time.
    for stream in [0, 99] {
        let mut rest = Vec::new();
        let closed =
            tokio::time::timeout(std::time::Duration::from_secs(20), silent[stream].read_to_end(&mut rest)).await;
        // Some systems report unread bytes as a reset.
        let _ = closed.expect("closed");
    }
    task.abort();
}

/// Starts a server that needs 300 ms for a snapshot.
async fn slow_server() -> (SocketAddr, tokio::task::JoinHandle<()>) {
    let server = listening();
    let address = server.local_address();
    let snapshot = || {
        std::thread::sleep(std::time::Duration::from_millis(300));
        Snapshot::default()
    };
    (address, tokio::spawn(server.run(snapshot)))
}

#[tokio::test]
async fn a_flood_of_connections_without_requests_cuts_off_no_answer() {
    let (address, task) = slow_server().await;
    let flood = tokio::spawn(async move {
        let mut silent = std::collections::VecDeque::new();
        loop {
            let mut stream = TcpStream::connect(address).await.expect("connected");
            // Two thirds of them begin a request; some announce a body that they never send.
            let begun: &[u8] = match silent.len() % 3 {
                0 => b"",
                1 => b"GET /metrics HTTP/1.1\r\nHost: local",
                _ => b"PUT /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
            };
            let _ = stream.write_all(begun).await;
            silent.push_back(stream);
            if silent.len() > 500 {
                silent.pop_front();
            }
        }
    });
    for _ in 0..5 {
        let answers = futures_util::future::join_all((0..4).map(|_| get(address, "/metrics"))).await;
        assert!(answers.iter().all(|answer| answer.ends_with("# EOF\n")));
    }
    flood.abort();
    task.abort();
}

#[tokio::test]
async fn requests_beyond_the_limit_wait_and_are_answered() {
    let (address, task) = slow_server().await;
    let answers = futures_util::future::join_all((0..80).map(|_| get(address, "/"))).await;
    assert!(answers.iter().all(|answer| answer.starts_with("HTTP/1.1 200")));
    let answers = futures_util::future::join_all((0..40).map(|_| get(address, "/metrics"))).await;
    assert!(answers.iter().all(|answer| answer.ends_with("# EOF\n")));
    task.abort();
}
