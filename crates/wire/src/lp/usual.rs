//! The usual shapes of a frame, read and written in few steps: a bare packet, and a packet behind a PIT token.
//!
//! Nearly all frames are of these shapes, and each passes here once on its way in and once on its way out. Reading assumes
//! nothing about the frame. What is read and written is exactly what [`LpPacket`](super::LpPacket) and
//! [`LpHeader`](super::LpHeader) say of such frames; every other frame is theirs.

use super::PitToken;
use crate::MAX_PACKET_SIZE;
use crate::tlv::{element_len, put_header, types};

// The types of these shapes take one byte each.
const INTEREST: u8 = types::INTEREST as u8;
const DATA: u8 = types::DATA as u8;
const LP_PACKET: u8 = types::LP_PACKET as u8;
const FRAGMENT: u8 = types::LP_FRAGMENT as u8;
const PIT_TOKEN: u8 = types::LP_PIT_TOKEN as u8;

/// A token that is shorter than this does not fill, together with TYPE and LENGTH of the Fragment, the eight bytes that a
/// short token is moved in.
const LEAST_MOVED_WHOLE: usize = 6;

/// A valid frame with one whole Interest or Data and no header field but a PIT token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsualFrame {
    /// PitToken; empty when absent.
    pub pit_token: PitToken,
    /// Bytes in front of the Interest or Data, which fills the rest of the frame; 0 in a bare packet.
    pub header_len: usize,
    /// The packet is a Data; otherwise it is an Interest.
    pub is_data: bool,
}

impl UsualFrame {
    /// Reads a frame that is of a usual shape; `None` says only that it is not, for whatever reason.
    #[inline]
    pub fn decode(frame: &[u8]) -> Option<UsualFrame> {
        if frame.len() > MAX_PACKET_SIZE {
            return None;
        }
        let (mut header_len, mut pit_token) = (0, PitToken::empty());
        if *frame.first()? == LP_PACKET {
            header_len = header_of_rest(frame, 0)?;
            if *frame.get(header_len)? == PIT_TOKEN {
                let token_at = header_len + 2;
                let token_len = usize::from(*frame.get(header_len + 1)?);
                header_len = token_at + token_len;
                pit_token = match frame.get(token_at..)?.first_chunk() {
                    Some(first) if (1..=8).contains(&token_len) => PitToken::short(*first, token_len)?,
                    _ => long_token(frame.get(token_at..header_len)?)?,
                };
            }
            if *frame.get(header_len)? != FRAGMENT {
                return None;
            }
            header_len = header_of_rest(frame, header_len)?;
        }
        let is_data = match *frame.get(header_len)? {
            INTEREST => false,
            DATA => true,
            _ => return None,
        };
        header_of_rest(frame, header_len)?;
        Some(UsualFrame { pit_token, header_len, is_data })
    }
}

/// Where the VALUE begins of the element at `start`, whose TYPE takes one byte, if the element fills the rest of the frame.
#[inline(always)]
fn header_of_rest(frame: &[u8], start: usize) -> Option<usize> {
    let (length, value_at) = match *frame.get(start..)? {
        [_, length @ 0..253, ..] => (usize::from(length), start + 2),
        [_, 253, high, low, ..] => (usize::from(u16::from_be_bytes([high, low])), start + 4),
        _ => return None,
    };
    // A short LENGTH in the long form is not allowed.
    let is_minimal = value_at == start + 2 || length >= 253;
    (is_minimal && value_at + length == frame.len()).then_some(value_at)
}

/// A token of more than eight bytes, or at the very end of a frame.
#[cold]
fn long_token(token: &[u8]) -> Option<PitToken> {
    PitToken::from_slice(token).filter(|token| !token.is_empty())
}

/// Bytes in front of a packet of `packet_len` bytes when it goes out with this token and no other header field; 0 when the
/// token is empty, because then the packet goes out bare.
#[inline]
pub fn token_header_len(token: &PitToken, packet_len: usize) -> usize {
    if token.is_empty() {
        return 0;
    }
    element_len(types::LP_PACKET, value_len(token, packet_len)) - packet_len
}

/// Writes the header of that packet to `out`, which has [`token_header_len`] bytes and is not empty.
///
/// # Panics
/// When `out` has another length.
#[inline]
pub fn encode_token_header(token: &PitToken, packet_len: usize, out: &mut [u8]) {
    let token_at = put_header(out, types::LP_PACKET, value_len(token, packet_len)) + 2;
    let fragment_at = token_at + token.len();
    [out[token_at - 2], out[token_at - 1]] = [PIT_TOKEN, token.len() as u8];
    match out[token_at..].first_chunk_mut() {
        // What is written too much is where the Fragment's TYPE and LENGTH come next.
        Some(place) if (LEAST_MOVED_WHOLE..=8).contains(&token.len()) => *place = token.first_bytes::<8>(),
        _ => out[token_at..fragment_at].copy_from_slice(token.as_slice()),
    }
    let header_len = fragment_at + put_header(&mut out[fragment_at..], types::LP_FRAGMENT, packet_len);
    assert_eq!(header_len, out.len(), "the header fills its place");
}

/// LENGTH of the LpPacket.
#[inline(always)]
fn value_len(token: &PitToken, packet_len: usize) -> usize {
    2 + token.len() + element_len(types::LP_FRAGMENT, packet_len)
}
