//! Making UDP faces on command: which channel reaches a peer, and from which address.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use namehop_forward::buffer::BufferPool;
use socket2::{Protocol, Type};

use super::super::error::CreateError;
use super::super::listen::{internet_address, internet_socket};
use super::super::shared::Shared;
use crate::registry::{Face, FacePersistency, FaceUpdate};

/// Makes a face to `peer` on the channel that reaches it.
pub(in super::super) fn create<P: BufferPool>(
    shared: &Shared<P>,
    peer: SocketAddr,
    update: &FaceUpdate,
) -> Result<Arc<Face>, CreateError> {
    let family = if peer.is_ipv4() { "IPv4" } else { "IPv6" };
    let channels = shared.channels.borrow();
    let mut fitting = channels.iter().filter(|channel| channel.local.is_ipv4() == peer.is_ipv4()).peekable();
    let Some(first) = fitting.peek().copied() else {
        return Err(CreateError::Unreachable(format!(
            "no UDP socket is open for {family}: configure a UDP listener for it"
        )));
    };
    let wildcard = SocketAddr::new(first.local.ip(), 0);
    let probe_from = if first.local.ip().is_unspecified() { wildcard } else { any_of_family(peer) };
    let source = source_towards(peer, probe_from)
        .map_err(|error| CreateError::Unreachable(format!("no {family} route to {peer}: {error}")))?;
    let (mut exact, mut any) = (None, None);
    for channel in fitting {
        if channel.local.ip() == source.ip() {
            exact = Some(channel);
        } else if channel.local.ip().is_unspecified() {
            any = Some(channel);
        }
    }
    let channel = exact.or(any).unwrap_or(first);
    let local = if channel.local.ip().is_unspecified() {
        SocketAddr::new(source.ip(), channel.local.port())
    } else {
        channel.local
    };
    channel
        .open_unicast(shared, peer, local, FacePersistency::Persistent, update)
        .map(|peer| Arc::clone(&peer.face))
        .map_err(|error| CreateError::NotAcceptable(error.to_string()))
}

fn any_of_family(peer: SocketAddr) -> SocketAddr {
    if peer.is_ipv4() { SocketAddr::from(([0, 0, 0, 0], 0)) } else { SocketAddr::from(([0_u16; 8], 0)) }
}

/// The address that datagrams to `peer` leave from when sent on a socket bound to `bound`. Asks the routing table by
/// connecting a socket, which sends nothing.
pub(super) fn source_towards(peer: SocketAddr, bound: SocketAddr) -> io::Result<SocketAddr> {
    if !bound.ip().is_unspecified() {
        return Ok(bound);
    }
    let probe = internet_socket(peer, Type::DGRAM, Protocol::UDP)?;
    probe.connect(&peer.into())?;
    let source = internet_address(&probe.local_addr()?)?;
    Ok(SocketAddr::new(source.ip(), bound.port()))
}
