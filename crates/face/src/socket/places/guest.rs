//! For whom a place is, and what is noted of its use.

use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use namehop_packet::FaceScope;

use crate::registry::{FaceParams, FacePersistency};

/// What a face takes besides its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Transport {
    /// Nothing: faces over UDP share the sockets listened on.
    Datagram,
    /// A connection of its own, with a file descriptor.
    Connection,
}

/// Where strangers come from that count together: an IPv4 address or an IPv6 network of 64 bits, which is what one customer
/// of a provider gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in super::super) struct Origin {
    address: IpAddr,
    scope: u32,
}

impl Origin {
    const UNKNOWN: Origin = Origin { address: IpAddr::V4(Ipv4Addr::UNSPECIFIED), scope: 0 };

    fn of(address: SocketAddr) -> Origin {
        match address {
            SocketAddr::V4(v4) => Origin { address: IpAddr::V4(*v4.ip()), scope: 0 },
            SocketAddr::V6(v6) => {
                let network = v6.ip().to_bits() & (u128::MAX << 64);
                Origin { address: IpAddr::V6(network.into()), scope: v6.scope_id() }
            }
        }
    }
}

/// For whom a place is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Guest {
    pub(super) transport: Transport,
    /// Where a stranger comes from: a peer on another computer that came by itself. `None` for an application on this
    /// computer and for a peer that this router was told of.
    pub(super) stranger: Option<Origin>,
}

impl Guest {
    /// An application on this computer, or a peer that this router was told of.
    pub(in super::super) fn known(transport: Transport) -> Guest {
        Guest { transport, stranger: None }
    }

    /// Whether it is a peer on another computer that came by itself.
    pub(in super::super) fn is_stranger(&self) -> bool {
        self.stranger.is_some()
    }

    /// What the face takes besides its place.
    pub(in super::super) fn transport(&self) -> Transport {
        self.transport
    }

    /// Who an accepted connection is from.
    pub(in super::super) fn of_connection(scope: FaceScope, peer: SocketAddr) -> Guest {
        let stranger = (scope != FaceScope::Local).then(|| Origin::of(peer));
        Guest { transport: Transport::Connection, stranger }
    }

    /// Who a datagram is from that belongs to no face yet.
    pub(in super::super) fn of_datagram(from: SocketAddr) -> Guest {
        Guest { transport: Transport::Datagram, stranger: Some(Origin::of(from)) }
    }

    /// Whom a new face is for.
    pub(in super::super) fn of_face(params: &FaceParams) -> Guest {
        let transport = if params.is_datagram { Transport::Datagram } else { Transport::Connection };
        let came_by_itself = params.persistency == FacePersistency::OnDemand && params.scope != FaceScope::Local;
        // The interface of a link-local address may be gone by now.
        let origin = || params.remote_uri.socket_address().map_or(Origin::UNKNOWN, Origin::of);
        Guest { transport, stranger: came_by_itself.then(origin) }
    }
}

/// What is noted of the packets of a face, at the cost of one store for each packet or read.
#[derive(Debug, Default)]
pub(in super::super) struct Activity {
    bits: Cell<u8>,
    has_ended: Cell<bool>,
}

/// Packets went either way since the last look for idle faces.
const IN_USE: u8 = 1;
/// Packets came in since the last look for the stranger that has been idle longest.
const HEARD: u8 = 2;

impl Activity {
    /// A packet came in.
    pub(in super::super) fn note_received(&self) {
        self.bits.set(IN_USE | HEARD);
    }

    /// A packet was sent, or the face was made. That says nothing of whether its peer is alive.
    pub(in super::super) fn note_use(&self) {
        self.bits.set(self.bits.get() | IN_USE);
    }

    /// Whether packets went either way since the last call.
    pub(in super::super) fn take_use(&self) -> bool {
        let bits = self.bits.get();
        self.bits.set(bits & !IN_USE);
        bits & IN_USE != 0
    }

    /// Whether packets came in since [`Activity::forget_heard`].
    pub(super) fn is_heard(&self) -> bool {
        self.bits.get() & HEARD != 0
    }

    /// From now on only packets to come count as heard.
    pub(super) fn forget_heard(&self) {
        self.bits.set(self.bits.get() & !HEARD);
    }

    /// The place was given to somebody else.
    pub(super) fn end(&self) {
        self.has_ended.set(true);
    }

    /// Whether the place was given to somebody else.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.get()
    }
}
