//! What the router counts, over HTTP in the OpenMetrics text format that Prometheus reads.
//!
//! `GET /metrics` gives everything. The numbers come from a snapshot function that is called for each request on a thread
//! of its own, so that a router with thousands of faces does not hold up its control thread to write them down.

mod gone;
mod http;
mod render;

#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::from_fn;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use namehop_face::{Face, LinkDrop};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::nfd::ReadvertiseStatus;
use crate::server::EngineStatus;

pub use gone::GoneFaces;
pub use render::render;

/// Content-Type of the OpenMetrics text format.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Requests for which metrics are written down at a time.
const MAX_RENDERING: usize = 4;
/// What `/` says.
const HINT: &str = "Namehop, a Named Data Networking router. Metrics for Prometheus are at /metrics\n";

/// Everything that is shown.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// Time since the start of the router, in seconds.
    pub uptime_seconds: f64,
    /// Counters and table sizes of the forwarding engine.
    pub engine: EngineStatus,
    /// Drops on the link side, of all faces that there ever were.
    pub link_drops: Vec<(LinkDrop, u64)>,
    /// FIB prefixes.
    pub fib_entries: u64,
    /// Prefixes with routes.
    pub rib_entries: u64,
    /// Routes.
    pub rib_routes: u64,
    /// Those who are told of routes.
    pub readvertise: Vec<ReadvertiseStatus>,
    /// All faces.
    pub faces: Vec<Arc<Face>>,
    /// What the faces of strangers had counted that are gone.
    pub gone: GoneFaces,
}

/// Why there are no metrics.
#[derive(Debug, Error)]
pub enum MetricsError {
    /// Another program listens on the port.
    #[error("the metrics port {} on {} is in use by another program: stop it, or configure a different address for metrics", .0.port(), .0.ip())]
    AddressInUse(SocketAddr),
    /// The port is privileged.
    #[error("no permission to listen on {0} for metrics: configure a port of 1024 or higher")]
    Permission(SocketAddr),
    /// No interface has the address.
    #[error("cannot listen on {0} for metrics: no network interface of this computer has that address")]
    NoSuchAddress(SocketAddr),
    /// Any other failure.
    #[error("cannot listen on {address} for metrics: {source}")]
    Other {
        /// The address asked for.
        address: SocketAddr,
        /// What the operating system said.
        source: io::Error,
    },
}

/// The HTTP server, bound and ready to run.
#[derive(Debug)]
pub struct MetricsServer {
    listener: TcpListener,
    address: SocketAddr,
    allowed_hosts: Vec<String>,
}

impl MetricsServer {
    /// Listens on an address; port 0 lets the kernel choose.
    ///
    /// # Errors
    /// Why that is not possible, and what to do.
    pub async fn bind(address: SocketAddr) -> Result<Self, MetricsError> {
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => MetricsError::AddressInUse(address),
            io::ErrorKind::PermissionDenied => MetricsError::Permission(address),
            io::ErrorKind::AddrNotAvailable => MetricsError::NoSuchAddress(address),
            _ => MetricsError::Other { address, source },
        };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(MetricsServer { listener, address, allowed_hosts: Vec::new() })
    }

    /// Names under which clients may ask for this server, besides `localhost` and addresses; `*` = every name.
    #[must_use]
    pub fn allow_hosts(self, allowed_hosts: Vec<String>) -> Self {
        MetricsServer { allowed_hosts, ..self }
    }

    /// The address it listens on.
    pub fn local_address(&self) -> SocketAddr {
        self.address
    }

    /// Serves for ever. `snapshot` is called on a thread for blocking work.
    pub async fn run(self, snapshot: impl Fn() -> Snapshot + Send + Sync + 'static) {
        let snapshot = Arc::new(snapshot);
        let places = Arc::new(Semaphore::new(MAX_RENDERING));
        let metrics = move || {
            let (snapshot, places) = (Arc::clone(&snapshot), Arc::clone(&places));
            async move {
                // The semaphore is never closed. The place is held until the work is done, also when nobody waits any more.
                let place = places.acquire_owned().await;
                let text = tokio::task::spawn_blocking(move || {
                    let _place = place;
                    render(&snapshot())
                });
                respond(text.await.ok())
            }
        };
        let hosts = Arc::new(self.allowed_hosts);
        let router = Router::new()
            .route("/metrics", get(metrics))
            .route("/", get(|| async { HINT }))
            .layer(from_fn(move |request, next| http::check_host(Arc::clone(&hosts), request, next)));
        http::serve(self.listener, router).await;
    }
}

fn respond(text: Option<String>) -> Response {
    match text {
        Some(text) => ([(CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        None => (StatusCode::INTERNAL_SERVER_ERROR, "the metrics could not be collected\n").into_response(),
    }
}
