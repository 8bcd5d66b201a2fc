//! Splitting a stream into packets: the result does not depend on how the bytes arrive.

use namehop_wire::tlv::{frame_length, read_single_element};
use namehop_wire::{DecodeError, MAX_PACKET_SIZE};

/// Splits packets off the front of a stream as they become complete.
#[derive(Default)]
struct Cutter {
    received: Vec<u8>,
    position: usize,
    packets: Vec<Vec<u8>>,
    fault: Option<DecodeError>,
}

impl Cutter {
    fn receive(&mut self, bytes: &[u8]) {
        if self.fault.is_some() {
            return;
        }
        self.received.extend_from_slice(bytes);
        loop {
            let rest = &self.received[self.position..];
            match frame_length(rest) {
                Ok(Some(length)) if length <= rest.len() => {
                    self.packets.push(rest[..length].to_vec());
                    self.position += length;
                }
                Ok(_) => return,
                Err(error) => return self.fault = Some(error),
            }
        }
    }

    fn all(pieces: impl Iterator<Item = impl AsRef<[u8]>>) -> Self {
        let mut cutter = Cutter::default();
        pieces.for_each(|piece| cutter.receive(piece.as_ref()));
        cutter
    }
}

/// The first byte is the number of piece lengths that follow; the rest is the stream.
pub fn stream_framing(bytes: &[u8]) {
    let Some((&count, rest)) = bytes.split_first() else { return };
    let (lengths, stream) = rest.split_at(usize::from(count % 8).min(rest.len()));
    let whole = Cutter::all(std::iter::once(stream));
    for packet in &whole.packets {
        assert!(packet.len() <= MAX_PACKET_SIZE);
        read_single_element(packet).expect("a packet is one element");
    }
    let mut left = stream;
    let pieces = Cutter::all(lengths.iter().cycle().map_while(|&length| {
        // Pieces of length zero would never end.
        let piece = left.split_off(..usize::from(length).max(1).min(left.len()))?;
        (!piece.is_empty()).then_some(piece)
    }));
    let bytewise = Cutter::all(stream.chunks(1));
    for other in [&bytewise, &pieces] {
        // Without lengths there are no pieces.
        if lengths.is_empty() && other.received.is_empty() {
            continue;
        }
        assert_eq!(other.packets, whole.packets);
        assert_eq!(other.fault, whole.fault);
        assert_eq!(other.position, whole.position);
    }
    let is_one = matches!(frame_length(stream), Ok(Some(length)) if length == stream.len());
    assert_eq!(is_one, stream.len() <= MAX_PACKET_SIZE && read_single_element(stream).is_ok());
}
