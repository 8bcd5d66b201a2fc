//! Encapsulations: the headers around NDN frames on the links of ports.
//!
//! Each encapsulation is one file. It defines the bytes of its header and reads them from received frames. It
//! determines the peer of a frame, and how much of the link's MTU the header takes. Ports and their queues handle
//! [`Peer`]s and [`Header`]s without knowing their content.
//!
//! | file | header |
//! |---|---|
//! | `ethernet` | an Ethernet header with the NDN type |
//! | `vlan` | the same with a VLAN tag |
//! | `bare` | none: the frame is the packet |
//! | `udp` | Ethernet, IPv4 or IPv6 (`ip`), and UDP |
//! | `tunnel/vxlan` | the same with a VXLAN header and its inner Ethernet header |
//!
//! The headers of the last datagram of a burst are remembered (`last_datagram`), because most datagrams of a burst come
//! from one sender.
//!
//! The messages that ports send on their own behalf are in `arp`, `neighbour_discovery` and `icmp`;
//! [`faces`](crate::faces) decides when to send them. [`InternetPeer`]s identify the faces over UDP; their
//! addresses are longer than Ethernet addresses. Both kinds of peers are [`FacePeer`]s.
//!
//! To add an encapsulation in UDP, add a file in [`tunnel`] and its lines there. To add one on top of Ethernet, add a
//! file, a variant of [`Peer`] and a variant of [`Header`]. The peer identifies the faces; the header is a template of
//! the bytes in front of a frame. Fields that differ from frame to frame, such as lengths, are filled in by
//! [`Header::put_on`] and excluded from the comparison in [`Header::is_on`].

#![forbid(unsafe_code)]

pub(crate) mod arp;
mod bare;
pub(crate) mod entropy;
pub(crate) mod ethernet;
mod face_peer;
pub(crate) mod icmp;
pub(crate) mod ip;
mod last_datagram;
mod masks;
pub(crate) mod neighbour_discovery;
#[cfg(test)]
mod tests;
pub mod tunnel;
pub(crate) mod udp;
pub(crate) mod vlan;

use namehop_packet::{BufferPool, PacketBuffer};
use namehop_wire::tlv::frame_length;

use namehop_face::address::{MacAddress, VlanId, is_group};
use namehop_face::counters::LinkDrop;
use namehop_face::peers::PeerAddress;
use namehop_face::uri::{FaceUri, PortOptions};

pub use ethernet::{ETHERTYPE_NDN, HEADER_BYTES, MIN_FRAME_BYTES, NDN_GROUP};
pub use face_peer::{FacePeer, InternetPeer, SourcePort, Tunnel};
pub(crate) use face_peer::{Flow, InternetKey};
pub(crate) use last_datagram::LastDatagram;
pub use neighbour_discovery::solicitation_group;
pub use vlan::VLAN_HEADER_BYTES;

/// Frame format of a link. A [`Header`] is the format of the frames of one face.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// Each frame begins with an Ethernet header, which may have a VLAN tag; any number of faces.
    Ethernet,
    /// Each frame is one NDN packet; one face.
    Bare,
}

impl Framing {
    /// Returns the number of header bytes that do not count in the link's MTU.
    pub const fn header_bytes(self) -> usize {
        match self {
            Framing::Ethernet => HEADER_BYTES,
            Framing::Bare => 0,
        }
    }

    /// Reads the header of a frame received by a port with this hardware address.
    ///
    /// # Errors
    /// [`LinkDrop::NotNdnFrame`] or [`LinkDrop::ForeignFrame`].
    #[inline]
    pub fn read(self, frame: &[u8], local: &MacAddress) -> Result<Received, LinkDrop> {
        match self {
            Framing::Ethernet => match ethernet::ethertype(frame) {
                Some(ETHERTYPE_NDN) => ethernet::read(frame, local),
                Some(vlan::ETHERTYPE_VLAN) => vlan::read(frame, local),
                _ => Err(LinkDrop::NotNdnFrame),
            },
            Framing::Bare => Ok(bare::read()),
        }
    }
}

/// The header of a received frame, decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// The peer that sent it, or the group that it was sent to.
    pub peer: Peer,
    /// Distinguishes the senders to a multicast group; 0 for other peers.
    pub endpoint: u64,
    /// The header itself.
    pub header: Header,
}

/// The peer of a face, as it appears in headers; identifies a face among the faces of one port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// An Ethernet address or multicast group.
    Ethernet(MacAddress),
    /// An Ethernet address or multicast group in a VLAN.
    Vlan(MacAddress, VlanId),
    /// The peer at the other end of a bare link.
    Bare,
}

impl Peer {
    /// Returns the peer of the face with these URIs; `None` if a face directly over Ethernet or on a bare link cannot
    /// have them.
    fn of(remote: &FaceUri, local: &FaceUri) -> Option<Peer> {
        match (remote, local) {
            (FaceUri::Ethernet(address), FaceUri::Port(port)) => {
                let options = port.options().copied().unwrap_or_default();
                let peer = options.vlan.map_or(Peer::Ethernet(*address), |vlan| Peer::Vlan(*address, vlan));
                options.is_link().then_some(peer)
            }
            (remote, local) if remote.is_bare_port() && remote == local && *remote == remote.port() => Some(Peer::Bare),
            _ => None,
        }
    }

    /// Returns the frame format of a port with a face to this peer.
    pub const fn framing(&self) -> Framing {
        match self {
            Peer::Ethernet(_) | Peer::Vlan(..) => Framing::Ethernet,
            Peer::Bare => Framing::Bare,
        }
    }

    /// Returns the remote URI of its face, on a port with this URI.
    pub(crate) fn remote_uri(&self, port: &FaceUri) -> FaceUri {
        match self {
            Peer::Ethernet(address) | Peer::Vlan(address, _) => FaceUri::Ethernet(*address),
            Peer::Bare => port.clone(),
        }
    }

    /// Returns the local URI of its face, on a port with this URI.
    pub(crate) fn local_uri(&self, port: &FaceUri) -> FaceUri {
        port.with_options(PortOptions::of_vlan(self.vlan()))
    }

    /// Returns the VLAN of the peer.
    pub const fn vlan(&self) -> Option<VlanId> {
        match self {
            Peer::Vlan(_, vlan) => Some(*vlan),
            Peer::Ethernet(_) | Peer::Bare => None,
        }
    }

    /// Whether a frame from such a peer may create a face, if unknown senders are admitted.
    pub(crate) const fn can_be_on_demand(&self) -> bool {
        match self {
            Peer::Ethernet(address) | Peer::Vlan(address, _) => !is_group(address),
            Peer::Bare => false,
        }
    }

    /// Returns the drop reason of a frame if its peer has no face.
    pub const fn drop_without_face(&self) -> LinkDrop {
        match self {
            peer if peer.is_group() => LinkDrop::UnknownGroup,
            Peer::Ethernet(_) | Peer::Vlan(..) => LinkDrop::UnknownSender,
            Peer::Bare => LinkDrop::LinkDown,
        }
    }

    /// Whether the peer is a multicast group.
    pub const fn is_group(&self) -> bool {
        match self {
            Peer::Ethernet(address) | Peer::Vlan(address, _) => is_group(address),
            Peer::Bare => false,
        }
    }
}

impl PeerAddress for Peer {
    fn hash(&self, key: (u64, u64)) -> u64 {
        match self {
            Peer::Ethernet(address) => address.hash(key),
            Peer::Vlan(address, vlan) => address.hash((key.0 ^ u64::from(vlan.get()) << 48, key.1)),
            Peer::Bare => 0,
        }
    }
}

/// The header in front of the frames of one face: a template with all constant fields. Also the header of a received
/// frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Header {
    /// Ethernet.
    Ethernet(ethernet::Header),
    /// Ethernet with the tag of a VLAN.
    Vlan(vlan::Header),
    /// Nothing: the link carries bare packets.
    Bare,
}

impl Header {
    /// Creates the header of frames to a peer, from a port with this hardware address.
    pub fn new(peer: Peer, local: &MacAddress) -> Header {
        match peer {
            Peer::Ethernet(address) => Header::Ethernet(ethernet::Header::new(&address, local)),
            Peer::Vlan(address, vlan) => Header::Vlan(vlan::Header::new(&address, local, vlan)),
            Peer::Bare => Header::Bare,
        }
    }

    /// Returns the peer that frames with this header are sent to.
    pub(crate) fn peer(&self) -> Peer {
        match self {
            Header::Ethernet(header) => Peer::Ethernet(header.destination()),
            Header::Vlan(header) => header.peer(),
            Header::Bare => Peer::Bare,
        }
    }

    /// Whether a frame begins with this header.
    #[inline]
    pub fn is_on(&self, frame: &[u8]) -> bool {
        match self {
            Header::Ethernet(header) => header.is_on(frame),
            Header::Vlan(header) => header.is_on(frame),
            Header::Bare => true,
        }
    }

    /// Returns its length in bytes.
    #[inline]
    pub(crate) const fn length(&self) -> usize {
        match self {
            Header::Ethernet(_) => HEADER_BYTES,
            Header::Vlan(_) => VLAN_HEADER_BYTES,
            Header::Bare => 0,
        }
    }

    /// Removes this header, which the frame must have, and the padding from a frame.
    ///
    /// # Errors
    /// [`LinkDrop::MalformedFrame`] if no whole NDN packet follows the header.
    #[inline]
    pub fn take_off(&self, frame: &mut PacketBuffer) -> Result<(), LinkDrop> {
        frame.trim_front(self.length());
        cut_padding(frame)
    }

    /// Puts this header in front of an NDN frame, and padding after a short one. Returns `false` if there is no buffer
    /// for that.
    #[inline]
    pub fn put_on(&self, frame: &mut PacketBuffer, pool: &BufferPool) -> bool {
        match self {
            Header::Ethernet(header) => header.put_on(frame, pool),
            Header::Vlan(header) => header.put_on(frame, pool),
            Header::Bare => true,
        }
    }
}

/// Removes everything after the first TLV element: the padding of a short frame.
#[inline]
pub(crate) fn cut_padding(frame: &mut PacketBuffer) -> Result<(), LinkDrop> {
    match frame_length(frame.bytes()) {
        Ok(Some(length)) if length <= frame.bytes().len() => {
            frame.truncate(length);
            Ok(())
        }
        _ => Err(LinkDrop::MalformedFrame),
    }
}

/// Puts a header in front of a frame; returns `false` if there is no buffer for that.
#[inline]
fn prepend(frame: &mut PacketBuffer, header: &[u8], pool: &BufferPool) -> bool {
    if let Some(room) = frame.prepend(header.len()) {
        room.copy_from_slice(header);
    } else if let Some(copy) = copy_behind(header, frame.bytes(), pool) {
        *frame = copy;
    } else {
        return false;
    }
    true
}

/// Handles a frame with link-layer headers that take all the headroom.
#[cold]
fn copy_behind(header: &[u8], frame: &[u8], pool: &BufferPool) -> Option<PacketBuffer> {
    let mut copy = pool.allocate(frame.len() + header.len())?;
    copy.append(header.len())?.copy_from_slice(header);
    copy.append(frame.len())?.copy_from_slice(frame);
    Some(copy)
}

/// Pads a frame with zeros to the minimum length of its link. If the buffer has no space for padding, the frame is long
/// enough.
#[inline]
fn pad(frame: &mut PacketBuffer, shortest_bytes: usize) {
    let missing = shortest_bytes.saturating_sub(frame.bytes().len());
    if missing > 0
        && let Some(padding) = frame.append(missing)
    {
        padding.fill(0);
    }
}
