//! Generates the messages of `proto/` as Rust types, and a table of their fields for code that handles any message.

use std::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::{env, fs};

use protox::prost_reflect::{Cardinality, DescriptorPool, FieldDescriptor, Kind, MessageDescriptor};

const FILES: [&str; 6] =
    ["p4runtime.proto", "entity.proto", "p4info.proto", "p4types.proto", "status.proto", "operator.proto"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let files = protox::compile(FILES, ["proto"])?;
    let pool = DescriptorPool::from_file_descriptor_set(files.clone())?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("shapes.rs"), shapes(&pool)?)?;
    prost_build::Config::new()
        .btree_map(["."])
        .enable_type_names()
        .type_attribute(".p4.v1.Uint128", "#[derive(PartialOrd, Ord)]")
        .include_file("messages.rs")
        .compile_fds(files)?;
    Ok(())
}

/// Returns the source of the array `SHAPES`, all messages in the order of their names, and of the constant `LARGEST`.
fn shapes(pool: &DescriptorPool) -> Result<String, Box<dyn Error>> {
    let mut messages: Vec<MessageDescriptor> = pool.all_messages().collect();
    messages.sort_by(|one, other| one.full_name().cmp(other.full_name()));
    let mut text = format!("pub(crate) static SHAPES: [Shape; {}] = [\n", messages.len());
    for message in &messages {
        let (name, bytes, has_lists) = (message.full_name(), size(message), has_lists(message));
        writeln!(text, "Shape {{ name: {name:?}, bytes: {bytes}, has_lists: {has_lists}, fields: &[")?;
        for field in message.fields() {
            let kind = match field.kind() {
                Kind::Bool => "Bool".to_owned(),
                Kind::String => "String".to_owned(),
                Kind::Bytes => "Bytes".to_owned(),
                Kind::Int32 | Kind::Int64 => "Signed".to_owned(),
                Kind::Uint32 | Kind::Uint64 => "Unsigned".to_owned(),
                Kind::Enum(values) => {
                    let names: Vec<_> =
                        values.values().map(|value| (value.number(), value.name().to_owned())).collect();
                    format!("Enum(&{names:?})")
                }
                Kind::Message(inner) => format!("Message({})", index(&messages, &inner)?),
                other => return Err(format!("{}: type {other:?} is not supported", field.full_name()).into()),
            };
            let (number, name, repeats) = (field.number(), field.name(), field.cardinality() == Cardinality::Repeated);
            writeln!(text, "Field {{ number: {number}, name: {name:?}, kind: Kind::{kind}, repeats: {repeats} }},")?;
        }
        text += "] },\n";
    }
    text += "];\n";
    let largest = messages.iter().map(size).max().unwrap_or_default();
    writeln!(text, "/// The largest `bytes` of a shape.\npub(crate) const LARGEST: usize = {largest};")?;
    Ok(text)
}

fn index(messages: &[MessageDescriptor], wanted: &MessageDescriptor) -> Result<usize, String> {
    let found = messages.binary_search_by(|message| message.full_name().cmp(wanted.full_name()));
    found.map_err(|_| format!("there is no message {}", wanted.full_name()))
}

/// True if the message has lists, also within its messages.
fn has_lists(message: &MessageDescriptor) -> bool {
    message.fields().any(|field| match field.kind() {
        _ if field.cardinality() == Cardinality::Repeated => true,
        Kind::Message(inner) => has_lists(&inner),
        _ => false,
    })
}

/// Upper bound of the size of a message's Rust type, in bytes.
fn size(message: &MessageDescriptor) -> usize {
    let plain = message.fields().filter(|field| field.containing_oneof().is_none()).map(|field| field_size(&field));
    let choices = message.oneofs().map(|oneof| {
        let largest = oneof.fields().map(|field| field_size(&field)).max();
        // The tag of the enum, aligned.
        8 + largest.unwrap_or_default()
    });
    (plain.sum::<usize>() + choices.sum::<usize>()).next_multiple_of(8)
}

fn field_size(field: &FieldDescriptor) -> usize {
    match field.kind() {
        // A vector, a text or a map.
        _ if field.is_map() || has_pointer(field) => size_of::<Vec<u8>>(),
        Kind::Message(message) => {
            // The tag of the `Option` needs no room beside a pointer, which is never null.
            let tag = match size(&message) {
                0 => 1,
                _ if message.fields().any(|field| has_pointer(&field)) => 0,
                _ => 8,
            };
            tag + size(&message)
        }
        Kind::Bool => 1,
        Kind::Int64 | Kind::Uint64 => 8,
        _ => 4,
    }
}

/// True if the field is a list, a text or bytes.
fn has_pointer(field: &FieldDescriptor) -> bool {
    field.is_list() || matches!(field.kind(), Kind::String | Kind::Bytes)
}
