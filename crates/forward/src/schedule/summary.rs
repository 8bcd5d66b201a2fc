//! What is known of a packet ahead of its turn. The engine keeps one of these for each packet of a burst and uses it again.

use namehop_hash::{HashKey, PrefixHashes, hash_prefixes};
use namehop_wire::lp::NackReason;
use namehop_wire::tlv::types;
use namehop_wire::{DataLayout, InterestLayout, NameRef};

use super::MAX_BURST;
use crate::fib::FibGuess;
use namehop_packet::{DropReason, Incoming};

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

/// What is noted of one packet, beside the hashes of its name.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    pub(crate) kind: Kind,
    /// Are the hashes there?
    pub(super) is_hashed: bool,
    /// Entry of the PIT-CS composite table that the packet probably concerns.
    pub(super) entry: Option<u32>,
    /// What will probably be given up for the packet: cached Data for Data, an entry with a PIT slot for an Interest.
    pub(super) victim: Option<u32>,
    /// FIB entry of the name, as far as it was looked for.
    pub(crate) fib_guess: FibGuess,
    /// Only of an Interest.
    pub(crate) interest: InterestLayout,
    /// Only of Data.
    pub(crate) data: DataLayout,
}

impl Summary {
    /// Decodes a packet that nothing is known of yet; an Interest that is large enough for a long name only if `may_read` says
    /// so of its bytes.
    #[inline(always)]
    pub(crate) fn look_at(&mut self, packet: &Incoming, may_read: impl FnOnce(&[u8]) -> bool) {
        let bytes = packet.buffer.bytes();
        // Both packet types are single bytes on the wire.
        self.kind = match (bytes.first().copied().map(u32::from), packet.fields.nack) {
            (Some(types::INTEREST), None) if bytes.len() >= LONG_NAME_BYTES && !may_read(bytes) => Kind::Unread,
            (Some(types::INTEREST), None) if self.interest.fill(bytes).is_ok() => Kind::Interest,
            (Some(types::INTEREST), Some(reason)) => Kind::Nack(reason),
            (Some(types::DATA), None) if self.data.fill(bytes).is_ok() => Kind::Data,
            _ => Kind::Malformed,
        };
        self.is_hashed = false;
        self.entry = None;
        self.victim = None;
        self.fib_guess = FibGuess::default();
    }

    /// The name of an Interest or Data.
    #[inline]
    pub(super) fn name<'a>(&self, packet: &'a Incoming) -> NameRef<'a> {
        let layout = if self.kind == Kind::Interest { &self.interest.name } else { &self.data.name };
        layout.of_packet(packet.buffer.bytes())
    }
}

/// Summaries and hashes of a burst, by position. Hashes lie together because a group of names is hashed at once.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(super) summaries: Box<[Summary]>,
    pub(super) hashes: Box<[PrefixHashes]>,
}

impl Scratch {
    /// For bursts of up to [`MAX_BURST`] packets.
    pub(crate) fn new() -> Self {
        Scratch {
            summaries: (0..MAX_BURST).map(|_| Summary::default()).collect(),
            hashes: (0..MAX_BURST).map(|_| PrefixHashes::new()).collect(),
        }
    }

    /// What is known of the packet at this position.
    #[inline]
    pub(super) fn known(&mut self, position: usize) -> Known<'_> {
        Known { summary: &self.summaries[position], hashes: &mut self.hashes[position] }
    }

    /// The packet at this position and its hashes, if there are any that are of use.
    #[inline]
    pub(super) fn hints(&mut self, position: usize) -> (&mut Summary, Option<&PrefixHashes>) {
        let (summary, hashes) = (&mut self.summaries[position], &self.hashes[position]);
        let usable = summary.is_hashed && hashes.result().is_ok();
        (summary, usable.then_some(hashes))
    }
}

/// What is known of the packet that has its turn.
pub(crate) struct Known<'a> {
    pub(crate) summary: &'a Summary,
    hashes: &'a mut PrefixHashes,
}

impl<'a> Known<'a> {
    /// The same place with something else known of the packet, and its name not hashed.
    pub(crate) fn replaced(self, summary: &'a Summary) -> Self {
        Known { summary, ..self }
    }

    /// The hashes of the packet's name, computed unless they are there already.
    ///
    /// # Errors
    /// When the name has too many components.
    #[inline]
    pub(crate) fn into_hashes(self, key: &HashKey, name: NameRef<'_>) -> Result<&'a PrefixHashes, DropReason> {
        if !self.summary.is_hashed {
            // The result is kept with the hashes.
            let _ = hash_prefixes(key, name.value(), self.hashes);
        }
        self.hashes.result().map_err(|_| DropReason::NameTooDeep)?;
        debug_assert_eq!(self.hashes.full(), namehop_hash::hash_name(key, name.value()));
        Ok(self.hashes)
    }
}
