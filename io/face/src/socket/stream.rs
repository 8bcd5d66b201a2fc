//! Faces over byte streams (Unix and TCP): reading and cutting, the write queue, reconnecting.
//!
//! One read takes up to 256 KiB and may hold thousands of packets; the worker is woken once per read. Reading goes to
//! memory shared by all streams; a face keeps what a read left incomplete, and what is more than its share of a round
//! of the thread (`backlog`). Writing happens straight from the dispatcher, one call per turn; a task waits for room
//! only while the kernel takes no more.

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
use super::framing::{Opening, Stop, cut, drop_reason, packet_ends};
use super::send_buffer::{Flush, SendBuffer};
use super::shared::{Link, OpenError, Shared, SocketFace, note_blocked, note_queue};
use super::tcp;
use crate::counters::LinkDrop;
use crate::log_limit::LogLimit;
use crate::registry::{Face, FaceParams, FaceUpdate};
use crate::uri::FaceUri;

/// How often within the time a peer may be blocked it is tried whether it still is.
const BLOCKED_LOOKS: f32 = 8.0;
/// Times a blocked reader only lets others run before it sleeps.
const PATIENCE: u32 = 8;

/// Transport state of a stream face.
pub(super) struct StreamLink {
    /// `None` while connecting.
    connection: RefCell<Option<Rc<Connection>>>,
    waiting: RefCell<SendBuffer>,
    /// Bytes that the kernel took of all that was to be sent.
    taken_bytes: Cell<u64>,
    /// The task that waits until the kernel takes more.
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

    /// Ends the connection, if there is one, at once.
    pub(super) fn abort(&self) {
        if let Some(connection) = &*self.connection.borrow() {
            connection.abort();
        }
    }

    /// Lets go of the connection and of everything that waits.
    pub(super) fn disconnect(&self, face: &Face) {
        self.connection.take();
        if let Some(drain) = self.drain.take() {
            drain.abort();
        }
        self.give_up_waiting(face);
    }

    /// Gives up what waits, whose way has ended.
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
            // The reader notices the end of the stream and decides what becomes of the face.
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
    shared: &Rc<Shared>,
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
    // A peer that reads loses nothing when there is little memory for queues: the kernel takes what waits so far.
    flush(shared, entry, link);
    if link.push(&entry.face, frame) { Ok(()) } else { Err(LinkDrop::SendQueueFull) }
}

/// Writes what waits. What the kernel does not take is left to a task that waits for room.
pub(super) fn flush(shared: &Rc<Shared>, entry: &Rc<SocketFace>, link: &StreamLink) {
    if link.drain.borrow().is_some() {
        return;
    }
    let Some(connection) = link.connection.borrow().clone() else { return };
    if let Ok(Flush::Blocked) = link.write(&entry.face, &connection) {
        let drain = spawn_local(drain(Rc::clone(shared), Rc::clone(entry), connection));
        *link.drain.borrow_mut() = Some(drain.abort_handle());
    }
}

/// Writes as the kernel takes more, and closes the connection when it takes nothing for too long.
async fn drain(shared: Rc<Shared>, entry: Rc<SocketFace>, connection: Rc<Connection>) {
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
        // The kernel tells of room only when there is much of it, too late for a peer that reads slowly; so it is tried.
        let result = look.unwrap_or_else(|_| attempt());
        match result {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok(()) => break,
            Err(error) => {
                // Without a descriptor to wait with, what is queued could never leave. After a failed write this is done
                // already.
                tracing::debug!(face = %entry.face.id(), %error, "cannot write");
                connection.shut_down();
                break;
            }
        }
        if taken != link.taken_bytes.get() {
            (taken, blocked_since) = (link.taken_bytes.get(), Instant::now());
        } else if blocked_since.elapsed() >= patience {
            note_blocked(&entry.face, &shared.config);
            // The reader finds the end of the stream and decides what becomes of the face.
            connection.abort();
            break;
        }
    }
    link.drain.take();
}

/// Makes a face of a connected socket and serves it; with `redial`, a missing or broken connection to that peer is made.
pub(super) fn adopt(
    shared: &Rc<Shared>,
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

/// Serves a face until its connection ends for good.
async fn keep(shared: Rc<Shared>, entry: Rc<SocketFace>, redial: Option<SocketAddr>) {
    let Link::Stream(link) = &entry.link else { return };
    let face = &entry.face;
    let config = &shared.config;
    loop {
        let connection = link.connection.borrow().clone();
        let was_connected = connection.is_some();
        if let Some(connection) = connection {
            note_end(face, receive(&shared, &entry, &connection).await);
        }
        // The socket closes when the last reference goes, so that the peer sees the end before a new attempt.
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
fn note_end(face: &Face, end: End) {
    match end {
        End::Closed => tracing::debug!(face = %face.id(), "peer closed the connection"),
        End::Failed(error) => tracing::debug!(face = %face.id(), %error, "connection failed"),
        End::Bad(error) => end_of_garbage(face, drop_reason(error), &error),
        End::NotNdn => {
            end_of_garbage(face, LinkDrop::NotNdnFrame, &"what came is neither Interest nor Data nor LpPacket");
        }
    }
}

fn end_of_garbage(face: &Face, reason: LinkDrop, error: &dyn fmt::Display) {
    face.counters.count_transport_drop(reason);
    // Anybody can send garbage at any rate.
    static LINES: LogLimit = LogLimit::new(10);
    if let Some(left_out) = LINES.admit() {
        tracing::info!(face = %face.id(), remote = %face.remote_uri(), %error, left_out, "stream is not NDN: closing");
    }
}

/// Why a connection ended.
enum End {
    Closed,
    Failed(io::Error),
    Bad(DecodeError),
    NotNdn,
}

/// What one turn of reading came to.
enum Turn {
    /// The socket is empty for now.
    Drained,
    /// The read was as long as it may be: there is probably more.
    Full,
    /// There are whole packets left: this stream has had its share of the round, or the ring to the worker is full.
    Behind,
    End(End),
}

async fn receive(shared: &Shared, entry: &SocketFace, connection: &Connection) -> End {
    // Received, not yet handed over: at most one incomplete packet, unless the worker is behind.
    let mut rest = Vec::new();
    let is_unix = matches!(entry.face.remote_uri(), FaceUri::FileDescriptor(_));
    let mut opening = if is_unix { Opening::Proven } else { Opening::Unproven };
    loop {
        let mut turn = poll_fn(|cx| poll_turn(cx, shared, entry, connection, &mut rest, &mut opening)).await;
        if matches!(turn, Turn::Behind) {
            turn = catch_up(shared, entry, &mut rest, &mut opening).await;
        }
        match turn {
            Turn::Full => yield_now().await,
            Turn::End(end) => return end,
            Turn::Drained | Turn::Behind => {}
        }
    }
}

/// Hands over all whole packets of `rest`, a share in each round. Meanwhile bytes stay in the kernel and make the peer
/// wait; other faces are not affected.
async fn catch_up(shared: &Shared, entry: &SocketFace, rest: &mut Vec<u8>, opening: &mut Opening) -> Turn {
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
        let (count, turn) = hand_over(shared, entry, &kept.bytes[kept.used..], opening, deliver);
        kept.used += count;
        if count > 0 {
            refusals = 0;
        }
        if !matches!(turn, Turn::Behind) {
            // The memory of a backlog is given back; an incomplete packet is small.
            *kept.bytes = kept.bytes[kept.used..].to_vec();
            kept.used = kept.bytes.len();
            drop(kept);
            return turn;
        }
    }
}

/// What was read of a stream and is yet to be handed over. When its face is closed meanwhile, the packets are lost.
struct Kept<'a> {
    bytes: &'a mut Vec<u8>,
    used: usize,
    face: &'a Face,
}

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        let lost = packet_ends(&self.bytes[self.used..]).count();
        self.face.counters.transport.drops.add(LinkDrop::LinkDown, lost as u64);
    }
}

fn poll_turn(
    cx: &mut Context<'_>,
    shared: &Shared,
    entry: &SocketFace,
    connection: &Connection,
    rest: &mut Vec<u8>,
    opening: &mut Opening,
) -> Poll<Turn> {
    let mut memory = shared.stream_memory.borrow_mut();
    let kept = rest.len();
    let limit = shared.backlog.read_bytes();
    let count = match ready!(connection.poll_read(cx, &mut memory[kept..kept + limit])) {
        Ok(0) => return Poll::Ready(Turn::End(End::Closed)),
        Ok(count) => count,
        Err(error) => return Poll::Ready(Turn::End(End::Failed(error))),
    };
    memory[..kept].copy_from_slice(rest);
    let bytes = &memory[..kept + count];
    let deliver = |packet: &[u8]| shared.deliver(entry.face.id(), packet);
    let (used, turn) = hand_over(shared, entry, bytes, opening, deliver);
    rest.clear();
    rest.extend_from_slice(&bytes[used..]);
    Poll::Ready(match turn {
        Turn::Drained if count == limit => Turn::Full,
        turn => turn,
    })
}

/// Cuts `bytes` and puts the packets on the ring, no more than the share of this stream; returns how many bytes that
/// were.
fn hand_over(
    shared: &Shared,
    entry: &SocketFace,
    bytes: &[u8],
    opening: &mut Opening,
    deliver: impl Fn(&[u8]) -> Result<(), LinkDrop>,
) -> (usize, Turn) {
    let mut share = shared.backlog.share_frames();
    let accept = |packet: &[u8]| {
        let is_accepted = share > 0 && deliver(packet).is_ok();
        share = share.saturating_sub(1);
        is_accepted
    };
    let skip = |_: &[u8]| entry.face.counters.count_transport_drop(LinkDrop::NotNdnFrame);
    let (used, stop) = cut(bytes, opening, accept, skip);
    if used > 0 {
        entry.activity.note_received();
    }
    shared.to_workers.streams.wake();
    let turn = match stop {
        Stop::Incomplete => Turn::Drained,
        Stop::Refused => Turn::Behind,
        Stop::Bad(error) => Turn::End(End::Bad(error)),
        Stop::NotNdn => Turn::End(End::NotNdn),
    };
    (used, turn)
}
