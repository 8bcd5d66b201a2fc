//! TCP: accepting and making connections. [`super::stream`] serves them.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use namehop_packet::FaceScope;
use socket2::SockRef;
use tokio::net::TcpStream;

use super::config::SocketConfig;
use super::connection::{Connection, Listener};
use super::create::refuse_second;
use super::error::CreateError;
use super::listen::{limit_unsent, tune_connection};
use super::locality;
use super::shared::ServiceState;
use super::stream;
use crate::log_limit::LogLimit;
use crate::registry::{Face, FaceParams, FacePersistency, FaceUpdate};
use crate::uri::FaceUri;

/// Pause after an accept failed in the system, usually because file descriptors have run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Maximum number of waits of 1 ms for the other threads to process closed faces, before accepting anyway.
const PATIENCE: usize = 100;

/// Accepts connections on `listener` as long as the service runs, and passes each to `serve`.
pub(super) async fn accept<L: Listener>(
    shared: Rc<ServiceState>,
    listener: L,
    serve: impl Fn(&Rc<ServiceState>, L::Accepted) -> io::Result<()>,
) {
    loop {
        for _ in 0..PATIENCE {
            if !shared.is_far_ahead() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let served = listener.next().await.and_then(|accepted| {
            // Dropping the socket closes it; the peer sees that as a refusal.
            let request = listener.request(&accepted)?;
            shared.close_silent();
            if shared.make_room(&request) { serve(&shared, accepted) } else { Ok(()) }
        });
        match served {
            Ok(()) => {}
            Err(error) if is_of_one_connection(&error) => {
                tracing::debug!(%error, "connection lost before it was accepted")
            }
            Err(error) => {
                static LINES: LogLimit = LogLimit::new(3);
                if let Some(left_out) = LINES.admit() {
                    tracing::warn!(
                        %error,
                        left_out,
                        "cannot accept connections; if file descriptors ran out, raise their hard limit (LimitNOFILE \
                         of the service, or `ulimit -Hn`) or lower max_faces"
                    );
                }
                // The connection waiting to be accepted may be from an application on this host.
                shared.give_up_connection();
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted, NotConnected, PermissionDenied};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted | NotConnected | PermissionDenied)
}

/// Creates an on-demand face for an accepted connection.
pub(super) fn serve_accepted(shared: &Rc<ServiceState>, (stream, peer): (TcpStream, SocketAddr)) -> io::Result<()> {
    tune_connection(&SockRef::from(&stream), &shared.config);
    let mut params = params(shared, peer, Some(stream.local_addr()?));
    if params.scope == FaceScope::NonLocal {
        limit_unsent(&SockRef::from(&stream));
    }
    params.persistency = FacePersistency::OnDemand;
    params.allowed_persistencies = &[FacePersistency::OnDemand, FacePersistency::Persistent];
    let connection = Some(Connection::tcp(stream)?);
    if let Err(error) = stream::adopt(shared, connection, params, &FaceUpdate::default(), None) {
        tracing::debug!(%peer, %error, "connection refused");
    }
    Ok(())
}

/// Returns the parameters of a TCP face. Without a local address the face starts down.
fn params(shared: &ServiceState, peer: SocketAddr, local: Option<SocketAddr>) -> FaceParams {
    let mut params = shared.params(FaceUri::tcp(peer), local.map_or(FaceUri::Null, FaceUri::tcp));
    params.is_up = local.is_some();
    // A connection to a loopback address also has a loopback source address.
    params.scope = locality::scope(shared.config.tcp_is_local, peer, local.unwrap_or(peer));
    params.flags = params.flags.union(shared.marking_flags());
    params
}

/// An established outgoing connection.
pub(super) struct Connected {
    pub(super) stream: TcpStream,
    pub(super) local: SocketAddr,
}

/// Connects to `peer`.
pub(super) async fn connect(peer: SocketAddr, config: &SocketConfig) -> io::Result<Connected> {
    let timeout_ms = config.connect_timeout_ms;
    let connecting = TcpStream::connect(peer);
    let stream = tokio::time::timeout(Duration::from_millis(timeout_ms), connecting)
        .await
        .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {timeout_ms} ms")))??;
    tune_connection(&SockRef::from(&stream), config);
    let local = stream.local_addr()?;
    Ok(Connected { stream, local })
}

/// Connects and creates a face that reconnects when its connection breaks.
pub(super) async fn create(
    shared: &Rc<ServiceState>,
    peer: SocketAddr,
    update: FaceUpdate,
) -> Result<Arc<Face>, CreateError> {
    let unreachable = |error: io::Error| CreateError::Unreachable(format!("connecting to TCP {peer} failed: {error}"));
    let connected = connect(peer, &shared.config).await.map_err(unreachable)?;
    refuse_second(shared, &FaceUri::tcp(peer))?;
    enter(shared, peer, Some(connected), &update)
}

/// Creates a face that is down until its peer answers, and that reconnects when its connection breaks.
pub(super) fn create_down(
    shared: &Rc<ServiceState>,
    peer: SocketAddr,
    update: &FaceUpdate,
) -> Result<Arc<Face>, CreateError> {
    enter(shared, peer, None, update)
}

fn enter(
    shared: &Rc<ServiceState>,
    peer: SocketAddr,
    connected: Option<Connected>,
    update: &FaceUpdate,
) -> Result<Arc<Face>, CreateError> {
    let mut params = params(shared, peer, connected.as_ref().map(|connected| connected.local));
    params.allowed_persistencies = &[FacePersistency::Persistent, FacePersistency::Permanent];
    let connection = connected
        .map(|connected| Connection::tcp(connected.stream))
        .transpose()
        .map_err(|error| CreateError::Unreachable(format!("the connection to TCP {peer} cannot be used: {error}")))?;
    stream::adopt(shared, connection, params, update, Some(peer))
        .map_err(|error| CreateError::NotAcceptable(error.to_string()))
}
