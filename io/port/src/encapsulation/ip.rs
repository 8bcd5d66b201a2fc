//! Headers of IPv4 (RFC 791) and IPv6 (RFC 8200) in received frames, after an Ethernet header with or without a tag.
//!
//! Only whole packets are accepted: NDNLPv2 does its own fragmentation, so IP fragments are dropped, and so are IPv6
//! packets with extension headers. IPv4 options are skipped.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use namehop_packet::Checksum;

use namehop_face::counters::LinkDrop;

/// Ethernet types.
pub(crate) const ETHERTYPE_IPV4: u16 = 0x0800;
pub(crate) const ETHERTYPE_IPV6: u16 = 0x86DD;
/// Lengths of the headers, of IPv4 without options.
pub(crate) const IPV4_BYTES: usize = 20;
pub(crate) const IPV6_BYTES: usize = 40;
/// Protocols (IANA, protocol numbers).
pub(crate) const PROTOCOL_ICMP: u8 = 1;
pub(crate) const PROTOCOL_UDP: u8 = 17;
pub(crate) const PROTOCOL_ICMPV6: u8 = 58;
const PROTOCOL_FRAGMENT: u8 = 44;
/// Time to live, or hop limit, of sent packets that may be forwarded.
const HOP_LIMIT: u8 = 64;
/// IPv4 flag "don't fragment".
const DONT_FRAGMENT: [u8; 2] = [0x40, 0];
/// The IPv4 bits that only a fragment has set: "more fragments", and the offset.
const FRAGMENT_BITS: u16 = 0x3FFF;

/// The header fields of a received packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Datagram {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) protocol: u8,
    pub(crate) hop_limit: u8,
    /// Offset of the packet in the frame.
    pub(crate) start: usize,
    /// Range of its payload in the frame; padding may follow.
    pub(crate) payload: Range<usize>,
}

impl Datagram {
    /// Reads the header of the IPv4 packet that begins at `start` in the frame.
    ///
    /// # Errors
    /// [`LinkDrop::MalformedFrame`], [`LinkDrop::BadChecksum`] or [`LinkDrop::IpFragment`].
    pub(crate) fn read_v4(frame: &[u8], start: usize) -> Result<Datagram, LinkDrop> {
        let packet = frame.get(start..).unwrap_or_default();
        let header = packet.first_chunk::<IPV4_BYTES>().ok_or(LinkDrop::MalformedFrame)?;
        let [version_and_length, _, high, low, _, _, flags, offset, hop_limit, protocol, _, _, rest @ ..] = *header;
        let header_bytes = usize::from(version_and_length & 0xF) * 4;
        let total_bytes = usize::from(u16::from_be_bytes([high, low]));
        if version_and_length >> 4 != 4
            || header_bytes < IPV4_BYTES
            || total_bytes < header_bytes
            || total_bytes > packet.len()
        {
            return Err(LinkDrop::MalformedFrame);
        }
        if !Checksum::new().bytes(&packet[..header_bytes]).is_whole() {
            return Err(LinkDrop::BadChecksum);
        }
        if u16::from_be_bytes([flags, offset]) & FRAGMENT_BITS != 0 {
            return Err(LinkDrop::IpFragment);
        }
        let [a, b, c, d, e, f, g, h] = rest;
        Ok(Datagram {
            source: Ipv4Addr::new(a, b, c, d).into(),
            destination: Ipv4Addr::new(e, f, g, h).into(),
            protocol,
            hop_limit,
            start,
            payload: start + header_bytes..start + total_bytes,
        })
    }

    /// Reads the header of the IPv6 packet that begins at `start` in the frame.
    ///
    /// # Errors
    /// [`LinkDrop::MalformedFrame`] or [`LinkDrop::IpFragment`].
    pub(crate) fn read_v6(frame: &[u8], start: usize) -> Result<Datagram, LinkDrop> {
        let packet = frame.get(start..).unwrap_or_default();
        let header = packet.first_chunk::<IPV6_BYTES>().ok_or(LinkDrop::MalformedFrame)?;
        let [version, _, _, _, high, low, protocol, hop_limit, addresses @ ..] = header;
        let payload_bytes = usize::from(u16::from_be_bytes([*high, *low]));
        if version >> 4 != 6 || IPV6_BYTES + payload_bytes > packet.len() {
            return Err(LinkDrop::MalformedFrame);
        }
        if *protocol == PROTOCOL_FRAGMENT {
            return Err(LinkDrop::IpFragment);
        }
        let [mut source, mut destination] = [[0; 16]; 2];
        source.copy_from_slice(&addresses[..16]);
        destination.copy_from_slice(&addresses[16..]);
        let payload = start + IPV6_BYTES;
        Ok(Datagram {
            source: Ipv6Addr::from(source).into(),
            destination: Ipv6Addr::from(destination).into(),
            protocol: *protocol,
            hop_limit: *hop_limit,
            start,
            payload: payload..payload + payload_bytes,
        })
    }
}

/// Returns the address as IPv6; an IPv4 address becomes an IPv4-mapped one (RFC 4291 section 2.5.5.2).
pub(crate) fn to_v6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

/// Returns the sum of the pseudo header of UDP and ICMPv6 checksums (RFC 768, RFC 8200 section 8.1), without the
/// length.
pub(crate) fn pseudo_header(source: IpAddr, destination: IpAddr, protocol: u8) -> Checksum {
    let sum = Checksum::new().number(protocol.into());
    [source, destination].into_iter().fold(sum, |sum, address| match address {
        IpAddr::V4(address) => sum.bytes(&address.octets()),
        IpAddr::V6(address) => sum.bytes(&address.octets()),
    })
}

/// Returns an IPv4 header for packets of this protocol, without length and checksum. Such packets are never fragmented,
/// so they need no identification (RFC 6864).
pub(crate) fn v4_header(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8) -> [u8; IPV4_BYTES] {
    let mut header = [0; IPV4_BYTES];
    header[0] = 0x45;
    header[6..8].copy_from_slice(&DONT_FRAGMENT);
    (header[8], header[9]) = (HOP_LIMIT, protocol);
    header[12..16].copy_from_slice(&source.octets());
    header[16..].copy_from_slice(&destination.octets());
    header
}

/// Returns an IPv6 header for packets of this protocol, without length.
pub(crate) fn v6_header(source: Ipv6Addr, destination: Ipv6Addr, protocol: u8) -> [u8; IPV6_BYTES] {
    let mut header = [0; IPV6_BYTES];
    header[0] = 0x60;
    (header[6], header[7]) = (protocol, HOP_LIMIT);
    header[8..24].copy_from_slice(&source.octets());
    header[24..].copy_from_slice(&destination.octets());
    header
}
