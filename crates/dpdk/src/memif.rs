//! Ports over memif: memory shared with another process on the same computer, of which neither end has to trust the other.
//!
//! A link has two ends, the server, which makes the control socket, and the client, which connects to it and offers memory.
//! Connections come and go; a port stays, and its client tries again once a second. The protocol is that of VPP, DPDK and
//! libmemif, version 2.0, with one ring in each direction.
//!
//! A peer may be wrong, hostile, or killed at any moment. The memory of a connection belongs to the worker that moves frames,
//! so it never vanishes in the middle of a burst; and what the peer writes there is checked before it is used ([`ring`]). Memory that a
//! peer could shorten, which would end this process, is refused ([`memory`]). A peer that does not keep to the protocol
//! is disconnected.

mod channel;
mod handshake;
mod link;
mod memory;
mod message;
mod ring;
mod service;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;
use std::time::Duration;

use namehop_packet::{BufferPool, PacketBuffer, PortQueue};

use crate::backoff::Backoff;
use crate::error::DpdkError;
use crate::losses::Losses;
use link::Link;
use ring::Connection;
use service::{Mailbox, MemifCommand, Service};

/// Which end of a memif this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum MemifRole {
    /// Makes the control socket and waits for clients.
    #[default]
    Server,
    /// Connects to the control socket.
    Client,
}

/// A shared-memory link to another process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memif {
    /// Which end.
    pub role: MemifRole,
    /// Path of the control socket.
    pub socket: PathBuf,
    /// Number of the link on that socket.
    pub id: u32,
    /// Frames that fit into each ring: a power of two from 2 to 16,384. The client's counts.
    pub ring_slots: u16,
    /// Bytes of one buffer in shared memory; longer frames take several. The client's counts.
    pub buffer_bytes: u16,
}

impl fmt::Display for Memif {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "memif {} number {}", self.socket.display(), self.id)
    }
}

/// The thread that serves the control sockets of all memifs. It ends when this is dropped.
pub struct MemifService {
    mailbox: Arc<Mailbox>,
    thread: Option<JoinHandle<()>>,
}

impl MemifService {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system has no thread or descriptor for it.
    pub fn start() -> io::Result<MemifService> {
        let mailbox = Arc::new(Mailbox::new()?);
        let service = Service::new(Arc::clone(&mailbox));
        let thread = std::thread::Builder::new().name("memif".to_owned()).spawn(move || service.run())?;
        Ok(MemifService { mailbox, thread: Some(thread) })
    }

    /// Opens a port. Its peer need not be there.
    ///
    /// # Errors
    /// When the settings are out of range, or the control socket of a server cannot be made.
    pub fn open(&self, memif: &Memif, pool: &BufferPool) -> Result<(MemifPort, MemifQueue), DpdkError> {
        let Memif { ring_slots, buffer_bytes, .. } = memif;
        if !ring_slots.is_power_of_two() || !(2..=16_384).contains(ring_slots) {
            let text = format!("a memif ring has a power of two of slots, 2 to 16384, not {ring_slots}");
            return Err(DpdkError::Unusable(text));
        }
        if *buffer_bytes < 64 {
            return Err(DpdkError::Unusable(format!("a memif buffer has at least 64 bytes, not {buffer_bytes}")));
        }
        let link = Arc::new(Link::new(Arc::clone(&self.mailbox)));
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
            tracing::error!("the memif thread ended by itself");
        }
    }
}

/// A port, for the thread that manages it. The link ends when it is dropped.
pub struct MemifPort {
    link: Arc<Link>,
    mailbox: Arc<Mailbox>,
}

impl MemifPort {
    /// Whether it is connected.
    pub fn is_up(&self) -> bool {
        self.link.is_up()
    }

    /// Frames lost since the port was opened.
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
    /// The generation of `connection`.
    seen: u32,
    connection: Option<Connection>,
    backoff: Backoff,
    pool: BufferPool,
}

impl PortQueue for MemifQueue {
    /// Adds up to [`BURST`](crate::BURST) received frames to `frames`, each in one piece.
    fn receive(&mut self, frames: &mut Vec<PacketBuffer>) {
        self.link.update(&mut self.seen, &mut self.connection);
        let Some(connection) = &mut self.connection else { return };
        if connection.receive(&self.pool, frames, &self.link.losses).is_err() {
            self.link.complain(self.seen, &mut self.connection);
        }
    }

    /// Sends frames from the front and takes them out; those that stay did not fit.
    fn transmit(&mut self, frames: &mut Vec<PacketBuffer>) {
        self.link.update(&mut self.seen, &mut self.connection);
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

    /// How long it will take until frames that stayed are worth another attempt.
    fn retry_pause(&self) -> Duration {
        self.backoff.remaining()
    }

    fn bell(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
