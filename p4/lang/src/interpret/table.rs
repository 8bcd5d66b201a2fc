//! Tables: entries, lookup, and execution of actions.

use num_bigint::BigInt;

use super::call::Passed;
use super::{Frame, Object, Run, Stop, Switch, Unit};
use crate::tree::{Call, Class, Expr, ExprKind, Table, Target};
use crate::types::{Ty, Types};
use crate::value::{self, Value};

/// One key of an entry.
#[derive(Clone, Debug, PartialEq)]
pub enum Match {
    /// Any value.
    Any,
    /// This value.
    Exact(Value),
    /// Values that equal the first number in the bits of the mask, which is second.
    Masked(BigInt, BigInt),
    /// Value, mask and prefix length.
    Prefix(BigInt, BigInt, u32),
    /// Values from the first to the second number, both included.
    Range(BigInt, BigInt),
}

impl Match {
    pub(super) fn fits(&self, value: &Value) -> bool {
        match self {
            Match::Any => true,
            Match::Exact(other) => other == value,
            Match::Masked(other, mask) | Match::Prefix(other, mask, _) => value.int() & mask == other & mask,
            Match::Range(first, last) => (first..=last).contains(&&value.int()),
        }
    }
}

/// An entry of a table.
#[derive(Clone, Debug)]
pub struct RuntimeEntry {
    /// A match for each key, in the order of the table.
    pub keys: Vec<Match>,
    /// Index in the table's list of actions.
    pub action: usize,
    /// Arguments of the parameters that the control plane sets.
    pub arguments: Vec<Value>,
    /// The largest priority wins, then the longest prefix, then the first entry.
    pub priority: i64,
    /// The number of its cell in compiled programs, if its table has direct counters or meters.
    pub cell: u32,
    /// Packets that have matched the entry.
    pub packets: u64,
    /// Bytes of these packets.
    pub bytes: u64,
}

/// The variable state of a table.
pub struct TableState {
    /// The control plane's name.
    pub path: String,
    /// Entries, in the order in which they were added.
    pub entries: Vec<RuntimeEntry>,
    /// Index of the default action in the table's list, and its arguments.
    pub default: Option<(usize, Vec<Value>)>,
}

impl<'p> Switch<'p> {
    /// The state of a table with the program's own entries.
    pub(super) fn table_state(&mut self, table: &'p Table, unit: &Unit) -> Result<TableState, String> {
        let path = match &table.naming.name {
            Some(name) if name.starts_with('.') => name[1..].to_owned(),
            Some(name) => format!("{}.{name}", unit.path),
            None => format!("{}.{}", unit.path, table.name),
        };
        let place = self.objects.len();
        self.objects.push(Object::Unit(Unit {
            class: unit.class.clone(),
            path: String::new(),
            constructed: unit.constructed.clone(),
            instances: unit.instances.clone(),
            tables: Vec::new(),
            value_sets: Vec::new(),
        }));
        let mut frame = Frame { unit: place, ..Frame::default() };
        let unknown = |_: Stop| format!("an entry of table {path} is not constant");
        let mut entries = Vec::new();
        for (number, entry) in table.entries.iter().enumerate() {
            let mut keys = Vec::new();
            for (set, key) in entry.keys.iter().zip(&table.keys) {
                keys.push(self.key_match(&mut frame, set, &key.kind, key.value.ty).map_err(unknown)?);
            }
            let mut arguments = Vec::new();
            for argument in &entry.action.arguments {
                arguments.push(self.evaluate(&mut frame, argument).map_err(unknown)?);
            }
            let action = entry.action.action;
            let (priority, cell) = (entry.priority, number as u32);
            entries.push(RuntimeEntry { keys, action, arguments, priority, cell, packets: 0, bytes: 0 });
        }
        let default = match &table.default {
            None => None,
            Some(default) => {
                let mut arguments = Vec::new();
                for argument in &default.arguments {
                    arguments.push(self.evaluate(&mut frame, argument).map_err(unknown)?);
                }
                Some((default.action, arguments))
            }
        };
        self.objects.pop();
        Ok(TableState { path, entries, default })
    }

    fn key_match(&mut self, frame: &mut Frame, set: &'p Expr, kind: &str, ty: Ty) -> Run<Match> {
        let width = self.program.types.representation(ty).map_or(1, |(width, _)| width);
        let all = value::mask(width);
        Ok(match &set.kind {
            ExprKind::DontCare if kind == "lpm" => Match::Prefix(BigInt::from(0), BigInt::from(0), 0),
            ExprKind::DontCare => Match::Any,
            ExprKind::Mask(left, mask) => {
                let left = self.evaluate(frame, left)?.int();
                let mask = self.evaluate(frame, mask)?.int() & all;
                if kind == "lpm" {
                    let length = mask.magnitude().count_ones() as u32;
                    Match::Prefix(left, mask, length)
                } else {
                    Match::Masked(left, mask)
                }
            }
            ExprKind::Range(first, last) => {
                Match::Range(self.evaluate(frame, first)?.int(), self.evaluate(frame, last)?.int())
            }
            _ => {
                let value = self.evaluate(frame, set)?;
                if kind == "lpm" { Match::Prefix(value.int(), all, width) } else { Match::Exact(value) }
            }
        })
    }

    /// Looks up and runs the action. Returns whether an entry matched, and the action.
    pub(super) fn apply_table(&mut self, frame: &mut Frame, call: &'p Call) -> Run<(bool, Option<usize>)> {
        self.step()?;
        let Target::Table(number) = call.target else { return Err(Stop::Failure("the object is not a table".into())) };
        let Some(Class::Control(control)) = self.unit_of(frame).map(|unit| unit.class.clone()) else {
            return Err(Stop::Failure("tables can be applied only in controls".into()));
        };
        let table = &self.program.controls[control].tables[number];
        let mut values = Vec::with_capacity(table.keys.len());
        for key in &table.keys {
            values.push((self.evaluate(frame, &key.value)?, &*key.kind));
        }
        let length = (self.input.len() / 8) as u64;
        let unit = frame.unit;
        let Some(Object::Unit(Unit { tables, .. })) = self.objects.get_mut(unit) else {
            return Err(Stop::Failure("a table is missing".into()));
        };
        let state = &mut tables[number];
        let found = best(&mut state.entries, &values);
        let hit = found.is_some();
        let chosen = match found {
            Some(entry) => {
                entry.packets += 1;
                entry.bytes += length;
                Some((entry.action, entry.arguments.clone()))
            }
            None => state.default.clone(),
        };
        // A table without keys always runs its default action, which counts as a miss.
        let Some((action, runtime)) = chosen else { return Ok((hit, None)) };
        let listed = &table.actions[action];
        let function = self.action(frame, &listed.action)?;
        let mut passed = self.pass(frame, &listed.bound)?;
        passed.extend(runtime.into_iter().map(|value| Passed { value, back: None }));
        self.call_function(frame, function, passed)?;
        Ok((hit, Some(action)))
    }
}

/// The matching entry with the largest priority, then the longest prefix; then the first.
fn best<'e>(entries: &'e mut [RuntimeEntry], values: &[(Value, &str)]) -> Option<&'e mut RuntimeEntry> {
    let mut found: Option<(usize, i64, u32)> = None;
    for (place, entry) in entries.iter().enumerate() {
        let fits = entry
            .keys
            .iter()
            .zip(values)
            // A selector's key chooses among the members of a group; it does not decide whether an entry matches.
            .all(|(key, (value, kind))| *kind == "selector" || key.fits(value));
        if values.is_empty() || !fits {
            continue;
        }
        let prefix = entry.keys.iter().map(|key| if let Match::Prefix(_, _, length) = key { *length } else { 0 }).sum();
        if found.is_none_or(|(_, priority, length)| (entry.priority, prefix) > (priority, length)) {
            found = Some((place, entry.priority, prefix));
        }
    }
    found.map(|(place, ..)| &mut entries[place])
}

/// The value that a key of this type is compared with.
pub fn key_value(types: &Types, number: &BigInt, ty: Ty) -> Value {
    if types.stripped(ty) == Types::BOOL {
        return Value::Bool(*number != BigInt::from(0));
    }
    match types.representation(ty) {
        Some((width, signed)) => Value::Int(value::wrap(number, width, signed)),
        None => Value::Member(u32::try_from(number).unwrap_or(u32::MAX)),
    }
}
