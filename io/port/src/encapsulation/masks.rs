//! The bits of headers that are the same in all datagrams of a sender, as masks of the first bytes of a frame.
//!
//! They exclude the fields that reading ignores, and fields that differ from datagram to datagram.

use super::ethernet::HEADER_BYTES as ETHERNET_BYTES;
use super::ip::{IPV4_BYTES, IPV6_BYTES};
use super::udp::UDP_BYTES;
use super::vlan::{IDENTIFIER_BITS, TAG_BYTES, VLAN_HEADER_BYTES};

/// Length of the longest header of an encapsulation in UDP, in bytes.
pub(crate) const MAX_TUNNEL_BYTES: usize = 22;
/// Number of eight-byte words that hold the longest headers.
pub(crate) const WORDS: usize = (VLAN_HEADER_BYTES + IPV6_BYTES + UDP_BYTES + MAX_TUNNEL_BYTES).div_ceil(8);
/// Offset of the tag's priority, which shares its byte with the upper bits of the VLAN.
const PRIORITY: usize = VLAN_HEADER_BYTES - TAG_BYTES;

/// The first bytes of a frame.
pub(crate) type Words = [u64; WORDS];

/// Returns the compared bits of headers from Ethernet to UDP, and of an encapsulation in it.
pub(crate) const fn mask(has_tag: bool, is_v6: bool, has_any_port: bool, inside: &[u8]) -> Words {
    let ip_at = if has_tag { VLAN_HEADER_BYTES } else { ETHERNET_BYTES };
    let udp_at = udp_at(ip_at, is_v6);
    let length = udp_at + UDP_BYTES + inside.len();
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
                _ => inside[udp - UDP_BYTES],
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

/// Returns the offset of the UDP header behind an IP header without options.
pub(crate) const fn udp_at(ip_at: usize, is_v6: bool) -> usize {
    ip_at + if is_v6 { IPV6_BYTES } else { IPV4_BYTES }
}
