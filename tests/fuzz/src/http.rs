//! The HTTP server on one connection: for any input it closes the connection, sends only answers that HTTP and the API
//! allow, and changes nothing without the token.

use namehop_manage::authentication::{Authenticator, SecurityConfig};
use namehop_manage::http::{ApiToken, answer_stream};
use namehop_manage::server::Management;
use namehop_manage::testing::FakeRouter;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::task::{LocalSet, spawn_local};

/// The token of the API; inputs may contain it.
const TOKEN: &str = "0123456789abcdef";
/// Capacity of each direction in bytes: less than inputs and answers have, so that both ends block.
const WINDOW_BYTES: usize = 256;

/// Sends the bytes as a client and then waits for the end.
pub fn http_request(bytes: &[u8]) {
    // The clock only moves when all tasks wait, so that timeouts cost no time.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    LocalSet::new().block_on(&runtime.expect("a runtime"), run(bytes.to_vec()));
}

async fn run(request: Vec<u8>) {
    let knows_token = request.windows(TOKEN.len()).any(|window| window == TOKEN.as_bytes());
    let authenticator = Authenticator::new(&SecurityConfig::default()).expect("no certificates");
    let management = Management::new(FakeRouter::default(), authenticator, |_| {});
    let (inside, answering) = management.inside();
    spawn_local(answering);
    let (client, server) = duplex(WINDOW_BYTES);
    spawn_local(answer_stream(server, inside, ApiToken::new(TOKEN)));
    let (mut from_server, mut to_server) = tokio::io::split(client);
    let sending = spawn_local(async move {
        // The server may close before it has received everything.
        let _ = to_server.write_all(&request).await;
        to_server
    });
    let mut answer = Vec::new();
    from_server.read_to_end(&mut answer).await.expect("memory fails never");
    drop(sending.await.expect("no panic"));
    check(&answer);
    if !knows_token {
        let router = management.control();
        assert_eq!(*router.changes.borrow(), Vec::<String>::new(), "changed without the token");
        assert!(router.traced.borrow().is_none(), "traced without the token");
    }
}

/// Checks that the answer is empty, or an HTTP 1.0 or 1.1 response with a body of its content type.
fn check(answer: &[u8]) {
    if answer.is_empty() {
        return;
    }
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").expect("a whole header") + 4;
    let header = std::str::from_utf8(&answer[..end]).expect("headers are text");
    let status = header.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)?.parse::<u16>().ok());
    assert!(status.is_some_and(|status| (100..600).contains(&status)), "{header}");
    let body = &answer[end..];
    if header.contains("content-type: application/json") && !body.is_empty() {
        let view: Value = serde_json::from_slice(body).unwrap_or_else(|error| panic!("{error}: {header}"));
        let is_error = status.is_some_and(|status| status >= 400);
        assert!(!is_error || view["error"].is_string(), "{view}");
    }
}
