//! VXLAN (RFC 7348): Ethernet frames of a virtual network in UDP; here only NDN frames.
//!
//! A header of eight bytes contains the network identifier (VNI); the Ethernet header of the inner frame follows.

use super::ethernet::{self, ETHERTYPE_NDN, HEADER_BYTES as ETHERNET_BYTES};
use namehop_face::address::{MacAddress, Vni, is_group};
use namehop_face::counters::LinkDrop;

/// UDP port of VXLAN (IANA).
pub const PORT: u16 = 4789;
/// Length of the header with the inner Ethernet header.
pub(crate) const VXLAN_BYTES: usize = VNI_HEADER_BYTES + ETHERNET_BYTES;
const VNI_HEADER_BYTES: usize = 8;
/// Offset of the inner source address.
pub(crate) const INNER_SOURCE: usize = VNI_HEADER_BYTES + 6;
/// The flag "VNI valid". Other bits are ignored.
const HAS_VNI: u8 = 0x08;

/// Returns the headers of frames in a network, from one inner address to another.
pub(crate) fn header(vni: Vni, destination: &MacAddress, source: &MacAddress) -> [u8; VXLAN_BYTES] {
    let mut header = [0; VXLAN_BYTES];
    header[0] = HAS_VNI;
    let [_, vni @ ..] = vni.get().to_be_bytes();
    header[4..7].copy_from_slice(&vni);
    header[VNI_HEADER_BYTES..INNER_SOURCE].copy_from_slice(destination);
    header[INNER_SOURCE..INNER_SOURCE + 6].copy_from_slice(source);
    header[INNER_SOURCE + 6..].copy_from_slice(&ETHERTYPE_NDN.to_be_bytes());
    header
}

/// The header fields of a received frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) vni: Vni,
    /// Inner source address.
    pub(crate) source: MacAddress,
}

/// Reads the headers at the front of a datagram that a port with the address `local` has received.
///
/// # Errors
/// [`LinkDrop::MalformedFrame`], [`LinkDrop::NotNdnFrame`], or [`LinkDrop::ForeignFrame`] if the inner frame is for
/// another address. An inner frame for any group is accepted: the outer datagram was sent to this port alone.
pub(crate) fn read(datagram: &[u8], local: &MacAddress) -> Result<Received, LinkDrop> {
    let header = datagram.first_chunk::<VXLAN_BYTES>().ok_or(LinkDrop::MalformedFrame)?;
    let [flags, _, _, _, a, b, c, _, inner @ ..] = header;
    if flags & HAS_VNI == 0 {
        return Err(LinkDrop::MalformedFrame);
    }
    if ethernet::ethertype(inner) != Some(ETHERTYPE_NDN) {
        return Err(LinkDrop::NotNdnFrame);
    }
    let [mut destination, mut source] = [[0; 6]; 2];
    destination.copy_from_slice(&inner[..6]);
    source.copy_from_slice(&inner[6..12]);
    if !is_group(&destination) && destination != *local || is_group(&source) {
        return Err(LinkDrop::ForeignFrame);
    }
    Ok(Received { vni: Vni::from_be_bytes([*a, *b, *c]), source })
}
