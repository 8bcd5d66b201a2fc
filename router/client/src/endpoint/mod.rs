//! The client side of a connection to a forwarder: expresses Interests, answers Interests for its prefixes, and
//! registers prefixes.
//!
//! An [`Endpoint`] is a cheap handle. Clones share the connection, which closes when the last one is dropped, after
//! queued packets are written. An endpoint must be created inside a tokio runtime, where it spawns a reading and a
//! writing task. On stream connections, everything queued between two writes leaves in one system call.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use namehop_wire::builder::InterestBuilder;
use namehop_wire::lp::{NackReason, PitToken};
use namehop_wire::{Data, DecodeError, Interest, InterestRewrite, MAX_PACKET_SIZE, Name, NameRef, rewrite_interest};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinHandle};

use crate::target::TransportUri;
use crate::transport::{self, ConnectError, Connected, Connection};

mod command;
mod driver;
pub(crate) mod frames;
mod pending;
mod reassembly;
mod shared;
#[cfg(test)]
mod tests;

pub use command::{CommandError, RouteOptions, check_response, command};
pub use shared::{EndpointCounters, Responder};
#[cfg(any(test, feature = "testing"))]
pub(crate) use shared::{LpFields, write_lp};

use pending::{Outcome, PendingKey};
use shared::Shared;

/// Reason given to pending Interests when this side closes the connection.
const CLOSED_BY_APPLICATION: &str = "closed by the application";

/// How long [`Endpoint::close`] waits for the last write.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// A Data that answered an Interest.
#[derive(Clone, Debug)]
pub struct Response {
    /// The Data element. Its name matches the Interest; its signature is not verified.
    pub packet: Vec<u8>,
    /// CongestionMark of the Data; 0 = none (NDNLPv2).
    pub congestion_mark: u64,
    /// When the Interest was queued for sending.
    pub sent_at: Instant,
    /// When the Data was read from the connection.
    pub received_at: Instant,
}

impl Response {
    /// Decodes the Data.
    ///
    /// # Errors
    /// Fails if the packet violates the Data format after its name.
    pub fn data(&self) -> Result<Data<'_>, DecodeError> {
        Data::decode(&self.packet)
    }

    /// Returns the time from sending to receiving.
    pub fn round_trip_time(&self) -> Duration {
        self.received_at.saturating_duration_since(self.sent_at)
    }
}

/// Reason why an Interest was not answered by Data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpressError {
    /// The forwarder returned a Nack.
    #[error("Nack: {}", nack_text(*.0))]
    Nack(NackReason),
    /// No answer arrived within the InterestLifetime.
    #[error("no answer within {lifetime_ms} ms")]
    Timeout {
        /// InterestLifetime, in milliseconds.
        lifetime_ms: u64,
    },
    /// The connection to the forwarder ended.
    #[error("connection to the forwarder closed: {0}")]
    Closed(String),
    /// The caller's packet is not an Interest.
    #[error("malformed Interest: {0}")]
    BadInterest(DecodeError),
    /// The Interest cannot be built: its name is empty or too long.
    #[error("cannot build the Interest: {0}")]
    Unbuildable(String),
}

/// Returns the display name of a Nack reason.
pub fn nack_text(reason: NackReason) -> String {
    match reason {
        NackReason::NONE => "no reason given".to_owned(),
        NackReason::CONGESTION => "Congestion".to_owned(),
        NackReason::DUPLICATE => "Duplicate".to_owned(),
        NackReason::NO_ROUTE => "NoRoute".to_owned(),
        NackReason(code) => format!("reason {code}"),
    }
}

/// An Interest that arrived for a prefix of this endpoint.
pub struct Request<'a> {
    /// The Interest.
    pub interest: &'a Interest<'a>,
    /// Encoded Interest.
    pub packet: &'a [u8],
    /// PIT token to return with the answer. [`Answer`] and [`Request::responder`] do that.
    pub pit_token: PitToken,
    /// CongestionMark of the Interest; 0 = none.
    pub congestion_mark: u64,
    /// Face on which the forwarder received the Interest, if the forwarder reports it.
    pub incoming_face_id: Option<u64>,
    shared: &'a Arc<Shared>,
}

impl Request<'_> {
    /// Returns a handle for answering later, from any thread.
    pub fn responder(&self) -> Responder {
        Responder::new(Arc::clone(self.shared), self.pit_token)
    }
}

/// Maximum growth of an Interest by a Nonce element and a longer outer LENGTH, in bytes.
const NONCE_ROOM: usize = 6 + 8;

/// Adds a random Nonce to an Interest without one. Applications may leave the Nonce to their forwarder, but some
/// forwarders drop such Interests. No signature covers the Nonce.
fn with_nonce(interest: Vec<u8>) -> Result<Vec<u8>, DecodeError> {
    if Interest::decode(&interest)?.nonce.is_some() {
        return Ok(interest);
    }
    let mut changed = vec![0; interest.len() + NONCE_ROOM];
    let change = InterestRewrite { nonce: Some(rand::random()), ..InterestRewrite::default() };
    let length = rewrite_interest(&interest, &change, &mut changed)?;
    if length > MAX_PACKET_SIZE {
        return Err(DecodeError::TooLong);
    }
    changed.truncate(length);
    Ok(changed)
}

/// Result of a handler for an Interest.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Sends this Data element.
    Data(Vec<u8>),
    /// Sends a Nack.
    Nack(NackReason),
    /// Sends nothing (a [`Responder`] may answer later).
    None,
}

/// The client side of a connection to a forwarder. See the module documentation.
#[derive(Clone)]
pub struct Endpoint {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    reader: AbortHandle,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The writing task ends when the queue is empty.
        self.reader.abort();
        self.shared.close(CLOSED_BY_APPLICATION);
    }
}

/// Removes a pending Interest when the future that waits for it is dropped.
struct PendingGuard<'a> {
    shared: &'a Shared,
    key: Option<PendingKey>,
}

impl Drop for PendingGuard<'_> {
    fn drop(&mut self) {
        if let Some(key) = &self.key {
            self.shared.lock().pending.remove(key);
        }
    }
}

impl Endpoint {
    /// Connects to the forwarder named by `argument`, or else the host's forwarder. [`crate::client_conf`] describes
    /// the search order.
    ///
    /// # Errors
    /// Returns a [`ConnectError`]; its text lists the addresses tried.
    pub async fn connect(argument: Option<&str>) -> Result<Self, ConnectError> {
        let (connected, _) = transport::connect(argument).await?;
        Ok(Self::from_connected(connected))
    }

    /// Uses an open byte stream as a local face.
    pub fn from_stream(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> Self {
        let (reader, writer) = tokio::io::split(stream);
        Self::start(Connection::Stream(Box::new(reader), Box::new(writer)), None, true)
    }

    /// Uses a connection from [`crate::transport`].
    pub fn from_connected(connected: Connected) -> Self {
        Self::start(connected.connection, Some(connected.uri), connected.local)
    }

    fn start(connection: Connection, uri: Option<TransportUri>, local: bool) -> Self {
        let shared = Arc::new(Shared::new(uri, local));
        let (reader, writer) = driver::spawn(&shared, connection);
        Self { inner: Arc::new(Inner { shared, reader, writer: Mutex::new(Some(writer)) }) }
    }

    /// Returns the address of the forwarder; `None` for [`Endpoint::from_stream`].
    pub fn uri(&self) -> Option<&TransportUri> {
        self.inner.shared.uri.as_ref()
    }

    /// Returns true if the forwarder treats this connection as a local face, so that `/localhost` names work.
    pub fn is_local(&self) -> bool {
        self.inner.shared.local
    }

    /// Sends an Interest and waits for its Data. `interest` is a complete Interest element; its InterestLifetime is the
    /// time-out. It gets a random Nonce if it has none. Dropping the future removes the pending Interest.
    ///
    /// # Errors
    /// See [`ExpressError`].
    pub async fn express(&self, interest: Vec<u8>) -> Result<Response, ExpressError> {
        let shared = &*self.inner.shared;
        let interest = with_nonce(interest).map_err(ExpressError::BadInterest)?;
        let (reply, answer) = oneshot::channel();
        let (lifetime_ms, key) = {
            let view = Interest::decode(&interest).map_err(ExpressError::BadInterest)?;
            let mut table = shared.lock();
            if let Some(reason) = &table.closed {
                return Err(ExpressError::Closed(reason.clone()));
            }
            (view.lifetime_or_default_ms(), table.pending.insert(&view, reply))
        };
        let mut guard = PendingGuard { shared, key: Some(key) };
        shared.outgoing.push(|writer| {
            writer.raw(&interest);
        });
        drop(interest);
        shared.counters.out_interests.fetch_add(1, Ordering::Relaxed);
        let outcome = match tokio::time::timeout(Duration::from_millis(lifetime_ms), answer).await {
            Err(_) => return Err(ExpressError::Timeout { lifetime_ms }),
            Ok(outcome) => outcome,
        };
        guard.key = None;
        match outcome {
            Ok(Outcome::Data(response)) => Ok(response),
            Ok(Outcome::Nack(reason)) => Err(ExpressError::Nack(reason)),
            Ok(Outcome::Closed(reason)) => Err(ExpressError::Closed(reason)),
            Err(_) => Err(ExpressError::Closed("the connection task ended".to_owned())),
        }
    }

    /// Builds an Interest and [expresses](Self::express) it.
    ///
    /// # Errors
    /// See [`ExpressError`].
    pub async fn request(&self, interest: InterestBuilder) -> Result<Response, ExpressError> {
        self.express(interest.build().map_err(|error| ExpressError::Unbuildable(error.to_string()))?).await
    }

    /// Answers Interests under `prefix` with `handler`, until [`Endpoint::withdraw`]. The longest matching prefix is
    /// used; an earlier handler of the same prefix is replaced. The handler runs on the reading task and must not
    /// block. [`Endpoint::register_route`] registers the prefix with the forwarder.
    pub fn produce(&self, prefix: &Name, handler: impl Fn(&Request<'_>) -> Answer + Send + Sync + 'static) {
        self.inner.shared.lock().set_handler(prefix, Arc::new(handler));
    }

    /// Removes the handler of [`Endpoint::produce`] for this prefix.
    pub fn withdraw(&self, prefix: &Name) {
        self.inner.shared.lock().remove_handler(prefix);
    }

    /// Calls `watcher` with the name of every Data that matches no pending Interest, such as late or duplicate Data. It
    /// runs on the reading task.
    pub fn watch_unsolicited(&self, watcher: impl Fn(NameRef<'_>) + Send + Sync + 'static) {
        self.inner.shared.lock().unsolicited = Some(Arc::new(watcher));
    }

    /// Sends a Data element that answers no Interest, for instance a prefix announcement.
    pub fn send_data(&self, packet: &[u8]) {
        Responder::new(Arc::clone(&self.inner.shared), PitToken::empty()).send_data(packet);
    }

    /// Returns the number of pending Interests.
    pub fn pending_count(&self) -> usize {
        self.inner.shared.lock().pending.len()
    }

    /// Returns the packet counters of the connection.
    pub fn counters(&self) -> EndpointCounters {
        self.inner.shared.counters.snapshot()
    }

    /// Closes the connection for all clones, after writing queued packets for at most one second. Programs call this
    /// before they exit, because the writing task ends with the runtime.
    pub async fn close(&self) {
        self.inner.shared.close(CLOSED_BY_APPLICATION);
        let writer = self.inner.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer {
            // A forwarder that does not read must not keep the program from exiting.
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, writer).await;
        }
    }

    /// Waits until the connection closes and returns the reason.
    pub async fn closed(&self) -> String {
        self.inner.shared.wait_closed().await
    }

    /// Returns a SignatureTime for a signed Interest: milliseconds since the Unix epoch, greater than all earlier ones
    /// of this endpoint, as verifiers require (NDN packet specification, signed-interest.rst).
    pub fn next_signature_time_ms(&self) -> u64 {
        self.inner.shared.next_signature_time_ms()
    }
}
