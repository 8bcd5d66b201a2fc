//! Virtual LANs (IEEE 802.1Q): an Ethernet header with a tag that names the VLAN in front of its type.
//!
//! As the kernel has it, the tag is no part of the MTU of an interface: frames with a tag may be four bytes longer. So it
//! takes nothing from the MTU of a face.

use std::fmt;
use std::num::NonZeroU16;

use namehop_packet::{BufferPool, PacketBuffer};

use super::ethernet::{ETHERTYPE_NDN, HEADER_BYTES, MIN_FRAME_BYTES, MacAddress, ethertype, peer_address};
use super::{Peer, Received, pad, prepend};
use crate::counters::LinkDrop;

/// Ethernet type of frames with a tag.
pub(super) const ETHERTYPE_VLAN: u16 = 0x8100;
/// Type and tag, which stand between the addresses and the type of the packet.
pub(crate) const TAG_BYTES: usize = 4;
/// An Ethernet header with a tag.
pub const VLAN_HEADER_BYTES: usize = HEADER_BYTES + TAG_BYTES;
/// The shortest frame, without its check sequence. A switch that takes the tag off leaves a frame that is long enough.
pub(super) const MIN_VLAN_FRAME_BYTES: usize = MIN_FRAME_BYTES + TAG_BYTES;
/// Where things stand in the header.
const SOURCE: usize = 6;
const TAG_TYPE: usize = 12;
const TYPE: usize = 16;
/// The bits of a tag that are the identifier; the others are a priority, which is 0 on what is sent and ignored on what is
/// received.
pub(super) const IDENTIFIER_BITS: u16 = 0x0FFF;
/// The greatest identifier; 4095 is reserved.
const MAX_IDENTIFIER: u16 = 4094;

/// Identifier of a VLAN: 1 to 4094.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VlanId(NonZeroU16);

impl VlanId {
    /// The VLAN with this identifier; `None` when it is none.
    pub const fn new(identifier: u16) -> Option<VlanId> {
        match NonZeroU16::new(identifier) {
            Some(identifier) if identifier.get() <= MAX_IDENTIFIER => Some(VlanId(identifier)),
            _ => None,
        }
    }

    /// Its identifier.
    pub const fn get(self) -> u16 {
        self.0.get()
    }
}

impl fmt::Display for VlanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An Ethernet header with a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    bytes: [u8; VLAN_HEADER_BYTES],
    /// What the tag says.
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

    /// Where frames with this header go.
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

/// What a frame carries, whatever that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Carried {
    /// The VLAN that it is in; `None` without a tag.
    pub(crate) vlan: Option<VlanId>,
    /// Type of what is behind the header.
    pub(crate) ethertype: u16,
}

impl Carried {
    /// Reads the types of a frame, and its tag if there is one; `None` when it is too short, or its tag names no VLAN.
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

    /// Where in the frame it begins.
    #[inline]
    pub(crate) const fn start(&self) -> usize {
        header_bytes(self.vlan)
    }
}

/// Length of an Ethernet header in a VLAN, or without a tag.
pub(crate) const fn header_bytes(vlan: Option<VlanId>) -> usize {
    if vlan.is_some() { VLAN_HEADER_BYTES } else { HEADER_BYTES }
}

/// The tag of a VLAN with its type, as it stands between the addresses of a frame and the type of what it carries.
pub(crate) fn tag(vlan: VlanId) -> [u8; TAG_BYTES] {
    let ([type_high, type_low], [high, low]) = (ETHERTYPE_VLAN.to_be_bytes(), vlan.get().to_be_bytes());
    [type_high, type_low, high, low]
}

/// Appends a frame without a tag to an empty buffer, as it is in a VLAN. `false` when there is no room.
pub(crate) fn append_with_tag(buffer: &mut PacketBuffer, frame: &[u8], vlan: Option<VlanId>) -> bool {
    let tag = vlan.map(tag);
    let tag = tag.as_ref().map_or(&[][..], |tag| tag);
    let Some(place) = buffer.append(frame.len() + tag.len()) else { return false };
    let (addresses, rest) = frame.split_at(TAG_TYPE);
    place[..TAG_TYPE].copy_from_slice(addresses);
    place[TAG_TYPE..TAG_TYPE + tag.len()].copy_from_slice(tag);
    place[TAG_TYPE + tag.len()..].copy_from_slice(rest);
    true
}

/// Reads the header of a frame with a tag that a port with the address `local` has received. A tag that names no VLAN but a
/// priority is taken off by the driver of the port.
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
