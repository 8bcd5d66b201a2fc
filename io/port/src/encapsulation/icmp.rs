//! Echo of ICMP (RFC 792) and ICMPv6 (RFC 4443): a request becomes its answer in place.

use std::net::IpAddr;

use namehop_packet::{Checksum, PacketBuffer};

use super::ethernet::{HEADER_BYTES as ETHERNET_BYTES, MIN_FRAME_BYTES};
use super::ip::{Datagram, IPV4_BYTES, IPV6_BYTES, PROTOCOL_ICMP};
use super::neighbour_discovery::icmp_sum;
use super::pad;
use namehop_face::counters::LinkDrop;

/// Types of messages.
const ECHO_REQUEST: u8 = 8;
const ECHO_REPLY: u8 = 0;
const ECHO_REQUEST_V6: u8 = 128;
const ECHO_REPLY_V6: u8 = 129;
/// Type, code, checksum, identifier and sequence number.
const ECHO_BYTES: usize = 8;
const HOP_LIMIT: u8 = 64;
/// Offsets of the IP header fields that change.
const V4_HOP_LIMIT: usize = 8;
const V4_CHECKSUM: usize = 10;
const V4_ADDRESSES: usize = 12;
const V6_HOP_LIMIT: usize = 7;
const V6_ADDRESSES: usize = 8;

/// Returns the type of the ICMP or ICMPv6 message in this packet, after checking its checksum.
///
/// # Errors
/// [`LinkDrop::MalformedFrame`] or [`LinkDrop::BadChecksum`].
pub(crate) fn read_type(frame: &[u8], packet: &Datagram) -> Result<u8, LinkDrop> {
    let message = frame.get(packet.payload.clone()).ok_or(LinkDrop::MalformedFrame)?;
    let kind = *message.first().ok_or(LinkDrop::MalformedFrame)?;
    let sum = match packet.protocol {
        PROTOCOL_ICMP => Checksum::new().bytes(message),
        _ => icmp_sum(packet.source, packet.destination, message),
    };
    match sum.is_whole() {
        true if message.len() >= ECHO_BYTES => Ok(kind),
        true => Err(LinkDrop::MalformedFrame),
        false => Err(LinkDrop::BadChecksum),
    }
}

/// Whether a message of this type is an echo request, in a packet without options, because options may prescribe a
/// route.
pub(crate) fn is_echo_request(packet: &Datagram, kind: u8) -> bool {
    let (request, header_bytes) = match packet.protocol {
        PROTOCOL_ICMP => (ECHO_REQUEST, IPV4_BYTES),
        _ => (ECHO_REQUEST_V6, IPV6_BYTES),
    };
    kind == request && packet.payload.start == packet.start + header_bytes
}

/// Turns the request in this packet into its reply. The reply goes to the source of the frame, so that nothing has to
/// be resolved. A VLAN tag stays unchanged.
pub(crate) fn answer(frame: &mut PacketBuffer, packet: &Datagram) {
    frame.truncate(packet.payload.end);
    let bytes = frame.bytes_mut();
    let (destination, source) = bytes[..12].split_at_mut(6);
    destination.swap_with_slice(source);
    let (addresses, address_bytes, kind) = match packet.source {
        IpAddr::V4(_) => (V4_ADDRESSES, 4, ECHO_REPLY),
        IpAddr::V6(_) => (V6_ADDRESSES, 16, ECHO_REPLY_V6),
    };
    let ip = &mut bytes[packet.start..packet.payload.start];
    let (source, destination) = ip[addresses..addresses + 2 * address_bytes].split_at_mut(address_bytes);
    source.swap_with_slice(destination);
    if packet.source.is_ipv4() {
        ip[V4_HOP_LIMIT] = HOP_LIMIT;
        ip[V4_CHECKSUM..V4_CHECKSUM + 2].fill(0);
        let checksum = Checksum::new().bytes(ip).finish();
        ip[V4_CHECKSUM..V4_CHECKSUM + 2].copy_from_slice(&checksum);
    } else {
        ip[V6_HOP_LIMIT] = HOP_LIMIT;
    }
    let message = &mut bytes[packet.payload.clone()];
    message[0] = kind;
    message[2..4].fill(0);
    let checksum = match packet.source {
        IpAddr::V4(_) => Checksum::new().bytes(message),
        // Source and destination contribute equally to the sum.
        IpAddr::V6(_) => icmp_sum(packet.source, packet.destination, message),
    };
    bytes[packet.payload.start + 2..packet.payload.start + 4].copy_from_slice(&checksum.finish());
    pad(frame, packet.start - ETHERNET_BYTES + MIN_FRAME_BYTES);
}
