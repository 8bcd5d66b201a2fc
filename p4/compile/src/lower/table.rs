//! Tables: lookups and actions. Keys and action data of entries are packed into one number each.

use namehop_p4_lang::interpret::table::{Match, RuntimeEntry, TableState};
use namehop_p4_lang::tree::{self, Call, Class, Table, Target, has_effects};
use namehop_p4_lang::types::{Ty, Type, Types};
use namehop_p4_lang::value::{self, Value};
use num_bigint::BigInt;
use num_traits::Signed;

use super::call::Passed;
use super::{Lower, Lowerer};
use crate::description::Identity;
use crate::ir::{self, Apply, Expr, Kind, Statement, TableId};

/// The widest range, in bits.
pub(super) const MAX_RANGE: u32 = 64;
/// Number of entries of a table that does not say it, and maximum number.
const DEFAULT_SIZE: u64 = 1 << 20;
const MAX_SIZE: u64 = 1 << 28;

impl<'p> Lowerer<'p> {
    /// The packed width and the sign of a key or argument.
    pub(super) fn packed_width(&self, ty: Ty) -> Lower<(u32, bool)> {
        let types = self.types();
        match types.get(types.stripped(ty)) {
            Type::Bool => Ok((1, false)),
            Type::Error => Ok((32, false)),
            Type::Enum(_) => Ok(types.representation(ty).unwrap_or((32, false))),
            Type::Bits { width, signed } => Ok((*width, *signed)),
            _ => self.refuse(format!("a table has values of type {}, which cannot be compiled", types.show(ty))),
        }
    }

    /// The number of a table of the control that is being lowered.
    fn table(&mut self, place: usize) -> Lower<(TableId, &'p Table)> {
        let owner = self.scope.unit;
        let Some(unit) = self.switch.unit(owner) else { return self.refuse("a table is missing") };
        let Class::Control(control) = unit.class() else {
            return self.refuse("tables can be applied only in controls");
        };
        let table = &self.program.controls[*control].tables[place];
        if let Some(number) = self.tables.get(&(owner, place)) {
            return Ok((*number, table));
        }
        let mut keys = Vec::new();
        for key in &table.keys {
            let (width, signed) = self.packed_width(key.value.ty)?;
            let kind = match &*key.kind {
                "exact" => ir::Match::Exact,
                "lpm" => ir::Match::Lpm,
                "ternary" | "optional" => ir::Match::Ternary,
                "range" if width > MAX_RANGE => {
                    return self.refuse(format!("ranges of more than {MAX_RANGE} bits cannot be compiled"));
                }
                "range" => ir::Match::Range,
                "selector" => ir::Match::Selector,
                other => return self.refuse(format!("keys of kind '{other}' cannot be compiled")),
            };
            keys.push(ir::Key { name: key.name.clone(), kind, width, signed });
        }
        let mut actions = Vec::new();
        for listed in &table.actions {
            let function = self.action(&listed.action)?;
            let mut arguments = Vec::new();
            for parameter in function.parameters.iter().skip(listed.bound.len()) {
                arguments.push(self.packed_width(parameter.ty)?.0);
            }
            actions.push(ir::Action { name: listed.name.clone(), arguments });
        }
        if actions.len() >= 255 {
            return self.refuse("a table has more than 254 actions");
        }
        let path = unit.tables[place].path.clone();
        let size = table.size.unwrap_or(DEFAULT_SIZE).max(table.entries.len() as u64).min(MAX_SIZE);
        let (cells, profile) = (ir::Cells::default(), None);
        let (members, members_of) = (None, None);
        let number = self.table_list.push(ir::Table {
            path,
            owner: (owner, place),
            keys,
            actions,
            size,
            cells,
            profile,
            members,
            members_of,
        });
        self.cells_of(number, table)?;
        self.profile_of(number, table)?;
        self.tables.insert((owner, place), number);
        Ok((number, table))
    }

    /// Lowers a lookup and its actions. Returns whether an entry matched, and which action ran.
    pub(super) fn apply_table(&mut self, call: &'p Call) -> Lower<(Expr, Expr)> {
        let Target::Table(place) = call.target else { return self.refuse("the object is not a table") };
        self.span = call.span;
        let (number, table) = self.table(place)?;
        let mut keys = Vec::with_capacity(table.keys.len());
        for (place, key) in table.keys.iter().enumerate() {
            let value = self.expression(&key.value)?;
            let later = table.keys[place + 1..].iter().any(|key| has_effects(&key.value));
            // Save selector keys, because they are used after the lookup.
            keys.push(if later || &*key.kind == "selector" { self.keep(value)? } else { value });
        }
        let hit = self.variable("hit", Types::BOOL);
        let chosen = self.variable("action", self.common.byte);
        let mut actions = Vec::new();
        let first_bit = u64::from(self.table_list[number].cell_bits());
        for listed in &table.actions {
            actions.push(self.list(|lowerer| {
                lowerer.use_cell(number, table)?;
                lowerer.table_action(listed, first_bit)
            })?);
        }
        let selected = self.group_action(number, table, &mut actions)?;
        let chooses: Vec<Expr> = match &selected {
            Some(_) => table
                .keys
                .iter()
                .zip(&keys)
                .filter(|(key, _)| &*key.kind == "selector")
                .map(|(_, value)| value.clone())
                .collect(),
            None => Vec::new(),
        };
        self.push(Statement::Apply(Apply {
            table: number,
            keys,
            hashed: 0,
            hit: Some(hit),
            chosen: Some(chosen),
            actions,
            resume: ir::Resume::default(),
        }))?;
        if let Some(selected) = selected {
            self.select_member(number, table, selected, chooses, chosen)?;
        }
        self.colors.clear();
        let hit = Expr::read(ir::Place::variable(hit, Types::BOOL));
        Ok((hit, Expr::read(ir::Place::variable(chosen, self.common.byte))))
    }

    /// Lowers an action of a table; its arguments begin at `first_bit` of the action data.
    pub(super) fn table_action(&mut self, listed: &'p tree::TableAction, first_bit: u64) -> Lower<()> {
        let function = self.action(&listed.action)?;
        let names: Vec<&str> = function.parameters.iter().map(|parameter| &*parameter.name).collect();
        let mut passed = self.pass(&listed.bound, &names, false)?;
        let mut offset = first_bit;
        for parameter in function.parameters.iter().skip(listed.bound.len()) {
            let (width, _) = self.packed_width(parameter.ty)?;
            let place = self.temporary(&parameter.name, parameter.ty);
            self.set(place.clone(), Expr { kind: Kind::Argument(offset), ty: parameter.ty })?;
            offset += u64::from(width);
            passed.push(Passed { place, back: None });
        }
        self.call_function(function, passed, Types::VOID)?;
        Ok(())
    }
}

/// An entry in the form of compiled programs.
#[derive(Clone, Debug)]
pub struct Packed {
    /// Index of the action in the table's list.
    pub action: usize,
    /// All keys and their masks, packed in the order of `ir::Table::packed`, the first one in the highest bits; the
    /// lowest word first.
    pub key: Vec<u64>,
    /// The masks of all keys, as many words as `key`.
    pub mask: Vec<u64>,
    /// The first and last value of each range, in the order of such keys.
    pub ranges: Vec<u64>,
    /// The larger one wins; 0 in tables without priorities.
    pub priority: i64,
    /// The sum of the lengths of all prefixes.
    pub prefix: u32,
    /// The action data in network byte order, from the first bit on.
    pub data: Vec<u8>,
}

impl Packed {
    /// The identity of the entry within its table.
    pub fn identity(&self) -> Identity {
        identity(self.prefix, &[&self.key, &self.mask, &self.ranges], self.priority)
    }
}

/// The identity of an entry with these packed keys, masks and ranges. Entries are listed in its order.
pub fn identity(prefix: u32, words: &[&[u64]; 3], priority: i64) -> Identity {
    let count = words.iter().map(|words| words.len()).sum::<usize>();
    let mut identity = Vec::with_capacity(2 + count);
    identity.push(u64::from(prefix));
    words.iter().for_each(|words| identity.extend_from_slice(words));
    identity.push(priority.cast_unsigned());
    identity.into()
}

/// Writes the lowest `width` bits of a number into words, which hold zeros there, from bit `first` on. Negative numbers
/// are written in two's complement.
fn place_bits(words: &mut [u64], first: u32, width: u32, number: &BigInt) {
    let wrapped = number.is_negative().then(|| value::wrap(number, width, false));
    let digits = wrapped.as_ref().unwrap_or(number).iter_u64_digits();
    for (at, digit) in (0..width).step_by(64).zip(digits) {
        let digit = digit & (u64::MAX >> (64 - (width - at).min(64)));
        let (word, shift) = (((first + at) / 64) as usize, (first + at) % 64);
        words[word] |= digit << shift;
        let above = digit.checked_shr(64 - shift).unwrap_or(0);
        if above > 0 {
            words[word + 1] |= above;
        }
    }
}

/// Packs the action data of an entry, behind the number of its cell if it has one.
pub fn pack_values(table: &ir::Table, action: usize, cell: u32, values: &[Value]) -> Vec<u8> {
    let length = table.bits_of(action).div_ceil(8);
    let mut words = vec![0; length.div_ceil(8) as usize];
    let mut left = length * 8;
    let mut put = |width: u32, value: &BigInt| {
        left -= width;
        place_bits(&mut words, left, width, value);
    };
    if table.cells.are_there() {
        put(ir::Cells::BITS, &cell.into());
    }
    for (width, value) in table.actions[action].arguments.iter().zip(values) {
        put(*width, &value.as_int());
    }
    (0..length as usize).rev().map(|byte| (words[byte / 8] >> (byte % 8 * 8)) as u8).collect()
}

/// Packs an entry.
pub fn pack(table: &ir::Table, entry: &RuntimeEntry) -> Packed {
    let words = table.key_words() as usize;
    let mut packed = Packed {
        action: entry.action,
        key: vec![0; words],
        mask: vec![0; words],
        ranges: Vec::new(),
        priority: entry.priority,
        prefix: 0,
        data: pack_values(table, entry.action, entry.cell, &entry.arguments),
    };
    let mut left = table.key_shift() + table.key_bits();
    for place in table.packed() {
        let (key, wanted) = (&table.keys[place], &entry.keys[place]);
        left -= key.width;
        let mut put = |value: &BigInt, mask: &BigInt| {
            place_bits(&mut packed.key, left, key.width, value);
            place_bits(&mut packed.mask, left, key.width, mask);
        };
        match wanted {
            _ if key.kind == ir::Match::Range => packed.ranges.extend(bounds(key, wanted)),
            Match::Any | Match::Range(..) => {}
            Match::Exact(exact) => put(&exact.as_int(), &value::mask(key.width)),
            Match::Masked(number, bits) => put(number, bits),
            Match::Prefix(number, bits, length) => {
                put(number, bits);
                packed.prefix += length;
            }
        }
    }
    packed.key.iter_mut().zip(&packed.mask).for_each(|(key, mask)| *key &= mask);
    packed
}

/// The first and last value that a range key may have. Signed values are offset, so that they sort as unsigned ones.
fn bounds(key: &ir::Key, wanted: &Match) -> [u64; 2] {
    let (lowest, highest) = value::limits(key.width, key.signed);
    let (first, last) = match wanted {
        Match::Exact(exact) => (exact.int(), exact.int()),
        Match::Range(first, last) => (first.clone(), last.clone()),
        _ => (lowest.clone(), highest.clone()),
    };
    // An empty range matches nothing.
    if first > last {
        return [1, 0];
    }
    let place =
        |bound: BigInt| u64::try_from(bound.clamp(lowest.clone(), highest.clone()) - &lowest).unwrap_or(u64::MAX);
    [place(first), place(last)]
}

/// A member of a value set in the form that compiled programs compare: for each word, its mask, its value, and the
/// bounds.
pub fn pack_member(fields: &[ir::Key], member: &[Match]) -> Vec<u64> {
    let mut row = Vec::new();
    for (field, wanted) in fields.iter().zip(member) {
        let all = value::mask(field.width);
        let (mut value, mut mask) = (BigInt::from(0), BigInt::from(0));
        let (mut first, mut last) = (0, u64::MAX);
        match wanted {
            Match::Any => {}
            Match::Exact(exact) => (value, mask) = (value::wrap(&exact.int(), field.width, false), all),
            Match::Masked(number, bits) | Match::Prefix(number, bits, _) => {
                (value, mask) =
                    (value::wrap(&(number & bits), field.width, false), value::wrap(bits, field.width, false));
            }
            Match::Range(low, high) => {
                (first, last) = (u64::try_from(low).unwrap_or(u64::MAX), u64::try_from(high).unwrap_or(u64::MAX));
            }
        }
        let word = |number: &BigInt, place: u32| u64::try_from((number >> (place * 64)) & value::mask(64)).unwrap_or(0);
        for place in 0..field.width.div_ceil(64).max(1) {
            row.extend([word(&mask, place), word(&value, place), first, last]);
        }
    }
    row
}

/// The entries and the default action of a table at the program's start.
pub fn initial<'s>(switch: &'s namehop_p4_lang::interpret::Switch<'_>, table: &ir::Table) -> Option<&'s TableState> {
    switch.unit(table.owner.0)?.tables.get(table.owner.1)
}
