//! Generates tables in C: their memory layout, keys, and the program's own entries.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use namehop_p4_lang::interpret::Switch;
use namehop_p4_lang::interpret::table::RuntimeEntry;

use super::quote::{Comment, Literal};
use super::types::Form;
use super::{Emitter, lines};
use crate::ir::{self, Expr, Kind, Match, TableId, TableKind};
use crate::lower;

/// Action data of more bits is stored behind the word with the action.
const SMALL: u32 = 56;
/// Limits for exact tables with entry values of two bytes: action data in bits, and number of actions; and for values
/// of four bytes: action data in bits.
const BITS_OF_TWO: u32 = 12;
const ACTIONS_OF_TWO: usize = 16;
const BITS_OF_FOUR: u32 = 24;
/// Size of a cache line, and of the head of a bucket, in bytes.
const LINE: u32 = 64;
const HEAD: u32 = 8;
/// Maximum number of slots of a bucket: the head has this many marks.
const MOST_SLOTS: u32 = 7;

/// Memory layout of a table's buckets: see `runtime/hash.h`.
struct Shape {
    words: u32,
    value_bytes: u32,
    slots: u32,
    bucket_bytes: u32,
}

impl Shape {
    /// Uses as many slots as fit into a cache line. If only one fits, a bucket has two lines with two or three slots:
    /// with one slot per bucket, a lookup read 1.6 to 2.4 buckets one after the other; with three, it read 1.1.
    fn of(table: &ir::Table) -> Self {
        let words = table.key_words();
        let value_bytes = match (table.kind(), table.data_bits()) {
            (TableKind::Exact, ..=BITS_OF_TWO) if table.actions.len() <= ACTIONS_OF_TWO => 2,
            (TableKind::Exact, ..=BITS_OF_FOUR) => 4,
            (TableKind::Exact, data) if data > SMALL => 8 + data.div_ceil(64) * 8,
            _ => 8,
        };
        let bytes = words * 8 + value_bytes;
        let of_lines = |lines: u32| (lines * LINE - HEAD) / bytes;
        let slots = if of_lines(1) > 1 { of_lines(1) } else { of_lines(2).max(1) }.min(MOST_SLOTS);
        Shape { words, value_bytes, slots, bucket_bytes: (HEAD + slots * bytes).next_multiple_of(LINE) }
    }
}

impl Emitter<'_> {
    /// Packs the values of all keys into the words of one.
    pub(super) fn key(&mut self, table: &ir::Table, values: &[Expr]) {
        let words = table.key_words() as usize;
        let mut parts: Vec<Vec<String>> = vec![Vec::new(); words];
        self.line("{");
        self.indent += 1;
        let mut bit = table.key_bits() + table.key_shift();
        for number in table.packed() {
            let (key, value) = (&table.keys[number], &values[number]);
            bit -= key.width;
            let form = self.form(value.ty);
            let chunks = match form {
                Form::Wide(..) if matches!(value.kind, Kind::Field(..)) => key.width.div_ceil(64),
                Form::Wide(count, ..) => {
                    let text = self.expr(value);
                    self.line(&format!("const w{count} k{number} = {text};"));
                    key.width.div_ceil(64)
                }
                _ => {
                    let text = self.expr(value);
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
                let word = match form {
                    Form::Wide(..) => self
                        .key_in_packet(value, key.width, chunk, width)
                        .unwrap_or_else(|| format!("k{number}.w[{chunk}]")),
                    _ => format!("k{number}"),
                };
                let mut word = if width < 64 { format!("({word} & UINT64_C(0x{mask:x}))") } else { word };
                if key.kind == Match::Range && key.signed {
                    // Flip the sign bit, so that signed values sort as unsigned ones.
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
            self.line(&format!("{}[{place}] = {value};", self.places().1));
        }
        self.indent -= 1;
        self.line("}");
    }

    pub(super) fn table_declarations(&self) -> String {
        let mut text = String::new();
        for (table, name) in self.program.tables.iter().zip(&self.tables) {
            let arguments: Vec<String> =
                (0..table.actions.len()).map(|action| table.bits_of(action).to_string()).collect();
            let mut bit = table.key_bits();
            let mut ranges = Vec::new();
            for place in table.packed() {
                let key = &table.keys[place];
                bit -= key.width;
                if key.kind == Match::Range {
                    ranges.push(format!("{{{bit}, {}}}", key.width));
                }
            }
            let keys: Vec<&str> = table.keys.iter().map(|key| &*key.name).collect();
            let _ = writeln!(text, "{}", Comment::of(&format!("keys: {}", keys.join(", "))));
            let _ = writeln!(text, "static const uint32_t {name}$arguments[] = {{{}}};", none_as_zero(&arguments));
            let range_list = if ranges.is_empty() { "{0, 0}".into() } else { ranges.join(", ") };
            let _ = writeln!(text, "static const struct p4_range {name}$ranges[] = {{{range_list}}};");
            let Shape { words, value_bytes, slots, bucket_bytes } = Shape::of(table);
            let kind = match table.kind() {
                TableKind::Exact => "P4_EXACT",
                TableKind::Direct => "P4_DIRECT",
                TableKind::Trie => "P4_TRIE",
                TableKind::Tuples => "P4_TUPLES",
            };
            let _ = writeln!(
                text,
                "static struct p4_table {name} = {{\n    .name = {}, .kind = {kind}, .key_bits = {}, .exact_bits = {}, \
                 .size = {},\n    .data_bits = {}, .action_count = {}, .argument_bits = {name}$arguments,\n    \
                 .ranges = {name}$ranges, .range_count = {},\n    \
                 .shape = {{{words}, {value_bytes}, {slots}, {bucket_bytes}}},\n}};\n",
                Literal::of(&table.path),
                table.key_bits(),
                table.exact_bits(),
                table.size,
                table.data_bits(),
                table.actions.len(),
                ranges.len(),
            );
        }
        let list: Vec<String> = self.tables.iter().map(|name| format!("&{name}")).collect();
        let _ = writeln!(text, "static struct p4_table *const tables[] = {{{}}};\n", none_as_zero(&list));
        text
    }

    /// Registers, counters and meters.
    pub(super) fn cells(&mut self) -> String {
        let mut text = String::new();
        let mut lists = [Vec::new(), Vec::new(), Vec::new()];
        for (register, name) in self.program.registers.iter().zip(&self.registers) {
            let ty = self.declarations.name(self.types, register.ty);
            let size = register.size;
            let _ = writeln!(text, "static {ty} {name}[{}];", size.max(1));
            lists[0].push(format!("{{{}, {name}, sizeof {name}[0], {size}}}", Literal::of(&register.path)));
        }
        for (counter, name) in self.program.counters.iter().zip(&self.counters) {
            let size = counter.size;
            let _ = writeln!(text, "static struct p4_counter_cell {name}[{}];", size.max(1));
            lists[1].push(format!("{{{}, {name}, sizeof {name}[0], {size}}}", Literal::of(&counter.path)));
        }
        for (meter, name) in self.program.meters.iter().zip(&self.meters) {
            let size = meter.size;
            let _ = writeln!(text, "static struct p4_meter_cell {name}[{}];", size.max(1));
            lists[2].push(format!("{{{}, {name}, sizeof {name}[0], {size}}}", Literal::of(&meter.path)));
        }
        let sets = self.program.value_sets.iter().map(|set| {
            let words: u32 = set.fields.iter().map(|field| field.width.div_ceil(64).max(1)).sum();
            format!("{{{}, {words}, {}, NULL}}", Literal::of(&set.path), set.size)
        });
        let sets: Vec<String> = sets.collect();
        let _ = writeln!(text, "static struct p4_value_set value_sets[] = {{{}}};", or_empty(&sets));
        for (name, list) in ["registers", "counters", "meters"].into_iter().zip(lists) {
            let list = or_empty(&list);
            let _ = writeln!(text, "static const struct p4_cells {name}[] = {{{list}}};");
        }
        text + "\n"
    }

    /// C calls for the start of a lookup and for one step of it. The first `hashed` words of the key were already
    /// hashed.
    pub(super) fn lookup(&self, number: TableId, hashed: u32) -> (String, String) {
        let table = &self.program.tables[number];
        let name = &self.tables[number];
        let Shape { words, value_bytes, slots, bucket_bytes } = Shape::of(table);
        let (bits, data) = (table.key_bits(), table.data_bits());
        let (cursor, key) = self.places();
        let together = self.is_staged();
        let all = format!("(&{name}, &{cursor}, {key}");
        let found = format!("(&{name}, &{cursor}, &{}, {key}", self.found());
        match table.kind() {
            _ if table.keys.is_empty() => ("(void)0".into(), format!("(p4_missed(&{name}, &{}), true)", self.found())),
            TableKind::Exact => (
                format!("p4_exact_start{all}, {words}, {hashed}, {bucket_bytes}, {together})"),
                format!("p4_exact_step{found}, {words}, {value_bytes}, {slots}, {bucket_bytes}, {together})"),
            ),
            TableKind::Tuples => (
                format!("p4_tuples_start{all}, {words}, {bucket_bytes}, {together})"),
                format!("p4_tuples_step{found}, {words}, {slots}, {bucket_bytes}, {together})"),
            ),
            TableKind::Direct => (
                format!("p4_direct_start{all}, {bits}, {together})"),
                format!("p4_direct_step{found}, {bits}, {data}, {together})"),
            ),
            TableKind::Trie => (
                format!("p4_trie_start{all}, {words}, {together})"),
                format!("p4_trie_step{found}, {words}, {data}, {together})"),
            ),
        }
    }

    /// True if the action data fits into the word with the action.
    pub(super) fn is_small(table: &ir::Table) -> bool {
        table.data_bits() <= SMALL
    }

    /// The program's own entries and default actions, as commands.
    pub(super) fn entries(&self, switch: &Switch<'_>) -> String {
        let mut text = String::from("const char *const namehop_p4_entries[] = {\n");
        for (number, table) in self.program.tables.enumerated() {
            let Some(state) = lower::initial(switch, table) else { continue };
            if let Some((action, values)) = &state.default {
                let _ = writeln!(text, "    \"{}\",", lines::default(number, table, *action, values));
            }
            for entry in distinct(table, &state.entries) {
                let _ = writeln!(text, "    \"{}\",", lines::add(number, table, entry));
            }
        }
        text + "    0\n};\n"
    }
}

/// The entries, without those hidden by others with the same keys.
fn distinct<'e>(table: &ir::Table, entries: &'e [RuntimeEntry]) -> Vec<&'e RuntimeEntry> {
    let mut best: HashMap<_, usize> = HashMap::new();
    for (place, entry) in entries.iter().enumerate() {
        let packed = lower::pack(table, entry);
        let known = best.entry((packed.key, packed.mask, packed.ranges, packed.priority)).or_insert(place);
        if entries[*known].priority < entry.priority {
            *known = place;
        }
    }
    let kept: HashSet<usize> = best.into_values().collect();
    entries.iter().enumerate().filter(|(place, _)| kept.contains(place)).map(|(_, entry)| entry).collect()
}

fn none_as_zero(list: &[String]) -> String {
    if list.is_empty() { "0".into() } else { list.join(", ") }
}

/// The initializer of a list of structs; `{0}` if it is empty.
fn or_empty(list: &[String]) -> String {
    if list.is_empty() { "{0}".to_owned() } else { list.join(", ") }
}
