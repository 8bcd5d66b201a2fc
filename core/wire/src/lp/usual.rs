//! Fast reading and writing of the usual frames: a bare packet, and a packet with a PIT token.
//!
//! Nearly all frames have these shapes, and each passes here once when received and once when sent. Reading assumes
//! nothing about the frame. The results equal the results of [`LpPacket`](super::LpPacket) and
//! [`LpHeader`](super::LpHeader), which handle all other frames.

use super::PitToken;
use crate::MAX_PACKET_SIZE;
use crate::tlv::{element_len, put_header, types, value_that_fills};

// The types of these shapes take one byte each.
const INTEREST: u8 = types::INTEREST as u8;
const DATA: u8 = types::DATA as u8;
const LP_PACKET: u8 = types::LP_PACKET as u8;
const FRAGMENT: u8 = types::LP_FRAGMENT as u8;
const PIT_TOKEN: u8 = types::LP_PIT_TOKEN as u8;

/// Minimum length of a token that is written with one 8-byte store. For a shorter token, the store would reach beyond
/// TYPE and LENGTH of the Fragment.
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
    /// Decodes a frame of a usual shape; returns `None` for any other, valid or not.
    #[inline(always)]
    pub fn decode(frame: &[u8]) -> Option<UsualFrame> {
        if frame.len() > MAX_PACKET_SIZE {
            return None;
        }
        let (mut packet, mut pit_token) = (frame, PitToken::empty());
        if let [LP_PACKET, ..] = frame {
            let mut fields = value_that_fills(frame)?;
            if let [PIT_TOKEN, token_len, rest @ ..] = fields {
                let token_len = usize::from(*token_len);
                fields = rest.get(token_len..)?;
                pit_token = match rest.first_chunk() {
                    Some(first) if (1..=8).contains(&token_len) => PitToken::short(*first, token_len)?,
                    _ => long_token(rest.get(..token_len)?)?,
                };
            }
            let [FRAGMENT, ..] = fields else { return None };
            packet = value_that_fills(fields)?;
        }
        value_that_fills(packet)?;
        let is_data = match packet {
            [INTEREST, ..] => false,
            [DATA, ..] => true,
            _ => return None,
        };
        Some(UsualFrame { pit_token, header_len: frame.len() - packet.len(), is_data })
    }
}

/// Reads a token of more than eight bytes, or one at the very end of a frame.
#[cold]
fn long_token(token: &[u8]) -> Option<PitToken> {
    PitToken::from_slice(token).filter(|token| !token.is_empty())
}

/// Length of the header in front of a packet of `packet_len` bytes with this token and no other header field; 0 when
/// the token is empty, because then the packet is sent bare.
#[inline]
pub fn token_header_len(token: &PitToken, packet_len: usize) -> usize {
    if token.is_empty() {
        return 0;
    }
    let value_len = 2 + token.len() + element_len(types::LP_FRAGMENT, packet_len);
    element_len(types::LP_PACKET, value_len) - packet_len
}

/// Writes that header to `out`, which has [`token_header_len`] bytes and is not empty.
///
/// # Panics
/// When `out` is too short for the token.
#[inline(always)]
pub fn encode_token_header(token: &PitToken, packet_len: usize, out: &mut [u8]) {
    let fragment_at = out.len() + packet_len - element_len(types::LP_FRAGMENT, packet_len);
    let token_at = fragment_at - token.len();
    match out[token_at..].first_chunk_mut() {
        // The Fragment's TYPE and LENGTH overwrite the surplus bytes next.
        Some(room) if (LEAST_MOVED_WHOLE..=8).contains(&token.len()) => *room = token.first_bytes::<8>(),
        _ => out[token_at..fragment_at].copy_from_slice(token.as_slice()),
    }
    let (front, fragment) = out.split_at_mut(fragment_at);
    put_header_that_fills(fragment, FRAGMENT, packet_len);
    let (outer, token_header) = front.split_at_mut(token_at - 2);
    token_header[..2].copy_from_slice(&[PIT_TOKEN, token.len() as u8]);
    put_header_that_fills(outer, LP_PACKET, token_header.len() + fragment.len() + packet_len);
}

/// Writes TYPE and LENGTH into `room`; its length determines the form of the LENGTH.
#[inline(always)]
fn put_header_that_fills(room: &mut [u8], typ: u8, length: usize) {
    match room {
        [first, second] => [*first, *second] = [typ, length as u8],
        [_, _, _, _] => room.copy_from_slice(&[typ, 253, (length >> 8) as u8, length as u8]),
        _ => assert_eq!(put_header(room, u32::from(typ), length), room.len(), "the header must fill its space"),
    }
}
