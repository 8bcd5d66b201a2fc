//! Faces over byte streams (Unix and TCP): reading, cutting into packets, the write queue, reconnecting.
//!
//! One read takes up to 256 KiB and may hold thousands of packets; the worker is woken once per read. All streams read
//! into one shared buffer. A face keeps the incomplete packet after a read, and the packets beyond its share of a round
//! of the thread (`backlog`). The dispatcher writes directly, one call per round; a task waits for the socket only
//! while the kernel takes no more.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use namehop_packet::PacketBuffer;
use namehop_wire::DecodeError;
use tokio::task::{AbortHandle, spawn_local, yield_now};
use tokio::time::timeout;

use super::connection::{Backoff, Connection, dial};
use super::framing::{Framing, Stop, cut, drop_reason};
use super::send_buffer::{Flush, SendBuffer};
use super::shared::{Link, OpenError, ServiceState, SocketFace, note_blocked, note_queue};
use super::tcp;
use crate::counters::LinkDrop;
use crate::log_limit::LogLimit;
use crate::registry::{Face, FaceParams, FaceUpdate};
use crate::uri::FaceUri;

/// Number of write attempts on a blocked connection within `blocked_timeout_ms`.
const BLOCKED_LOOKS: f32 = 8.0;
/// Number of times in a row that a reader with refused packets yields before it sleeps instead.
const PATIENCE: u32 = 8;

/// Transport state of a stream face.
pub(super) struct StreamLink {
    /// `None` while connecting.
    connection: RefCell<Option<Rc<Connection>>>,
    waiting: RefCell<SendBuffer>,
    /// Total bytes that the kernel has taken.
    taken_bytes: Cell<u64>,
    /// The task that waits until the socket is writable.
    drain: RefCell<Option<AbortHandle>>,
}

impl StreamLink {
    fn new(connection: Option<Connection>, waiting: SendBuffer) -> Self {
        StreamLink {
            connection: RefCell::new(connection.map(Rc::new)),
            waiting: RefCell::new(waiting),
            taken_bytes: Cell::new(0),
            drain: RefCell::new(None),
        }
    }

    fn push(&self, face: &Face, frame: &PacketBuffer) -> bool {
        let mut waiting = self.waiting.borrow_mut();
        let has_room = waiting.push(frame.bytes());
        if has_room {
            note_queue(face, waiting.len());
        }
        has_room
    }

    /// Closes the connection at once, if there is one.
    pub(super) fn abort(&self) {
        if let Some(connection) = &*self.connection.borrow() {
            connection.abort();
        }
    }

    /// Drops the connection and all queued bytes.
    pub(super) fn disconnect(&self, face: &Face) {
        self.connection.take();
        if let Some(drain) = self.drain.take() {
            drain.abort();
        }
        self.give_up_waiting(face);
    }

    /// Discards the queued bytes, because their connection has ended.
    fn give_up_waiting(&self, face: &Face) {
        let lost = self.waiting.borrow_mut().give_up();
        face.counters.transport.drops.add(LinkDrop::LinkDown, lost as u64);
        note_queue(face, 0);
    }

    fn write(&self, face: &Face, connection: &Connection) -> io::Result<Flush> {
        let flushed = self.waiting.borrow_mut().flush(|bytes| {
            let count = connection.write(bytes)?;
            self.taken_bytes.set(self.taken_bytes.get() + count as u64);
            Ok(count)
        });
        if let Err(error) = &flushed {
            // The reader sees the end of the stream and decides whether the face closes or reconnects.
            tracing::debug!(face = %face.id(), %error, "write failed");
            connection.shut_down();
            self.give_up_waiting(face);
        }
        note_queue(face, self.waiting.borrow().len());
        flushed
    }
}

/// Copies a frame to the write queue.
pub(super) fn queue(
    shared: &Rc<ServiceState>,
    entry: &Rc<SocketFace>,
    link: &StreamLink,
    frame: &PacketBuffer,
) -> Result<(), LinkDrop> {
    if link.connection.borrow().is_none() {
        return Err(LinkDrop::LinkDown);
    }
    if link.push(&entry.face, frame) {
        return Ok(());
    }
    // The queue may be full because memory is scarce. If the peer reads, flushing makes space and nothing is lost.
    flush(shared, entry, link);
    if link.push(&entry.face, frame) { Ok(()) } else { Err(LinkDrop::SendQueueFull) }
}

/// Writes the queued bytes. If the kernel does not take all, a task waits until it takes more.
pub(super) fn flush(shared: &Rc<ServiceState>, entry: &Rc<SocketFace>, link: &StreamLink) {
    if link.drain.borrow().is_some() {
        return;
    }
    let Some(connection) = link.connection.borrow().clone() else { return };
    if let Ok(Flush::Blocked) = link.write(&entry.face, &connection) {
        let drain = spawn_local(drain(Rc::clone(shared), Rc::clone(entry), connection));
        *link.drain.borrow_mut() = Some(drain.abort_handle());
    }
}

/// Writes whenever the kernel takes more, and closes the connection if it takes nothing for too long.
async fn drain(shared: Rc<ServiceState>, entry: Rc<SocketFace>, connection: Rc<Connection>) {
    let Link::Stream(link) = &entry.link else { return };
    let attempt = || match link.write(&entry.face, &connection) {
        Ok(Flush::Blocked) => Err(io::ErrorKind::WouldBlock.into()),
        Ok(Flush::Empty) => Ok(()),
        Err(error) => Err(error),
    };
    let patience = Duration::from_millis(shared.config.blocked_timeout_ms);
    let (mut taken, mut blocked_since) = (link.taken_bytes.get(), Instant::now());
    loop {
        let look = timeout(patience.div_f32(BLOCKED_LOOKS), connection.write_when_possible(attempt)).await;
        // The kernel reports a socket as writable only when much space is free, too late for a peer that reads slowly.
        // So writing is also attempted after each wait.
        let result = look.unwrap_or_else(|_| attempt());
        match result {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok(()) => break,
            Err(error) => {
                // Without a file descriptor to wait with, the queued bytes could never leave. After a failed write the
                // connection is shut down already.
                tracing::debug!(face = %entry.face.id(), %error, "cannot write");
                connection.shut_down();
                break;
            }
        }
        if taken != link.taken_bytes.get() {
            (taken, blocked_since) = (link.taken_bytes.get(), Instant::now());
        } else if blocked_since.elapsed() >= patience {
            note_blocked(&entry.face, &shared.config);
            // The reader sees the end of the stream and decides whether the face closes or reconnects.
            connection.abort();
            break;
        }
    }
    link.drain.take();
}

/// Creates a face for a connected socket and serves it. With `redial`, it connects to that peer if there is no
/// connection or it breaks.
pub(super) fn adopt(
    shared: &Rc<ServiceState>,
    connection: Option<Connection>,
    params: FaceParams,
    update: &FaceUpdate,
    redial: Option<SocketAddr>,
) -> Result<Arc<Face>, OpenError> {
    let waiting = SendBuffer::new(shared.config.stream_queue_bytes, shared.send_account(&params));
    let link = StreamLink::new(connection, waiting);
    let entry = shared.open(params, update, Link::Stream(link))?;
    let face = Arc::clone(&entry.face);
    let task = spawn_local(keep(Rc::clone(shared), Rc::clone(&entry), redial));
    entry.set_task(task.abort_handle());
    Ok(face)
}

/// Serves a face until its connection ends and is not to be redialled.
async fn keep(shared: Rc<ServiceState>, entry: Rc<SocketFace>, redial: Option<SocketAddr>) {
    let Link::Stream(link) = &entry.link else { return };
    let face = &entry.face;
    let config = &shared.config;
    loop {
        let connection = link.connection.borrow().clone();
        let was_connected = connection.is_some();
        if let Some(connection) = connection {
            note_end(face, receive(&shared, &entry, &connection).await);
        }
        // Dropping the last reference closes the socket, so that the peer sees the end before a new attempt.
        link.disconnect(face);
        let Some(peer) = redial else { break };
        shared.set_up(face, false);
        face.set_local_uri(FaceUri::Null);
        let backoff = Backoff::of(config, was_connected);
        let (connection, local) = dial(&shared, face, backoff, async || {
            let connected = tcp::connect(peer, config).await?;
            Ok((Connection::tcp(connected.stream)?, connected.local))
        })
        .await;
        face.set_local_uri(FaceUri::tcp(local));
        *link.connection.borrow_mut() = Some(Rc::new(connection));
        shared.set_up(face, true);
    }
    shared.close(entry.face.id());
}

/// Logs and counts why a connection ended.
fn note_end(face: &Face, end: ConnectionEnd) {
    match end {
        ConnectionEnd::Closed => tracing::debug!(face = %face.id(), "peer closed the connection"),
        ConnectionEnd::Failed(error) => tracing::debug!(face = %face.id(), %error, "connection failed"),
        ConnectionEnd::Bad(error) => end_of_garbage(face, drop_reason(error), &error),
        ConnectionEnd::NotNdn => {
            end_of_garbage(
                face,
                LinkDrop::NotNdnFrame,
                &"received bytes are neither an Interest, nor Data, nor an LpPacket",
            );
        }
    }
}

fn end_of_garbage(face: &Face, reason: LinkDrop, error: &dyn fmt::Display) {
    face.counters.count_transport_drop(reason);
    // Any peer can send garbage at any rate.
    static LINES: LogLimit = LogLimit::new(10);
    if let Some(left_out) = LINES.admit() {
        tracing::info!(face = %face.id(), remote = %face.remote_uri(), %error, left_out, "stream is not NDN: closing");
    }
}

/// Why a connection ended.
enum ConnectionEnd {
    Closed,
    Failed(io::Error),
    Bad(DecodeError),
    NotNdn,
}

/// Result of one read.
enum ReadOutcome {
    /// The socket is empty for now.
    Drained,
    /// The read had the maximum length: more bytes probably wait.
    Full,
    /// Whole packets are left: the stream has used its share of the round, or the ring to the worker is full.
    Behind,
    End(ConnectionEnd),
}

async fn receive(shared: &ServiceState, entry: &SocketFace, connection: &Connection) -> ConnectionEnd {
    // Bytes received but not handed over: at most one incomplete packet, unless the worker is behind.
    let mut rest = Vec::new();
    let is_unix = matches!(entry.face.remote_uri(), FaceUri::FileDescriptor(_));
    let mut framing = if is_unix { Framing::of_trusted() } else { Framing::default() };
    loop {
        let mut outcome = poll_fn(|cx| poll_read_once(cx, shared, entry, connection, &mut rest, &mut framing)).await;
        if matches!(outcome, ReadOutcome::Behind) {
            outcome = catch_up(shared, entry, &mut rest, &mut framing).await;
        }
        match outcome {
            ReadOutcome::Full => yield_now().await,
            ReadOutcome::End(end) => return end,
            ReadOutcome::Drained | ReadOutcome::Behind => {}
        }
    }
}

/// Hands over all whole packets of `rest`, a share in each round. Meanwhile the stream is not read, so the peer has to
/// wait; other faces are not affected.
async fn catch_up(shared: &ServiceState, entry: &SocketFace, rest: &mut Vec<u8>, framing: &mut Framing) -> ReadOutcome {
    let _held = shared.backlog.hold(rest.len());
    let mut kept = Kept { bytes: rest, used: 0, face: &entry.face };
    let mut refusals = 0;
    loop {
        if refusals < PATIENCE {
            yield_now().await;
        } else {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        refusals += 1;
        let deliver = |packet: &[u8]| shared.deliver_backlog(entry.face.id(), packet);
        let (count, outcome) = hand_over(shared, entry, &kept.bytes[kept.used..], framing, deliver);
        kept.used += count;
        if count > 0 {
            refusals = 0;
        }
        if !matches!(outcome, ReadOutcome::Behind) {
            // Frees the memory of the backlog; an incomplete packet is small.
            *kept.bytes = kept.bytes[kept.used..].to_vec();
            kept.used = kept.bytes.len();
            drop(kept);
            return outcome;
        }
    }
}

/// Bytes of a stream that were read but not handed over. If the face is closed meanwhile, dropping it counts the lost
/// packets.
struct Kept<'a> {
    bytes: &'a mut Vec<u8>,
    used: usize,
    face: &'a Face,
}

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        let mut lost = 0;
        let count = |_: &[u8]| {
            lost += 1;
            true
        };
        // What is left begins with a packet that the ring had no room for.
        cut(&self.bytes[self.used..], &mut Framing::of_trusted(), count, || {});
        self.face.counters.transport.drops.add(LinkDrop::LinkDown, lost);
    }
}

fn poll_read_once(
    cx: &mut Context<'_>,
    shared: &ServiceState,
    entry: &SocketFace,
    connection: &Connection,
    rest: &mut Vec<u8>,
    framing: &mut Framing,
) -> Poll<ReadOutcome> {
    let mut memory = shared.stream_memory.borrow_mut();
    let kept = rest.len();
    let limit = shared.backlog.read_bytes();
    let count = match ready!(connection.poll_read(cx, &mut memory[kept..kept + limit])) {
        Ok(0) => return Poll::Ready(ReadOutcome::End(ConnectionEnd::Closed)),
        Ok(count) => count,
        Err(error) => return Poll::Ready(ReadOutcome::End(ConnectionEnd::Failed(error))),
    };
    memory[..kept].copy_from_slice(rest);
    let bytes = &memory[..kept + count];
    let deliver = |packet: &[u8]| shared.deliver(entry.face.id(), packet);
    let (used, outcome) = hand_over(shared, entry, bytes, framing, deliver);
    rest.clear();
    rest.extend_from_slice(&bytes[used..]);
    Poll::Ready(match outcome {
        ReadOutcome::Drained if count == limit => ReadOutcome::Full,
        outcome => outcome,
    })
}

/// Cuts `bytes` into packets and pushes them to the ring, at most the share of this stream. Returns the number of bytes
/// consumed.
fn hand_over(
    shared: &ServiceState,
    entry: &SocketFace,
    bytes: &[u8],
    framing: &mut Framing,
    deliver: impl Fn(&[u8]) -> Result<(), LinkDrop>,
) -> (usize, ReadOutcome) {
    let mut share = shared.backlog.share_frames();
    let accept = |packet: &[u8]| {
        let is_accepted = share > 0 && deliver(packet).is_ok();
        share = share.saturating_sub(1);
        is_accepted
    };
    let skip = || entry.face.counters.count_transport_drop(LinkDrop::NotNdnFrame);
    let (used, stop) = cut(bytes, framing, accept, skip);
    if used > 0 {
        entry.activity.note_received();
    }
    shared.to_workers.streams.wake();
    let outcome = match stop {
        Stop::Incomplete => ReadOutcome::Drained,
        Stop::Refused => ReadOutcome::Behind,
        Stop::Bad(error) => ReadOutcome::End(ConnectionEnd::Bad(error)),
        Stop::NotNdn => ReadOutcome::End(ConnectionEnd::NotNdn),
    };
    (used, outcome)
}
