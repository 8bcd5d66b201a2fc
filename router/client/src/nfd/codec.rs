//! Shared by all message codecs: field lookup, and lists of elements of one type.

use namehop_wire::tlv::{Reader, Writer, decode_nni, types};
use namehop_wire::{DecodeError, Name, NameRef};
use thiserror::Error;

use super::numbers::Code;

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
pub(super) struct Fields<'a> {
    value: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn parse(value: &'a [u8]) -> Result<Self, CodecError> {
        let mut reader = Reader::new(value);
        while !reader.is_empty() {
            reader.read_element()?;
        }
        Ok(Fields { value })
    }

    /// Returns the TLV-VALUE of the first element of this type.
    pub(super) fn find(&self, typ: u32) -> Option<&'a [u8]> {
        self.all(typ).next()
    }

    /// Iterates over the TLV-VALUEs of all elements of this type.
    pub(super) fn all(&self, typ: u32) -> impl Iterator<Item = &'a [u8]> + use<'a> {
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

    pub(super) fn number(&self, typ: u32) -> Result<Option<u64>, CodecError> {
        Ok(self.find(typ).map(decode_nni).transpose()?)
    }

    pub(super) fn required_number(&self, typ: u32, field: &'static str) -> Result<u64, CodecError> {
        self.number(typ)?.ok_or(CodecError::Missing(field))
    }

    pub(super) fn text(&self, typ: u32, field: &'static str) -> Result<Option<String>, CodecError> {
        self.find(typ)
            .map(|value| String::from_utf8(value.to_vec()).map_err(|_| CodecError::NotText(field)))
            .transpose()
    }

    pub(super) fn required_text(&self, typ: u32, field: &'static str) -> Result<String, CodecError> {
        self.text(typ, field)?.ok_or(CodecError::Missing(field))
    }

    pub(super) fn name(&self) -> Result<Option<Name>, CodecError> {
        Ok(self.find(types::NAME).map(NameRef::from_value).transpose()?.map(|name| name.to_owned()))
    }

    pub(super) fn required_name(&self) -> Result<Name, CodecError> {
        self.name()?.ok_or(CodecError::Missing("Name"))
    }

    /// Returns the Strategy field: an element that holds one Name.
    pub(super) fn strategy(&self) -> Result<Option<Name>, CodecError> {
        match self.find(types::nfd::STRATEGY) {
            Some(value) => Ok(Some(Fields::parse(value)?.required_name()?)),
            None => Ok(None),
        }
    }

    /// Returns a field with an enumerated value.
    pub(super) fn code<T: Code>(&self, typ: u32, field: &'static str) -> Result<Option<T>, CodecError> {
        self.number(typ)?.map(|code| T::from_code(code).ok_or(CodecError::UnknownValue(field))).transpose()
    }

    pub(super) fn required_code<T: Code>(&self, typ: u32, field: &'static str) -> Result<T, CodecError> {
        self.code(typ, field)?.ok_or(CodecError::Missing(field))
    }
}

pub(super) fn put_name(writer: &mut Writer, name: &Name) {
    writer.element(types::NAME, name.as_ref().value());
}

pub(super) fn put_strategy(writer: &mut Writer, strategy: &Name) {
    writer.nested(types::nfd::STRATEGY, |writer| put_name(writer, strategy));
}

pub(super) fn put_optional(writer: &mut Writer, typ: u32, number: Option<u64>) {
    if let Some(number) = number {
        writer.nni(typ, number);
    }
}

pub(super) fn put_optional_text(writer: &mut Writer, typ: u32, text: Option<&str>) {
    if let Some(text) = text {
        writer.element(typ, text.as_bytes());
    }
}

/// An element type of a dataset that is a list of such elements.
pub trait DatasetItem: Sized {
    /// TYPE of the element.
    const TYPE: u32;
    /// Appends the fields.
    fn encode_value(&self, writer: &mut Writer);
    /// Decodes the fields from the TLV-VALUE of the element.
    fn decode_value(value: &[u8]) -> Result<Self, CodecError>;
}

/// Appends one element of a dataset.
pub fn encode_item<T: DatasetItem>(item: &T, writer: &mut Writer) {
    writer.nested(T::TYPE, |writer| item.encode_value(writer));
}

/// Encodes the content of a whole dataset.
pub fn encode_items<T: DatasetItem>(items: impl IntoIterator<Item = T>) -> Vec<u8> {
    let mut writer = Writer::new();
    items.into_iter().for_each(|item| encode_item(&item, &mut writer));
    writer.into_vec()
}

/// Decodes the content of a whole dataset; ignores elements of other types.
pub fn decode_items<T: DatasetItem>(content: &[u8]) -> Result<Vec<T>, CodecError> {
    Fields::parse(content)?.all(T::TYPE).map(T::decode_value).collect()
}
