//! The ends of a link: ports by kind, and what consumers and producers need of them.

use std::any::Any;
use std::fmt;
use std::io;
use std::time::Duration;

use namehop_dpdk::memif::{Memif, MemifRole, MemifService};
use namehop_dpdk::packet_socket::PacketPort;
use namehop_dpdk::xdp::XdpPort;
use namehop_face::encapsulation::HEADER_BYTES;
use namehop_packet::{BufferPool, PacketBuffer, PortQueue};
use namehop_traffic::loadgen::Link;
use serde::Serialize;

use super::LinksError;
use super::place::{Place, Side};

/// Frames that each ring of a memif holds, as routers have by default.
const MEMIF_RING_FRAMES: u16 = 1024;

/// Kinds of links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkKind {
    /// Memory shared with another process.
    Memif,
    /// Network interfaces of the kernel, over packet sockets (AF_PACKET).
    Dev,
    /// Network interfaces of the kernel, over AF_XDP.
    Xdp,
}

impl fmt::Display for LinkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LinkKind::Memif => "memif",
            LinkKind::Dev => "dev",
            LinkKind::Xdp => "xdp",
        })
    }
}

/// An open port, which closes when it is dropped.
pub(super) struct OpenPort {
    pub(super) queue: Box<dyn PortQueue>,
    /// Keeps it open.
    _keeper: Vec<Box<dyn Any + Send>>,
}

/// Which end of a link a port is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// That of the consumer or the producer.
    Generator,
    /// That of what is measured.
    Forwarder,
}

impl OpenPort {
    pub(super) fn new(place: &Place, side: Side, end: End, pool: &BufferPool) -> Result<OpenPort, LinksError> {
        let interface = place.interface(side, end);
        let (queue, keeper): (Box<dyn PortQueue>, Vec<Box<dyn Any + Send>>) = match place.kind {
            LinkKind::Memif => {
                let service = MemifService::start()?;
                let role = if end == End::Forwarder { MemifRole::Server } else { MemifRole::Client };
                let memif = Memif {
                    role,
                    socket: place.memif_socket(side),
                    id: 0,
                    ring_slots: MEMIF_RING_FRAMES,
                    buffer_bytes: place.memif_buffer_bytes(),
                };
                let (port, queue) = service.open(&memif, pool)?;
                (Box::new(queue), vec![Box::new(port), Box::new(service)])
            }
            LinkKind::Dev => {
                let (port, queues) = PacketPort::open(interface, place.mtu_bytes() + HEADER_BYTES, 1, pool)?;
                (Box::new(first(queues)?), vec![Box::new(port)])
            }
            LinkKind::Xdp => {
                let (port, queues) = XdpPort::open(interface, place.mtu_bytes(), 1, pool)?;
                (Box::new(first(queues)?), vec![Box::new(port)])
            }
        };
        Ok(OpenPort { queue, _keeper: keeper })
    }
}

fn first<T>(queues: Vec<T>) -> Result<T, LinksError> {
    queues.into_iter().next().ok_or_else(|| io::Error::other("a port without queues").into())
}

/// A port as a connection of a consumer or a producer.
pub(super) struct PortLink {
    port: OpenPort,
    pool: BufferPool,
    /// What stands in front of each packet.
    header: Vec<u8>,
    received: Vec<PacketBuffer>,
    /// What has found no room yet.
    waiting: Vec<PacketBuffer>,
    /// Frames that came or left.
    pub(super) moved: u64,
}

impl PortLink {
    pub(super) fn new(place: &Place, side: Side, pool: &BufferPool) -> Result<PortLink, LinksError> {
        let port = OpenPort::new(place, side, End::Generator, pool)?;
        let header = place.header(side, End::Generator);
        Ok(PortLink { port, pool: pool.clone(), header, received: Vec::new(), waiting: Vec::new(), moved: 0 })
    }

    fn transmit(&mut self) {
        let before = self.waiting.len();
        self.port.queue.transmit(&mut self.waiting);
        self.moved += (before - self.waiting.len()) as u64;
    }
}

impl Link for PortLink {
    /// Never waits: a port is asked again and again.
    fn receive(&mut self, _patience: Duration, each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        self.transmit();
        self.port.queue.receive(&mut self.received);
        self.moved += self.received.len() as u64;
        for frame in self.received.drain(..) {
            each(frame.bytes().get(self.header.len()..).unwrap_or_default());
        }
        Ok(())
    }

    fn send(&mut self, bytes: &[u8], ends: &[usize]) -> io::Result<()> {
        let mut start = 0;
        for &end in ends {
            let packet = &bytes[start..end];
            start = end;
            // Without a buffer the packet is lost, and counted by the consumer.
            let Some(mut buffer) = self.pool.copy_of(packet) else { continue };
            if !self.header.is_empty() {
                let Some(header) = buffer.prepend(self.header.len()) else { continue };
                header.copy_from_slice(&self.header);
            }
            self.waiting.push(buffer);
        }
        self.transmit();
        Ok(())
    }
}
