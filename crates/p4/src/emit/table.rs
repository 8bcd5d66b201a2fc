//! Tables in C: their shape in memory, their keys, and the entries that the program has.

use std::fmt::Write;

use super::types::Form;
use super::{Emitter, lines};
use crate::interpret::Switch;
use crate::ir::{self, Expr, Match};
use crate::lower;

/// Bits of all keys.
fn key_bits(table: &ir::Table) -> u32 {
    table.keys.iter().filter(|key| key.kind != Match::Selector).map(|key| key.width).sum()
}

/// Words of a packed key.
pub fn key_words(table: &ir::Table) -> u32 {
    key_bits(table).div_ceil(64).max(1)
}

/// How the buckets of a table lie in memory.
pub struct Shape {
    pub exact: bool,
    pub words: u32,
    pub data_bytes: u32,
    pub slots: u32,
    pub stride: u32,
    pub bucket_bytes: u32,
}

impl Shape {
    /// As many slots as a cache line has room for, at least one.
    pub fn of(table: &ir::Table) -> Self {
        let exact = table.keys.iter().all(|key| matches!(key.kind, Match::Exact | Match::Selector));
        let words = key_words(table);
        let data_bytes =
            table.actions.iter().map(|action| action.arguments.iter().sum::<u32>().div_ceil(8)).max().unwrap_or(0);
        let value = if exact { 1 + data_bytes } else { 8 };
        let stride = (words * 8 + value).next_multiple_of(8);
        let slots = (56 / stride).clamp(1, 7);
        Shape { exact, words, data_bytes, slots, stride, bucket_bytes: (8 + slots * stride).next_multiple_of(64) }
    }

    pub fn kind(&self) -> &'static str {
        if self.exact { "exact" } else { "tuple" }
    }
}

impl Emitter<'_> {
    /// Puts the values of all keys into the words of one.
    pub(super) fn key(&mut self, table: &ir::Table, values: &[Expr]) {
        let words = key_words(table) as usize;
        let mut parts: Vec<Vec<String>> = vec![Vec::new(); words];
        self.line("{");
        self.indent += 1;
        let mut bit = key_bits(table);
        for (number, (key, value)) in table.keys.iter().zip(values).enumerate() {
            if key.kind == Match::Selector {
                continue;
            }
            bit -= key.width;
            let form = self.form(value.ty);
            let text = self.expr(value);
            let chunks = match form {
                Form::Wide(count, ..) => {
                    self.line(&format!("const w{count} k{number} = {text};"));
                    key.width.div_ceil(64)
                }
                _ => {
                    self.line(&format!("const uint64_t k{number} = (uint64_t)({text});"));
                    1
                }
            };
            for chunk in 0..chunks {
                let width = (key.width - chunk * 64).min(64);
                if width == 0 {
                    continue;
                }
                let mask = u64::MAX >> (64 - width);
                let word =
                    if let Form::Wide(..) = form { format!("k{number}.w[{chunk}]") } else { format!("k{number}") };
                let mut word = if width < 64 { format!("({word} & UINT64_C(0x{mask:x}))") } else { word };
                if key.kind == Match::Range && key.signed {
                    // In the order of unsigned numbers.
                    word = format!("({word} ^ UINT64_C(0x{:x}))", 1u64 << (width - 1));
                }
                let at = bit + chunk * 64;
                let (place, shift) = ((at / 64) as usize, at % 64);
                parts[place].push(if shift == 0 { word.clone() } else { format!("{word} << {shift}") });
                if shift + width > 64 {
                    parts[place + 1].push(format!("{word} >> {}", 64 - shift));
                }
            }
        }
        for (place, list) in parts.iter().enumerate() {
            let value = if list.is_empty() { "0".to_owned() } else { list.join(" | ") };
            self.line(&format!("s->key[{place}] = {value};"));
        }
        self.indent -= 1;
        self.line("}");
    }

    pub(super) fn table_declarations(&self) -> String {
        let mut text = String::new();
        for (table, name) in self.program.tables.iter().zip(&self.tables) {
            let shape = Shape::of(table);
            let arguments: Vec<String> =
                table.actions.iter().map(|action| action.arguments.iter().sum::<u32>().to_string()).collect();
            let mut bit = key_bits(table);
            let mut ranges = Vec::new();
            for key in table.keys.iter().filter(|key| key.kind != Match::Selector) {
                bit -= key.width;
                if key.kind == Match::Range {
                    ranges.push(format!("{{{bit}, {}}}", key.width));
                }
            }
            let keys: Vec<&str> = table.keys.iter().map(|key| &*key.name).collect();
            let _ = writeln!(text, "/* keys: {} */", keys.join(", ").replace("*/", "* /"));
            let _ = writeln!(text, "static const uint32_t {name}$arguments[] = {{{}}};", none_as_zero(&arguments));
            let range_list = if ranges.is_empty() { "{0, 0}".into() } else { ranges.join(", ") };
            let _ = writeln!(text, "static const struct p4_range {name}$ranges[] = {{{range_list}}};");
            let _ = writeln!(
                text,
                "static struct p4_table {name} = {{\n    .name = \"{}\", .words = {}, .data_bytes = {}, .slots = {}, \
                 .stride = {}, .bucket_bytes = {},\n    .exact = {}, .action_count = {},\n    \
                 .argument_bits = {name}$arguments, .ranges = {name}$ranges, .range_count = {},\n    \
                 .default_action = P4_NONE,\n}};\n",
                quoted(&table.path),
                shape.words,
                shape.data_bytes,
                shape.slots,
                shape.stride,
                shape.bucket_bytes,
                shape.exact,
                table.actions.len(),
                ranges.len(),
            );
        }
        let list: Vec<String> = self.tables.iter().map(|name| format!("&{name}")).collect();
        let _ = writeln!(text, "static struct p4_table *const tables[] = {{{}}};\n", none_as_zero(&list));
        text
    }

    /// Registers and counters.
    pub(super) fn cells(&mut self) -> String {
        let mut text = String::new();
        let mut lists = [Vec::new(), Vec::new()];
        for (register, name) in self.program.registers.iter().zip(&self.registers) {
            let ty = self.declarations.name(self.types, register.ty);
            let size = register.size;
            let _ = writeln!(text, "static {ty} {name}[{}];", size.max(1));
            lists[0].push(format!("{{\"{}\", {name}, sizeof {name}[0], {size}}}", quoted(&register.path)));
        }
        for (counter, name) in self.program.counters.iter().zip(&self.counters) {
            let size = counter.size;
            let _ = writeln!(text, "static struct p4_counter_cell {name}[{}];", size.max(1));
            lists[1].push(format!("{{\"{}\", {name}, sizeof {name}[0], {size}}}", quoted(&counter.path)));
        }
        for (name, list) in ["registers", "counters"].into_iter().zip(lists) {
            let list = if list.is_empty() { "{0}".to_owned() } else { list.join(", ") };
            let _ = writeln!(text, "static const struct p4_cells {name}[] = {{{list}}};");
        }
        text + "\n"
    }

    /// The entries and default actions that the program has, as commands.
    pub(super) fn entries(&self, switch: &Switch<'_>) -> String {
        let mut text = String::from("const char *const namehop_p4_entries[] = {\n");
        for (number, table) in self.program.tables.iter().enumerate() {
            let Some(state) = lower::initial(switch, table) else { continue };
            if let Some((action, values)) = &state.default {
                let _ = writeln!(text, "    \"{}\",", lines::default(number, table, *action, values));
            }
            for entry in &state.entries {
                let _ = writeln!(text, "    \"{}\",", lines::add(number, table, entry));
            }
        }
        text + "    0\n};\n"
    }
}

fn none_as_zero(list: &[String]) -> String {
    if list.is_empty() { "0".into() } else { list.join(", ") }
}

/// A name in a string of C.
fn quoted(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || "._$[] ".contains(c) { c } else { '_' }).collect()
}
