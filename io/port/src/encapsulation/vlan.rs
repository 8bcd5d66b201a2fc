//! Virtual LANs (IEEE 802.1Q): an Ethernet header with a tag, before its type, that contains the VLAN identifier.
//!
//! As in the kernel, the tag does not count in the MTU of an interface: tagged frames may be four bytes longer. So it
//! does not reduce the MTU of a face.

use namehop_packet::{BufferPool, PacketBuffer};

use super::ethernet::{ETHERTYPE_NDN, HEADER_BYTES, MIN_FRAME_BYTES, ethertype, peer_address};
use super::{Peer, Received, pad, prepend};
use namehop_face::address::{MacAddress, VlanId};
use namehop_face::counters::LinkDrop;

/// Ethernet type of tagged frames.
pub(super) const ETHERTYPE_VLAN: u16 = 0x8100;
/// Length of the tag with its type, between the addresses and the type of the packet.
pub(crate) const TAG_BYTES: usize = 4;
/// Length of an Ethernet header with a tag.
pub const VLAN_HEADER_BYTES: usize = HEADER_BYTES + TAG_BYTES;
/// The shortest frame, without its check sequence. If a switch removes the tag, the frame is still long enough.
pub(super) const MIN_VLAN_FRAME_BYTES: usize = MIN_FRAME_BYTES + TAG_BYTES;
/// Offsets in the header.
const SOURCE: usize = 6;
const TAG_TYPE: usize = 12;
const TYPE: usize = 16;
/// The identifier bits of a tag. The others are a priority, which is 0 in sent frames and ignored in received ones.
pub(super) const IDENTIFIER_BITS: u16 = 0x0FFF;

/// An Ethernet header with a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    bytes: [u8; VLAN_HEADER_BYTES],
    /// The VLAN in the tag.
    vlan: VlanId,
}

impl Header {
    /// The header of NDN frames from `source` to `destination` in a VLAN.
    pub(super) fn new(destination: &MacAddress, source: &MacAddress, vlan: VlanId) -> Header {
        let mut bytes = [0; VLAN_HEADER_BYTES];
        bytes[..SOURCE].copy_from_slice(destination);
        bytes[SOURCE..TAG_TYPE].copy_from_slice(source);
        bytes[TAG_TYPE..TYPE].copy_from_slice(&tag(vlan));
        bytes[TYPE..].copy_from_slice(&ETHERTYPE_NDN.to_be_bytes());
        Header { bytes, vlan }
    }

    /// Returns the peer that frames with this header are sent to.
    pub(super) fn peer(&self) -> Peer {
        let [a, b, c, d, e, f, ..] = self.bytes;
        Peer::Vlan([a, b, c, d, e, f], self.vlan)
    }

    #[inline]
    pub(super) fn is_on(&self, frame: &[u8]) -> bool {
        frame.first_chunk() == Some(&self.bytes)
    }

    #[inline]
    pub(super) fn put_on(&self, frame: &mut PacketBuffer, pool: &BufferPool) -> bool {
        let has_header = prepend(frame, &self.bytes, pool);
        pad(frame, MIN_VLAN_FRAME_BYTES);
        has_header
    }
}

/// VLAN and protocol of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Carried {
    /// The VLAN; `None` if untagged.
    pub(crate) vlan: Option<VlanId>,
    /// Ethernet type of the payload.
    pub(crate) ethertype: u16,
}

impl Carried {
    /// Reads the types of a frame, and its tag if there is one; `None` if the frame is too short or its tag has no
    /// valid VLAN.
    #[inline]
    pub(crate) fn read(frame: &[u8]) -> Option<Carried> {
        match ethertype(frame)? {
            ETHERTYPE_VLAN => {
                let [.., tag_high, tag_low, high, low] = *frame.first_chunk::<VLAN_HEADER_BYTES>()?;
                let vlan = VlanId::new(u16::from_be_bytes([tag_high, tag_low]) & IDENTIFIER_BITS)?;
                Some(Carried { vlan: Some(vlan), ethertype: u16::from_be_bytes([high, low]) })
            }
            ethertype => Some(Carried { vlan: None, ethertype }),
        }
    }

    /// Returns the offset of the payload in the frame.
    #[inline]
    pub(crate) const fn start(&self) -> usize {
        header_bytes(self.vlan)
    }
}

/// Returns the length of an Ethernet header in a VLAN, or untagged.
pub(crate) const fn header_bytes(vlan: Option<VlanId>) -> usize {
    if vlan.is_some() { VLAN_HEADER_BYTES } else { HEADER_BYTES }
}

/// Returns the tag of a VLAN with its type, as it is between the addresses of a frame and the type of its payload.
pub(crate) fn tag(vlan: VlanId) -> [u8; TAG_BYTES] {
    let ([type_high, type_low], [high, low]) = (ETHERTYPE_VLAN.to_be_bytes(), vlan.get().to_be_bytes());
    [type_high, type_low, high, low]
}

/// Appends an untagged frame to an empty buffer, adding the tag of `vlan`. Returns `false` if there is no space.
pub(crate) fn append_with_tag(buffer: &mut PacketBuffer, frame: &[u8], vlan: Option<VlanId>) -> bool {
    let tag = vlan.map(tag);
    let tag = tag.as_ref().map_or(&[][..], |tag| tag);
    let Some(room) = buffer.append(frame.len() + tag.len()) else { return false };
    let (addresses, rest) = frame.split_at(TAG_TYPE);
    room[..TAG_TYPE].copy_from_slice(addresses);
    room[TAG_TYPE..TAG_TYPE + tag.len()].copy_from_slice(tag);
    room[TAG_TYPE + tag.len()..].copy_from_slice(rest);
    true
}

/// Reads the header of a tagged frame that a port with the address `local` has received. The driver of the port removes
/// tags that have only a priority.
pub(super) fn read(frame: &[u8], local: &MacAddress) -> Result<Received, LinkDrop> {
    let bytes = frame.first_chunk::<VLAN_HEADER_BYTES>().ok_or(LinkDrop::NotNdnFrame)?;
    let [a, b, c, d, e, f, u, v, w, x, y, z, _, _, high, low, ethertype @ ..] = *bytes;
    if ethertype != ETHERTYPE_NDN.to_be_bytes() {
        return Err(LinkDrop::NotNdnFrame);
    }
    let tag = u16::from_be_bytes([high, low]);
    let vlan = VlanId::new(tag & IDENTIFIER_BITS).ok_or(LinkDrop::NotNdnFrame)?;
    let addresses = ([a, b, c, d, e, f], [u, v, w, x, y, z]);
    let (address, endpoint) = peer_address(addresses, local)?;
    let header = super::Header::Vlan(Header { bytes: *bytes, vlan });
    Ok(Received { peer: Peer::Vlan(address, vlan), endpoint, header })
}
