//! Commands for a compiled program, as its player reads them.

use num_bigint::BigInt;

use crate::interpret::table::RuntimeEntry;
use crate::ir;
use crate::lower;
use crate::value::{self, Value};

/// Bytes in hexadecimal digits.
pub fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write;
    if bytes.is_empty() {
        return "-".into();
    }
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Words, the lowest one first, each with its lowest byte first.
fn words(number: &BigInt, count: u32) -> String {
    let mut bytes = number.magnitude().to_bytes_le();
    bytes.resize(count as usize * 8, 0);
    hexadecimal(&bytes)
}

/// Values for an action: in network order, from the first bit on.
pub fn data_bytes(table: &ir::Table, action: usize, number: &BigInt) -> Vec<u8> {
    let bits = table.bits_of(action);
    let length = bits.div_ceil(8) as usize;
    let (_, bytes) = (number << (length as u32 * 8 - bits)).to_bytes_be();
    let mut padded = vec![0; length.saturating_sub(bytes.len())];
    padded.extend_from_slice(&bytes[bytes.len().saturating_sub(length)..]);
    padded
}

fn data(table: &ir::Table, action: usize, number: &BigInt) -> String {
    hexadecimal(&data_bytes(table, action, number))
}

pub fn default(number: usize, table: &ir::Table, action: usize, values: &[Value]) -> String {
    let packed = lower::pack_values(table, action, ir::Cells::NONE, values);
    format!("default {number} {action} {}", data(table, action, &packed))
}

pub fn add(number: usize, table: &ir::Table, entry: &RuntimeEntry) -> String {
    let packed = lower::pack(table, entry);
    let count = table.key_words();
    let ranges: String =
        packed.ranges.iter().map(|(first, last)| format!("{}{}", words(first, 1), words(last, 1))).collect();
    format!(
        "add {number} {} {} {} {} {} {} {}",
        packed.priority,
        packed.prefix,
        packed.action,
        words(&packed.key, count),
        words(&packed.mask, count),
        if ranges.is_empty() { "-" } else { &ranges },
        data(table, packed.action, &packed.data),
    )
}

/// A cell of a register, as it lies in memory; none when its type has parts.
pub fn cell(types: &crate::types::Types, ty: crate::types::Ty, value: &Value) -> Option<String> {
    use super::types::{Form, form};
    let bytes = match form(types, ty) {
        Form::Bool => 1,
        Form::Narrow(width, _) => [8, 16, 32, 64].into_iter().find(|size| width <= *size)? / 8,
        Form::Wide(count, ..) => count * 8,
        _ => return None,
    };
    let mut list = value::wrap(&value.int(), bytes * 8, false).magnitude().to_bytes_le();
    list.resize(bytes as usize, 0);
    Some(hexadecimal(&list))
}
