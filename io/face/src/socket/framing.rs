//! Cutting a byte stream into packets: on Unix and TCP sockets packets follow each other without separators.
//!
//! A web page can have a browser connect to a TCP port and send a text of the page's choice there, for example an HTTP
//! request with a body of any bytes. Nearly every text can be cut into TLV elements, so without care the Interests in such
//! a body would count as commands of a local application. Two rules prevent that:
//!
//! * The first element on a stream is an Interest, a Data or an LpPacket. At any other the stream ends, and nothing behind it is
//!   handed over. That ends HTTP methods (`GET` begins with type 71, `POST` with 80, `OPTIONS` with 79), the preface of HTTP/2
//!   (`PRI`), TLS handshakes (22) and the greetings of FTP and SMTP clients.
//! * An LpPacket (type 100, an ASCII `d`) could begin a text: a page may choose a method such as `dAV`. Browsers ask the server
//!   first (`OPTIONS`) whether a page of another origin may do that, but not when the page's host name has come to mean
//!   this host. So an LpPacket that comes first must be valid, and carry an Interest, a Data or nothing. No text is: the fields that a
//!   printable character begins are PitToken (`b`), the Fragment (`P`) and the fields of fragments (`Q`, `R`, `S`, with lengths that are
//!   control characters), and a Fragment begins with type 5 or 6. Neither the method nor the target of a request, nor a header, can
//!   hold these two bytes. An LpPacket of a PitToken alone begins with `d"`, and a method has no quotation mark.
//!
//! Whoever can choose the first bytes of a connection can run programs here and needs no such trick. So a stream whose first element was
//! valid stays open: elements of other types are dropped and counted, as a future version of the protocol may have some. Unix sockets,
//! which browsers do not reach, are such streams from the start.

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
    /// The first element is none that a peer that speaks NDN sends.
    NotNdn,
}

/// What is known of the peer of a stream from what it has sent so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Opening {
    /// Its first element has not come yet, and must be valid.
    #[default]
    Unproven,
    /// It speaks NDN.
    Proven,
}

/// Hands every whole packet at the front of `bytes` to `accept`, until it answers `false`. Elements of other types from a peer that
/// speaks NDN are shown to `skip` instead.
///
/// Returns how many bytes were handed over or skipped and why it stopped.
pub(super) fn cut(
    bytes: &[u8],
    opening: &mut Opening,
    mut accept: impl FnMut(&[u8]) -> bool,
    mut skip: impl FnMut(&[u8]),
) -> (usize, Stop) {
    let mut position = 0;
    loop {
        let rest = &bytes[position..];
        let is_packet = begins_packet(rest);
        if !is_packet && *opening == Opening::Unproven {
            return (position, Stop::NotNdn);
        }
        let length = match frame_length(rest) {
            Ok(Some(length)) if length <= rest.len() => length,
            Ok(_) => return (position, Stop::Incomplete),
            Err(error) => return (position, Stop::Bad(error)),
        };
        let packet = &rest[..length];
        if !is_packet {
            skip(packet);
        } else {
            if *opening == Opening::Unproven && !is_first_of_peer(packet) {
                return (position, Stop::NotNdn);
            }
            if !accept(packet) {
                return (position, Stop::Refused);
            }
            *opening = Opening::Proven;
        }
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

/// Whether a whole packet, of one of the three types, is one that a peer that speaks NDN sends first.
#[cold]
fn is_first_of_peer(packet: &[u8]) -> bool {
    let Ok(packet) = LpPacket::decode(packet) else { return false };
    match packet.fragment {
        Some([INTEREST | DATA, ..]) => true,
        // Nothing but header fields, as some peers send to show that they are there.
        None => true,
        // A later fragment, on links that have fragments: the first one may have been lost.
        Some(_) => packet.frag_index.is_some_and(|index| index > 0),
    }
}

/// Whether a datagram or a frame from an address that nothing has come from yet is worth a face.
pub(crate) fn is_worth_a_face(datagram: &[u8]) -> bool {
    is_first_of_peer(datagram)
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
