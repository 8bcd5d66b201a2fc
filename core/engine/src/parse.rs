//! Decoding of packets, before anything is decided about them.
//!
//! This is a stage of its own: whoever has several engines looks at the names in between, and gives each packet to the engine
//! it belongs to.

use namehop_packet::Incoming;
use namehop_wire::lp::NackReason;
use namehop_wire::tlv::types;
use namehop_wire::{DataLayout, InterestLayout, NameRef};

/// Packets with fewer bytes have no name that is worth asking about.
const LONG_NAME_BYTES: usize = 256;

/// What a packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Kind {
    /// An Interest; its layout is there.
    Interest,
    /// Data; its layout is there.
    Data,
    /// A Nack, whose Interest is decoded when it has its turn: Nacks are rare.
    Nack(NackReason),
    /// An Interest that will probably be refused for the length of its name, and was not looked at further.
    Unread,
    /// Nothing that can be forwarded.
    #[default]
    Malformed,
}

/// A decoded packet: where its parts are. The packet itself stays in its buffer.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    pub(crate) kind: Kind,
    /// Only of an Interest.
    pub(crate) interest: InterestLayout,
    /// Only of Data.
    pub(crate) data: DataLayout,
}

impl Parsed {
    /// Decodes a packet; an Interest that is large enough for a long name only if `may_read` holds for its bytes.
    #[inline(always)]
    pub(crate) fn parse(&mut self, packet: &Incoming, may_read: impl FnOnce(&[u8]) -> bool) {
        let bytes = packet.buffer.bytes();
        // Both packet types are single bytes on the wire (NDN packet format, "Interest" and "Data").
        self.kind = match (bytes.first().copied().map(u32::from), packet.fields.nack) {
            (Some(types::INTEREST), None) if bytes.len() >= LONG_NAME_BYTES && !may_read(bytes) => Kind::Unread,
            (Some(types::INTEREST), None) if self.interest.fill(bytes).is_ok() => Kind::Interest,
            (Some(types::INTEREST), Some(reason)) => Kind::Nack(reason),
            (Some(types::DATA), None) if self.data.fill(bytes).is_ok() => Kind::Data,
            _ => Kind::Malformed,
        };
    }

    /// The name of an Interest or Data, `packet`.
    #[inline]
    pub(crate) fn name<'a>(&self, packet: &'a Incoming) -> NameRef<'a> {
        let layout = if self.kind == Kind::Interest { &self.interest.name } else { &self.data.name };
        layout.of_packet(packet.buffer.bytes())
    }
}
