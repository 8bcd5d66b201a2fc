//! The HTTP server: its endpoints, and what all of them have in common.
//!
//! An endpoint is a file under `http/` and a line in [`ENDPOINTS`]. What it tells comes from a [`Snapshot`] of the router, which is
//! made anew for each request.
//!
//! | file | what |
//! |---|---|
//! | `metrics` | `/metrics` |
//! | `api` | `/api/v1` |
//! | `connections` | connections, limited in number and time |
//! | `host` | the check of the Host header |

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

/// Asks the router for a snapshot. Blocks: to be called on a thread for blocking work.
type Snapshots = Arc<dyn Fn() -> Snapshot + Send + Sync>;

/// Something that the server answers.
struct Endpoint {
    path: &'static str,
    /// For the list at `/`.
    about: &'static str,
    /// Makes its handler.
    handler: fn(Snapshots) -> MethodRouter,
}

/// All but `/`, which lists them.
const ENDPOINTS: [Endpoint; 1] =
    [Endpoint { path: "/metrics", about: "metrics for Prometheus", handler: metrics::handler }];

/// Why there is no HTTP server.
#[derive(Debug, Error)]
pub enum HttpError {
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

/// What all paths of the API begin with, in every version.
const API_PATHS: &str = "/api/";

/// The address of an HTTP server, which is taken, and on which nobody listens yet.
#[derive(Debug)]
pub struct BoundHttp {
    socket: BoundTcp,
}

impl BoundHttp {
    /// Takes an address, if need be one that no interface has yet; port 0 lets the kernel choose.
    ///
    /// # Errors
    /// Why that is not possible, and what to do.
    pub fn new(address: SocketAddr) -> Result<Self, HttpError> {
        let socket = BoundTcp::new(address).map_err(|error| HttpError::of(address, error))?;
        Ok(BoundHttp { socket })
    }

    /// The address.
    pub fn local_address(&self) -> SocketAddr {
        self.socket.local_address()
    }

    /// Begins to take connections. Needs a runtime.
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

/// The HTTP server, ready to run: connections wait.
#[derive(Debug)]
pub struct HttpServer {
    listener: TcpListener,
    address: SocketAddr,
    allowed_hosts: Vec<String>,
    api: Option<Api>,
}

impl HttpServer {
    /// Names under which clients may ask for this server, besides `localhost` and addresses; `*` = every name.
    #[must_use]
    pub fn allow_hosts(self, allowed_hosts: Vec<String>) -> Self {
        HttpServer { allowed_hosts, ..self }
    }

    /// Answers requests to the API as well. Without a token, no request can change anything. Reading needs the token, too, unless the server
    /// listens on a loopback address, `loopback_is_local`, and the request shows no proxy.
    #[must_use]
    pub fn with_api(self, inside: Inside, token: Option<ApiToken>, loopback_is_local: bool) -> Self {
        let is_reading_guarded = !(loopback_is_local && self.address.ip().is_loopback());
        HttpServer { api: Some(Api::new(inside, token, is_reading_guarded)), ..self }
    }

    /// The address it listens on.
    pub fn local_address(&self) -> SocketAddr {
        self.address
    }

    /// Serves for ever. `snapshot` is called on a thread for blocking work.
    pub async fn run(self, snapshot: impl Fn() -> Snapshot + Send + Sync + 'static) {
        let router = router(Arc::new(snapshot), self.api, self.allowed_hosts);
        connections::serve(self.listener, router).await;
    }
}

/// Answers all requests.
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

/// Answers what comes over a stream as the server of a loopback address does over a connection.
#[cfg(any(test, feature = "testing"))]
pub async fn answer_stream(stream: impl AsyncRead + AsyncWrite + Unpin, inside: Inside, token: ApiToken) {
    let api = Api::new(inside, Some(token), false);
    let connections = Connections::new(router(Arc::new(Snapshot::default), Some(api), Vec::new()));
    connections.answer(stream, Arc::default()).await;
}

/// Whether a request is one to the API, whose errors are JSON.
fn is_for_api(request: &Request) -> bool {
    request.uri().path().starts_with(API_PATHS)
}

/// What `/` says.
fn list(has_api: bool) -> String {
    let api = has_api.then_some(("/api/v1/openapi.json", "description of the API, under /api/v1"));
    let endpoints = ENDPOINTS.iter().map(|endpoint| (endpoint.path, endpoint.about)).chain(api);
    let lines: String = endpoints.map(|(path, about)| format!("{path}  {about}\n")).collect();
    format!("Namehop, a Named Data Networking router\n\n{lines}")
}
