//! Connections of the HTTP server, limited in number and time.
//!
//! Clients that send nothing, or read nothing, thus use up no file descriptors. When there are too many connections, the oldest is
//! closed, so that such clients keep nobody out: other clients are done in milliseconds.

use std::collections::VecDeque;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

/// Connections at a time. Whoever collects metrics needs one.
const MAX_CONNECTIONS: usize = 32;
/// How long a client may take for the header of its request.
const HEADER_TIMEOUT: Duration = Duration::from_millis(if cfg!(test) { 100 } else { 3000 });
/// Bytes and fields that it may have.
const MAX_HEADER_BYTES: usize = 32 << 10;
const MAX_HEADER_FIELDS: usize = 64;
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
                    tracing::warn!(%error, "an HTTP connection was not accepted; trying again");
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
        connections.push_back(tokio::spawn(answer(stream, router.clone())).abort_handle());
    }
}

/// Answers the request on a connection.
pub(super) async fn answer(stream: impl AsyncRead + AsyncWrite + Unpin, router: Router) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(MAX_HEADER_BYTES)
        .max_headers(MAX_HEADER_FIELDS)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    // What goes wrong on a connection concerns its client, who notices.
    drop(timeout(CONNECTION_TIMEOUT, connection).await);
}
