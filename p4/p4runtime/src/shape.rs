//! The fields of all messages, for code that handles any message in its encoded form: [`fields`] splits a message into
//! its fields, and [`size`] returns how much memory a message takes when it is decoded.

use prost::Name;
use prost::encoding::{self, DecodeContext, WireType};

include!(concat!(env!("OUT_DIR"), "/shapes.rs"));

/// Maximum depth of messages within messages; Prost decodes no deeper ones.
const DEEPEST: usize = 100;

/// A message: its name with its package, the size of its Rust type in bytes, whether it or a message within it has
/// lists, and its fields.
pub(crate) struct Shape {
    name: &'static str,
    bytes: usize,
    has_lists: bool,
    fields: &'static [Field],
}

/// A field of a message.
pub(crate) struct Field {
    number: u32,
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    repeats: bool,
}

/// The type of a field.
pub(crate) enum Kind {
    Bool,
    Signed,
    Unsigned,
    String,
    Bytes,
    /// Numbers and names of the values.
    Enum(&'static [(i32, &'static str)]),
    /// An index in [`SHAPES`].
    Message(usize),
}

/// The content of a field: a number, or the bytes of a text, a message, or several packed numbers.
#[derive(Clone, Copy)]
pub(crate) enum Content<'m> {
    Number(u64),
    Bytes(&'m [u8]),
}

/// Returns the shape of a message.
pub(crate) fn of<M: Name>() -> &'static Shape {
    let name = M::full_name();
    let found = SHAPES.binary_search_by(|shape| shape.name.cmp(&name));
    &SHAPES[found.expect("the build script describes all messages")]
}

/// Returns the declared fields of an encoded message in their order, and skips others. Ends at the first malformed
/// field.
pub(crate) fn fields<'m>(
    shape: &'static Shape,
    mut message: &'m [u8],
) -> impl Iterator<Item = (&'static Field, Content<'m>)> {
    std::iter::from_fn(move || {
        loop {
            let (number, wire_type) = encoding::decode_key(&mut message).ok()?;
            let content = match wire_type {
                WireType::Varint => Content::Number(encoding::decode_varint(&mut message).ok()?),
                WireType::LengthDelimited => {
                    let length = encoding::decode_varint(&mut message).ok()?;
                    let (content, rest) = message.split_at_checked(usize::try_from(length).ok()?)?;
                    message = rest;
                    Content::Bytes(content)
                }
                _ => {
                    encoding::skip_field(wire_type, number, &mut message, DecodeContext::default()).ok()?;
                    continue;
                }
            };
            // Small messages: a search from the start is the fastest.
            if let Some(field) = shape.fields.iter().find(|field| field.number == number) {
                return Some((field, content));
            }
        }
    })
}

/// Returns an upper bound of the memory that the repeated fields of an encoded message take when it is decoded, in
/// bytes, without the texts and byte strings in them. Lists may take twice as much while they grow.
pub(crate) fn size(shape: &'static Shape, message: &[u8]) -> usize {
    size_within(shape, message, DEEPEST)
}

fn size_within(shape: &'static Shape, message: &[u8], depth: usize) -> usize {
    let of_field = |(field, content): (&'static Field, Content<'_>)| match (&field.kind, content) {
        (Kind::Message(inner), Content::Bytes(bytes)) if depth > 0 => {
            let inner = &SHAPES[*inner];
            let own = if field.repeats { inner.bytes } else { 0 };
            let lists = if inner.has_lists { size_within(inner, bytes, depth - 1) } else { 0 };
            own + lists
        }
        (Kind::String | Kind::Bytes, _) if field.repeats => size_of::<Vec<u8>>(),
        // Each packed number has at least one byte.
        (_, Content::Bytes(bytes)) if field.repeats => bytes.len() * size_of::<u64>(),
        (_, Content::Number(_)) if field.repeats => size_of::<u64>(),
        _ => 0,
    };
    fields(shape, message).map(of_field).sum()
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;
    use crate::info::{MatchField, P4Info, Table};
    use crate::message::{
        ActionProfileAction, Entity, FieldMatch, P4Data, Replica, StreamMessageResponse, TableEntry, Update, entity,
    };

    #[test]
    fn messages_are_no_larger_than_the_table_says() {
        fn check<M: Name>() {
            let (most, real) = (of::<M>().bytes, size_of::<M>());
            assert!((real..=real + real / 4 + 16).contains(&most), "{}: {most}, not {real}", M::NAME);
        }
        check::<Update>();
        check::<Entity>();
        check::<TableEntry>();
        check::<FieldMatch>();
        check::<ActionProfileAction>();
        check::<Replica>();
        check::<P4Data>();
        check::<StreamMessageResponse>();
        check::<P4Info>();
        check::<Table>();
        check::<MatchField>();
    }

    #[test]
    fn lists_are_counted_at_any_depth_and_unknown_fields_are_not() {
        let entry = TableEntry { r#match: vec![FieldMatch::default(); 3], ..TableEntry::default() };
        let entity = Entity { entity: Some(entity::Entity::TableEntry(entry)) };
        let mut bytes = entity.encode_to_vec();
        let expected = 3 * of::<FieldMatch>().bytes;
        assert_eq!(size(of::<Entity>(), &bytes), expected);
        // An unknown text, a group and a fixed number; then a truncated field.
        bytes.extend(b"\xFA\x01\x03abc\xF3\x01\x08\x01\xF4\x01\xF5\x01\x00\x00\x00\x00");
        bytes.extend([0x12, 2, 0x12, 0, 0x12, 9]);
        assert_eq!(size(of::<Entity>(), &bytes), expected + of::<FieldMatch>().bytes);
        assert_eq!(size(of::<Table>(), b"\x3A\x03\x01\x02\x03\x38\x04"), 4 * 8);
    }
}
