//! Decoding of packets, before any forwarding decision.
//!
//! Decoding is a separate stage, so that a caller with several engines can read the names of a burst and pass each
//! packet to its owner.

use namehop_packet::Incoming;
use namehop_wire::lp::NackReason;
use namehop_wire::tlv::types;
use namehop_wire::{DataLayout, InterestLayout, NameRef};

/// Maximum number of packets that pass the stages without a gap: a worker's packets of one poll iteration, one burst of
/// its own and one from other workers. Further packets start the stages again, and no other packet hides their first
/// prefetches.
pub const MAX_BURST: usize = 128;
/// Packets with fewer bytes are not checked for a long name before they are decoded.
const LONG_NAME_BYTES: usize = 256;

/// The kind of a decoded packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ParsedKind {
    /// An Interest.
    Interest,
    /// Data.
    Data,
    /// A Nack. Its Interest is decoded when the Nack is handled, because Nacks are rare.
    Nack(NackReason),
    /// An Interest that will probably be refused for the length of its name, and was not decoded.
    Unread,
    /// A packet that cannot be forwarded.
    #[default]
    Malformed,
}

/// A decoded packet: where its parts are. The packet itself stays in its buffer.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    pub(crate) kind: ParsedKind,
    /// Valid only for an Interest.
    pub(crate) interest: InterestLayout,
    /// Valid only for Data.
    pub(crate) data: DataLayout,
}

impl Parsed {
    /// Decodes a packet. An Interest that is large enough for a long name is decoded only if `may_read` returns `true`.
    #[inline(always)]
    pub(crate) fn parse(&mut self, packet: &Incoming, may_read: impl FnOnce() -> bool) {
        let bytes = packet.buffer.bytes();
        // Both packet types are single bytes on the wire (NDN packet format, "Interest" and "Data").
        self.kind = match (bytes.first().copied().map(u32::from), packet.fields.nack) {
            (Some(types::INTEREST), None) if bytes.len() >= LONG_NAME_BYTES && !may_read() => ParsedKind::Unread,
            (Some(types::INTEREST), None) if self.interest.fill(bytes).is_ok() => ParsedKind::Interest,
            (Some(types::INTEREST), Some(reason)) => ParsedKind::Nack(reason),
            (Some(types::DATA), None) if self.data.fill(bytes).is_ok() => ParsedKind::Data,
            _ => ParsedKind::Malformed,
        };
    }

    /// Returns the name of `packet`, an Interest or Data.
    #[inline]
    pub(crate) fn name<'a>(&self, packet: &'a Incoming) -> NameRef<'a> {
        let layout = if self.kind == ParsedKind::Interest { &self.interest.name } else { &self.data.name };
        layout.of_packet(packet.buffer.bytes())
    }
}
