//! Commands for a compiled program, in the form that the player reads.

use namehop_p4_lang::interpret::table::RuntimeEntry;
use namehop_p4_lang::value::{self, Value};

use crate::{ir, lower};

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

/// Words in hexadecimal digits, the lowest word first, each with its lowest byte first.
fn words(words: &[u64]) -> String {
    hexadecimal(&words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>())
}

/// Returns the command that sets the default action of a table.
pub fn default(number: ir::TableId, table: &ir::Table, action: usize, values: &[Value]) -> String {
    let data = lower::pack_values(table, action, ir::Cells::NONE, values);
    format!("default {number} {action} {}", hexadecimal(&data))
}

/// Returns the command that adds an entry to a table.
pub fn add(number: ir::TableId, table: &ir::Table, entry: &RuntimeEntry) -> String {
    let packed = lower::pack(table, entry);
    format!(
        "add {number} {} {} {} {} {} {} {}",
        packed.priority,
        packed.prefix,
        packed.action,
        words(&packed.key),
        words(&packed.mask),
        words(&packed.ranges),
        hexadecimal(&packed.data),
    )
}

/// A cell of a register, in its memory form; `None` if its type has parts.
pub fn cell(types: &namehop_p4_lang::types::Types, ty: namehop_p4_lang::types::Ty, value: &Value) -> Option<String> {
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
