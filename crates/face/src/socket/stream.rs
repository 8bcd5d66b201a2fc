//! Faces over byte streams (Unix and TCP): reading and cutting, the write queue, reconnecting.
//!
//! One read takes up to 256 KiB and may hold thousands of packets; the worker is woken once per read. Reading goes to
//! memory shared by all streams; a face keeps what a read left incomplete, and what is more than its share of a round
//! of the thread (`backlog`). Writing happens straight from the dispatcher, one call per turn; a task waits for room
//! only while the kernel takes no more.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use namehop_forward::buffer::{BufferPool, PacketBuffer};
use namehop_wire::DecodeError;
use tokio::task::{AbortHandle, spawn_local, yield_now};

use super::connection::Connection;
use super::framing::{Stop, cut};
use super::persistence::{Backoff, dial};
use super::send_buffer::{Flush, SendBuffer};
use super::shared::{Link, OpenError, Shared, SocketFace, note_queue};
use super::tcp;
use crate::counters::LinkDrop;
use crate::registry::{Face, FaceParams, FaceUpdate};
use crate::uri::FaceUri;

/// Times a blocked reader only lets others run before it sleeps.
const PATIENCE: u32 = 8;

/// Transport state of a stream face.
pub(super) struct StreamLink {
    /// `None` while connecting.
    connection: RefCell<Option<Rc<Connection>>>,
    waiting: RefCell<SendBuffer>,
    /// The task that waits until the kernel takes more.
    drain: RefCell<Option<AbortHandle>>,
}

impl StreamLink {
    fn new(connection: Option<Connection>, limit_bytes: usize) -> Self {
        StreamLink {
            connection: RefCell::new(connection.map(Rc::new)),
            waiting: RefCell::new(SendBuffer::new(limit_bytes)),
            drain: RefCell::new(None),
        }
    }

    /// Copies a frame to the write queue.
    pub(super) fn queue(&self, face: &Face, frame: &impl PacketBuffer) -> Result<(), LinkDrop> {
        if self.connection.borrow().is_none() {
            return Err(LinkDrop::LinkDown);
        }
        let mut waiting = self.waiting.borrow_mut();
        if !waiting.push(frame.bytes()) {
            return Err(LinkDrop::SendQueueFull);
        }
        note_queue(face, waiting.len());
        Ok(())
    }

    /// Lets go of the connection and of everything that waits.
    pub(super) fn disconnect(&self, face: &Face) {
        self.connection.take();
        if let Some(drain) = self.drain.take() {
            drain.abort();
        }
        self.waiting.borrow_mut().clear();
        note_queue(face, 0);
    }

    fn write(&self, face: &Face, connection: &Connection) -> io::Result<Flush> {
        let mut waiting = self.waiting.borrow_mut();
        let flushed = waiting.flush(|bytes| connection.write(bytes));
        if let Err(error) = &flushed {
            // The reader notices the end of the stream and decides what becomes of the face.
            tracing::debug!(face = %face.id(), %error, "write failed");
            connection.shut_down();
            waiting.clear();
        }
        note_queue(face, waiting.len());
        flushed
    }
}

/// Writes what waits. What the kernel does not take is left to a task that waits for room.
pub(super) fn flush<B: PacketBuffer + 'static>(entry: &Rc<SocketFace<B>>, link: &StreamLink) {
    if link.drain.borrow().is_some() {
        return;
    }
    let Some(connection) = link.connection.borrow().clone() else { return };
    if let Ok(Flush::Blocked) = link.write(&entry.face, &connection) {
        let drain = spawn_local(drain(Rc::clone(entry), connection));
        *link.drain.borrow_mut() = Some(drain.abort_handle());
    }
}

async fn drain<B: PacketBuffer>(entry: Rc<SocketFace<B>>, connection: Rc<Connection>) {
    let Link::Stream(link) = &entry.link else { return };
    let attempt = || match link.write(&entry.face, &connection) {
        Ok(Flush::Blocked) => Err(io::ErrorKind::WouldBlock.into()),
        Ok(Flush::Empty) => Ok(()),
        Err(error) => Err(error),
    };
    if let Err(error) = connection.write_when_possible(attempt).await {
        // Without a descriptor to wait with, what is queued could never leave. After a failed write this is done already.
        tracing::debug!(face = %entry.face.id(), %error, "cannot write");
        connection.shut_down();
    }
    link.drain.take();
}

/// Makes a face of a connected socket and serves it; with `redial`, a missing or broken connection to that peer is made.
pub(super) fn adopt<P: BufferPool>(
    shared: &Rc<Shared<P>>,
    connection: Option<Connection>,
    params: FaceParams,
    update: &FaceUpdate,
    redial: Option<SocketAddr>,
) -> Result<Arc<Face>, OpenError> {
    let link = StreamLink::new(connection, shared.config.stream_queue_bytes);
    let entry = shared.open(params, update, Link::Stream(link))?;
    let face = Arc::clone(&entry.face);
    let task = spawn_local(keep(Rc::clone(shared), Rc::clone(&entry), redial));
    entry.set_task(task.abort_handle());
    Ok(face)
}

/// Serves a face until its connection ends for good.
async fn keep<P: BufferPool>(shared: Rc<Shared<P>>, entry: Rc<SocketFace<P::Buffer>>, redial: Option<SocketAddr>) {
    let Link::Stream(link) = &entry.link else { return };
    let face = &entry.face;
    let config = &shared.config;
    loop {
        let connection = link.connection.borrow().clone();
        let was_connected = connection.is_some();
        if let Some(connection) = connection {
            note_end(face, receive(&shared, face, &connection).await);
        }
        // The socket closes when the last reference goes, so that the peer sees the end before a new attempt.
        link.disconnect(face);
        let Some(peer) = redial else { break };
        shared.set_up(face, false);
        let backoff = Backoff::of(config, was_connected);
        let (connection, local) = dial(face, backoff, async || {
            let connected = tcp::connect(peer, config.connect_timeout_ms).await?;
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
        End::Bad(error) => {
            tracing::info!(face = %face.id(), remote = %face.remote_uri(), %error, "stream is not NDN: closing");
            let reason = match error {
                DecodeError::TooLong => LinkDrop::FrameTooLong,
                _ => LinkDrop::MalformedFrame,
            };
            face.counters.count_transport_drop(reason);
        }
    }
}

/// Why a connection ended.
enum End {
    Closed,
    Failed(io::Error),
    Bad(DecodeError),
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

async fn receive<P: BufferPool>(shared: &Shared<P>, face: &Face, connection: &Connection) -> End {
    // Received, not yet handed over: at most one incomplete packet, unless the worker is behind.
    let mut rest = Vec::new();
    loop {
        let mut turn = poll_fn(|cx| poll_turn(cx, shared, face, connection, &mut rest)).await;
        if matches!(turn, Turn::Behind) {
            turn = catch_up(shared, face, &mut rest).await;
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
async fn catch_up<P: BufferPool>(shared: &Shared<P>, face: &Face, rest: &mut Vec<u8>) -> Turn {
    let _held = shared.backlog.hold(rest.len());
    let mut used = 0;
    let mut refusals = 0;
    loop {
        if refusals < PATIENCE {
            yield_now().await;
        } else {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        refusals += 1;
        if shared.to_worker.len() == shared.to_worker.capacity() {
            continue;
        }
        let (count, turn) = hand_over(shared, face, &rest[used..]);
        used += count;
        if count > 0 {
            refusals = 0;
        }
        if !matches!(turn, Turn::Behind) {
            // The memory of a backlog is given back; an incomplete packet is small.
            *rest = rest[used..].to_vec();
            return turn;
        }
    }
}

fn poll_turn<P: BufferPool>(
    cx: &mut Context<'_>,
    shared: &Shared<P>,
    face: &Face,
    connection: &Connection,
    rest: &mut Vec<u8>,
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
    let (used, turn) = hand_over(shared, face, bytes);
    rest.clear();
    rest.extend_from_slice(&bytes[used..]);
    Poll::Ready(match turn {
        Turn::Drained if count == limit => Turn::Full,
        turn => turn,
    })
}

/// Cuts `bytes` and puts the packets on the ring, no more than the share of this stream; returns how many bytes that
/// were.
fn hand_over<P: BufferPool>(shared: &Shared<P>, face: &Face, bytes: &[u8]) -> (usize, Turn) {
    let id = face.id();
    let mut share = shared.backlog.share_frames();
    let (used, stop) = cut(bytes, |packet| {
        let is_accepted = share > 0 && shared.deliver(id, 0, packet).is_ok();
        share = share.saturating_sub(1);
        is_accepted
    });
    shared.to_worker.wake();
    let turn = match stop {
        Stop::Incomplete => Turn::Drained,
        Stop::Refused => Turn::Behind,
        Stop::Bad(error) => Turn::End(End::Bad(error)),
    };
    (used, turn)
}
