//! Cutting a byte stream into packets: on Unix and TCP sockets packets follow each other without separators.

use namehop_wire::DecodeError;
use namehop_wire::tlv::frame_length;

/// Why cutting stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The rest is not a whole packet yet.
    Incomplete,
    /// The receiver of the packets takes no more for now.
    Refused,
    /// The bytes are no packet, and there is no way to find the next one.
    Bad(DecodeError),
}

/// Hands every whole packet at the front of `bytes` to `accept`, until it answers `false`.
///
/// Returns how many bytes were handed over and why it stopped.
pub(super) fn cut(bytes: &[u8], mut accept: impl FnMut(&[u8]) -> bool) -> (usize, Stop) {
    let mut position = 0;
    loop {
        let rest = &bytes[position..];
        let length = match frame_length(rest) {
            Ok(Some(length)) if length <= rest.len() => length,
            Ok(_) => return (position, Stop::Incomplete),
            Err(error) => return (position, Stop::Bad(error)),
        };
        if !accept(&rest[..length]) {
            return (position, Stop::Refused);
        }
        position += length;
    }
}

/// Whether `datagram` is exactly one element, as a datagram or WebSocket message must be.
pub(super) fn is_whole(datagram: &[u8]) -> bool {
    matches!(frame_length(datagram), Ok(Some(length)) if length == datagram.len())
}

#[cfg(test)]
mod tests {
    use namehop_wire::tlv::Writer;

    use super::*;

    fn packet(typ: u8, length: usize) -> Vec<u8> {
        let mut packet = Writer::new();
        packet.element(typ.into(), &vec![0xAB; length]);
        packet.into_vec()
    }

    #[test]
    fn a_stream_split_at_every_byte_boundary_gives_the_same_packets() {
        let packets = [packet(5, 3), packet(6, 300), packet(100, 0), packet(6, 40)];
        let stream = packets.concat();
        for split in 0..=stream.len() {
            let mut found = Vec::new();
            let (first, stop) = cut(&stream[..split], |bytes| {
                found.push(bytes.to_vec());
                true
            });
            assert_eq!(stop, Stop::Incomplete);
            let (second, stop) = cut(&stream[first..], |bytes| {
                found.push(bytes.to_vec());
                true
            });
            assert_eq!(stop, Stop::Incomplete);
            assert_eq!(first + second, stream.len());
            assert_eq!(found, packets, "split at {split}");
        }
    }

    #[test]
    fn refusal_keeps_the_packet() {
        let stream = [packet(5, 3), packet(5, 4)].concat();
        let mut taken = 0;
        let (used, stop) = cut(&stream, |_| {
            taken += 1;
            taken == 1
        });
        assert_eq!((used, stop), (5, Stop::Refused));
    }

    #[test]
    fn garbage_and_oversize_stop_the_stream() {
        assert!(matches!(cut(&[0, 0], |_| true).1, Stop::Bad(_)));
        let oversize = [6, 0xFE, 0, 1, 0, 0];
        assert!(matches!(cut(&oversize, |_| true).1, Stop::Bad(_)));
        let not_shortest = [6, 0xFD, 0, 1, 0];
        assert!(matches!(cut(&not_shortest, |_| true).1, Stop::Bad(_)));
    }

    #[test]
    fn a_datagram_holds_exactly_one_element() {
        assert!(is_whole(&packet(5, 3)));
        assert!(is_whole(&packet(6, 8796)));
        assert!(!is_whole(&packet(6, 8797)));
        assert!(!is_whole(&[packet(5, 3), vec![0]].concat()));
        assert!(!is_whole(&packet(5, 3)[..4]));
        assert!(!is_whole(&[]));
    }
}
