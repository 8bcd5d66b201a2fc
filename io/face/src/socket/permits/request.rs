//! Requests for permits, and the activity of the faces that hold them.

use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use namehop_packet::FaceScope;

use crate::registry::{FaceParams, FacePersistency};
use crate::unsolicited::Origin;

/// The system resources that a face needs besides its permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Transport {
    /// None: faces over UDP share the listening sockets, if these reach their peers.
    Datagram,
    /// A connection or a socket of its own, with a file descriptor.
    Connection,
}

/// Address that stands for peers with an unknown address.
const UNKNOWN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// A request for a permit for a face.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct PermitRequest {
    pub(super) transport: Transport,
    /// The origin of an unsolicited peer on another host. `None` for an application on this host
    /// and for a configured peer.
    pub(super) unsolicited: Option<Origin>,
}

impl PermitRequest {
    /// Returns the request of an application on this host, or of a configured peer.
    pub(in super::super) fn known(transport: Transport) -> PermitRequest {
        PermitRequest { transport, unsolicited: None }
    }

    /// Whether the request is from an unsolicited peer on another host.
    pub(in super::super) fn is_unsolicited(&self) -> bool {
        self.unsolicited.is_some()
    }

    /// Returns the system resources that the face needs.
    pub(in super::super) fn transport(&self) -> Transport {
        self.transport
    }

    /// Returns the request for an accepted connection.
    pub(in super::super) fn of_connection(scope: FaceScope, peer: SocketAddr) -> PermitRequest {
        let unsolicited = (scope != FaceScope::Local).then(|| Origin::of(peer));
        PermitRequest { transport: Transport::Connection, unsolicited }
    }

    /// Returns the request for the sender of a datagram that belongs to no face yet.
    pub(in super::super) fn of_datagram(from: SocketAddr) -> PermitRequest {
        PermitRequest { transport: Transport::Datagram, unsolicited: Some(Origin::of(from)) }
    }

    /// Returns the request for a new face.
    pub(in super::super) fn of_face(params: &FaceParams, transport: Transport) -> PermitRequest {
        let came_by_itself = params.persistency == FacePersistency::OnDemand && params.scope != FaceScope::Local;
        // A link-local address has no socket address if its interface has disappeared.
        let origin = || params.remote_uri.socket_address().map_or(Origin::of(UNKNOWN), Origin::of);
        PermitRequest { transport, unsolicited: came_by_itself.then(origin) }
    }
}

/// Activity of a face, recorded with one store per packet or read.
#[derive(Debug, Default)]
pub(in super::super) struct Activity {
    bits: Cell<u8>,
    has_ended: Cell<bool>,
}

/// Packets were sent or received since the last check for idle faces.
const IN_USE: u8 = 1;
/// Packets were received since [`Activity::forget_heard`].
const HEARD: u8 = 2;

impl Activity {
    /// Notes a received packet.
    pub(in super::super) fn note_received(&self) {
        self.bits.set(IN_USE | HEARD);
    }

    /// Notes that a packet was sent or the face was created. This does not show that the peer is alive.
    pub(in super::super) fn note_use(&self) {
        self.bits.set(self.bits.get() | IN_USE);
    }

    /// Returns and clears whether packets were sent or received since the last call.
    pub(in super::super) fn take_use(&self) -> bool {
        let bits = self.bits.get();
        self.bits.set(bits & !IN_USE);
        bits & IN_USE != 0
    }

    /// Whether packets came in since [`Activity::forget_heard`].
    pub(super) fn is_heard(&self) -> bool {
        self.bits.get() & HEARD != 0
    }

    /// Clears the note of received packets.
    pub(super) fn forget_heard(&self) {
        self.bits.set(self.bits.get() & !HEARD);
    }

    /// Notes that the permit was freed.
    pub(super) fn end(&self) {
        self.has_ended.set(true);
    }

    /// Whether the permit was freed.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.get()
    }
}
