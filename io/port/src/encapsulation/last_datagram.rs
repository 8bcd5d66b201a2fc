//! The headers of the previous datagram, so that the next one of the same sender needs no lookup of its face.
//!
//! If a datagram has the same headers, only its lengths and checksums have to be checked. The comparison excludes the
//! fields that reading ignores, and fields that differ from datagram to datagram: see `MASKS`. A datagram that does not
//! match is read from the beginning; only that code decides why it is dropped.

use std::ops::Range;

use namehop_packet::Checksum;

use super::ethernet::HEADER_BYTES as ETHERNET_BYTES;
use super::ip::{IPV4_BYTES, IPV6_BYTES, PROTOCOL_UDP, pseudo_header};
use super::udp::UDP_BYTES;
use super::vlan::{IDENTIFIER_BITS, TAG_BYTES, VLAN_HEADER_BYTES};
use super::vxlan::VXLAN_BYTES;
use super::{Flow, InternetKey};

/// Number of eight-byte words that hold the longest headers.
const WORDS: usize = (VLAN_HEADER_BYTES + IPV6_BYTES + UDP_BYTES + VXLAN_BYTES).div_ceil(8);
/// Offset of the tag's priority, which shares its byte with the upper bits of the VLAN.
const PRIORITY: usize = VLAN_HEADER_BYTES - TAG_BYTES;
/// First byte of an IPv4 header without options.
const V4_WITHOUT_OPTIONS: u8 = 0x45;

type Words = [u64; WORDS];

/// The compared bits, by kind of headers: bit 0 IPv6, bit 1 VXLAN, bit 2 any source port, bit 3 VLAN tag.
const MASKS: [Words; 16] = {
    let mut masks = [[0; WORDS]; 16];
    let mut kind = 0;
    while kind < masks.len() {
        let ip_at = if kind & 8 != 0 { VLAN_HEADER_BYTES } else { ETHERNET_BYTES };
        masks[kind] = mask(ip_at, kind & 1 != 0, kind & 2 != 0, kind & 4 != 0);
        kind += 1;
    }
    masks
};

const fn mask(ip_at: usize, is_v6: bool, is_vxlan: bool, has_any_port: bool) -> Words {
    let udp_at = udp_at(ip_at, is_v6);
    let length = udp_at + UDP_BYTES + if is_vxlan { VXLAN_BYTES } else { 0 };
    let mut bytes = [0_u8; WORDS * 8];
    let mut at = 0;
    while at < length {
        let (ip, udp) = (at.wrapping_sub(ip_at), at.wrapping_sub(udp_at));
        bytes[at] = if at < ip_at {
            // Everything except the priority of a tag.
            if ip_at == VLAN_HEADER_BYTES && at == PRIORITY { (IDENTIFIER_BITS >> 8) as u8 } else { 0xFF }
        } else if at < udp_at {
            match (is_v6, ip) {
                // Traffic class and flow label, length, hop limit.
                (true, 0) => 0xF0,
                (true, 1..=5 | 7) => 0,
                // Type of service, length, identification, time to live, checksum.
                (false, 1..=5 | 8 | 10 | 11) => 0,
                // All flag and offset bits that only fragments have set.
                (false, 6) => 0x3F,
                _ => 0xFF,
            }
        } else {
            match udp {
                0 | 1 if has_any_port => 0,
                0..=3 => 0xFF,
                4..=7 => 0,
                // The "VNI valid" flag; the other bits are reserved.
                8 => 0x08,
                9..=11 | 15 => 0,
                _ => 0xFF,
            }
        };
        at += 1;
    }
    let (mut words, mut word) = ([0; WORDS], 0);
    while word < WORDS {
        let mut eight = [0; 8];
        let mut byte = 0;
        while byte < 8 {
            eight[byte] = bytes[word * 8 + byte];
            byte += 1;
        }
        words[word] = u64::from_ne_bytes(eight);
        word += 1;
    }
    words
}

const fn udp_at(ip_at: usize, is_v6: bool) -> usize {
    ip_at + if is_v6 { IPV6_BYTES } else { IPV4_BYTES }
}

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
    is_vxlan: bool,
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
        let (is_v6, is_vxlan) = (key.local.is_ipv6(), matches!(key.flow, Flow::Vxlan { .. }));
        let expected = udp_at(ip_at, is_v6) + UDP_BYTES + if is_vxlan { VXLAN_BYTES } else { 0 };
        if start != expected || (!is_v6 && frame.get(ip_at) != Some(&V4_WITHOUT_OPTIONS)) {
            return None;
        }
        // The source port of a tunnel does not identify the sender.
        let kind = usize::from(is_v6)
            | usize::from(is_vxlan) << 1
            | usize::from(is_vxlan || has_any_port) << 2
            | usize::from(ip_at == VLAN_HEADER_BYTES) << 3;
        let (mask, count) = (&MASKS[kind], start.div_ceil(8));
        let mut headers = [0; WORDS];
        let words = frame.as_chunks::<8>().0.get(..count)?;
        for ((header, word), mask) in headers.iter_mut().zip(words).zip(mask) {
            *header = u64::from_ne_bytes(*word) & mask;
        }
        let sum = pseudo_header(key.remote, key.local, PROTOCOL_UDP);
        Some(LastDatagram { headers, mask, count, ip_at, is_v6, is_vxlan, sum })
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
        let start = udp_at + UDP_BYTES + if self.is_vxlan { VXLAN_BYTES } else { 0 };
        if end > frame.len() || udp_at + length > end || udp_at + length < start {
            return None;
        }
        let datagram = frame.get(udp_at..udp_at + length)?;
        let is_whole = match number(udp_at + 6)? {
            0 => !self.is_v6 || self.is_vxlan,
            // It was read from 16 bits.
            _ => self.sum.number(length as u16).bytes(datagram).is_whole(),
        };
        is_whole.then_some(start..udp_at + length)
    }
}
