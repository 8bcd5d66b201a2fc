//! A random table, what a list of its entries says that packets meet, and these entries as text and as messages of P4Runtime.

use std::fmt::Write;

use namehop_p4runtime::entity::{
    Action, Field, FieldKind, FieldMatch, Pair, Prefix, Single, TableAction, TableActionKind, TableEntry,
};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

const WIDTHS: [u32; 9] = [1, 8, 16, 31, 32, 33, 64, 65, 128];
const KINDS: [&str; 5] = ["exact", "lpm", "ternary", "range", "optional"];
/// Of the parameter of the action that only takes room.
const FURTHER: [u32; 4] = [1, 8, 64, 100];
/// What a packet gets without an entry.
const DEFAULT: u16 = 0xEEEE;
/// How many entries a table may have.
pub const SIZE: usize = 12;

/// What a key is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    Bits { value: u128, mask: u128 },
    Range(u128, u128),
}

#[derive(Clone, Debug)]
pub struct Known {
    pub keys: Vec<Want>,
    pub priority: i64,
    pub id: u16,
    pub further: u128,
}

pub struct Key {
    pub kind: &'static str,
    pub width: u32,
    is_signed: bool,
}

impl Key {
    fn all(&self) -> u128 {
        u128::MAX >> (128 - self.width)
    }

    /// Bits as a number whose order is that of values, and back again.
    fn order(&self, bits: u128) -> u128 {
        if self.is_signed { bits ^ 1 << (self.width - 1) } else { bits }
    }
}

pub struct Table {
    random: Xoshiro256PlusPlus,
    pub keys: Vec<Key>,
    further: u32,
    /// The best one is not the first one.
    pub entries: Vec<Known>,
    pub default: u16,
}

fn bytes(value: u128) -> Vec<u8> {
    let all = value.to_be_bytes();
    let zeros = all.iter().take(15).take_while(|byte| **byte == 0).count();
    all[zeros..].to_vec()
}

impl Table {
    pub fn new(seed: u64) -> Table {
        let mut table = Table {
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            keys: Vec::new(),
            further: 0,
            entries: Vec::new(),
            default: DEFAULT,
        };
        table.further = table.one_of(&FURTHER);
        for _ in 0..=table.below(3) {
            let mut kind = table.one_of(&KINDS);
            if kind == "lpm" && table.keys.iter().any(|key| key.kind == "lpm") {
                kind = "exact";
            }
            let widths = if kind == "range" { &WIDTHS[..7] } else { &WIDTHS[..] };
            let width = table.one_of(widths);
            let is_signed = kind == "range" && table.below(2) == 0;
            table.keys.push(Key { kind, width, is_signed });
        }
        table
    }

    pub fn below(&mut self, count: usize) -> usize {
        (self.random.next_u64() % count as u64) as usize
    }

    pub fn one_of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    fn number(&mut self, width: u32) -> u128 {
        let all = u128::MAX >> (128 - width);
        let whole = u128::from(self.random.next_u64()) << 64 | u128::from(self.random.next_u64());
        // Few values, so that keys meet, and those at the ends.
        match self.below(6) {
            0 => 0,
            1 => all,
            2 => whole & all,
            3 => 1 << (width - 1),
            _ => whole & all & 3,
        }
    }

    fn is_ranked(&self) -> bool {
        self.keys.iter().any(|key| matches!(key.kind, "ternary" | "range" | "optional"))
    }

    pub fn entry(&mut self) -> Known {
        let mut keys = Vec::new();
        for place in 0..self.keys.len() {
            let (kind, width, all) = (self.keys[place].kind, self.keys[place].width, self.keys[place].all());
            let (value, other) = (self.number(width), self.number(width));
            let mask = match kind {
                "lpm" => match self.below(width as usize + 1) as u32 {
                    0 => 0,
                    length => all & all << (width - length),
                },
                "ternary" => other,
                "optional" if self.below(3) == 0 => 0,
                _ => all,
            };
            keys.push(match kind {
                "range" if self.keys[place].order(value) > self.keys[place].order(other) => Want::Range(other, value),
                "range" => Want::Range(value, other),
                _ => Want::Bits { value: value & mask, mask },
            });
        }
        let priority = if self.is_ranked() { 1 + self.below(4) as i64 } else { 0 };
        Known { keys, priority, id: self.below(0xE000) as u16, further: self.number(self.further) }
    }

    /// An entry that is there, or another one.
    pub fn some_entry(&mut self) -> Known {
        let new = self.entry();
        if self.entries.is_empty() || self.below(3) == 0 {
            return new;
        }
        let place = self.below(self.entries.len());
        Known { id: new.id, further: new.further, ..self.entries[place].clone() }
    }

    pub fn place(&self, entry: &Known) -> Option<usize> {
        self.entries.iter().position(|known| known.keys == entry.keys && known.priority == entry.priority)
    }

    /// What an entry has for a packet with these keys: a number, and how long its prefix is.
    pub fn look(&self, packet: &[u128]) -> u16 {
        let fits = |entry: &&Known| {
            entry.keys.iter().zip(&self.keys).zip(packet).all(|((want, key), value)| match want {
                Want::Bits { value: wanted, mask } => value & mask == *wanted,
                Want::Range(first, last) => (key.order(*first)..=key.order(*last)).contains(&key.order(*value)),
            })
        };
        let prefix = |entry: &Known| -> u32 {
            let keys = entry.keys.iter().zip(&self.keys).filter(|(_, key)| key.kind == "lpm");
            keys.map(|(key, _)| if let Want::Bits { mask, .. } = key { mask.count_ones() } else { 0 }).sum()
        };
        // Of equal ones the first.
        let best = self.entries.iter().rev().filter(fits).max_by_key(|entry| (entry.priority, prefix(entry)));
        best.map_or(self.default, |entry| entry.id ^ entry.further as u16)
    }

    /// The keys of a packet that meets an entry, most of the time.
    pub fn packet(&mut self) -> Vec<u128> {
        let entry = self.some_entry();
        let mut values = Vec::new();
        for (place, want) in entry.keys.iter().enumerate() {
            let (other, way) = (self.number(self.keys[place].width), self.below(4));
            let key = &self.keys[place];
            values.push(match want {
                Want::Bits { value, mask } => value | other & !mask,
                Want::Range(first, last) => match way {
                    0 => *first,
                    1 => *last,
                    2 => last.wrapping_add(1) & key.all(),
                    _ => key.order(key.order(other).clamp(key.order(*first), key.order(*last))),
                },
            });
        }
        values
    }

    pub fn program(&self, own: &[Known]) -> String {
        let mut fields = String::new();
        let mut keys = String::new();
        let mut bits = 0;
        for (place, key) in self.keys.iter().enumerate() {
            let _ = write!(fields, "{}<{}> k{place}; ", if key.is_signed { "int" } else { "bit" }, key.width);
            let _ = write!(keys, "hdr.h.k{place}: {}; ", key.kind);
            bits += key.width;
        }
        if bits % 8 != 0 {
            let _ = write!(fields, "bit<{}> pad; ", 8 - bits % 8);
        }
        let mut list = String::new();
        for entry in own {
            let mut sets = Vec::new();
            for (want, key) in entry.keys.iter().zip(&self.keys) {
                let width = key.width;
                sets.push(match want {
                    Want::Bits { mask: 0, .. } => "_".to_owned(),
                    Want::Bits { value, mask } if key.kind == "lpm" || key.kind == "ternary" => {
                        format!("{width}w{value:#x} &&& {width}w{mask:#x}")
                    }
                    Want::Bits { value, .. } => format!("{width}w{value:#x}"),
                    Want::Range(first, last) if key.is_signed => {
                        format!("(int<{width}>){width}w{first:#x} .. (int<{width}>){width}w{last:#x}")
                    }
                    Want::Range(first, last) => format!("{width}w{first:#x} .. {width}w{last:#x}"),
                });
            }
            let priority = if self.is_ranked() { format!("priority = {}: ", entry.priority) } else { String::new() };
            let (id, further, width) = (entry.id, entry.further, self.further);
            let _ = writeln!(list, "{priority}({}): hit({id}, {width}w{further:#x});", sets.join(", "));
        }
        let list = if own.is_empty() { list } else { format!("largest_priority_wins = true; entries = {{ {list} }}") };
        format!(
            "#include <core.p4>\n#include <v1model.p4>\nheader h_t {{ {fields}bit<16> result; }}\n\
             struct headers_t {{ h_t h; }}\nstruct meta_t {{ }}\n\
             parser P(packet_in p, out headers_t hdr, inout meta_t m, inout standard_metadata_t s) {{\n\
             state start {{ p.extract(hdr.h); transition accept; }} }}\n\
             control V(inout headers_t hdr, inout meta_t m) {{ apply {{ }} }}\n\
             control I(inout headers_t hdr, inout meta_t m, inout standard_metadata_t s) {{\n\
             action hit(bit<16> id, bit<{further}> more) {{ hdr.h.result = id ^ (bit<16>)more; s.egress_spec = 1; }}\n\
             table t {{ key = {{ {keys}}} actions = {{ hit; }} default_action = hit({DEFAULT}, 0); size = {SIZE}; {list} }}\n\
             apply {{ t.apply(); }} }}\n\
             control E(inout headers_t hdr, inout meta_t m, inout standard_metadata_t s) {{ apply {{ }} }}\n\
             control U(inout headers_t hdr, inout meta_t m) {{ apply {{ }} }}\n\
             control D(packet_out p, in headers_t hdr) {{ apply {{ p.emit(hdr.h); }} }}\n\
             V1Switch(P(), V(), I(), E(), U(), D()) main;\n",
            further = self.further,
        )
    }

    /// An entry in the form of the control socket.
    pub fn text(&self, entry: &Known, with_action: bool) -> String {
        let mut text = "t".to_owned();
        if self.is_ranked() {
            let _ = write!(text, " {}", entry.priority);
        }
        for (place, (want, key)) in entry.keys.iter().zip(&self.keys).enumerate() {
            let _ = match want {
                Want::Bits { value, .. } if key.kind == "exact" => write!(text, " k{place}:{value:#x}"),
                Want::Bits { value, mask } if key.kind == "lpm" => {
                    write!(text, " k{place}:{value}/{}", mask.count_ones())
                }
                // What is left out matches anything.
                Want::Bits { mask: 0, .. } => Ok(()),
                Want::Bits { value, .. } if key.kind == "optional" => write!(text, " k{place}:{value}"),
                Want::Bits { value, mask } => write!(text, " k{place}:{value:#x}&&&{mask:#b}"),
                Want::Range(first, last) => write!(text, " k{place}:{first}..{last:#x}"),
            };
        }
        if with_action {
            let _ = write!(text, " hit(id:{}, more:{})", entry.id, entry.further);
        }
        text
    }

    /// The same in the form of P4Runtime.
    pub fn message(&self, entry: &Known, table_id: u32, action_id: u32) -> TableEntry {
        let mut matches = Vec::new();
        for (place, (want, key)) in entry.keys.iter().zip(&self.keys).enumerate() {
            let kind = match *want {
                Want::Bits { value, .. } if key.kind == "exact" => FieldKind::Exact(Single { value: bytes(value) }),
                Want::Bits { mask: 0, .. } => continue,
                Want::Bits { value, mask } if key.kind == "lpm" => {
                    FieldKind::Lpm(Prefix { value: bytes(value), length: mask.count_ones() as i32 })
                }
                Want::Bits { value, .. } if key.kind == "optional" => {
                    FieldKind::Optional(Single { value: bytes(value) })
                }
                Want::Bits { value, mask } => FieldKind::Ternary(Pair { first: bytes(value), second: bytes(mask) }),
                Want::Range(first, last) if (key.order(first), key.order(last)) == (0, key.all()) => continue,
                Want::Range(first, last) => FieldKind::Range(Pair { first: bytes(first), second: bytes(last) }),
            };
            matches.push(FieldMatch { field_id: place as u32 + 1, kind: Some(kind) });
        }
        let params = [u128::from(entry.id), entry.further].map(bytes);
        let params = (1..).zip(params).map(|(id, value)| Field { id, value }).collect();
        let kind = Some(TableActionKind::Action(Action { action_id, params }));
        TableEntry {
            table_id,
            matches,
            action: Some(TableAction { kind }),
            priority: entry.priority as i32,
            ..TableEntry::default()
        }
    }
}
