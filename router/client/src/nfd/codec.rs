//! Shared by all message codecs: field lookup, and lists of elements of one type.

use namehop_wire::DecodeError;
use namehop_wire::tlv::{Reader, Writer};
use thiserror::Error;

use super::record::Element;

/// Why bytes do not decode to the expected message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum CodecError {
    /// The bytes are not valid TLV, or a name or number in them is not valid.
    #[error(transparent)]
    Tlv(#[from] DecodeError),
    /// A required field is missing.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A text is not UTF-8.
    #[error("{0} is not UTF-8 text")]
    NotText(&'static str),
    /// The value is not allowed for the field.
    #[error("{0} has an unknown value")]
    UnknownValue(&'static str),
}

/// The fields of one message: a sequence of elements that was checked to be well-formed.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a> {
    value: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Checks the TLV-VALUE of a message.
    ///
    /// # Errors
    /// If it is not a sequence of elements.
    pub fn parse(value: &'a [u8]) -> Result<Self, CodecError> {
        let mut reader = Reader::new(value);
        while !reader.is_empty() {
            reader.read_element()?;
        }
        Ok(Fields { value })
    }

    /// Returns the TLV-VALUE of the first element of this type.
    pub fn find(&self, typ: u32) -> Option<&'a [u8]> {
        self.all(typ).next()
    }

    /// Iterates over the TLV-VALUEs of all elements of this type.
    pub fn all(&self, typ: u32) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut reader = Reader::new(self.value);
        std::iter::from_fn(move || {
            while let Ok(element) = reader.read_element() {
                if element.typ == typ {
                    return Some(element.value);
                }
            }
            None
        })
    }
}

/// Encodes the content of a whole dataset.
pub fn encode_items<T: Element>(items: impl IntoIterator<Item = T>) -> Vec<u8> {
    let mut writer = Writer::new();
    items.into_iter().for_each(|item| item.encode(&mut writer));
    writer.into_vec()
}

/// Decodes the content of a whole dataset; ignores elements of other types.
///
/// # Errors
/// If the content is not a sequence of elements, or an element of the type is malformed.
pub fn decode_items<T: Element>(content: &[u8]) -> Result<Vec<T>, CodecError> {
    Fields::parse(content)?.all(T::TYPE).map(T::decode_value).collect()
}
