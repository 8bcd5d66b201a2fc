//! Completes checksums that the sender has left to a network card. Between virtual interfaces of one host, no card
//! computes them.
//!
//! Only UDP checksums matter, because ports receive no other IP protocol with such checksums. The checksum field then
//! holds the sum of the pseudo header, so summing the whole datagram gives the checksum.

use namehop_packet::Checksum;

/// Length of an Ethernet header without and with a VLAN tag. Its last two bytes are the type of the payload.
const ETHERNET_BYTES: usize = 14;
const TAGGED_BYTES: usize = 18;
const TAG: u16 = 0x8100;
const IPV6_BYTES: usize = 40;
const UDP: u8 = 17;
/// Offset of the checksum in the UDP header.
const CHECKSUM: usize = 6;

/// Completes the checksum of a UDP datagram. All other frames are unchanged.
pub(super) fn finish(frame: &mut [u8]) {
    let Some((start, end)) = datagram(frame) else { return };
    if let Some(datagram) = frame.get_mut(start..end).filter(|datagram| datagram.len() >= CHECKSUM + 2) {
        let checksum = Checksum::new().bytes(datagram).finish_udp();
        datagram[CHECKSUM..CHECKSUM + 2].copy_from_slice(&checksum);
    }
}

/// Start and end of the datagram in the frame of a UDP packet.
fn datagram(frame: &[u8]) -> Option<(usize, usize)> {
    let number = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
    let ip_at = if number(ETHERNET_BYTES - 2)? == TAG { TAGGED_BYTES } else { ETHERNET_BYTES };
    let ip = frame.get(ip_at..)?;
    match number(ip_at - 2)? {
        0x0800 if *ip.get(9)? == UDP => {
            let header_bytes = usize::from(ip[0] & 0xF) * 4;
            Some((ip_at + header_bytes, ip_at + usize::from(number(ip_at + 2)?)))
        }
        0x86DD if *ip.get(6)? == UDP => {
            let start = ip_at + IPV6_BYTES;
            Some((start, start + usize::from(number(ip_at + 4)?)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An IPv4 datagram with one byte; its checksum covers only the pseudo header.
    const UNFINISHED: [u8; 44] = [
        2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x08, 0x00, 0x45, 0, 0, 29, 0, 0, 0x40, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192,
        0, 2, 2, 0x18, 0xDB, 0x18, 0xDB, 0, 9, 0x84, 0x1F, 0x41, 0xEE,
    ];

    #[test]
    fn the_checksum_of_a_datagram_is_filled_in_without_what_is_behind() {
        let mut frame = UNFINISHED;
        let pseudo = Checksum::new().bytes(&[192, 0, 2, 1, 192, 0, 2, 2]).number(17).number(9);
        let sum = !u16::from_be_bytes(pseudo.finish());
        frame[40..42].copy_from_slice(&sum.to_be_bytes());
        let mut tagged = [&frame[..12], &[0x81, 0, 0, 7], &frame[12..]].concat();
        finish(&mut frame);
        assert!(pseudo.bytes(&frame[34..43]).is_whole());
        assert_eq!(frame[42..], [0x41, 0xEE]);
        finish(&mut tagged);
        assert_eq!(tagged[16..], frame[12..]);
    }

    #[test]
    fn other_frames_stay_as_they_are() {
        for length in 0..UNFINISHED.len() - 1 {
            let mut cut = UNFINISHED[..length].to_vec();
            finish(&mut cut);
            assert_eq!(cut, UNFINISHED[..length]);
        }
        for (at, value) in [(13, 6), (23, 6), (17, 20), (14, 0x4F)] {
            let mut other = UNFINISHED;
            other[at] = value;
            let before = other;
            finish(&mut other);
            assert_eq!(other, before);
        }
    }
}
