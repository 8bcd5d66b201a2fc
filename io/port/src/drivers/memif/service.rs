//! The thread that serves the control sockets of all memif ports: it makes connections, detects their end, and signals
//! peers.
//!
//! It moves no frames. No peer can delay it: sockets are non-blocking, a handshake has to finish within [`PATIENCE`],
//! and at most [`MAX_HANDSHAKES`] handshakes are in progress.

use std::borrow::Cow;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use crossbeam_queue::SegQueue;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};

use super::channel::{Channel, Received, accept, listen_at};
use super::handshake::{Acceptance, Request, Step, hello};
use super::link::Link;
use super::message::{Message, VERSION};
use super::{Memif, MemifRole};

/// Time limit of a handshake.
const PATIENCE: Duration = Duration::from_secs(5);
/// Pause between two attempts to connect to a server.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// How long a server may be absent before that is reported: the two ends need not start at the same time.
const ABSENCE: Duration = Duration::from_secs(2);
/// Polling intervals for state that no event announces: the short one while there is such state, the long one
/// otherwise.
const SHORT_LOOK: Duration = Duration::from_millis(100);
const LONG_LOOK: Duration = Duration::from_secs(1);
/// Maximum number of incomplete handshakes. The oldest one is closed for a new one.
const MAX_HANDSHAKES: usize = 32;

/// Reason for closing a connection after a protocol violation of the peer.
const DISORDER: &str = "the rings are inconsistent";

/// Commands to the thread.
pub(super) enum MemifCommand {
    Open(Memif, Arc<Link>, SyncSender<io::Result<()>>),
    Close(Arc<Link>),
    Stop,
}

/// Command queue of the thread, and the event that wakes it.
pub(super) struct Mailbox {
    commands: SegQueue<MemifCommand>,
    event: EventFd,
}

impl Mailbox {
    pub(super) fn new() -> io::Result<Mailbox> {
        let event = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?;
        Ok(Mailbox { commands: SegQueue::new(), event })
    }

    pub(super) fn send(&self, command: MemifCommand) {
        self.commands.push(command);
        self.wake();
    }

    pub(super) fn wake(&self) {
        // The write fails only if the counter is full, and then the thread is being woken anyway.
        let _ = self.event.write(1);
    }
}

/// A memif port of this process.
struct Endpoint {
    memif: Memif,
    link: Arc<Link>,
    next_attempt: Instant,
    /// Since when a client has not reached its server.
    missed_since: Option<Instant>,
}

impl Endpoint {
    /// True if this is a server on this control socket.
    fn is_served_at(&self, socket: &Path) -> bool {
        self.memif.role == MemifRole::Server && self.memif.socket == socket
    }
}

/// A control socket of this process, shared by all servers on it.
struct Listener {
    path: PathBuf,
    socket: OwnedFd,
    /// Device and inode of the socket file, to recognize it before removing it.
    file: Option<(u64, u64)>,
}

enum State {
    /// A client that has not named a link yet.
    Stranger,
    Accepting(Acceptance),
    Requesting(Box<Request>),
    /// Connected; with the peer's eventfd, if there is one.
    Up(Option<OwnedFd>),
}

struct Peer {
    channel: Channel,
    /// The control socket that it was accepted on, or connected to.
    socket: PathBuf,
    since: Instant,
    /// The link that it uses.
    link: Option<Arc<Link>>,
    state: State,
}

impl Drop for Peer {
    fn drop(&mut self) {
        if let Some(link) = &self.link {
            link.release();
        }
    }
}

/// See the module description.
pub(super) struct Service {
    mailbox: Arc<Mailbox>,
    endpoints: Vec<Endpoint>,
    listeners: Vec<Listener>,
    peers: Vec<Peer>,
    /// When to accept connections again after accepting failed, for example because no descriptors were left.
    accept_after: Instant,
}

impl Service {
    pub(super) fn new(mailbox: Arc<Mailbox>) -> Service {
        let (endpoints, listeners, peers) = (Vec::new(), Vec::new(), Vec::new());
        Service { mailbox, endpoints, listeners, peers, accept_after: Instant::now() }
    }

    /// Serves until it receives the command to stop.
    pub(super) fn run(mut self) {
        loop {
            let readable = self.wait();
            self.serve_peers(&readable);
            while let Some(command) = self.mailbox.commands.pop() {
                match command {
                    MemifCommand::Open(memif, link, reply) => {
                        // If the opener has stopped waiting, it has dropped the port as well.
                        let _ = reply.send(self.open(memif, link));
                    }
                    MemifCommand::Close(link) => self.close(&link),
                    MemifCommand::Stop => return self.stop(),
                }
            }
            self.accept();
            self.look();
        }
    }

    /// Waits for events. Returns for each peer whether it is readable.
    fn wait(&mut self) -> Vec<bool> {
        let now = Instant::now();
        let may_accept = now >= self.accept_after;
        let mut polled = vec![PollFd::new(self.mailbox.event.as_fd(), PollFlags::POLLIN)];
        polled.extend(self.peers.iter().map(|peer| PollFd::new(peer.channel.as_fd(), PollFlags::POLLIN)));
        if may_accept {
            polled
                .extend(self.listeners.iter().map(|listener| PollFd::new(listener.socket.as_fd(), PollFlags::POLLIN)));
        }
        let is_waiting = !may_accept
            || self.peers.iter().any(|peer| !matches!(peer.state, State::Up(_)))
            || self.endpoints.iter().any(|endpoint| endpoint.memif.role == MemifRole::Client && !endpoint.link.is_up());
        let pause = if is_waiting { SHORT_LOOK } else { LONG_LOOK };
        if poll(&mut polled, PollTimeout::try_from(pause).unwrap_or(PollTimeout::MAX)).is_err() {
            // Interrupted, or out of memory: pause instead of spinning.
            std::thread::sleep(Duration::from_millis(1));
        }
        let readable = polled[1..=self.peers.len()].iter().map(|polled| polled.any().unwrap_or(true)).collect();
        let _ = self.mailbox.event.read();
        readable
    }

    fn open(&mut self, memif: Memif, link: Arc<Link>) -> io::Result<()> {
        let is_taken = |other: &Endpoint| {
            (other.memif.role, &other.memif.socket, other.memif.id) == (memif.role, &memif.socket, memif.id)
        };
        if self.endpoints.iter().any(is_taken) {
            return Err(io::Error::new(io::ErrorKind::AddrInUse, "a link with this id is open already"));
        }
        let path = &memif.socket;
        if memif.role == MemifRole::Server && !self.listeners.iter().any(|listener| listener.path == *path) {
            let socket = listen_at(path)?;
            self.listeners.push(Listener { path: path.clone(), socket, file: file_at(path) });
        }
        self.endpoints.push(Endpoint { memif, link, next_attempt: Instant::now(), missed_since: None });
        Ok(())
    }

    fn close(&mut self, link: &Arc<Link>) {
        self.endpoints.retain(|endpoint| !Arc::ptr_eq(&endpoint.link, link));
        self.peers.retain(|peer| {
            let is_its = peer.link.as_ref().is_some_and(|other| Arc::ptr_eq(other, link));
            if is_its {
                peer.channel.send(&Message::Disconnect { reason: "closed".to_owned() }, None);
            }
            !is_its
        });
        link.clean_up();
        let endpoints = &self.endpoints;
        self.listeners.retain(|listener| {
            let is_used = endpoints.iter().any(|endpoint| endpoint.is_served_at(&listener.path));
            if !is_used && listener.file.is_some() && file_at(&listener.path) == listener.file {
                // It may already have been removed.
                let _ = std::fs::remove_file(&listener.path);
            }
            is_used
        });
    }

    fn stop(mut self) {
        for link in self.endpoints.iter().map(|endpoint| Arc::clone(&endpoint.link)).collect::<Vec<_>>() {
            self.close(&link);
        }
    }

    /// Processes messages of peers.
    fn serve_peers(&mut self, readable: &[bool]) {
        let endpoints = &self.endpoints;
        let mut index = 0;
        self.peers.retain_mut(|peer| {
            let is_readable = readable.get(index).copied().unwrap_or(false);
            index += 1;
            let result = if is_readable { peer.serve(endpoints) } else { Ok(()) };
            let Err(reason) = result else { return true };
            peer.end(&reason);
            false
        });
    }

    /// Accepts new connections.
    fn accept(&mut self) {
        if Instant::now() < self.accept_after {
            return;
        }
        for listener in &self.listeners {
            // Accept one connection per listener; the others wait for the next iteration.
            let channel = match accept(listener.socket.as_fd()) {
                Ok(Some(channel)) => channel,
                Ok(None) => continue,
                Err(error) => {
                    let at_socket = |endpoint: &&Endpoint| endpoint.is_served_at(&listener.path);
                    for endpoint in self.endpoints.iter().filter(at_socket) {
                        endpoint.link.report(format!("cannot accept clients: {error}"));
                    }
                    self.accept_after = Instant::now() + SHORT_LOOK;
                    continue;
                }
            };
            if !channel.send(&hello(), None) {
                continue;
            }
            let is_pending = |peer: &Peer| matches!(peer.state, State::Stranger | State::Accepting(_));
            if self.peers.iter().filter(|peer| is_pending(peer)).count() >= MAX_HANDSHAKES
                && let Some(oldest) = self.peers.iter().position(is_pending)
            {
                self.peers.remove(oldest);
            }
            let socket = listener.path.clone();
            self.peers.push(Peer { channel, socket, since: Instant::now(), link: None, state: State::Stranger });
        }
    }

    /// Checks state that no event announces: peers that are too slow or violate the protocol, pending signals, servers
    /// that may have started.
    fn look(&mut self) {
        let now = Instant::now();
        self.peers.retain_mut(|peer| {
            let reason = match &peer.state {
                State::Up(bell) => {
                    let Some(link) = &peer.link else { return false };
                    if link.take_ring()
                        && let Some(bell) = bell
                    {
                        ring(bell.as_fd());
                    }
                    link.is_broken().then_some(DISORDER)
                }
                _ => (now.saturating_duration_since(peer.since) > PATIENCE).then_some("timeout"),
            };
            let Some(reason) = reason else { return true };
            peer.end(reason);
            false
        });
        for endpoint in &mut self.endpoints {
            endpoint.link.clean_up();
            let Endpoint { memif, link, next_attempt, missed_since } = endpoint;
            if memif.role != MemifRole::Client || link.is_claimed() || now < *next_attempt {
                continue;
            }
            *next_attempt = now + RETRY_PAUSE;
            let channel = match Channel::connect(&memif.socket) {
                Ok(channel) => channel,
                Err(error) => {
                    // The next attempt will try again.
                    if now.saturating_duration_since(*missed_since.get_or_insert(now)) >= ABSENCE {
                        link.report(format!("cannot reach the server: {error}"));
                    }
                    continue;
                }
            };
            *missed_since = None;
            if link.claim() {
                let request = Request::new(memif.id, memif.ring_slots.ilog2() as u8, memif.buffer_bytes);
                let state = State::Requesting(Box::new(request));
                let (socket, link) = (memif.socket.clone(), Some(Arc::clone(link)));
                self.peers.push(Peer { channel, socket, since: now, link, state });
            }
        }
    }
}

impl Peer {
    /// Ends the connection, sends the reason to the peer, and reports it, unless a connected peer has simply closed the
    /// connection.
    fn end(&self, reason: &str) {
        tracing::debug!(reason, "closing a memif connection");
        self.channel.send(&Message::Disconnect { reason: reason.to_owned() }, None);
        let (Some(link), true) = (&self.link, !matches!(self.state, State::Up(_)) || reason == DISORDER) else {
            return;
        };
        link.report(format!("connection failed: {reason}"));
    }

    /// Processes one message. The error is the reason for closing the connection.
    fn serve(&mut self, endpoints: &[Endpoint]) -> Result<(), Cow<'static, str>> {
        let (message, descriptor) = match self.channel.receive() {
            Received::Message(Message::Disconnect { reason }, _) => {
                // Quoted, because the peer chooses the text.
                return Err(format!("the peer says {reason:?}").into());
            }
            Received::Message(message, descriptor) => (message, descriptor),
            Received::Nothing => return Ok(()),
            Received::End(reason) => return Err(reason.into()),
        };
        let step = match &mut self.state {
            State::Stranger => {
                self.link = Some(choose(&message, &self.socket, endpoints)?);
                self.state = State::Accepting(Acceptance::default());
                match self.channel.send(&Message::Ack, None) {
                    true => Step::Continue,
                    false => Step::Failed("the peer does not read its messages"),
                }
            }
            State::Accepting(acceptance) => acceptance.step(&self.channel, message, descriptor),
            State::Requesting(request) => request.step(&self.channel, message),
            State::Up(_) => Step::Failed("unexpected message"),
        };
        match step {
            Step::Continue => Ok(()),
            Step::Failed(reason) => Err(reason.into()),
            Step::Ready(connection, bell) => {
                if let Some(link) = &self.link {
                    link.set(Some(connection));
                }
                self.state = State::Up(bell);
                Ok(())
            }
        }
    }
}

/// The link that a client of this control socket asks for.
fn choose(message: &Message, socket: &Path, endpoints: &[Endpoint]) -> Result<Arc<Link>, &'static str> {
    let Message::Init { version, id, is_ethernet } = message else { return Err("unexpected message") };
    if *version != VERSION {
        return Err("unsupported memif version");
    }
    if !is_ethernet {
        return Err("only Ethernet mode is supported");
    }
    let wanted = |Endpoint { memif, .. }: &&Endpoint| {
        (memif.role, memif.id, memif.socket.as_path()) == (MemifRole::Server, *id, socket)
    };
    let Some(Endpoint { link, .. }) = endpoints.iter().find(wanted) else {
        for other in endpoints.iter().filter(|endpoint| endpoint.is_served_at(socket)) {
            other.link.report(format!("a client requested id {id}, but no port has this id"));
        }
        return Err("no link with this id");
    };
    if link.claim() { Ok(Arc::clone(link)) } else { Err("this link is in use") }
}

fn file_at(path: &Path) -> Option<(u64, u64)> {
    std::fs::symlink_metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// Signals a peer. The peer may have made the descriptor blocking or filled its counter, so it is set to non-blocking
/// first.
fn ring(bell: BorrowedFd<'_>) {
    if fcntl(bell, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).is_ok() {
        // SAFETY: eight bytes are read from a number that outlives the call.
        let _ = unsafe { libc::write(bell.as_raw_fd(), (&raw const ONE).cast(), size_of::<u64>()) };
    }
}

static ONE: u64 = 1;
