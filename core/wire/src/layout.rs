//! Layouts of Interests and Data, which a forwarder keeps beside the packet: decoded numbers, and positions of longer
//! parts.
//!
//! A layout is a few bytes without a reference to the packet, so a forwarder can decode a packet once, store the
//! layout and use it later. Packets of the usual shape (one-byte types and lengths, no elements that a router
//! ignores) are decoded in one short pass; all others by [`Interest::decode`] and [`DataHeader::decode`], with the
//! same result.

#[cfg(test)]
mod tests;

use crate::interest::{ForwardingHint, Interest, Span, rank};
use crate::tlv::{decode_nni, types, value_that_fills};
use crate::{DataHeader, DecodeError, MAX_PACKET_SIZE, NameRef};

/// A Name in a decoded packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NameLayout {
    /// Position of its VALUE.
    value: Span,
    /// Number of components.
    components: u16,
}

impl NameLayout {
    /// Makes the layout of a name that is part of `packet`.
    pub fn of_part(name: NameRef<'_>, packet: &[u8]) -> Self {
        NameLayout { value: span_of(name.value(), packet), components: name.len() as u16 }
    }

    /// Returns the name. `packet` must be the decoded packet. The name is not checked again; in another packet the
    /// result may be meaningless.
    #[inline]
    pub fn of_packet<'a>(&self, packet: &'a [u8]) -> NameRef<'a> {
        NameRef::from_parts(packet.get(self.value.range()).unwrap_or_default(), self.components.into())
    }
}

/// Returns the position of a part of `packet`, which is at most [`MAX_PACKET_SIZE`] bytes long.
fn span_of(part: &[u8], packet: &[u8]) -> Span {
    let start = part.as_ptr().addr() - packet.as_ptr().addr();
    Span { start: start as u16, end: (start + part.len()) as u16 }
}

/// A valid Interest; see the module's description.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InterestLayout {
    /// The Name.
    pub name: NameLayout,
    /// VALUE of the ForwardingHint; empty when there is none.
    hint: Span,
    /// Offset of the VALUE of the Nonce; 0 when there is none.
    pub nonce_at: u16,
    /// Offset of the VALUE of HopLimit; 0 when there is none.
    pub hop_limit_at: u16,
    /// Nonce; meaningless when `nonce_at` is 0.
    nonce: u32,
    /// HopLimit; meaningless when `hop_limit_at` is 0.
    hop_limit: u8,
    /// True if CanBePrefix is present.
    pub can_be_prefix: bool,
    /// True if MustBeFresh is present.
    pub must_be_fresh: bool,
    /// True if ApplicationParameters are present.
    pub has_parameters: bool,
    /// InterestLifetime in milliseconds.
    pub lifetime_ms: Option<u64>,
}

/// A valid Data, as far as a forwarder needs it; see the module's description.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DataLayout {
    /// The Name.
    pub name: NameLayout,
    /// FreshnessPeriod in milliseconds; 0 when there is none.
    pub freshness_ms: u64,
}

impl InterestLayout {
    /// Decodes an Interest that fills `packet`.
    ///
    /// # Errors
    /// As for [`Interest::decode`].
    pub fn decode(packet: &[u8]) -> Result<Self, DecodeError> {
        let mut layout = InterestLayout::default();
        layout.fill(packet)?;
        Ok(layout)
    }

    /// Decodes an Interest that fills `packet` into this layout and overwrites its contents. After an error the
    /// layout is meaningless.
    ///
    /// # Errors
    /// As for [`Interest::decode`].
    // Inlined and filled in place, to avoid a copy of a value that is still in the store buffer.
    #[inline(always)]
    pub fn fill(&mut self, packet: &[u8]) -> Result<(), DecodeError> {
        if self.fill_usual(packet).is_none() {
            *self = Self::decode_unusual(packet)?;
        }
        Ok(())
    }

    /// Decodes an Interest of known elements in order, with one-byte types and lengths; returns `None` for any other.
    #[inline(always)]
    fn fill_usual(&mut self, packet: &[u8]) -> Option<()> {
        let (name, mut at) = usual_name(packet, outer_value_at(packet, types::INTEREST)?)?;
        *self = InterestLayout { name, ..InterestLayout::default() };
        let mut last = rank(types::NAME);
        while at < packet.len() {
            let (typ, end) = short_element(packet, at, packet.len())?;
            let value = &packet[at + 2..end];
            let value_at = (at + 2) as u16;
            match u32::from(typ) {
                types::CAN_BE_PREFIX if value.is_empty() => self.can_be_prefix = true,
                types::MUST_BE_FRESH if value.is_empty() => self.must_be_fresh = true,
                types::NONCE => {
                    self.nonce = u32::from_be_bytes(value.try_into().ok()?);
                    self.nonce_at = value_at;
                }
                types::INTEREST_LIFETIME => self.lifetime_ms = Some(decode_nni(value).ok()?),
                types::HOP_LIMIT => {
                    let &[hop_limit] = value else { return None };
                    self.hop_limit = hop_limit;
                    self.hop_limit_at = value_at;
                }
                _ => return None,
            }
            let position = rank(typ.into());
            if position <= last {
                return None;
            }
            (last, at) = (position, end);
        }
        Some(())
    }

    #[cold]
    #[inline(never)]
    fn decode_unusual(packet: &[u8]) -> Result<Self, DecodeError> {
        let interest = Interest::decode(packet)?;
        Ok(InterestLayout {
            name: NameLayout::of_part(interest.name, packet),
            hint: interest.forwarding_hint.map_or(Span::default(), |hint| span_of(hint.value(), packet)),
            nonce_at: interest.offsets.nonce.unwrap_or(0),
            hop_limit_at: interest.offsets.hop_limit.unwrap_or(0),
            nonce: interest.nonce.unwrap_or(0),
            hop_limit: interest.hop_limit.unwrap_or(0),
            can_be_prefix: interest.can_be_prefix,
            must_be_fresh: interest.must_be_fresh,
            has_parameters: interest.application_parameters.is_some(),
            lifetime_ms: interest.lifetime_ms,
        })
    }

    /// The Nonce.
    #[inline]
    pub fn nonce(&self) -> Option<u32> {
        (self.nonce_at != 0).then_some(self.nonce)
    }

    /// The HopLimit.
    #[inline]
    pub fn hop_limit(&self) -> Option<u8> {
        (self.hop_limit_at != 0).then_some(self.hop_limit)
    }

    /// Returns true if there is a forwarding hint.
    #[inline]
    pub fn has_forwarding_hint(&self) -> bool {
        self.hint != Span::default()
    }

    /// Returns the forwarding hint; `packet` must be the decoded packet.
    pub fn forwarding_hint<'a>(&self, packet: &'a [u8]) -> Option<ForwardingHint<'a>> {
        if !self.has_forwarding_hint() {
            return None;
        }
        ForwardingHint::decode(packet.get(self.hint.range())?).ok().flatten()
    }
}

impl DataLayout {
    /// Decodes Name and MetaInfo of a Data that fills `packet` into this layout and overwrites its contents; the rest
    /// of the packet is not examined. After an error the layout is meaningless.
    ///
    /// # Errors
    /// As for [`DataHeader::decode`].
    #[inline(always)]
    pub fn fill(&mut self, packet: &[u8]) -> Result<(), DecodeError> {
        if self.fill_usual(packet).is_none() {
            *self = Self::decode_unusual(packet)?;
        }
        Ok(())
    }

    /// Decodes a Data with nothing but a FreshnessPeriod in its MetaInfo; returns `None` for any other.
    #[inline(always)]
    fn fill_usual(&mut self, packet: &[u8]) -> Option<()> {
        let (name, meta_info_at) = usual_name(packet, outer_value_at(packet, types::DATA)?)?;
        let (typ, end) = short_element(packet, meta_info_at, packet.len())?;
        let (inner_typ, inner_end) = short_element(packet, meta_info_at + 2, end)?;
        if u32::from(typ) != types::META_INFO || u32::from(inner_typ) != types::FRESHNESS_PERIOD || inner_end != end {
            return None;
        }
        *self = DataLayout { name, freshness_ms: decode_nni(&packet[meta_info_at + 4..end]).ok()? };
        Some(())
    }

    #[cold]
    #[inline(never)]
    fn decode_unusual(packet: &[u8]) -> Result<Self, DecodeError> {
        let header = DataHeader::decode(packet)?;
        Ok(DataLayout {
            name: NameLayout::of_part(header.name, packet),
            freshness_ms: header.freshness_ms.unwrap_or(0),
        })
    }
}

/// Returns the length of the VALUE of a packet's Name if it does not fit in a one-byte LENGTH, without examining the
/// rest. Returns `None` for shorter names and unusual encodings.
#[inline]
pub fn long_name_bytes(packet: &[u8]) -> Option<usize> {
    const NAME: u8 = types::NAME as u8;
    match value_that_fills(packet)? {
        [NAME, LONG_NUMBER, high, low, ..] => Some(usize::from(u16::from_be_bytes([*high, *low]))),
        _ => None,
    }
}

/// First TYPE or LENGTH that takes more than one byte.
const LONG_NUMBER: u8 = 253;

/// Returns the TYPE of the element at `at` and the end of its VALUE, if TYPE and LENGTH take one byte each and the
/// VALUE ends by `end`.
#[inline(always)]
fn short_element(packet: &[u8], at: usize, end: usize) -> Option<(u8, usize)> {
    let &[typ, length] = packet.get(at..)?.first_chunk()?;
    let value_end = at + 2 + usize::from(length);
    (typ < LONG_NUMBER && length < LONG_NUMBER && value_end <= end).then_some((typ, value_end))
}

/// Returns the offset of the outer element's VALUE, if the element fills the packet and its TYPE is `typ`.
#[inline(always)]
fn outer_value_at(packet: &[u8], typ: u32) -> Option<usize> {
    let value = value_that_fills(packet)?;
    (u32::from(packet[0]) == typ && packet.len() <= MAX_PACKET_SIZE).then_some(packet.len() - value.len())
}

/// Returns the Name at `at` and its end, if it is not empty, and all its components have one-byte types and lengths
/// and are no digests.
#[inline(always)]
fn usual_name(packet: &[u8], at: usize) -> Option<(NameLayout, usize)> {
    const FIRST_USUAL: u8 = types::PARAMETERS_SHA256_DIGEST_COMPONENT as u8 + 1;
    let (typ, end) = short_element(packet, at, packet.len())?;
    let start = at + 2;
    let (mut next, mut components) = (start, 0);
    while next < end {
        // The length is read first: one bounds check is enough for both.
        let length = *packet.get(next + 1)?;
        if !(FIRST_USUAL..LONG_NUMBER).contains(&packet[next]) || length >= LONG_NUMBER {
            return None;
        }
        next += 2 + usize::from(length);
        components += 1;
    }
    let value = Span { start: start as u16, end: end as u16 };
    let is_usual = u32::from(typ) == types::NAME && next == end && start < end;
    is_usual.then_some((NameLayout { value, components }, end))
}
