//! Interest packets (NDN packet specification, interest.rst): a checked view.

mod forwarding_hint;

#[cfg(test)]
mod tests;

use std::ops::Range;

pub use forwarding_hint::{ForwardingHint, ForwardingHintNames};
use ring::digest;

use crate::data::Data;
use crate::name::{NameRef, NameScan};
use crate::signature::SignatureInfo;
use crate::tlv::{self, OrderedReader, decode_nni, types};
use crate::{DecodeError, MAX_PACKET_SIZE};

/// Default of InterestLifetime, in milliseconds.
pub const DEFAULT_INTEREST_LIFETIME_MS: u64 = 4000;

/// Position of each element in an Interest.
#[inline]
pub(crate) const fn rank(typ: u32) -> u8 {
    match typ {
        types::NAME => 1,
        types::CAN_BE_PREFIX => 2,
        types::MUST_BE_FRESH => 3,
        types::FORWARDING_HINT => 4,
        types::NONCE => 5,
        types::INTEREST_LIFETIME => 6,
        types::HOP_LIMIT => 7,
        types::APPLICATION_PARAMETERS => 8,
        types::INTEREST_SIGNATURE_INFO => 9,
        types::INTEREST_SIGNATURE_VALUE => 10,
        _ => 0,
    }
}

/// A range of bytes in a packet of at most [`MAX_PACKET_SIZE`] bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u16,
    /// Offset after the last byte.
    pub end: u16,
}

impl Span {
    /// Returns the span as an index range.
    #[inline]
    pub const fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// Positions in the packet of elements that a forwarder may have to change. Offsets count from the start of the
/// packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InterestOffsets {
    /// The complete Name element.
    pub name: Span,
    /// The complete ForwardingHint element.
    pub forwarding_hint: Option<Span>,
    /// The 4 bytes of the Nonce VALUE.
    pub nonce: Option<u16>,
    /// The byte of the HopLimit VALUE.
    pub hop_limit: Option<u16>,
    /// Start of the ApplicationParameters element.
    pub application_parameters: Option<u16>,
    /// End of the VALUE of InterestSignatureInfo.
    pub signature_info_end: Option<u16>,
}

/// A valid Interest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interest<'a> {
    /// Name: at least one component.
    pub name: NameRef<'a>,
    /// CanBePrefix: the name may be a prefix of the Data name.
    pub can_be_prefix: bool,
    /// MustBeFresh: caches may satisfy the Interest only with fresh Data.
    pub must_be_fresh: bool,
    /// Names that lead to the producer; `None` also when the list is empty.
    pub forwarding_hint: Option<ForwardingHint<'a>>,
    /// Nonce, required on links between forwarders.
    pub nonce: Option<u32>,
    /// InterestLifetime in milliseconds.
    pub lifetime_ms: Option<u64>,
    /// HopLimit.
    pub hop_limit: Option<u8>,
    /// ApplicationParameters: opaque, may be empty.
    pub application_parameters: Option<&'a [u8]>,
    /// InterestSignatureInfo.
    pub signature_info: Option<SignatureInfo<'a>>,
    /// InterestSignatureValue.
    pub signature_value: Option<&'a [u8]>,
    /// Positions of elements in the packet.
    pub offsets: InterestOffsets,
    wire: &'a [u8],
}

impl<'a> Interest<'a> {
    /// Decodes an Interest that fills `packet`. The parameters digest is not computed; see
    /// [`check_parameters_digest`](Self::check_parameters_digest).
    ///
    /// # Errors
    /// When the packet breaks a rule of interest.rst or of TLV.
    pub fn decode(packet: &'a [u8]) -> Result<Self, DecodeError> {
        if packet.len() > MAX_PACKET_SIZE {
            return Err(DecodeError::TooLong);
        }
        let outer = tlv::read_single_element(packet)?;
        if outer.typ != types::INTEREST {
            return Err(DecodeError::UnexpectedType);
        }
        let header_len = packet.len() - outer.value.len();
        let mut elements = OrderedReader::new(outer.value, rank);
        let scan = match elements.next_element()? {
            // No element may precede the Name, not even one that could be ignored.
            Some(first) if first.typ == types::NAME && elements.position() == first.wire.len() => {
                NameScan::new(first.value)?
            }
            _ => return Err(DecodeError::MissingName),
        };
        if scan.name.is_empty() {
            return Err(DecodeError::EmptyName);
        }
        let mut interest = Interest {
            name: scan.name,
            can_be_prefix: false,
            must_be_fresh: false,
            forwarding_hint: None,
            nonce: None,
            lifetime_ms: None,
            hop_limit: None,
            application_parameters: None,
            signature_info: None,
            signature_value: None,
            offsets: InterestOffsets::default(),
            wire: packet,
        };
        interest.offsets.name = Span { start: header_len as u16, end: (header_len + elements.position()) as u16 };
        while let Some(element) = elements.next_element()? {
            let end = header_len + elements.position();
            // Offsets fit in 16 bits: the packet is not larger than MAX_PACKET_SIZE.
            let start_of_element = (end - element.wire.len()) as u16;
            let start_of_value = (end - element.value.len()) as u16;
            match element.typ {
                types::CAN_BE_PREFIX | types::MUST_BE_FRESH if !element.value.is_empty() => {
                    return Err(DecodeError::BadLength);
                }
                types::CAN_BE_PREFIX => interest.can_be_prefix = true,
                types::MUST_BE_FRESH => interest.must_be_fresh = true,
                types::FORWARDING_HINT => {
                    interest.forwarding_hint = ForwardingHint::decode(element.value)?;
                    interest.offsets.forwarding_hint = Some(Span { start: start_of_element, end: end as u16 });
                }
                types::NONCE => {
                    let bytes = element.value.try_into().map_err(|_| DecodeError::BadLength)?;
                    interest.nonce = Some(u32::from_be_bytes(bytes));
                    interest.offsets.nonce = Some(start_of_value);
                }
                types::INTEREST_LIFETIME => interest.lifetime_ms = Some(decode_nni(element.value)?),
                types::HOP_LIMIT => {
                    let [hop_limit] = *element.value else { return Err(DecodeError::BadLength) };
                    interest.hop_limit = Some(hop_limit);
                    interest.offsets.hop_limit = Some(start_of_value);
                }
                types::APPLICATION_PARAMETERS => {
                    interest.application_parameters = Some(element.value);
                    interest.offsets.application_parameters = Some(start_of_element);
                }
                // A signature requires parameters: without them it is out of order, and neither element is critical.
                types::INTEREST_SIGNATURE_INFO if interest.application_parameters.is_some() => {
                    interest.signature_info = Some(SignatureInfo::decode(element.value)?);
                    interest.offsets.signature_info_end = Some(end as u16);
                }
                types::INTEREST_SIGNATURE_VALUE if interest.signature_info.is_some() => {
                    interest.signature_value = Some(element.value);
                }
                _ => {}
            }
        }
        if scan.parameters_digests != u32::from(interest.application_parameters.is_some()) {
            return Err(DecodeError::ParametersDigest);
        }
        Ok(interest)
    }

    /// The complete packet.
    #[inline]
    pub const fn wire(&self) -> &'a [u8] {
        self.wire
    }

    /// InterestLifetime in milliseconds, or the default when absent.
    #[inline]
    pub fn lifetime_or_default_ms(&self) -> u64 {
        self.lifetime_ms.unwrap_or(DEFAULT_INTEREST_LIFETIME_MS)
    }

    /// Returns true if the parameters digest in the name equals the digest of the parameters, or if there are no
    /// parameters. Forwarders need not check this.
    pub fn check_parameters_digest(&self) -> bool {
        let Some(start) = self.offsets.application_parameters else { return true };
        let computed = digest::digest(&digest::SHA256, &self.wire[usize::from(start)..]);
        let mut components = self.name.components();
        components.any(|component| component.is_parameters_digest() && component.value == computed.as_ref())
    }

    /// Returns the signed bytes of a signed Interest, in order: name components before and after the parameters
    /// digest, then ApplicationParameters to the end of InterestSignatureInfo (signed-interest.rst).
    pub fn signed_portions(&self) -> Option<[&'a [u8]; 3]> {
        let start = usize::from(self.offsets.application_parameters?);
        let end = usize::from(self.offsets.signature_info_end?);
        let digest_index = self.name.components().position(|component| component.is_parameters_digest())?;
        let before = self.name.prefix(digest_index).value();
        let behind = self.name.suffix(digest_index + 1).value();
        Some([before, behind, &self.wire[start..end]])
    }

    /// Returns true if this Data satisfies the Interest. MustBeFresh is ignored: it concerns caches only.
    pub fn matches_data(&self, data: &Data<'_>) -> bool {
        matches_name(self.name, self.can_be_prefix, data.name, || data.implicit_digest())
    }
}

/// Returns true if a Data with the name `data` satisfies an Interest with the name `interest`.
///
/// `implicit_digest` computes the SHA-256 of the complete Data element; it is called only if the result depends on
/// it.
pub fn matches_name(
    interest: NameRef<'_>,
    can_be_prefix: bool,
    data: NameRef<'_>,
    implicit_digest: impl FnOnce() -> [u8; 32],
) -> bool {
    if interest.len() == data.len() + 1 {
        // Longer by one: only the full name matches, with the digest as its last component.
        return data.is_prefix_of(interest)
            && interest.last().is_some_and(|last| last.is_implicit_digest() && last.value == implicit_digest());
    }
    if can_be_prefix { interest.is_prefix_of(data) } else { interest == data }
}
