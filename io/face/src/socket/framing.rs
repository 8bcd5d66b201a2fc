//! Cuts a byte stream into packets: on Unix and TCP sockets packets follow each other without separators.
//!
//! A web page can make a browser connect to a TCP port and send a chosen text, for example an HTTP request with an
//! arbitrary body. Nearly every text can be cut into TLV elements, so the Interests in such a body would be accepted as
//! commands of a local application. Two rules prevent this:
//!
//! * The first element on a stream must be an Interest, a Data or an LpPacket. Any other element ends the stream, and
//!   nothing after it is handed over. This rejects HTTP methods (`GET` begins with type 71, `POST` with 80, `OPTIONS`
//!   with 79) and the preface of HTTP/2 (`PRI`). It also rejects TLS handshakes (22) and the greetings of FTP and SMTP
//!   clients.
//! * An LpPacket (type 100, an ASCII `d`) could begin a text: a page may choose a method such as `dAV`. Browsers first
//!   ask the server (`OPTIONS`) whether a page of another origin may use such a method. But they do not ask if the
//!   page's host name now resolves to this host. So a first LpPacket must be valid, and carry an Interest, a Data or
//!   nothing. No text fulfils this. The fields with a printable character as type are PitToken (`b`), Fragment (`P`)
//!   and the fields of fragments (`Q`, `R`, `S`). The latter have lengths that are control characters, and a Fragment
//!   begins with type 5 or 6. Neither the method nor the target of a request, nor a header, can contain the bytes 5 or
//!   6. An LpPacket with only a PitToken begins with `d"`, and a method cannot contain a quotation mark.
//!
//! A program that controls the first bytes of a connection already runs on this host and needs no such trick. So a
//! stream stays open after a valid first element: elements of other types are dropped and counted, because a future
//! version of the protocol may define some. Unix sockets, which browsers cannot reach, are trusted from the start. Such
//! elements may be longer than packets: their bytes are skipped as they arrive and never kept.

use namehop_wire::DecodeError;
use namehop_wire::lp::LpPacket;
use namehop_wire::tlv::{frame_header, frame_length, types};

use crate::counters::LinkDrop;

/// First byte of each accepted element; each type takes one byte.
const INTEREST: u8 = types::INTEREST as u8;
const DATA: u8 = types::DATA as u8;
const LP_PACKET: u8 = types::LP_PACKET as u8;

/// Why cutting stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The remaining bytes are an incomplete packet.
    Incomplete,
    /// `accept` has refused a packet.
    Refused,
    /// The bytes are not a TLV element, so the start of the next packet is unknown.
    Bad(DecodeError),
    /// The first element is not one that an NDN peer sends.
    NotNdn,
}

/// What is known of a stream between two calls of [`cut`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Framing {
    /// The peer has shown that it speaks NDN. If not, the first element must be valid.
    is_proven: bool,
    /// Number of bytes to skip: the rest of an element of another type, which has not arrived yet.
    skip_bytes: u64,
}

impl Framing {
    /// Returns the state of a stream with a peer that is trusted from the start.
    pub(super) fn of_trusted() -> Self {
        Framing { is_proven: true, skip_bytes: 0 }
    }

    /// Skips the next bytes of an element of another type; returns their number.
    fn skip(&mut self, bytes: &[u8]) -> usize {
        let count = usize::try_from(self.skip_bytes).unwrap_or(usize::MAX).min(bytes.len());
        self.skip_bytes -= count as u64;
        count
    }
}

/// Calls `accept` for each whole packet at the front of `bytes`, until it returns `false`. If the peer speaks NDN,
/// calls `skip` for each element of another type that begins.
///
/// Returns how many bytes were accepted or skipped, and why it stopped.
pub(super) fn cut(
    bytes: &[u8],
    framing: &mut Framing,
    mut accept: impl FnMut(&[u8]) -> bool,
    mut skip: impl FnMut(),
) -> (usize, Stop) {
    let mut position = framing.skip(bytes);
    loop {
        let rest = &bytes[position..];
        if !begins_packet(rest) {
            if !framing.is_proven {
                return (position, Stop::NotNdn);
            }
            let (header_bytes, value_bytes) = match frame_header(rest) {
                Ok(Some(header)) => header,
                Ok(None) => return (position, Stop::Incomplete),
                Err(error) => return (position, Stop::Bad(error)),
            };
            skip();
            framing.skip_bytes = value_bytes;
            position += header_bytes + framing.skip(&rest[header_bytes..]);
            continue;
        }
        let length = match frame_length(rest) {
            Ok(Some(length)) if length <= rest.len() => length,
            Ok(_) => return (position, Stop::Incomplete),
            Err(error) => return (position, Stop::Bad(error)),
        };
        let packet = &rest[..length];
        if !framing.is_proven && !is_first_of_peer(packet) {
            return (position, Stop::NotNdn);
        }
        if !accept(packet) {
            return (position, Stop::Refused);
        }
        framing.is_proven = true;
        position += length;
    }
}

/// Returns the end offset of each whole packet at the front of `bytes`.
pub(super) fn packet_ends(bytes: &[u8]) -> impl Iterator<Item = usize> + '_ {
    let mut position = 0;
    std::iter::from_fn(move || {
        let rest = &bytes[position..];
        let length = frame_length(rest).ok().flatten().filter(|&length| length <= rest.len())?;
        position += length;
        Some(position)
    })
}

/// Whether `bytes` is empty or begins like an Interest, Data or LpPacket.
fn begins_packet(bytes: &[u8]) -> bool {
    matches!(bytes, [] | [INTEREST | DATA | LP_PACKET, ..])
}

/// Whether a whole packet, of one of the three types, is one that an NDN peer sends first.
#[cold]
fn is_first_of_peer(packet: &[u8]) -> bool {
    let Ok(packet) = LpPacket::decode(packet) else { return false };
    match packet.fragment {
        Some([INTEREST | DATA, ..]) => true,
        // Only header fields: some peers send such packets as keep-alives.
        None => true,
        // A later fragment, on links with fragmentation: the first one may have been lost.
        Some(_) => packet.frag_index.is_some_and(|index| index > 0),
    }
}

/// Whether a datagram or frame from an unknown address justifies a new face.
pub fn is_worth_a_face(datagram: &[u8]) -> bool {
    is_first_of_peer(datagram)
}

/// Checks that `message`, a datagram or WebSocket message, is exactly one Interest, Data or LpPacket by its outermost
/// type and length.
///
/// # Errors
/// The drop reason.
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

/// Returns the drop reason for a packet that cannot be framed.
pub(super) fn drop_reason(error: DecodeError) -> LinkDrop {
    match error {
        DecodeError::TooLong => LinkDrop::FrameTooLong,
        _ => LinkDrop::MalformedFrame,
    }
}

#[cfg(test)]
mod tests;
