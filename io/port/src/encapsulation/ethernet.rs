//! Ethernet II: destination, source and the NDN type in front of the packet, and zeros after a short one.
//!
//! The header does not count in the MTU of a link.

use namehop_packet::{BufferPool, PacketBuffer};

use super::{Peer, Received, pad, prepend};
use namehop_face::address::{MacAddress, is_group};
use namehop_face::counters::LinkDrop;
use namehop_face::peers::endpoint_number;

/// Ethernet type of NDN.
pub const ETHERTYPE_NDN: u16 = 0x8624;
/// The NDN multicast group (NFD).
pub const NDN_GROUP: MacAddress = [0x01, 0x00, 0x5E, 0x00, 0x17, 0xAA];
/// Destination, source and type.
pub const HEADER_BYTES: usize = 14;
/// The shortest frame, without its check sequence; shorter packets are padded with zeros.
pub const MIN_FRAME_BYTES: usize = 60;
/// Offset of the source; the destination precedes it and the type follows. In other encapsulations destination and
/// source have the same offsets.
const SOURCE: usize = 6;
const TYPE: usize = 12;

/// An Ethernet header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header([u8; HEADER_BYTES]);

impl Header {
    /// The header of NDN frames from `source` to `destination`.
    pub(super) fn new(destination: &MacAddress, source: &MacAddress) -> Header {
        let mut header = [0; HEADER_BYTES];
        header[..SOURCE].copy_from_slice(destination);
        header[SOURCE..TYPE].copy_from_slice(source);
        header[TYPE..].copy_from_slice(&ETHERTYPE_NDN.to_be_bytes());
        Header(header)
    }

    /// Returns the destination of frames with this header.
    pub(super) fn destination(&self) -> MacAddress {
        addresses(&self.0).0
    }

    #[inline]
    pub(super) fn is_on(&self, frame: &[u8]) -> bool {
        frame.first_chunk() == Some(&self.0)
    }

    #[inline]
    pub(super) fn put_on(&self, frame: &mut PacketBuffer, pool: &BufferPool) -> bool {
        let has_header = prepend(frame, &self.0, pool);
        pad(frame, MIN_FRAME_BYTES);
        has_header
    }
}

/// Returns the Ethernet type of a frame; `None` if it is too short for a header.
pub(crate) fn ethertype(frame: &[u8]) -> Option<u16> {
    let [.., high, low] = frame.first_chunk::<HEADER_BYTES>()?;
    Some(u16::from_be_bytes([*high, *low]))
}

/// Reads the header of an NDN frame that a port with the address `local` has received.
pub(super) fn read(frame: &[u8], local: &MacAddress) -> Result<Received, LinkDrop> {
    let header = frame.first_chunk::<HEADER_BYTES>().ok_or(LinkDrop::NotNdnFrame)?;
    let (address, endpoint) = peer_address(addresses(header), local)?;
    Ok(Received { peer: Peer::Ethernet(address), endpoint, header: super::Header::Ethernet(Header(*header)) })
}

/// Returns destination and source.
fn addresses(header: &[u8; HEADER_BYTES]) -> (MacAddress, MacAddress) {
    let [a, b, c, d, e, f, u, v, w, x, y, z, _, _] = *header;
    ([a, b, c, d, e, f], [u, v, w, x, y, z])
}

/// Returns the address that identifies the peer of a received frame, and its endpoint number. For a frame to a group
/// the peer is the group, and the endpoint number identifies the sender.
pub(super) fn peer_address(
    (destination, source): (MacAddress, MacAddress),
    local: &MacAddress,
) -> Result<(MacAddress, u64), LinkDrop> {
    if is_group(&destination) {
        Ok((destination, endpoint_number(&source)))
    } else if destination != *local || is_group(&source) {
        Err(LinkDrop::ForeignFrame)
    } else {
        Ok((source, 0))
    }
}
