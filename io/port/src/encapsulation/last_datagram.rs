//! The headers of the previous datagram, so that the next one of the same sender needs no lookup of its face.
//!
//! If a datagram has the same headers, only its lengths and checksums have to be checked. The comparison excludes the
//! fields that reading ignores, and fields that differ from datagram to datagram: see `masks`. A datagram that does not
//! match is read from the beginning; only that code decides why it is dropped.

use std::ops::Range;

use namehop_packet::Checksum;

use super::ip::{IPV4_BYTES, PROTOCOL_UDP, pseudo_header};
use super::masks::{WORDS, Words, mask, udp_at};
use super::tunnel::TunnelKind;
use super::udp::UDP_BYTES;
use super::vlan::VLAN_HEADER_BYTES;
use super::{Flow, InternetKey};

/// First byte of an IPv4 header without options.
const V4_WITHOUT_OPTIONS: u8 = 0x45;

/// The compared bits of UDP, by kind of headers: bit 0 IPv6, bit 1 VLAN tag, bit 2 any source port.
static UDP_MASKS: [Words; 8] = {
    let mut masks = [[0; WORDS]; 8];
    let mut kind = 0;
    while kind < masks.len() {
        masks[kind] = mask(kind & 2 != 0, kind & 1 != 0, kind & 4 != 0, &[]);
        kind += 1;
    }
    masks
};

/// The compared headers of the previous datagram; see the module documentation.
#[derive(Debug, Clone)]
pub(crate) struct LastDatagram {
    /// The headers, masked.
    headers: Words,
    mask: &'static Words,
    /// Number of words to compare.
    count: usize,
    /// Offset of the IP header.
    ip_at: usize,
    is_v6: bool,
    /// Length of the header of an encapsulation in UDP.
    inside_bytes: usize,
    /// Sum of the pseudo header, without length.
    sum: Checksum,
}

impl LastDatagram {
    /// Remembers the headers of a frame with a datagram of this key. The IP header is at `ip_at`, the payload at
    /// `start`. With `has_any_port` the source port is not compared. Returns `None` for headers that are not
    /// remembered: those with options.
    pub(crate) fn new(
        frame: &[u8],
        key: &InternetKey,
        ip_at: usize,
        start: usize,
        has_any_port: bool,
    ) -> Option<LastDatagram> {
        let is_v6 = key.local.is_ipv6();
        let kind = usize::from(is_v6) | usize::from(ip_at == VLAN_HEADER_BYTES) << 1;
        let (mask, inside_bytes) = match &key.flow {
            Flow::Udp { .. } => (&UDP_MASKS[kind | usize::from(has_any_port) << 2], 0),
            Flow::Inside { port, .. } => {
                let tunnel = TunnelKind::at(*port)?;
                (&tunnel.masks[kind], tunnel.header_bytes)
            }
        };
        let expected = udp_at(ip_at, is_v6) + UDP_BYTES + inside_bytes;
        if start != expected || (!is_v6 && frame.get(ip_at) != Some(&V4_WITHOUT_OPTIONS)) {
            return None;
        }
        let count = start.div_ceil(8);
        let mut headers = [0; WORDS];
        let words = frame.as_chunks::<8>().0.get(..count)?;
        for ((header, word), mask) in headers.iter_mut().zip(words).zip(mask) {
            *header = u64::from_ne_bytes(*word) & mask;
        }
        let sum = pseudo_header(key.remote, key.local, PROTOCOL_UDP);
        Some(LastDatagram { headers, mask, count, ip_at, is_v6, inside_bytes, sum })
    }

    /// Returns the range of the payload of a frame, if it has the same headers and is whole.
    #[inline]
    pub(crate) fn payload_of(&self, frame: &[u8]) -> Option<Range<usize>> {
        let words = frame.as_chunks::<8>().0.get(..self.count)?;
        let differs = words
            .iter()
            .zip(&self.headers)
            .zip(self.mask)
            .fold(0, |differs, ((word, header), mask)| differs | (u64::from_ne_bytes(*word) & mask) ^ header);
        if differs != 0 {
            return None;
        }
        let number = |at: usize| Some(usize::from(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?])));
        let (ip_at, udp_at) = (self.ip_at, udp_at(self.ip_at, self.is_v6));
        let end = if self.is_v6 {
            udp_at + number(ip_at + 4)?
        } else {
            let header = frame.get(ip_at..)?.first_chunk::<IPV4_BYTES>()?;
            if !Checksum::new().bytes(header).is_whole() {
                return None;
            }
            ip_at + number(ip_at + 2)?
        };
        let length = number(udp_at + 4)?;
        let start = udp_at + UDP_BYTES + self.inside_bytes;
        if end > frame.len() || udp_at + length > end || udp_at + length < start {
            return None;
        }
        let datagram = frame.get(udp_at..udp_at + length)?;
        let is_whole = match number(udp_at + 6)? {
            0 => !self.is_v6 || self.inside_bytes > 0,
            // It was read from 16 bits.
            _ => self.sum.number(length as u16).bytes(datagram).is_whole(),
        };
        is_whole.then_some(start..udp_at + length)
    }
}
