//! Cutting a byte stream into packets: on Unix and TCP sockets packets follow each other without separators.
//!
//! A web page can have a browser connect to a TCP port and send a text of the page's choice there, for example an HTTP
//! request with a body of any bytes. Nearly every text can be cut into TLV elements, so without care the Interests in such
//! a body would count as commands of a local application. Two rules prevent that:
//!
//! * Every element on a stream is an Interest, a Data or an LpPacket. At the first one that is none of these the stream
//!   ends, and nothing behind it is handed over. That ends HTTP methods (`GET` begins with type 71, `POST` with 80, `OPTIONS`
//!   with 79), the preface of HTTP/2 (`PRI`), TLS handshakes (22) and the greetings of FTP and SMTP clients.
//! * An LpPacket (type 100, an ASCII `d`) could begin a text: a page may choose a method such as `dAV`. Browsers ask the server
//!   first (`OPTIONS`) whether a page of another origin may do that, but not when the page's host name has come to mean
//!   this computer. So the [`Opening`] of a stream must decode: up to the first Interest or Data, bare or in an LpPacket, every
//!   LpPacket must be valid and carry nothing else. No text is: the fields that a printable character begins are PitToken
//!   (`b`), the Fragment (`P`) and the fields of fragments (`Q`, `R`, `S`, with lengths that are control characters), and a Fragment
//!   begins with type 5 or 6. Neither the method nor the target of a request, nor a header, can hold these two bytes.
//!
//! Whoever can choose the first bytes of a connection can run programs here and needs no such trick.

use namehop_wire::DecodeError;
use namehop_wire::lp::LpPacket;
use namehop_wire::tlv::{frame_length, types};

use crate::counters::LinkDrop;

/// First bytes of what may be exchanged: each type takes one byte.
const INTEREST: u8 = types::INTEREST as u8;
const DATA: u8 = types::DATA as u8;
const LP_PACKET: u8 = types::LP_PACKET as u8;

/// Why cutting stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The rest is not a whole packet yet.
    Incomplete,
    /// The receiver of the packets takes no more for now.
    Refused,
    /// The bytes are no packet, and there is no way to find the next one.
    Bad(DecodeError),
    /// The peer does not speak NDN.
    NotNdn,
}

/// What is known of the peer of a stream from what it has sent so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Opening {
    /// No Interest or Data has come yet: packets are looked at more closely.
    #[default]
    Unproven,
    /// It has sent an Interest or Data.
    Proven,
}

/// Hands every whole packet at the front of `bytes` to `accept`, until it answers `false`.
///
/// Returns how many bytes were handed over and why it stopped.
pub(super) fn cut(bytes: &[u8], opening: &mut Opening, mut accept: impl FnMut(&[u8]) -> bool) -> (usize, Stop) {
    let mut position = 0;
    loop {
        let rest = &bytes[position..];
        if !begins_packet(rest) {
            return (position, Stop::NotNdn);
        }
        let length = match frame_length(rest) {
            Ok(Some(length)) if length <= rest.len() => length,
            Ok(_) => return (position, Stop::Incomplete),
            Err(error) => return (position, Stop::Bad(error)),
        };
        let packet = &rest[..length];
        let mut next = *opening;
        if next == Opening::Unproven {
            match first_of_peer(packet) {
                Some(opening) => next = opening,
                None => return (position, Stop::NotNdn),
            }
        }
        if !accept(packet) {
            return (position, Stop::Refused);
        }
        *opening = next;
        position += length;
    }
}

/// Where the whole packets end that `bytes` begin with.
pub(super) fn packet_ends(bytes: &[u8]) -> impl Iterator<Item = usize> + '_ {
    let mut position = 0;
    std::iter::from_fn(move || {
        let rest = &bytes[position..];
        let length = frame_length(rest).ok().flatten().filter(|&length| length <= rest.len())?;
        position += length;
        Some(position)
    })
}

/// Whether bytes, of which there may be none yet, begin like an Interest, Data or LpPacket.
fn begins_packet(bytes: &[u8]) -> bool {
    matches!(bytes, [] | [INTEREST | DATA | LP_PACKET, ..])
}

/// Judges a whole packet, of one of the three types, from a peer of whom nothing is known yet; `None` when a peer that speaks
/// NDN would not send it.
#[cold]
fn first_of_peer(packet: &[u8]) -> Option<Opening> {
    let packet = LpPacket::decode(packet).ok()?;
    match packet.fragment {
        Some([INTEREST | DATA, ..]) => Some(Opening::Proven),
        // Nothing but header fields, as some peers send to show that they are there.
        None => Some(Opening::Unproven),
        // A later fragment, on links that have fragments: the first one may have been lost.
        Some(_) if packet.frag_index.is_some_and(|index| index > 0) => Some(Opening::Unproven),
        Some(_) => None,
    }
}

/// Whether a datagram or a frame from an address that nothing has come from yet is worth a face.
pub(crate) fn is_worth_a_face(datagram: &[u8]) -> bool {
    first_of_peer(datagram).is_some()
}

/// Checks that `message`, a datagram or WebSocket message, is exactly one Interest, Data or LpPacket by its outermost type
/// and length.
///
/// # Errors
/// Why it is to be dropped.
pub(super) fn check_message(message: &[u8]) -> Result<(), LinkDrop> {
    if message.is_empty() || !begins_packet(message) {
        return Err(LinkDrop::NotNdnFrame);
    }
    match frame_length(message) {
        Ok(Some(length)) if length == message.len() => Ok(()),
        Ok(_) => Err(LinkDrop::MalformedFrame),
        Err(error) => Err(drop_reason(error)),
    }
}

/// The name for a packet that cannot be framed.
pub(super) fn drop_reason(error: DecodeError) -> LinkDrop {
    match error {
        DecodeError::TooLong => LinkDrop::FrameTooLong,
        _ => LinkDrop::MalformedFrame,
    }
}

#[cfg(test)]
mod tests;
