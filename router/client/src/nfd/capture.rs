//! Captured frames: the response of the command `capture/take`. Namehop's own addition to the NFD management protocol.
//! The TLV-TYPE numbers are from the range for application use.
//!
//! The frames are a stream of elements. Responses carry it in pieces that may end inside a frame, because one frame can
//! be as long as a response.

use namehop_wire::tlv::{Reader, Writer};
use namehop_wire::{DecodeError, MAX_PACKET_SIZE};

use super::codec::{CodecError, Fields};
use super::record::{Element, records};

/// TLV-TYPE of a piece of the stream in a response.
const PIECE: u32 = 230;
const CAPTURED_FRAME: u32 = 231;

records! {
    /// A frame that a worker has received or sent.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct CapturedFrame(CAPTURED_FRAME) {
        /// Time of the frame, in nanoseconds since the Unix epoch.
        unix_ns: u64 = 232,
        /// Id of the face.
        face: u64 = 233,
        /// True if the frame was sent; false if it was received.
        is_sent: bool = 234,
        /// Length of the whole frame, in bytes.
        length: u64 = 235,
        /// The captured first bytes of the frame.
        bytes: Vec<u8> = 236 => Octets,
        /// Frames lost since the last record of losses. A record without bytes and length reports only losses.
        lost: u64 = 237,
    }
}

impl CapturedFrame {
    /// Creates a record that reports only losses.
    pub fn only_lost(lost: u64) -> Self {
        CapturedFrame { lost, ..CapturedFrame::default() }
    }
}

/// Encodes a piece of the stream for a response.
pub fn encode_piece(piece: &[u8]) -> Vec<u8> {
    let mut writer = Writer::with_capacity(piece.len() + 8);
    writer.element(PIECE, piece);
    writer.into_vec()
}

/// Appends an encoded frame to the stream.
pub fn encode_frame(frame: &CapturedFrame, stream: &mut Vec<u8>) {
    let mut writer = Writer::with_capacity(frame.bytes.len() + 48);
    frame.encode(&mut writer);
    stream.extend_from_slice(writer.as_slice());
}

/// Reassembles the stream from its pieces.
#[derive(Debug, Default)]
pub struct CaptureStream {
    /// Bytes received.
    position: u64,
    /// Received bytes that are not a complete frame yet.
    rest: Vec<u8>,
}

impl CaptureStream {
    /// Returns the offset in the stream at which the next piece begins.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Adds the piece in the body of a response. Returns the frames that it completes, and true if the piece has any
    /// bytes.
    ///
    /// # Errors
    /// When the body does not follow the format of the stream.
    pub fn add(&mut self, body: &[u8]) -> Result<(Vec<CapturedFrame>, bool), CodecError> {
        let piece = Fields::parse(body)?.find(PIECE).ok_or(CodecError::Missing("capture data"))?;
        self.position += piece.len() as u64;
        self.rest.extend_from_slice(piece);
        let mut frames = Vec::new();
        let mut reader = Reader::new(&self.rest);
        loop {
            match reader.read_element() {
                Ok(element) if element.typ == CAPTURED_FRAME => {
                    frames.push(CapturedFrame::decode_value(element.value)?)
                }
                Ok(_) => {}
                // The rest follows in the next piece.
                Err(DecodeError::Truncated) if reader.remaining().len() < 2 * MAX_PACKET_SIZE => break,
                Err(error) => return Err(error.into()),
            }
        }
        let taken = self.rest.len() - reader.remaining().len();
        self.rest.drain(..taken);
        Ok((frames, !piece.is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_decoded_unchanged_for_all_piece_sizes() {
        let frame = |number: u64, bytes: usize| CapturedFrame {
            unix_ns: 1_700_000_000_000_000_000 + number,
            face: 256 + number,
            is_sent: number.is_multiple_of(2),
            length: 8_800,
            bytes: vec![number as u8; bytes],
            lost: number,
        };
        let frames = [frame(0, 0), frame(1, MAX_PACKET_SIZE), frame(2, 300), CapturedFrame::only_lost(3)];
        let mut stream = Vec::new();
        frames.iter().for_each(|frame| encode_frame(frame, &mut stream));
        for piece_bytes in [1, 7, 1_000, stream.len()] {
            let mut taken = CaptureStream::default();
            let mut seen = Vec::new();
            for piece in stream.chunks(piece_bytes) {
                let (frames, has_any) = taken.add(&encode_piece(piece)).expect("a piece");
                assert!(has_any);
                seen.extend(frames);
            }
            assert_eq!(seen, frames, "{piece_bytes}");
            assert_eq!(taken.position(), stream.len() as u64);
            assert_eq!(taken.add(&encode_piece(&[])), Ok((Vec::new(), false)));
        }
    }

    #[test]
    fn what_is_no_stream_is_refused() {
        assert!(CaptureStream::default().add(b"").is_err());
        assert!(CaptureStream::default().add(&encode_piece(&[0, 0])).is_err(), "TYPE 0 is invalid");
        // An element that never ends must not fill the memory.
        let mut endless = CaptureStream::default();
        let first = endless.add(&encode_piece(&[231, 254, 0x7f, 0xff, 0xff, 0xff]));
        let rest = (0..10).map(|_| endless.add(&encode_piece(&[0; 7_000])));
        assert!(first.is_err() || rest.into_iter().any(|result| result.is_err()));
    }
}
