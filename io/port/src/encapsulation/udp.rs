//! UDP over IPv4 and IPv6 (RFC 768): the header of the packets of one face, and of received datagrams.
//!
//! The header counts in the MTU of a link. NDNLPv2 fragments longer packets; IP never fragments them.
//!
//! Every datagram has a checksum, even over IPv4, where it is optional. Routers on the path may damage data in ways
//! that no link check detects, and a damaged name in a cache is useless (RFC 8085 section 3.4). VXLAN over IPv4 has
//! none, as its specification says.

use std::net::IpAddr;
use std::ops::Range;

use namehop_packet::{BufferPool, Checksum, PacketBuffer};

use super::ethernet::MIN_FRAME_BYTES;
use super::ip::{
    Datagram, ETHERTYPE_IPV4, ETHERTYPE_IPV6, IPV4_BYTES, IPV6_BYTES, PROTOCOL_UDP, pseudo_header, to_v6, v4_header,
    v6_header,
};
use super::masks::MAX_TUNNEL_BYTES;
use super::tunnel::TunnelKind;
use super::vlan::{self, MIN_VLAN_FRAME_BYTES, VLAN_HEADER_BYTES};
use super::{pad, prepend};
use namehop_face::address::{MacAddress, VlanId};
use namehop_face::counters::LinkDrop;

/// Length of a UDP header.
pub(crate) const UDP_BYTES: usize = 8;
/// Length of the longest header: Ethernet with a tag, IPv6, UDP and an encapsulation.
const MAX_HEADER_BYTES: usize = VLAN_HEADER_BYTES + IPV6_BYTES + UDP_BYTES + MAX_TUNNEL_BYTES;
/// Offsets in the IP header.
const V4_LENGTH: usize = 2;
const V4_CHECKSUM: usize = 10;
const V6_LENGTH: usize = 4;
/// Offsets of length and checksum in the UDP header, after the two ports.
const LENGTH: usize = 4;
const CHECKSUM: usize = 6;

/// The headers of the packets of one face, from Ethernet to UDP, or to the end of an encapsulation in it. Lengths and
/// checksums, and a source port that encodes the name, are filled in for each packet.
#[derive(Debug, Clone)]
pub(crate) struct Header {
    bytes: [u8; MAX_HEADER_BYTES],
    /// Number of used bytes.
    header_bytes: u8,
    /// Offsets of the IP and UDP headers.
    ip_at: u8,
    udp_at: u8,
    /// Offset of the sender's hardware address inside the encapsulation.
    source_at: Option<u8>,
    is_v4: bool,
    /// Sum of the IPv4 header without its length and checksum.
    ip_sum: Checksum,
    /// Sum of the pseudo header, without length. `None`: no checksum.
    udp_sum: Option<Checksum>,
}

/// The two ends of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ends {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) source_port: u16,
    pub(crate) destination_port: u16,
}

impl Header {
    /// Creates the header between two ends with addresses of the same family, from this hardware address, in a VLAN or
    /// untagged. `inside` follows the UDP header: the header of an encapsulation, with the hardware address of this end
    /// at `source_at`, or nothing.
    pub(crate) fn new(
        ends: &Ends,
        local: &MacAddress,
        vlan: Option<VlanId>,
        inside: &[u8],
        source_at: Option<usize>,
    ) -> Header {
        let mut bytes = Vec::with_capacity(MAX_HEADER_BYTES);
        bytes.extend_from_slice(&[0; 6]);
        bytes.extend_from_slice(local);
        bytes.extend(vlan.into_iter().flat_map(vlan::tag));
        let mut ip_sum = Checksum::new();
        let is_v4 = match (ends.source, ends.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let header = v4_header(source, destination, PROTOCOL_UDP);
                ip_sum = ip_sum.bytes(&header);
                bytes.extend_from_slice(&ETHERTYPE_IPV4.to_be_bytes());
                bytes.extend_from_slice(&header);
                true
            }
            (source, destination) => {
                let header = v6_header(to_v6(source), to_v6(destination), PROTOCOL_UDP);
                bytes.extend_from_slice(&ETHERTYPE_IPV6.to_be_bytes());
                bytes.extend_from_slice(&header);
                false
            }
        };
        let udp_at = bytes.len();
        bytes.extend_from_slice(&ends.source_port.to_be_bytes());
        bytes.extend_from_slice(&ends.destination_port.to_be_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(inside);
        let has_checksum = !is_v4 || inside.is_empty();
        let mut template = [0; MAX_HEADER_BYTES];
        template[..bytes.len()].copy_from_slice(&bytes);
        Header {
            bytes: template,
            header_bytes: bytes.len() as u8,
            ip_at: vlan::header_bytes(vlan) as u8,
            udp_at: udp_at as u8,
            source_at: source_at.map(|at| (udp_at + UDP_BYTES + at) as u8),
            is_v4,
            ip_sum,
            udp_sum: has_checksum.then(|| pseudo_header(ends.source, ends.destination, PROTOCOL_UDP)),
        }
    }

    /// Sets the destination hardware address.
    pub(crate) fn set_next_hop(&mut self, address: &MacAddress) {
        self.bytes[..6].copy_from_slice(address);
    }

    /// Sets the source hardware address, also inside an encapsulation.
    pub(crate) fn set_local(&mut self, address: &MacAddress) {
        self.bytes[6..12].copy_from_slice(address);
        if let Some(at) = self.source_at {
            let at = usize::from(at);
            self.bytes[at..at + 6].copy_from_slice(address);
        }
    }

    /// Puts the header in front of an NDN frame, and padding after a short one. Returns `false` if there is no buffer
    /// for that.
    #[inline]
    pub(crate) fn put_on(&self, source_port: Option<u16>, frame: &mut PacketBuffer, pool: &BufferPool) -> bool {
        let header_bytes = usize::from(self.header_bytes);
        if !prepend(frame, &self.bytes[..header_bytes], pool) {
            return false;
        }
        let bytes = frame.bytes_mut();
        let (ip_at, udp_at) = (usize::from(self.ip_at), usize::from(self.udp_at));
        let udp_length = (bytes.len() - udp_at) as u16;
        let (ip, udp) = bytes[ip_at..].split_at_mut(udp_at - ip_at);
        if self.is_v4 {
            let length = udp_length + IPV4_BYTES as u16;
            ip[V4_LENGTH..V4_LENGTH + 2].copy_from_slice(&length.to_be_bytes());
            ip[V4_CHECKSUM..V4_CHECKSUM + 2].copy_from_slice(&self.ip_sum.number(length).finish());
        } else {
            ip[V6_LENGTH..V6_LENGTH + 2].copy_from_slice(&udp_length.to_be_bytes());
        }
        if let Some(port) = source_port {
            udp[..2].copy_from_slice(&port.to_be_bytes());
        }
        udp[LENGTH..LENGTH + 2].copy_from_slice(&udp_length.to_be_bytes());
        if let Some(sum) = self.udp_sum {
            let checksum = sum.number(udp_length).bytes(udp).finish_udp();
            udp[CHECKSUM..CHECKSUM + 2].copy_from_slice(&checksum);
        }
        pad(frame, if ip_at == VLAN_HEADER_BYTES { MIN_VLAN_FRAME_BYTES } else { MIN_FRAME_BYTES });
        true
    }
}

/// The header fields of a received datagram, and the range of its payload in the frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) source_port: u16,
    pub(crate) destination_port: u16,
    pub(crate) payload: Range<usize>,
}

/// Reads the UDP header of the packet in a frame, and verifies the checksum if there is one. IPv6 requires one, except
/// for tunnels (RFC 6935); VXLAN accepts datagrams without it (RFC 7348 section 5).
///
/// # Errors
/// [`LinkDrop::MalformedFrame`] or [`LinkDrop::BadChecksum`].
pub(crate) fn read(frame: &[u8], packet: &Datagram) -> Result<Received, LinkDrop> {
    let bytes = frame.get(packet.payload.clone()).ok_or(LinkDrop::MalformedFrame)?;
    let [a, b, c, d, high, low, checksum @ ..] = *bytes.first_chunk::<UDP_BYTES>().ok_or(LinkDrop::MalformedFrame)?;
    let length = usize::from(u16::from_be_bytes([high, low]));
    if length < UDP_BYTES || length > bytes.len() {
        return Err(LinkDrop::MalformedFrame);
    }
    let destination_port = u16::from_be_bytes([c, d]);
    let is_whole = match checksum {
        [0, 0] => packet.source.is_ipv4() || TunnelKind::at(destination_port).is_some(),
        _ => {
            // At most the total length of IP, which has 16 bits.
            let sum = pseudo_header(packet.source, packet.destination, PROTOCOL_UDP).number(length as u16);
            sum.bytes(&bytes[..length]).is_whole()
        }
    };
    if !is_whole {
        return Err(LinkDrop::BadChecksum);
    }
    let start = packet.payload.start;
    Ok(Received {
        source_port: u16::from_be_bytes([a, b]),
        destination_port,
        payload: start + UDP_BYTES..start + length,
    })
}
