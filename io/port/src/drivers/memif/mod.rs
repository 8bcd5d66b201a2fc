//! Ports over memif: memory shared with another process on the same host. Neither end has to trust the other.
//!
//! A link has two ends: the server creates the control socket; the client connects to it and provides the memory. The
//! port outlives its connections; a client reconnects once a second. The protocol is version 2.0 of memif, as in VPP,
//! DPDK and libmemif, with one ring in each direction.
//!
//! A peer may be faulty, hostile, or killed at any moment. The worker that moves frames owns the memory of a
//! connection, so it is never unmapped during a burst, and every value that the peer writes there is checked before use
//! ([`ring`]). Memory that the peer could truncate is refused ([`memory`]), because an access beyond its end would kill
//! this process. A peer that violates the protocol is disconnected.

mod bell;
mod channel;
mod connection;
mod handshake;
mod link;
mod memory;
mod message;
mod ring;
mod service;
mod stale_socket;

/// The driver of memory shared with another process.
pub static DRIVER: Driver = Driver {
    scheme: PortScheme { name: "memif", parse, separator: Some('&'), can_be_bare: true },
    form: "memif:///SOCKET?id=NUMBER",
    meaning: "memory shared with another process",
    traits: DriverTraits { has_peer: true, ..NO_TRAITS },
    access: |port| Access::Socket(parts(port.device()).0.into()),
    open,
};

/// Parses the socket, the number, the role of this end and the options of the port.
fn parse(parser: &UriParser<'_>, text: &str) -> Result<(String, PortOptions), FaceUriError> {
    let Some((socket, id)) = text.rsplit_once("?id=") else {
        return parser.refuse("the interface id `?id=` is missing", EXPECTED);
    };
    let behind = |text| str::split_once(text, '&').map_or((text, None), |(text, rest)| (text, Some(rest)));
    let (id, rest) = behind(id);
    let (role, rest) = match rest.and_then(|rest| rest.strip_prefix("role=")).map(behind) {
        None => ("", rest),
        Some(("server", rest)) => ("", rest),
        Some(("client", rest)) => (CLIENT, rest),
        Some((role, _)) => return parser.refuse(format!("`{role}` is not a role"), EXPECTED),
    };
    let options = rest.map(|rest| parser.options(rest, EXPECTED)).transpose()?.unwrap_or_default();
    let id: u32 = parser.number(id, "interface id", EXPECTED)?;
    Ok((format!("{}?id={id}{role}", parser.path(socket, EXPECTED)?), options))
}

/// Returns the socket, the number and the role in a device as [`parse`] returns it.
fn parts(device: &str) -> (&str, u32, MemifRole) {
    let (device, role) = match device.strip_suffix(CLIENT) {
        Some(device) => (device, MemifRole::Client),
        None => (device, MemifRole::Server),
    };
    let (socket, id) = device.rsplit_once("?id=").unwrap_or((device, ""));
    (socket, id.parse().unwrap_or_default(), role)
}

fn open(opener: &mut Opener, port: &PortUri, wishes: &Wishes) -> Result<OpenPort, OpenError> {
    let scheme = DRIVER.scheme.name;
    let (socket, id, role) = parts(port.device());
    let socket = PathBuf::from(socket);
    if role == MemifRole::Server {
        prepare_socket(&socket).map_err(|source| OpenError::Socket { scheme, socket: socket.clone(), source })?;
    }
    let RingSizes { slots: ring_slots, buffer_bytes } = opener.ring_sizes;
    let pool = opener.pool.clone();
    let service = opener.service(|| MemifService::start().map_err(|source| OpenError::Thread { scheme, source }))?;
    let memif = Memif { role, socket, id, ring_slots, buffer_bytes };
    let (port, queue) = service.open(&memif, &pool)?;
    Ok(OpenPort {
        device: Box::new(port),
        queues: boxed([queue]),
        spread: Spread::OneQueue,
        // Only Ethernet faces over the memif use it.
        address: local_address(RandomState::new().hash_one(())),
        mtu_bytes: usize::from(buffer_bytes) - wishes.header_bytes,
    })
}

impl Device for MemifPort {
    fn is_up(&self) -> bool {
        MemifPort::is_up(self)
    }

    fn losses(&self) -> Losses {
        MemifPort::losses(self)
    }

    fn is_connected(&self) -> bool {
        MemifPort::is_up(self)
    }

    fn take_trouble(&self) -> Option<String> {
        MemifPort::take_trouble(self)
    }
}

#[cfg(test)]
mod tests;

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use namehop_face::uri::{FaceUriError, PortOptions, PortScheme, PortUri, UriParser};
use namehop_packet::{BufferPool, PacketBuffer, PortQueue};

use crate::backoff::Backoff;
use crate::drivers::{
    Access, Device, Driver, DriverTraits, NO_TRAITS, OpenError, OpenPort, Opener, RingSizes, Spread, Wishes, boxed,
    local_address,
};
use crate::error::DpdkError;
use crate::losses::Losses;
use bell::Bell;
use connection::Connection;
use link::Link;
use service::{Mailbox, MemifCommand, Service};
pub use stale_socket::prepare_socket;

const EXPECTED: &str = "an absolute socket path, an interface id and, unless this end is the server, \
     &role=client, as in memif:///run/memif.sock?id=0, with the same options as dev://eth0";
/// How a device ends if this end is the client.
const CLIENT: &str = "&role=client";
/// A sleeping worker asks the peer to signal new frames only after this time without a frame. Until then it polls,
/// because each signal costs the peer a system call.
const POLLED_FOR: Duration = Duration::from_millis(1);
/// Longest sleep of a worker. DPDK and libmemif have no memory barrier before they read whether a signal is wanted, so
/// they can miss one; the worker then notices the frame after this time.
const LONGEST_SLEEP: Duration = Duration::from_millis(50);

/// Which end of a shared-memory interface this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum MemifRole {
    /// Creates the control socket and waits for the other end.
    #[default]
    Server,
    /// Connects to the control socket.
    Client,
}

/// A shared-memory link to another process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memif {
    /// The end that this process takes.
    pub role: MemifRole,
    /// Path of the control socket.
    pub socket: PathBuf,
    /// Interface id of the link on that socket.
    pub id: u32,
    /// Slots of each ring: a power of two from 2 to 16,384. The client's value is used.
    pub ring_slots: u16,
    /// Bytes of one buffer in shared memory; a longer frame takes several buffers. The client's value is used.
    pub buffer_bytes: u16,
}

impl fmt::Display for Memif {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "memif {} id {}", self.socket.display(), self.id)
    }
}

/// Thread that serves the control sockets of all memif ports. It ends on drop.
pub struct MemifService {
    mailbox: Arc<Mailbox>,
    thread: Option<JoinHandle<()>>,
}

impl MemifService {
    /// Starts the thread.
    ///
    /// # Errors
    /// Fails if the system cannot create the thread or a descriptor for it.
    pub fn start() -> io::Result<MemifService> {
        let mailbox = Arc::new(Mailbox::new()?);
        let service = Service::new(Arc::clone(&mailbox));
        let thread = std::thread::Builder::new().name("memif".to_owned()).spawn(move || service.run())?;
        Ok(MemifService { mailbox, thread: Some(thread) })
    }

    /// Opens a port. Its peer need not be connected.
    ///
    /// # Errors
    /// Fails if a setting is out of range, or if the server's control socket cannot be created.
    pub fn open(&self, memif: &Memif, pool: &BufferPool) -> Result<(MemifPort, MemifQueue), DpdkError> {
        let Memif { ring_slots, buffer_bytes, .. } = memif;
        if !ring_slots.is_power_of_two() || !(2..=16_384).contains(ring_slots) {
            let text =
                format!("the number of ring slots of a memif must be a power of two from 2 to 16384, not {ring_slots}");
            return Err(DpdkError::Unusable(text));
        }
        if *buffer_bytes < 64 {
            return Err(DpdkError::Unusable(format!("a memif buffer must have at least 64 bytes, not {buffer_bytes}")));
        }
        let refused = |error| DpdkError::from_io(format!("open {memif}"), &error);
        let link = Arc::new(Link::new(Arc::clone(&self.mailbox)).map_err(refused)?);
        let bell = Bell::new([link.news()]).map_err(refused)?;
        let (reply, answer) = sync_channel(1);
        self.mailbox.send(MemifCommand::Open(memif.clone(), Arc::clone(&link), reply));
        let ended = |_| Err(io::Error::other("the memif thread has ended"));
        if let Err(error) = answer.recv().unwrap_or_else(ended) {
            return Err(DpdkError::from_io(format!("open {memif}"), &error));
        }
        let queue = MemifQueue {
            link: Arc::clone(&link),
            seen: 0,
            connection: None,
            bell: Some(bell),
            quiet_since: None,
            is_asleep: false,
            backoff: Backoff::default(),
            pool: pool.clone(),
        };
        Ok((MemifPort { link, mailbox: Arc::clone(&self.mailbox) }, queue))
    }
}

impl Drop for MemifService {
    fn drop(&mut self) {
        self.mailbox.send(MemifCommand::Stop);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the memif thread panicked");
        }
    }
}

/// A port, for the thread that manages it. The link is closed on drop.
pub struct MemifPort {
    link: Arc<Link>,
    mailbox: Arc<Mailbox>,
}

impl MemifPort {
    /// True while a peer is connected.
    pub fn is_up(&self) -> bool {
        self.link.is_up()
    }

    /// Takes the reason why the link is not connected, if one was reported since the last call. Text from the peer is
    /// in quotation marks.
    pub fn take_trouble(&self) -> Option<String> {
        self.link.take_trouble()
    }

    /// Frames dropped since the port was opened.
    pub fn losses(&self) -> Losses {
        self.link.losses.read()
    }
}

impl Drop for MemifPort {
    fn drop(&mut self) {
        self.mailbox.send(MemifCommand::Close(Arc::clone(&self.link)));
    }
}

/// The queues of a port, for the worker.
pub struct MemifQueue {
    link: Arc<Link>,
    /// Generation of `connection`.
    seen: u32,
    connection: Option<Connection>,
    /// `None` if the peer has provided no event descriptor.
    bell: Option<Bell>,
    /// When the worker first prepared to sleep after the last frame.
    quiet_since: Option<Instant>,
    /// The worker sleeps on the bell, and the peer has been asked to ring it.
    is_asleep: bool,
    backoff: Backoff,
    pool: BufferPool,
}

impl MemifQueue {
    /// Takes over a new connection or the end of one. Costs one load if there is neither.
    #[inline]
    fn update(&mut self) {
        if self.link.has_changed(self.seen) {
            self.replace();
        }
    }

    #[cold]
    fn replace(&mut self) {
        self.link.replace(&mut self.seen, &mut self.connection);
        // Make a new epoll descriptor. The eventfd of an old connection cannot be removed from the old descriptor while
        // the peer holds the eventfd.
        let event = self.connection.as_ref().map(|connection| connection.event.as_ref());
        self.bell = match event {
            None => Bell::new([self.link.news()]).ok(),
            Some(Some(event)) => Bell::new([self.link.news(), event.as_fd()]).ok(),
            Some(None) => None,
        };
        (self.quiet_since, self.is_asleep) = (None, false);
    }

    /// Marks the worker as awake: it polls, so the peer need not signal frames.
    #[cold]
    fn awake(&mut self) {
        self.is_asleep = false;
        if let Some(connection) = &self.connection {
            connection.want_bell(false);
        }
    }
}

impl PortQueue for MemifQueue {
    /// Adds up to [`BURST`](crate::BURST) received frames to `frames`, each in one segment.
    fn receive(&mut self, frames: &mut Vec<PacketBuffer>) {
        self.update();
        if self.is_asleep {
            self.awake();
        }
        let Some(connection) = &mut self.connection else { return };
        let before = frames.len();
        if connection.receive(&self.pool, frames, &self.link.losses).is_err() {
            self.link.complain(self.seen, &mut self.connection);
        }
        if frames.len() > before {
            self.quiet_since = None;
        }
    }

    /// Sends frames from the front of `frames` and removes them; frames that did not fit stay.
    fn transmit(&mut self, frames: &mut Vec<PacketBuffer>) {
        self.update();
        let Some(connection) = &mut self.connection else { return };
        if frames.is_empty() || self.backoff.is_pausing() {
            return;
        }
        let Ok((done, lost)) = connection.send(frames) else {
            return self.link.complain(self.seen, &mut self.connection);
        };
        if lost > 0 {
            self.link.losses.send_failed.add(lost);
        }
        if done > lost && connection.wants_bell() {
            self.link.ring();
        }
        match done {
            0 => self.backoff.fail(),
            _ => self.backoff.reset(),
        }
        frames.drain(..done);
    }

    /// Frames that were waiting when the worker last polled.
    fn waiting(&self) -> usize {
        self.connection.as_ref().map_or(0, Connection::waiting)
    }

    /// Time until frames that stayed are worth another attempt.
    fn retry_pause(&self) -> Duration {
        self.backoff.remaining()
    }

    /// `None` while the worker polls because frames came recently, and if the peer has no bell.
    fn bell(&self) -> Option<BorrowedFd<'_>> {
        self.bell.as_ref().filter(|_| self.is_asleep).map(Bell::descriptor)
    }

    fn longest_sleep(&self) -> Option<Duration> {
        self.connection.is_some().then_some(LONGEST_SLEEP)
    }

    fn prepare_to_sleep(&mut self) {
        let Some(bell) = &self.bell else { return };
        let now = Instant::now();
        let quiet_since = *self.quiet_since.get_or_insert(now);
        if self.connection.is_some() && now.duration_since(quiet_since) < POLLED_FOR {
            return;
        }
        self.is_asleep = true;
        bell.silence();
        let mut has_news = self.link.has_changed(self.seen);
        if let Some(connection) = &self.connection {
            connection.want_bell(true);
            has_news |= connection.has_more();
        }
        if has_news {
            // Frames or a new connection may have come before the bell was armed.
            self.link.tell_worker();
        }
    }
}
