//! An open link of either kind.

use std::io;
use std::time::Duration;

use namehop_packet::BufferPool;

use super::LoadError;
use super::address::LinkAddress;
use super::link::{Link, LinkCounts};
use super::port_link::{Idle, PortLink};
use super::socket_link::SocketLink;

/// Number of buffers for a port, small and large: waiting packets, a received burst, and packets in reassembly.
const BUFFERS: (usize, usize) = (16_384, 2_048);

/// An open link of a consumer or producer.
pub(super) enum OpenLink {
    Socket(SocketLink),
    Port(Box<PortLink>),
}

impl OpenLink {
    pub(super) fn open(address: &LinkAddress) -> Result<OpenLink, LoadError> {
        match address {
            LinkAddress::Socket(uri) => SocketLink::open(uri).map(OpenLink::Socket),
            LinkAddress::Port(address) => {
                let link = PortLink::open(address, Idle::Sleeps, &BufferPool::new(BUFFERS.0, BUFFERS.1))?;
                Ok(OpenLink::Port(Box::new(link)))
            }
        }
    }

    /// Returns true if a peer is connected, as far as the link can tell.
    pub(super) fn is_connected(&self) -> bool {
        match self {
            OpenLink::Socket(_) => true,
            OpenLink::Port(link) => link.is_connected(),
        }
    }
}

impl Link for OpenLink {
    /// Returns an error if the peer has disconnected, as sockets do.
    fn receive(&mut self, patience: Duration, each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        match self {
            OpenLink::Socket(link) => link.receive(patience, each),
            OpenLink::Port(link) => {
                link.receive(patience, each)?;
                match link.is_connected() {
                    true => Ok(()),
                    false => Err(io::Error::new(io::ErrorKind::NotConnected, "the memif peer disconnected")),
                }
            }
        }
    }

    fn send(&mut self, bytes: &[u8], ends: &[usize]) -> io::Result<()> {
        match self {
            OpenLink::Socket(link) => link.send(bytes, ends),
            OpenLink::Port(link) => link.send(bytes, ends),
        }
    }

    fn room(&self) -> usize {
        match self {
            OpenLink::Socket(link) => link.room(),
            OpenLink::Port(link) => link.room(),
        }
    }

    fn counts(&self) -> LinkCounts {
        match self {
            OpenLink::Socket(link) => link.counts(),
            OpenLink::Port(link) => link.counts(),
        }
    }
}
