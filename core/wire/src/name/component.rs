//! One name component, borrowed from a name.

use std::cmp::Ordering;

use crate::DecodeError;
use crate::tlv::{self, types};

/// A name component: TYPE 1..=65535 and any bytes; digest components have 32 bytes.
///
/// Made by decoding or by the constructors, which check this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ComponentRef<'a> {
    /// TYPE.
    pub typ: u32,
    /// VALUE.
    pub value: &'a [u8],
}

impl<'a> ComponentRef<'a> {
    /// A component of any type.
    ///
    /// # Errors
    /// `BadComponent` when `typ` is not in 1..=65535 or a digest is not 32 bytes long.
    #[inline]
    pub const fn new(typ: u32, value: &'a [u8]) -> Result<Self, DecodeError> {
        match typ {
            types::IMPLICIT_SHA256_DIGEST_COMPONENT | types::PARAMETERS_SHA256_DIGEST_COMPONENT
                if value.len() != 32 =>
            {
                Err(DecodeError::BadComponent)
            }
            1..=0xFFFF => Ok(ComponentRef { typ, value }),
            _ => Err(DecodeError::BadComponent),
        }
    }

    /// A GenericNameComponent.
    #[inline]
    pub const fn generic(value: &'a [u8]) -> Self {
        ComponentRef { typ: types::GENERIC_NAME_COMPONENT, value }
    }

    /// A KeywordNameComponent.
    #[inline]
    pub const fn keyword(value: &'a [u8]) -> Self {
        ComponentRef { typ: types::KEYWORD_NAME_COMPONENT, value }
    }

    /// An ImplicitSha256DigestComponent.
    #[inline]
    pub const fn implicit_digest(digest: &'a [u8; 32]) -> Self {
        ComponentRef { typ: types::IMPLICIT_SHA256_DIGEST_COMPONENT, value: digest }
    }

    /// A ParametersSha256DigestComponent.
    #[inline]
    pub const fn parameters_digest(digest: &'a [u8; 32]) -> Self {
        ComponentRef { typ: types::PARAMETERS_SHA256_DIGEST_COMPONENT, value: digest }
    }

    /// Decodes one component from the complete element `wire`.
    ///
    /// # Errors
    /// When it is not exactly one valid component.
    pub fn decode(wire: &'a [u8]) -> Result<Self, DecodeError> {
        let element = tlv::read_single_element(wire)?;
        Self::new(element.typ, element.value)
    }

    /// Length of the complete element in bytes.
    #[inline]
    pub const fn wire_len(&self) -> usize {
        tlv::element_len(self.typ, self.value.len())
    }

    /// Returns the VALUE as a NonNegativeInteger, for any type; `None` when it does not have the form of one.
    #[inline]
    pub fn as_number(&self) -> Option<u64> {
        tlv::decode_nni(self.value).ok()
    }

    fn number_of_type(&self, typ: u32) -> Option<u64> {
        if self.typ == typ { self.as_number() } else { None }
    }

    /// Returns true for a GenericNameComponent.
    #[inline]
    pub const fn is_generic(&self) -> bool {
        self.typ == types::GENERIC_NAME_COMPONENT
    }

    /// Returns true for the keyword `word`.
    #[inline]
    pub fn is_keyword(&self, word: &[u8]) -> bool {
        self.typ == types::KEYWORD_NAME_COMPONENT && self.value == word
    }

    /// Returns true for an implicit digest.
    #[inline]
    pub const fn is_implicit_digest(&self) -> bool {
        self.typ == types::IMPLICIT_SHA256_DIGEST_COMPONENT
    }

    /// Returns true for a parameters digest.
    #[inline]
    pub const fn is_parameters_digest(&self) -> bool {
        self.typ == types::PARAMETERS_SHA256_DIGEST_COMPONENT
    }

    /// Returns true for a version.
    pub fn is_version(&self) -> bool {
        self.as_version().is_some()
    }

    /// Returns the number of a version component; `None` for other components.
    pub fn as_version(&self) -> Option<u64> {
        self.number_of_type(types::VERSION_NAME_COMPONENT)
    }

    /// Returns true for a segment number.
    pub fn is_segment(&self) -> bool {
        self.as_segment().is_some()
    }

    /// Returns the number of a segment component; `None` for other components.
    pub fn as_segment(&self) -> Option<u64> {
        self.number_of_type(types::SEGMENT_NAME_COMPONENT)
    }

    /// Returns the number of a byte offset component; `None` for other components.
    pub fn as_byte_offset(&self) -> Option<u64> {
        self.number_of_type(types::BYTE_OFFSET_NAME_COMPONENT)
    }

    /// Returns the number of a timestamp component, in microseconds since the Unix epoch; `None` for other
    /// components.
    pub fn as_timestamp_us(&self) -> Option<u64> {
        self.number_of_type(types::TIMESTAMP_NAME_COMPONENT)
    }

    /// Returns the number of a sequence number component; `None` for other components.
    pub fn as_sequence(&self) -> Option<u64> {
        self.number_of_type(types::SEQUENCE_NUM_NAME_COMPONENT)
    }
}

impl Ord for ComponentRef<'_> {
    /// Canonical order: type, then length, then bytes.
    fn cmp(&self, other: &Self) -> Ordering {
        (self.typ, self.value.len(), self.value).cmp(&(other.typ, other.value.len(), other.value))
    }
}

impl PartialOrd for ComponentRef<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
