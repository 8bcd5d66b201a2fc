//! Who asks for a permit, and what is noted of the use of a permit.

use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use namehop_packet::FaceScope;

use crate::registry::{FaceParams, FacePersistency};
use crate::strangers::Origin;

/// What a face takes besides its permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Transport {
    /// Nothing: faces over UDP share the sockets listened on, if those reach their peers.
    Datagram,
    /// A connection or socket of its own, with a file descriptor.
    Connection,
}

/// Where those come from whose address is not known.
const UNKNOWN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// A request for a permit: who wants to have a face.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct PermitRequest {
    pub(super) transport: Transport,
    /// Where a stranger comes from: a peer on another computer that came by itself. `None` for an application on this
    /// computer and for a peer that this router was told of.
    pub(super) stranger: Option<Origin>,
}

impl PermitRequest {
    /// For an application on this computer, or a peer that this router was told of.
    pub(in super::super) fn known(transport: Transport) -> PermitRequest {
        PermitRequest { transport, stranger: None }
    }

    /// Whether it is a peer on another computer that came by itself.
    pub(in super::super) fn is_stranger(&self) -> bool {
        self.stranger.is_some()
    }

    /// What the face takes besides its permit.
    pub(in super::super) fn transport(&self) -> Transport {
        self.transport
    }

    /// For an accepted connection.
    pub(in super::super) fn of_connection(scope: FaceScope, peer: SocketAddr) -> PermitRequest {
        let stranger = (scope != FaceScope::Local).then(|| Origin::of(peer));
        PermitRequest { transport: Transport::Connection, stranger }
    }

    /// For the sender of a datagram that belongs to no face yet.
    pub(in super::super) fn of_datagram(from: SocketAddr) -> PermitRequest {
        PermitRequest { transport: Transport::Datagram, stranger: Some(Origin::of(from)) }
    }

    /// For a new face.
    pub(in super::super) fn of_face(params: &FaceParams, transport: Transport) -> PermitRequest {
        let came_by_itself = params.persistency == FacePersistency::OnDemand && params.scope != FaceScope::Local;
        // The interface of a link-local address may be gone by now.
        let origin = || params.remote_uri.socket_address().map_or(Origin::of(UNKNOWN), Origin::of);
        PermitRequest { transport, stranger: came_by_itself.then(origin) }
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

    /// The permit was given to somebody else.
    pub(super) fn end(&self) {
        self.has_ended.set(true);
    }

    /// Whether the permit was given to somebody else.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.get()
    }
}
