//! p4info in the text format of Protocol Buffers, which controller programs read from a file.

use prost::Message as _;
use prost::encoding;

use crate::info::P4Info;
use crate::shape::{self, Content, Kind, SHAPES, Shape};

/// Writes p4info as text. Fields with their default value are omitted.
pub fn text(info: &P4Info) -> String {
    let mut text = String::new();
    write_message(&mut text, 0, shape::of::<P4Info>(), &info.encode_to_vec());
    text
}

/// Appends the fields of an encoded message, each in its own line.
fn write_message(text: &mut String, depth: usize, shape: &'static Shape, message: &[u8]) {
    for (field, content) in shape::fields(shape, message) {
        let name = field.name;
        match (&field.kind, content) {
            (Kind::Message(inner), Content::Bytes(inner_message)) => {
                write_line(text, depth, &format!("{name} {{"));
                write_message(text, depth + 1, &SHAPES[*inner], inner_message);
                write_line(text, depth, "}");
            }
            (Kind::String | Kind::Bytes, Content::Bytes(bytes)) => {
                write_line(text, depth, &format!("{name}: \"{}\"", escaped(bytes)));
            }
            (kind, Content::Number(number)) => write_line(text, depth, &format!("{name}: {}", scalar(kind, number))),
            (kind, Content::Bytes(mut packed)) => {
                while let Ok(number) = encoding::decode_varint(&mut packed) {
                    write_line(text, depth, &format!("{name}: {}", scalar(kind, number)));
                }
            }
        }
    }
}

fn write_line(text: &mut String, depth: usize, line: &str) {
    text.extend(std::iter::repeat_n("  ", depth));
    *text += line;
    text.push('\n');
}

/// A number as its type writes it.
fn scalar(kind: &Kind, number: u64) -> String {
    match kind {
        Kind::Bool => (number != 0).to_string(),
        Kind::Enum(values) => {
            let known = values.iter().find(|(value, _)| *value == number as i32);
            known.map_or_else(|| (number as i32).to_string(), |(_, name)| (*name).to_owned())
        }
        Kind::Signed => (number as i64).to_string(),
        _ => number.to_string(),
    }
}

/// Bytes of a string between quotation marks.
fn escaped(bytes: &[u8]) -> String {
    let mut escaped = String::new();
    for byte in bytes {
        match byte {
            b'"' | b'\\' => escaped.extend(['\\', char::from(*byte)]),
            b' '..=b'~' => escaped.push(char::from(*byte)),
            _ => escaped += &format!("\\{byte:03o}"),
        }
    }
    escaped
}
