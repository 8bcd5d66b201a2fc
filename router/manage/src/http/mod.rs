//! The HTTP server: its endpoints, and their shared parts.
//!
//! An endpoint is a file under `http/` and a line in [`ENDPOINTS`]. Its answer comes from a [`Snapshot`] of the router,
//! which is taken for each request.
//!
//! | file | contents |
//! |---|---|
//! | `metrics` | `/metrics` |
//! | `api` | `/api/v1` |
//! | `connections` | connections, limited in number and time |
//! | `host` | check of the Host header |

mod api;
mod connections;
mod host;
mod metrics;
#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::middleware::from_fn;
use axum::routing::{MethodRouter, get};
use namehop_face::socket::BoundTcp;
use thiserror::Error;
#[cfg(any(test, feature = "testing"))]
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;

use crate::metrics::Snapshot;
use crate::server::Inside;
use api::Api;
#[cfg(any(test, feature = "testing"))]
use connections::Connections;

pub use api::{ApiToken, description};

/// Takes a snapshot of the router. Blocks, so it is called on a thread for blocking work.
type Snapshots = Arc<dyn Fn() -> Snapshot + Send + Sync>;

/// An endpoint of the server.
struct Endpoint {
    path: &'static str,
    /// Description in the list at `/`.
    about: &'static str,
    /// Creates its handler.
    handler: fn(Snapshots) -> MethodRouter,
}

/// All endpoints except `/`, which lists them.
const ENDPOINTS: [Endpoint; 1] =
    [Endpoint { path: "/metrics", about: "metrics for Prometheus", handler: metrics::handler }];

/// Why the HTTP server cannot listen.
#[derive(Debug, Error)]
pub enum HttpError {
    /// Another program listens on the port.
    #[error(
        "the metrics port {} on {} is in use by another program: stop it, or configure another address for metrics",
        .0.port(), .0.ip()
    )]
    AddressInUse(SocketAddr),
    /// The port is privileged.
    #[error("no permission to listen on {0} for metrics: configure a port of 1024 or higher")]
    Permission(SocketAddr),
    /// No interface has the address.
    #[error("cannot listen on {0} for metrics: no network interface of this host has that address")]
    NoSuchAddress(SocketAddr),
    /// Any other failure.
    #[error("cannot listen on {address} for metrics: {source}")]
    Other {
        /// The requested address.
        address: SocketAddr,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// Start of all paths of the API, in every version.
const API_PATHS: &str = "/api/";

/// A bound address of an HTTP server that is not listening yet.
#[derive(Debug)]
pub struct BoundHttp {
    socket: BoundTcp,
}

impl BoundHttp {
    /// Binds an address, even if no interface has it yet. With port 0, the kernel chooses the port.
    ///
    /// # Errors
    /// Why the address cannot be bound, and what to do.
    pub fn new(address: SocketAddr) -> Result<Self, HttpError> {
        let socket = BoundTcp::new(address).map_err(|error| HttpError::of(address, error))?;
        Ok(BoundHttp { socket })
    }

    /// Returns the bound address.
    pub fn local_address(&self) -> SocketAddr {
        self.socket.local_address()
    }

    /// Starts listening. Needs a runtime.
    ///
    /// # Errors
    /// As [`BoundHttp::new`].
    pub fn listen(self) -> Result<HttpServer, HttpError> {
        let address = self.local_address();
        let listener = self.socket.listen().and_then(TcpListener::from_std);
        let listener = listener.map_err(|error| HttpError::of(address, error))?;
        Ok(HttpServer { listener, address, allowed_hosts: Vec::new(), api: None })
    }
}

impl HttpError {
    fn of(address: SocketAddr, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::AddrInUse => HttpError::AddressInUse(address),
            io::ErrorKind::PermissionDenied => HttpError::Permission(address),
            io::ErrorKind::AddrNotAvailable => HttpError::NoSuchAddress(address),
            _ => HttpError::Other { address, source },
        }
    }
}

/// An HTTP server that listens; connections wait until it runs.
#[derive(Debug)]
pub struct HttpServer {
    listener: TcpListener,
    address: SocketAddr,
    allowed_hosts: Vec<String>,
    api: Option<Api>,
}

impl HttpServer {
    /// Sets the names that clients may use for this server, besides `localhost` and addresses; `*` = every name.
    #[must_use]
    pub fn allow_hosts(self, allowed_hosts: Vec<String>) -> Self {
        HttpServer { allowed_hosts, ..self }
    }

    /// Adds the API. Without a token, no request can change anything. Reading requires the token, too, unless the
    /// server listens on a loopback address, `loopback_is_local` is true, and the request shows no sign of a proxy.
    #[must_use]
    pub fn with_api(self, inside: Inside, token: Option<ApiToken>, loopback_is_local: bool) -> Self {
        let is_reading_guarded = !(loopback_is_local && self.address.ip().is_loopback());
        HttpServer { api: Some(Api::new(inside, token, is_reading_guarded)), ..self }
    }

    /// Returns the address that the server listens on.
    pub fn local_address(&self) -> SocketAddr {
        self.address
    }

    /// Serves requests without end. `snapshot` is called on a thread for blocking work.
    pub async fn run(self, snapshot: impl Fn() -> Snapshot + Send + Sync + 'static) {
        let router = router(Arc::new(snapshot), self.api, self.allowed_hosts);
        connections::serve(self.listener, router).await;
    }
}

/// Creates the router of all requests.
fn router(snapshots: Snapshots, api: Option<Api>, allowed_hosts: Vec<String>) -> Router {
    let list = list(api.is_some());
    let mut router = Router::new().route("/", get(async move || list));
    for endpoint in &ENDPOINTS {
        router = router.route(endpoint.path, (endpoint.handler)(Arc::clone(&snapshots)));
    }
    if let Some(api) = api {
        router = router.merge(api::router(api));
    }
    let hosts = Arc::new(allowed_hosts);
    router.layer(from_fn(move |request, next| host::check(Arc::clone(&hosts), request, next)))
}

/// Answers the requests on a stream, as a server on a loopback address does on a connection.
#[cfg(any(test, feature = "testing"))]
pub async fn answer_stream(stream: impl AsyncRead + AsyncWrite + Unpin, inside: Inside, token: ApiToken) {
    let api = Api::new(inside, Some(token), false);
    let connections = Connections::new(router(Arc::new(Snapshot::default), Some(api), Vec::new()));
    connections.answer(stream, Arc::default()).await;
}

/// Returns true if the request is for the API, which reports errors in JSON.
fn is_for_api(request: &Request) -> bool {
    request.uri().path().starts_with(API_PATHS)
}

/// Returns the text of `/`.
fn list(has_api: bool) -> String {
    let api = has_api.then_some(("/api/v1/openapi.json", "description of the API, under /api/v1"));
    let endpoints = ENDPOINTS.iter().map(|endpoint| (endpoint.path, endpoint.about)).chain(api);
    let lines: String = endpoints.map(|(path, about)| format!("{path}  {about}\n")).collect();
    format!("Namehop, a Named Data Networking router\n\n{lines}")
}
