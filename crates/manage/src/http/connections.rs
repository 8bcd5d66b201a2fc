//! Connections of the metrics server, and the check of the Host header.
//!
//! Connections are limited in number and time, so that clients that say nothing, or read nothing, use up no file descriptors;
//! and when there are too many, the oldest gives way, so that they keep nobody out: whoever wants metrics is done in
//! milliseconds. A page in a web browser can have its own name lead to this computer (DNS
//! rebinding) and would then read the answers as its own: so a client must ask for a name that is this router's.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::HOST;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

/// Connections at a time. Whoever collects metrics needs one.
const MAX_CONNECTIONS: usize = 32;
/// How long a client may take for the header of its request.
const HEADER_TIMEOUT: Duration = Duration::from_millis(if cfg!(test) { 100 } else { 3000 });
/// How long a connection may take in all, to the last byte of the answer.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(30);
/// Pause after a connection could not be accepted, because file descriptors ran out for instance.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Serves one request on each connection, for ever.
pub(super) async fn serve(listener: TcpListener, router: Router) {
    let mut connections: VecDeque<AbortHandle> = VecDeque::new();
    let mut is_failing = false;
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                if !is_failing {
                    tracing::warn!(%error, "a connection for metrics was not accepted; trying again");
                }
                is_failing = true;
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        is_failing = false;
        connections.retain(|connection| !connection.is_finished());
        if connections.len() >= MAX_CONNECTIONS {
            connections.pop_front().iter().for_each(AbortHandle::abort);
        }
        let service = TowerToHyperService::new(router.clone());
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_TIMEOUT)
            .keep_alive(false)
            .serve_connection(TokioIo::new(stream), service);
        // What goes wrong on a connection concerns its client, who notices.
        let task = tokio::spawn(async move { drop(timeout(CONNECTION_TIMEOUT, connection).await) });
        connections.push_back(task.abort_handle());
    }
}

/// Passes on requests for this computer, and refuses those that were made out to somebody else.
pub(super) async fn check_host(allowed: Arc<Vec<String>>, request: Request, next: Next) -> Response {
    // A browser always sends one; other clients may be old.
    let mut hosts = request.headers().get_all(HOST).iter();
    if hosts.all(|host| host.to_str().is_ok_and(|host| is_allowed(host, &allowed))) {
        return next.run(request).await;
    }
    let text = "this server does not answer under that name: ask for an address or localhost, or list the name in \
                `allowed_hosts` in section [metrics]\n";
    (StatusCode::MISDIRECTED_REQUEST, text).into_response()
}

/// Is this Host that of the router? Addresses are: only names can be led astray.
fn is_allowed(host: &str, allowed: &[String]) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => {
            return rest.split_once(']').is_some_and(|(address, _)| address.parse::<Ipv6Addr>().is_ok());
        }
        None => host.split_once(':').map_or(host, |(name, _)| name),
    };
    let name = name.strip_suffix('.').unwrap_or(name);
    name.parse::<Ipv4Addr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || allowed.iter().any(|allowed| allowed == "*" || allowed.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_localhost_and_listed_names_are_allowed() {
        let allowed = ["router.example".to_owned()];
        for host in [
            "localhost",
            "LocalHost:9697",
            "localhost.",
            "127.0.0.1",
            "127.0.0.1:9697",
            "192.0.2.1",
            "[::1]",
            "[::1]:9697",
            "router.example",
            "Router.Example:80",
        ] {
            assert!(is_allowed(host, &allowed), "{host}");
        }
        for host in [
            "",
            ":",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "router.example.evil",
            "[evil]",
            "[::1",
            "2130706433x",
            "evil.example:9697",
            "sub.localhost",
        ] {
            assert!(!is_allowed(host, &allowed), "{host}");
        }
        assert!(is_allowed("anything", &["*".to_owned()]));
    }
}
