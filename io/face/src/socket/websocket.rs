//! WebSocket faces: one binary message per packet.
//!
//! The WebSocket library owns its messages, so this transport, unlike the others, allocates once per packet; it serves
//! browsers, not bulk traffic. Queued packets are copies, so that slow peers do not hold the router's buffers. Text
//! messages, and messages that are not exactly one packet, are dropped and counted. A message longer than any packet
//! ends the connection.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{FutureExt, SinkExt, StreamExt};
use namehop_packet::{FaceScope, PacketBuffer};
use namehop_wire::MAX_PACKET_SIZE;
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::{spawn_local, yield_now};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Bytes, Error as WebSocketError, Message};
use tokio_tungstenite::{WebSocketStream, accept_hdr_async_with_config, client_async_with_config};

use super::config::SocketConfig;
use super::connection::{Backoff, dial};
use super::create::refuse_second;
use super::error::CreateError;
use super::framing;
use super::listen::{limit_unsent, tune_connection};
use super::locality::{self, shows_no_proxy};
use super::permits::{Holder, PermitRequest};
use super::send_buffer::Account;
use super::shared::{Link, OpenError, ServiceState, SocketFace, note_blocked, note_queue};
use super::{origin, tcp};
use crate::counters::LinkDrop;
use crate::registry::{Face, FaceParams, FacePersistency, FaceUpdate};
use crate::uri::FaceUri;

/// Read buffer of one connection; the library allocates it at the start.
const READ_BYTES: usize = 16 * 1024;
/// Bytes that the library collects before it writes by itself. It holds twice this memory as long as the connection
/// exists, in addition to the budget of send queues.
const WRITE_BYTES: usize = 16 * 1024;
/// Pause between attempts to hand over a packet that the worker has refused.
const REFUSED_PAUSE: Duration = Duration::from_millis(1);

type Connection = WebSocketStream<TcpStream>;

/// Approximate memory of a queued packet besides its bytes.
const PER_PACKET_BYTES: usize = 64;

/// Transport state of a WebSocket face.
pub(super) struct WebSocketLink {
    waiting: RefCell<VecDeque<Bytes>>,
    /// Packets that were passed to the library but not flushed yet.
    fed: Cell<usize>,
    /// Memory of the queued packets, and of those passed to the library but not flushed yet.
    waiting_bytes: Cell<usize>,
    limit_bytes: usize,
    account: Account,
    connected: Cell<bool>,
    changed: Notify,
    /// Signals that the connection must end at once.
    abortion: Notify,
}

impl WebSocketLink {
    fn new(connected: bool, limit_bytes: usize, account: Account) -> Self {
        WebSocketLink {
            waiting: RefCell::default(),
            fed: Cell::new(0),
            waiting_bytes: Cell::new(0),
            limit_bytes,
            account,
            connected: Cell::new(connected),
            changed: Notify::new(),
            abortion: Notify::new(),
        }
    }

    /// Queues a frame.
    pub(super) fn queue(&self, face: &Face, frame: &PacketBuffer) -> Result<(), LinkDrop> {
        if !self.connected.get() {
            return Err(LinkDrop::LinkDown);
        }
        let total = self.waiting_bytes.get() + frame.bytes().len() + PER_PACKET_BYTES;
        if total > self.limit_bytes || !self.account.hold(total) {
            return Err(LinkDrop::SendQueueFull);
        }
        self.set_waiting_bytes(face, total);
        self.waiting.borrow_mut().push_back(Bytes::copy_from_slice(frame.bytes()));
        Ok(())
    }

    /// Notifies the sending task that frames are queued.
    pub(super) fn flush(&self) {
        self.changed.notify_one();
    }

    /// Closes the connection at once, if there is one.
    pub(super) fn abort(&self) {
        if self.connected.get() {
            self.abortion.notify_one();
        }
    }

    /// Discards the queued packets. Packets passed to the library count as lost too, because it does not report how
    /// much it has written.
    pub(super) fn disconnect(&self, face: &Face) {
        self.connected.set(false);
        let lost = self.waiting.borrow_mut().drain(..).count() + self.fed.take();
        face.counters.transport.drops.add(LinkDrop::LinkDown, lost as u64);
        self.set_waiting_bytes(face, 0);
    }

    fn set_waiting_bytes(&self, face: &Face, bytes: usize) {
        self.waiting_bytes.set(bytes);
        // Growth was reserved before; shrinking is always allowed.
        self.account.hold(bytes);
        note_queue(face, bytes);
    }
}

fn library_config() -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(READ_BYTES)
        .write_buffer_size(WRITE_BYTES)
        .max_message_size(Some(MAX_PACKET_SIZE))
        .max_frame_size(Some(MAX_PACKET_SIZE))
}

/// Creates an on-demand face for an accepted TCP connection when the WebSocket handshake is complete.
pub(super) fn serve_accepted(shared: &Rc<ServiceState>, (stream, peer): (TcpStream, SocketAddr)) -> io::Result<()> {
    tune_connection(&SockRef::from(&stream), &shared.config);
    let local = stream.local_addr()?;
    let scope = locality::scope(shared.config.websocket_is_local, peer, local);
    // Dropping the socket closes it; the peer sees that as a refusal.
    let Ok(permit) = shared.take_permit(&PermitRequest::of_connection(scope, peer)) else { return Ok(()) };
    let permit = Rc::new(permit);
    let held = Rc::clone(&permit);
    let shared = Rc::clone(shared);
    let task = spawn_local(async move {
        let limit = Duration::from_millis(shared.config.connect_timeout_ms);
        let scope = Cell::new(scope);
        #[expect(clippy::result_large_err, reason = "the library defines the type")]
        let check = |request: &Request, response: Response| {
            if !shows_no_proxy(request.headers()) {
                scope.set(FaceScope::NonLocal);
            }
            if origin::is_allowed(request, &shared.config.allowed_origins) {
                return Ok(response);
            }
            shared.table.link_drops().add(LinkDrop::OriginNotAllowed, 1);
            Err(origin::refusal())
        };
        let handshake = accept_hdr_async_with_config(stream, check, Some(library_config()));
        let connection = match tokio::time::timeout(limit, handshake).await {
            Ok(Ok(connection)) => connection,
            Ok(Err(error)) => return tracing::debug!(%peer, %error, "WebSocket handshake failed"),
            Err(_) => return tracing::debug!(%peer, "WebSocket handshake timed out"),
        };
        // From here on a connection through a proxy takes the permit of an unsolicited peer.
        drop(held);
        if scope.get() == FaceScope::NonLocal {
            limit_unsent(&SockRef::from(connection.get_ref()));
        }
        let mut params = shared.params(FaceUri::web_socket_client(peer), FaceUri::web_socket(local));
        params.scope = scope.get();
        params.persistency = FacePersistency::OnDemand;
        params.allowed_persistencies = &[FacePersistency::OnDemand];
        if let Err(error) = adopt(&shared, Some(connection), params, &FaceUpdate::default(), None) {
            tracing::debug!(%peer, %error, "connection refused");
        }
    });
    permit.set_holder(Holder::Handshake(task.abort_handle()));
    Ok(())
}

/// A WebSocket server to connect to.
#[derive(Debug, Clone)]
pub(super) struct Server {
    pub(super) address: SocketAddr,
    pub(super) uri: FaceUri,
}

/// Connects to a server, handshake included; also returns the local address.
async fn connect(server: &Server, config: &SocketConfig) -> io::Result<(Connection, SocketAddr)> {
    let timeout_ms = config.connect_timeout_ms;
    let attempt = async {
        let tcp::Connected { stream, local } = tcp::connect(server.address, config).await?;
        let request = server.uri.to_string();
        let (connection, _response) = client_async_with_config(request, stream, Some(library_config()))
            .await
            .map_err(|error| io::Error::other(error.to_string()))?;
        Ok((connection, local))
    };
    let limit = Duration::from_millis(timeout_ms);
    tokio::time::timeout(limit, attempt)
        .await
        .unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {timeout_ms} ms"))))
}

/// Connects and creates a face that reconnects when its connection breaks.
pub(super) async fn create(
    shared: &Rc<ServiceState>,
    server: Server,
    update: FaceUpdate,
) -> Result<Arc<Face>, CreateError> {
    let connected = connect(&server, &shared.config)
        .await
        .map_err(|error| CreateError::Unreachable(format!("connecting to {} failed: {error}", server.uri)))?;
    refuse_second(shared, &server.uri)?;
    enter(shared, server, Some(connected), &update)
}

/// Creates a face that is down until its server answers, and that reconnects when its connection breaks.
pub(super) fn create_down(
    shared: &Rc<ServiceState>,
    server: Server,
    update: &FaceUpdate,
) -> Result<Arc<Face>, CreateError> {
    enter(shared, server, None, update)
}

fn enter(
    shared: &Rc<ServiceState>,
    server: Server,
    connected: Option<(Connection, SocketAddr)>,
    update: &FaceUpdate,
) -> Result<Arc<Face>, CreateError> {
    let (connection, local) = connected.unzip();
    let local_uri = local.map_or(FaceUri::Null, FaceUri::web_socket_client);
    let mut params = shared.params(server.uri.clone(), local_uri);
    params.is_up = connection.is_some();
    // A connection to a loopback address also has a loopback source address.
    params.scope = locality::scope(shared.config.websocket_is_local, server.address, local.unwrap_or(server.address));
    params.allowed_persistencies = &[FacePersistency::Persistent, FacePersistency::Permanent];
    adopt(shared, connection, params, update, Some(server))
        .map_err(|error| CreateError::NotAcceptable(error.to_string()))
}

fn adopt(
    shared: &Rc<ServiceState>,
    connection: Option<Connection>,
    params: FaceParams,
    update: &FaceUpdate,
    redial: Option<Server>,
) -> Result<Arc<Face>, OpenError> {
    let link = WebSocketLink::new(connection.is_some(), shared.config.stream_queue_bytes, shared.send_account(&params));
    let entry = shared.open(params, update, Link::WebSocket(link))?;
    let face = Arc::clone(&entry.face);
    let task = spawn_local(keep(Rc::clone(shared), Rc::clone(&entry), connection, redial));
    entry.set_task(task.abort_handle());
    Ok(face)
}

/// Serves a face until its connection ends and is not to be redialled.
async fn keep(
    shared: Rc<ServiceState>,
    entry: Rc<SocketFace>,
    mut connection: Option<Connection>,
    redial: Option<Server>,
) {
    let Link::WebSocket(link) = &entry.link else { return };
    let face = &entry.face;
    let config = &shared.config;
    loop {
        let was_connected = connection.is_some();
        if let Some(connection) = connection {
            let (sink, stream) = connection.split();
            let end = tokio::select! {
                end = receive(&shared, &entry, stream) => end,
                end = send(face, link, sink, &shared.config) => end,
                () = link.abortion.notified() => Err(WebSocketError::ConnectionClosed),
            };
            note_end(face, end);
        }
        link.disconnect(face);
        let Some(server) = &redial else { break };
        shared.set_up(face, false);
        face.set_local_uri(FaceUri::Null);
        let backoff = Backoff::of(config, was_connected);
        let (connected, local) = dial(&shared, face, backoff, || connect(server, config)).await;
        face.set_local_uri(FaceUri::web_socket_client(local));
        connection = Some(connected);
        link.connected.set(true);
        shared.set_up(face, true);
    }
    shared.close(face.id());
}

/// Logs and counts why a connection ended.
fn note_end(face: &Face, end: Result<(), WebSocketError>) {
    match end {
        Ok(()) | Err(WebSocketError::ConnectionClosed) => tracing::debug!(face = %face.id(), "connection closed"),
        Err(error) => {
            if matches!(error, WebSocketError::Capacity(_)) {
                face.counters.count_transport_drop(LinkDrop::FrameTooLong);
            }
            tracing::debug!(face = %face.id(), %error, "connection failed");
        }
    }
}

async fn receive(
    shared: &ServiceState,
    entry: &SocketFace,
    mut stream: SplitStream<Connection>,
) -> Result<(), WebSocketError> {
    let face = &entry.face;
    // A peer that has completed the handshake counts as active.
    entry.activity.note_received();
    // Number of messages in a row that were available without waiting.
    let mut in_succession = 0;
    loop {
        in_succession += 1;
        let message = match stream.next().now_or_never() {
            Some(message) => message,
            None => {
                in_succession = 0;
                stream.next().await
            }
        };
        let Some(message) = message else { return Ok(()) };
        match message? {
            Message::Binary(packet) => match framing::check_message(&packet) {
                Ok(()) => {
                    entry.activity.note_received();
                    let has_backlog = in_succession > shared.backlog.share_frames();
                    hand_over(shared, face, &packet, has_backlog).await;
                }
                Err(reason) => face.counters.count_transport_drop(reason),
            },
            Message::Text(_) => face.counters.count_transport_drop(LinkDrop::NotNdnFrame),
            // The library answers pings and the closing handshake by itself.
            Message::Ping(_) | Message::Pong(_) | Message::Close(_) | Message::Frame(_) => {}
        }
    }
}

/// Hands a packet to the worker; waits while the worker takes no more. With `has_backlog`, packets of other faces go
/// first.
async fn hand_over(shared: &ServiceState, face: &Face, packet: &[u8], has_backlog: bool) {
    let deliver = || {
        let delivered = match has_backlog {
            true => shared.deliver_backlog(face.id(), packet),
            false => shared.deliver(face.id(), packet),
        };
        shared.to_workers.streams.wake();
        delivered
    };
    let mut delivered = deliver();
    if delivered.is_err() {
        // The worker is behind: let it run. This peer waits until the packet is accepted.
        yield_now().await;
        delivered = deliver();
    }
    while delivered.is_err() {
        tokio::time::sleep(REFUSED_PAUSE).await;
        delivered = deliver();
    }
}

async fn send(
    face: &Face,
    link: &WebSocketLink,
    mut sink: SplitSink<Connection, Message>,
    config: &SocketConfig,
) -> Result<(), WebSocketError> {
    loop {
        let mut fed_bytes = 0;
        // The queue is borrowed for one step at a time, because feeding may wait for the peer.
        while let Some(packet) = { link.waiting.borrow_mut().pop_front() } {
            fed_bytes += packet.len() + PER_PACKET_BYTES;
            link.fed.set(link.fed.get() + 1);
            unless_blocked(face, config, sink.feed(Message::Binary(packet))).await?;
        }
        if fed_bytes > 0 {
            unless_blocked(face, config, sink.flush()).await?;
            link.fed.set(0);
            link.set_waiting_bytes(face, link.waiting_bytes.get().saturating_sub(fed_bytes));
        }
        if link.waiting.borrow().is_empty() {
            link.changed.notified().await;
        }
    }
}

/// Waits for a step of sending; fails if the peer reads nothing for `blocked_timeout_ms`.
async fn unless_blocked(
    face: &Face,
    config: &SocketConfig,
    step: impl Future<Output = Result<(), WebSocketError>>,
) -> Result<(), WebSocketError> {
    timeout(Duration::from_millis(config.blocked_timeout_ms), step).await.unwrap_or_else(|_| {
        note_blocked(face, config);
        Err(WebSocketError::Io(io::ErrorKind::TimedOut.into()))
    })
}
