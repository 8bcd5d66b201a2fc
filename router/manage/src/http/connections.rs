//! Connections of the HTTP server, limited in number and time.
//!
//! When there are too many connections, the oldest one without a complete request is closed. A client that sends its
//! request at once is soon exempt from this. At most [`MAX_LONG_ANSWERS`] read requests are answered at the same time,
//! in order of arrival. An answer is cut off only if its client has read nothing for [`STALLED`] while others wait.

mod watched;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Method;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{AbortHandle, yield_now};
use tokio::time::{sleep, timeout};

use watched::{Progress, WatchedBody, WatchedStream};

/// Maximum number of connections, answered or not.
const MAX_CONNECTIONS: usize = 96;
/// Maximum number of read requests answered at the same time; an answer may be a megabyte long. Answers to changes are
/// short.
const MAX_LONG_ANSWERS: usize = 32;
/// Timeout for the header of a request.
const HEADER_TIMEOUT: Duration = Duration::from_millis(if cfg!(test) { 100 } else { 3000 });
/// Maximum size of a header, in bytes and fields.
const MAX_HEADER_BYTES: usize = 32 << 10;
const MAX_HEADER_FIELDS: usize = 64;
/// Maximum duration of a connection, until the last byte of the answer.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(30);
/// A client that has read nothing of its answer for this long may lose its slot to another.
const STALLED: Duration = Duration::from_millis(250);
/// Interval of checks for free slots and stalled clients.
const PERMIT_PAUSE: Duration = Duration::from_millis(20);
/// Pause after a failed accept, for example when file descriptors ran out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Open connections, oldest first.
type Open = VecDeque<(AbortHandle, Arc<Progress>)>;

/// The connections of a server.
#[derive(Clone)]
pub(super) struct Connections {
    router: Router,
    open: Arc<Mutex<Open>>,
    long_answers: Arc<Semaphore>,
}

/// Serves one request on each connection, without end.
pub(super) async fn serve(listener: TcpListener, router: Router) {
    let connections = Connections::new(router);
    let mut is_failing = false;
    loop {
        connections.make_room().await;
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                if !is_failing {
                    tracing::warn!(%error, "cannot accept an HTTP connection; retrying");
                }
                is_failing = true;
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        is_failing = false;
        let progress = Arc::new(Progress::default());
        let task = tokio::spawn(connections.clone().answer(stream, Arc::clone(&progress)));
        connections.lock().push_back((task.abort_handle(), progress));
        // Yields, so that the new connection can read its request before it counts as incomplete.
        yield_now().await;
    }
}

impl Connections {
    /// Creates an empty set of connections.
    pub(super) fn new(router: Router) -> Self {
        Connections { router, open: Arc::default(), long_answers: Arc::new(Semaphore::new(MAX_LONG_ANSWERS)) }
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is room for one more connection.
    async fn make_room(&self) {
        loop {
            {
                let mut open = self.lock();
                open.retain(|(connection, _)| !connection.is_finished());
                if open.len() < MAX_CONNECTIONS {
                    return;
                }
                let is_incomplete = |(_, progress): &(AbortHandle, Arc<Progress>)| !progress.is_whole();
                if let Some(position) = open.iter().position(is_incomplete) {
                    open.remove(position).iter().for_each(|(connection, _)| connection.abort());
                    return;
                }
            }
            self.close_stalled();
            sleep(PERMIT_PAUSE).await;
        }
    }

    /// Closes the connection that has been stalled longest, if for at least [`STALLED`].
    fn close_stalled(&self) {
        let open = self.lock();
        let stalled = open.iter().filter_map(|(connection, progress)| Some((progress.stalled_for()?, connection)));
        if let Some((_, connection)) = stalled.max_by_key(|(time, _)| *time).filter(|(time, _)| *time >= STALLED) {
            connection.abort();
        }
    }

    /// Waits for a slot for a long answer.
    async fn take_permit(&self) -> Option<OwnedSemaphorePermit> {
        loop {
            match timeout(PERMIT_PAUSE, Arc::clone(&self.long_answers).acquire_owned()).await {
                // The semaphore is never closed.
                Ok(permit) => return permit.ok(),
                Err(_) => self.close_stalled(),
            }
        }
    }

    /// Answers the request on a connection.
    pub(super) async fn answer(self, stream: impl AsyncRead + AsyncWrite + Unpin, progress: Arc<Progress>) {
        let stream = WatchedStream::new(stream, Arc::clone(&progress));
        // The slot is held as long as this connection.
        let permit = Mutex::new(None);
        let permit = &permit;
        let service = service_fn(|request: hyper::Request<Incoming>| {
            let (this, progress) = (self.clone(), Arc::clone(&progress));
            async move {
                // Read requests have no body that matters.
                let request = if matches!(*request.method(), Method::GET | Method::HEAD) {
                    progress.set_whole();
                    *permit.lock().unwrap_or_else(PoisonError::into_inner) = this.take_permit().await;
                    request.map(|_| Body::empty())
                } else {
                    request.map(|body| Body::new(WatchedBody::new(body, Arc::clone(&progress))))
                };
                TowerToHyperService::new(this.router).call(request).await
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_TIMEOUT)
            .max_buf_size(MAX_HEADER_BYTES)
            .max_headers(MAX_HEADER_FIELDS)
            .keep_alive(false)
            .serve_connection(TokioIo::new(stream), service);
        // An error on a connection concerns only its client, which notices it.
        drop(timeout(CONNECTION_TIMEOUT, connection).await);
    }
}
