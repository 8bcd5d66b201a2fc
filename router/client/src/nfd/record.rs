//! Declares messages: [`records!`] makes a struct and its TLV codec from one list of fields.

use std::time::Duration;

use namehop_wire::tlv::{Writer, decode_nni, read_single_element, types};
use namehop_wire::{Name, NameRef};

use super::codec::{CodecError, Fields};

/// A message, or a part of one, that consists of fields.
pub trait Record: Sized {
    /// Appends the fields, in the order of their declaration.
    fn encode_fields(&self, writer: &mut Writer);

    /// Reads the fields, which may be in any order.
    ///
    /// # Errors
    /// If a field is missing or malformed.
    fn decode_fields(fields: &Fields<'_>) -> Result<Self, CodecError>;

    /// Encodes a message that is the fields without an element around them.
    fn to_content(&self) -> Vec<u8> {
        let mut writer = Writer::with_capacity(128);
        self.encode_fields(&mut writer);
        writer.into_vec()
    }

    /// Decodes a message that is the fields without an element around them.
    ///
    /// # Errors
    /// If a field is missing or malformed.
    fn from_content(content: &[u8]) -> Result<Self, CodecError> {
        Self::decode_fields(&Fields::parse(content)?)
    }
}

/// A record that is one element.
pub trait Element: Record {
    /// TYPE of the element.
    const TYPE: u32;
    /// Name of the element, for errors.
    const NAME: &'static str;

    /// Appends the element.
    fn encode(&self, writer: &mut Writer) {
        writer.nested(Self::TYPE, |writer| self.encode_fields(writer));
    }

    /// Encodes the element.
    fn to_vec(&self) -> Vec<u8> {
        let mut writer = Writer::with_capacity(128);
        self.encode(&mut writer);
        writer.into_vec()
    }

    /// Decodes the complete element.
    ///
    /// # Errors
    /// If it is another element, or a field is missing or malformed.
    fn decode(wire: &[u8]) -> Result<Self, CodecError> {
        let element = read_single_element(wire)?;
        if element.typ != Self::TYPE {
            return Err(CodecError::Missing(Self::NAME));
        }
        Self::decode_value(element.value)
    }

    /// Decodes the TLV-VALUE of the element.
    ///
    /// # Errors
    /// If a field is missing or malformed.
    fn decode_value(value: &[u8]) -> Result<Self, CodecError> {
        Self::decode_fields(&Fields::parse(value)?)
    }
}

/// A field in the declaration of a record.
#[derive(Debug, Clone, Copy)]
pub struct FieldId {
    /// TYPE of its elements.
    pub typ: u32,
    /// Its name, for errors.
    pub name: &'static str,
}

/// The value of one element.
pub trait Value: Sized {
    /// Appends the element.
    fn write(&self, writer: &mut Writer, typ: u32);

    /// Reads the TLV-VALUE of the element.
    fn read(value: &[u8], field: FieldId) -> Result<Self, CodecError>;
}

impl Value for u64 {
    fn write(&self, writer: &mut Writer, typ: u32) {
        writer.nni(typ, *self);
    }

    fn read(value: &[u8], _: FieldId) -> Result<Self, CodecError> {
        Ok(decode_nni(value)?)
    }
}

impl Value for bool {
    fn write(&self, writer: &mut Writer, typ: u32) {
        writer.nni(typ, u64::from(*self));
    }

    fn read(value: &[u8], _: FieldId) -> Result<Self, CodecError> {
        Ok(decode_nni(value)? != 0)
    }
}

/// In microseconds.
impl Value for Duration {
    fn write(&self, writer: &mut Writer, typ: u32) {
        writer.nni(typ, u64::try_from(self.as_micros()).unwrap_or(u64::MAX));
    }

    fn read(value: &[u8], _: FieldId) -> Result<Self, CodecError> {
        Ok(Duration::from_micros(decode_nni(value)?))
    }
}

impl Value for String {
    fn write(&self, writer: &mut Writer, typ: u32) {
        writer.element(typ, self.as_bytes());
    }

    fn read(value: &[u8], field: FieldId) -> Result<Self, CodecError> {
        String::from_utf8(value.to_vec()).map_err(|_| CodecError::NotText(field.name))
    }
}

/// An element of TYPE Name is the name itself. Any other element holds one Name.
impl Value for Name {
    fn write(&self, writer: &mut Writer, typ: u32) {
        let name = self.as_ref().value();
        if typ == types::NAME {
            writer.element(typ, name);
        } else {
            writer.nested(typ, |writer| {
                writer.element(types::NAME, name);
            });
        }
    }

    fn read(value: &[u8], field: FieldId) -> Result<Self, CodecError> {
        if field.typ == types::NAME {
            return Ok(NameRef::from_value(value)?.to_owned());
        }
        Field::get(&Fields::parse(value)?, FieldId { typ: types::NAME, ..field })
    }
}

/// A record inside another one.
impl<T: Record> Value for T {
    fn write(&self, writer: &mut Writer, typ: u32) {
        writer.nested(typ, |writer| self.encode_fields(writer));
    }

    fn read(value: &[u8], _: FieldId) -> Result<Self, CodecError> {
        T::decode_fields(&Fields::parse(value)?)
    }
}

/// A field of a record. A [`Value`] is one required element; `Option` is an element that may be absent; `Vec` is any
/// number of elements of one TYPE.
pub trait Field: Sized {
    /// Appends the elements of the field.
    fn put(&self, writer: &mut Writer, typ: u32);

    /// Reads the field. The first element of the TYPE counts, except in lists.
    fn get(fields: &Fields<'_>, field: FieldId) -> Result<Self, CodecError>;
}

impl<T: Value> Field for T {
    fn put(&self, writer: &mut Writer, typ: u32) {
        self.write(writer, typ);
    }

    fn get(fields: &Fields<'_>, field: FieldId) -> Result<Self, CodecError> {
        T::read(fields.find(field.typ).ok_or(CodecError::Missing(field.name))?, field)
    }
}

impl<T: Value> Field for Option<T> {
    fn put(&self, writer: &mut Writer, typ: u32) {
        if let Some(value) = self {
            value.write(writer, typ);
        }
    }

    fn get(fields: &Fields<'_>, field: FieldId) -> Result<Self, CodecError> {
        fields.find(field.typ).map(|value| T::read(value, field)).transpose()
    }
}

impl<T: Value> Field for Vec<T> {
    fn put(&self, writer: &mut Writer, typ: u32) {
        self.iter().for_each(|value| value.write(writer, typ));
    }

    fn get(fields: &Fields<'_>, field: FieldId) -> Result<Self, CodecError> {
        fields.all(field.typ).map(|value| T::read(value, field)).collect()
    }
}

/// Another encoding of a field of type `T`, chosen in the declaration of a record.
pub trait Encoding<T> {
    /// Appends the elements of the field.
    fn put(value: &T, writer: &mut Writer, typ: u32);

    /// Reads the field.
    fn get(fields: &Fields<'_>, field: FieldId) -> Result<T, CodecError>;
}

/// The default if there is no element: a field that other forwarders or older versions do not send.
pub struct OrDefault;

impl<T: Value + Default> Encoding<T> for OrDefault {
    fn put(value: &T, writer: &mut Writer, typ: u32) {
        value.write(writer, typ);
    }

    fn get(fields: &Fields<'_>, field: FieldId) -> Result<T, CodecError> {
        Ok(Option::get(fields, field)?.unwrap_or_default())
    }
}

/// Inlines the fields of a record into the record around it. The TYPE is not used; it is [`HERE`].
pub struct Inline;

/// The TYPE in the declaration of an [`Inline`] field.
pub const HERE: u32 = 0;

impl<T: Record> Encoding<T> for Inline {
    fn put(value: &T, writer: &mut Writer, _: u32) {
        value.encode_fields(writer);
    }

    fn get(fields: &Fields<'_>, _: FieldId) -> Result<T, CodecError> {
        T::decode_fields(fields)
    }
}

/// A required element of any bytes.
pub struct Octets;

impl Encoding<Vec<u8>> for Octets {
    fn put(value: &Vec<u8>, writer: &mut Writer, typ: u32) {
        writer.element(typ, value);
    }

    fn get(fields: &Fields<'_>, field: FieldId) -> Result<Vec<u8>, CodecError> {
        fields.find(field.typ).map(<[u8]>::to_vec).ok_or(CodecError::Missing(field.name))
    }
}

/// Declares records: structs with their codecs. `pub struct Name(TYPE)` declares an [`Element`]. A field is
/// `name: Type = TYPE`, or `name: Type = TYPE => Encoding`. The fields are encoded in the order of their declaration.
macro_rules! records {
    ($(
        $(#[$about:meta])*
        $visibility:vis struct $name:ident $(($element:expr))? {
            $($(#[$field_about:meta])* $field:ident: $type:ty = $typ:expr $(=> $encoding:ident)?),* $(,)?
        }
    )*) => {$(
        $(#[$about])*
        $visibility struct $name {
            $($(#[$field_about])* pub $field: $type,)*
        }

        impl $crate::nfd::record::Record for $name {
            fn encode_fields(&self, writer: &mut namehop_wire::tlv::Writer) {
                $($crate::nfd::record::records!(@put self.$field, writer, $typ $(, $encoding)?);)*
            }

            fn decode_fields(
                fields: &$crate::nfd::codec::Fields<'_>,
            ) -> Result<Self, $crate::nfd::codec::CodecError> {
                Ok($name {
                    $($field: {
                        let field = $crate::nfd::record::FieldId { typ: $typ, name: stringify!($field) };
                        $crate::nfd::record::records!(@get fields, field $(, $encoding)?)?
                    },)*
                })
            }
        }

        $(impl $crate::nfd::record::Element for $name {
            const TYPE: u32 = $element;
            const NAME: &'static str = stringify!($name);
        })?
    )*};
    (@put $value:expr, $writer:ident, $typ:expr) => { $crate::nfd::record::Field::put(&$value, $writer, $typ) };
    (@put $value:expr, $writer:ident, $typ:expr, $encoding:ident) => {
        <$crate::nfd::record::$encoding as $crate::nfd::record::Encoding<_>>::put(&$value, $writer, $typ)
    };
    (@get $fields:ident, $field:ident) => { $crate::nfd::record::Field::get($fields, $field) };
    (@get $fields:ident, $field:ident, $encoding:ident) => {
        <$crate::nfd::record::$encoding as $crate::nfd::record::Encoding<_>>::get($fields, $field)
    };
}

pub(crate) use records;
