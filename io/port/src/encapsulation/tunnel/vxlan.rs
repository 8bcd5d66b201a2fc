//! VXLAN (RFC 7348): Ethernet frames of a virtual network in UDP; here only NDN frames.
//!
//! A header of eight bytes contains the network identifier (VNI); the Ethernet header of the inner frame follows.

use namehop_face::address::{MacAddress, is_group};
use namehop_face::counters::LinkDrop;
use namehop_face::uri::TunnelScheme;

use super::{Inside, TunnelHeader, TunnelKind, TunnelPeer, masks};
use crate::encapsulation::ethernet::{self, ETHERTYPE_NDN, HEADER_BYTES as ETHERNET_BYTES, NDN_GROUP};

/// Length of the header with the inner Ethernet header.
const VXLAN_BYTES: usize = VNI_HEADER_BYTES + ETHERNET_BYTES;
const VNI_HEADER_BYTES: usize = 8;
/// Offset of the inner source address.
const INNER_SOURCE: usize = VNI_HEADER_BYTES + 6;
/// The flag "VNI valid". Other bits are ignored.
const HAS_VNI: u8 = 0x08;

/// The bits that are the same in all datagrams of a sender: the flag "VNI valid", the network, and the inner Ethernet
/// header. The other flags are reserved.
const COMPARED: [u8; VXLAN_BYTES] = {
    let mut bits = [0xFF; VXLAN_BYTES];
    (bits[0], bits[1], bits[2], bits[3], bits[7]) = (HAS_VNI, 0, 0, 0, 0);
    bits
};

/// VXLAN.
pub static KIND: TunnelKind = TunnelKind {
    scheme: TunnelScheme {
        names: ["vxlan4", "vxlan6"],
        network: "vni",
        max_network: 0xFF_FFFF,
        has_inner_address: true,
        expected: "an address and a network from 0 to 16777215, as in vxlan4://192.0.2.7?vni=42 or \
                   vxlan6://[2001:db8::7]?vni=42, optionally followed by &inner=08:00:27:01:dd:01",
    },
    // IANA.
    port: 4789,
    header_bytes: VXLAN_BYTES,
    source_at: Some(INNER_SOURCE),
    write,
    read,
    masks: masks(&COMPARED),
};

fn write(peer: &TunnelPeer, source: &MacAddress) -> TunnelHeader {
    let mut header = [0; VXLAN_BYTES];
    header[0] = HAS_VNI;
    let [_, vni @ ..] = peer.network.to_be_bytes();
    header[4..7].copy_from_slice(&vni);
    header[VNI_HEADER_BYTES..INNER_SOURCE].copy_from_slice(&peer.inner.unwrap_or(NDN_GROUP));
    header[INNER_SOURCE..INNER_SOURCE + 6].copy_from_slice(source);
    header[INNER_SOURCE + 6..].copy_from_slice(&ETHERTYPE_NDN.to_be_bytes());
    header
}

/// Reads the headers at the front of a datagram that a port with the address `local` has received.
///
/// # Errors
/// [`LinkDrop::MalformedFrame`], [`LinkDrop::NotNdnFrame`], or [`LinkDrop::ForeignFrame`] if the inner frame is for
/// another address. An inner frame for any group is accepted: the outer datagram was sent to this port alone.
fn read(datagram: &[u8], local: &MacAddress) -> Result<Inside, LinkDrop> {
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
    Ok(Inside { network: u32::from_be_bytes([0, *a, *b, *c]), source: Some(source) })
}
