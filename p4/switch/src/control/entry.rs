//! Converts entries between text, in the form of test files (`table [priority] key:value … action(name:value, …)`), and
//! the form of compiled programs.

use namehop_p4_compile::description::{Description, TableDescription};
use namehop_p4_compile::layout;
use namehop_p4_lang::entry_text::{ActionCall, EntryText, Number, normal, resolve};
use namehop_p4_lang::interpret::table::{Match, RuntimeEntry};
use namehop_p4_lang::tree::LARGEST_PRIORITY;
use namehop_p4_lang::value::{self, Value};
use num_bigint::BigInt;
use num_traits::ToPrimitive;

use super::profiles::Reference;
use crate::program::Entry;

/// The index of a table, by its name or the end of it.
pub fn table(description: &Description, name: &str) -> Result<usize, String> {
    // Tables of group members follow all others.
    let own = description.tables.iter().take_while(|table| table.table.members_of.is_none());
    let paths = own.map(|table| &*table.table.path);
    resolve(name, paths).map_err(|reason| format!("table: {reason}"))
}

/// The index of an action call, and its argument values.
pub fn action(table: &TableDescription, call: &ActionCall<'_>) -> Result<(usize, Vec<Value>), String> {
    let path = &table.table.path;
    let place = resolve(call.name, table.actions.iter().map(|action| &*action.path))
        .map_err(|reason| format!("table {path}, action: {reason}"))?;
    let (action, widths) = (&table.actions[place], &table.table.actions[place].arguments);
    if let Some((name, _)) =
        call.arguments.iter().find(|(name, _)| !action.parameters.iter().any(|known| known == name))
    {
        return Err(format!("table {path}: action {} has no parameter '{name}'", action.path));
    }
    let mut values = Vec::new();
    for (name, width) in action.parameters.iter().zip(widths) {
        let given = call.arguments.iter().find(|(other, _)| other == name);
        let (_, number) = given.ok_or_else(|| format!("table {path}: action {} needs '{name}'", action.path))?;
        if !value::fits(number, *width) {
            return Err(format!("table {path}: {number} does not fit into '{name}' of {width} bits"));
        }
        values.push(Value::Int(number.clone()));
    }
    Ok((place, values))
}

/// Parses a match on a key of a table, or on a field of a value set.
pub fn key(what: &dyn Fn() -> String, key: &layout::Key, number: Option<&Number>) -> Result<Match, String> {
    let width = key.width;
    let refused = |reason: String| format!("{}, key {}: {reason}", what(), key.name);
    let Some(number) = number else {
        return match key.kind {
            layout::Match::Exact => Err(refused("an exact key needs a value".into())),
            layout::Match::Lpm => Ok(Match::Prefix(0.into(), 0.into(), 0)),
            _ => Ok(Match::Any),
        };
    };
    if !value::fits(&number.value, width) || number.mask.as_ref().is_some_and(|mask| !value::fits(mask, width)) {
        return Err(refused(format!("{} does not fit into {width} bits", number.value)));
    }
    let only = |allowed: bool, what: &str| {
        if allowed { Ok(()) } else { Err(refused(format!("the match kind does not allow {what}"))) }
    };
    match key.kind {
        layout::Match::Exact => {
            only(number.mask.is_none() && number.prefix.is_none(), "a mask or prefix")?;
            Ok(Match::Exact(Value::Int(number.value.clone())))
        }
        layout::Match::Lpm => {
            let length = number.prefix.unwrap_or(width);
            if length > width {
                return Err(refused(format!("a prefix of {length} bits is longer than {width} bits")));
            }
            let mask = value::mask(length) << (width - length);
            Ok(Match::Prefix(&number.value & &mask, mask, length))
        }
        layout::Match::Range => {
            let bound = |bound: &BigInt| value::wrap(bound, width, key.signed);
            let (first, last) = (bound(&number.value), bound(number.mask.as_ref().unwrap_or(&number.value)));
            only(first <= last && number.prefix.is_none(), "an empty range")?;
            Ok(Match::Range(first, last))
        }
        layout::Match::Ternary => {
            let mask = match number.prefix {
                Some(length) if length <= width => value::mask(length) << (width - length),
                Some(_) => return Err(refused(format!("a prefix is longer than {width} bits"))),
                None => number.mask.clone().unwrap_or_else(|| value::mask(width)),
            };
            Ok(Match::Masked(&number.value & &mask, mask))
        }
        layout::Match::Selector => Ok(Match::Any),
    }
}

/// The reference that an entry has instead of an action: `member(id:1)` or `group(id:1)`, unless the program has an
/// action of this name.
fn reference(table: &TableDescription, call: &ActionCall<'_>) -> Result<Option<Reference>, String> {
    let is_action = resolve(call.name, table.actions.iter().map(|action| &*action.path)).is_ok();
    if table.table.profile.is_none() || is_action || !matches!(call.name, "member" | "group") {
        return Ok(None);
    }
    let [(name, id)] = &call.arguments[..] else {
        return Err(format!("table {}: write {}(id:NUMBER)", table.table.path, call.name));
    };
    let id = id.to_u32().filter(|_| *name == "id");
    let id = id.ok_or_else(|| format!("table {}: write {}(id:NUMBER)", table.table.path, call.name))?;
    Ok(Some(if call.name == "group" { Reference::Group(id) } else { Reference::Member(id) }))
}

/// Parses an entry. Without an action (for deletion), the first action stands for it.
pub fn read(description: &Description, text: &EntryText<'_>) -> Result<(usize, Entry, Option<Reference>), String> {
    let place = table(description, text.table)?;
    let described = &description.tables[place];
    let table = &described.table;
    let path = &table.path;
    if described.entries_are_const {
        return Err(format!("the entries of table {path} are constant"));
    }
    let referred = text.action.as_ref().map(|call| reference(described, call)).transpose()?.flatten();
    let (action, arguments) = match &text.action {
        None => (0, Vec::new()),
        Some(_) if referred.is_some() => (0, Vec::new()),
        Some(call) => {
            let (action, values) = action(described, call)?;
            if described.actions[action].default_only {
                return Err(format!(
                    "table {path}: action {} can only be the default action",
                    described.actions[action].path
                ));
            }
            (action, values)
        }
    };
    let mut given: Vec<Option<&Number>> = vec![None; table.keys.len()];
    for (name, number) in &text.keys {
        let name = normal(name);
        let fits = |key: &layout::Key| {
            let key = normal(&key.name);
            key.strip_suffix(&*name).is_some_and(|above| above.is_empty() || above.ends_with('.'))
        };
        let mut found = table.keys.iter().enumerate().filter(|(_, key)| fits(key));
        match (found.next(), found.next()) {
            (Some((place, _)), None) if given[place].is_none() => given[place] = Some(number),
            (Some(_), None) => return Err(format!("table {path}: duplicate key '{name}'")),
            (Some(_), Some(_)) => {
                return Err(format!("table {path}: '{name}' matches several keys; write more of the name"));
            }
            (None, _) => {
                let names: Vec<&str> = table.keys.iter().map(|key| &*key.name).collect();
                return Err(format!("table {path} has no key '{name}'; its keys are {}", names.join(", ")));
            }
        }
    }
    let mut keys = Vec::new();
    for (described, number) in table.keys.iter().zip(given) {
        keys.push(key(&|| format!("table {path}"), described, number)?);
    }
    let priority = match text.priority {
        _ if !table.has_priorities() => 0,
        None => 1,
        Some(given) if (1..=LARGEST_PRIORITY).contains(&given) => given,
        Some(given) => return Err(format!("table {path}: priority {given} is not from 1 to {LARGEST_PRIORITY}")),
    };
    let entry = RuntimeEntry { keys, action, arguments, priority, cell: 0, packets: 0, bytes: 0 };
    Ok((place, packed(table, &entry), referred))
}

/// Converts an entry to the form of compiled programs.
pub fn packed(table: &layout::Table, entry: &RuntimeEntry) -> Entry {
    let layout::Packed { action, key, mask, ranges, priority, prefix, data } = layout::pack(table, entry);
    Entry { priority, prefix, action: action as u32, key, mask, ranges, data }
}

/// The argument values in an entry's action data.
pub fn values(table: &layout::Table, action: usize, data: &[u8]) -> Vec<BigInt> {
    let Some(listed) = table.actions.get(action) else { return Vec::new() };
    let bits = table.bits_of(action);
    let mut left = bits - table.cell_bits();
    let all = BigInt::from_bytes_be(num_bigint::Sign::Plus, data) >> (data.len() as u32 * 8).saturating_sub(bits);
    let value = |width: &u32| {
        left -= width;
        (&all >> left) & value::mask(*width)
    };
    listed.arguments.iter().map(value).collect()
}

/// One key of an entry: its index in the table's list, its value and mask, and the bounds of a range.
pub struct KeyOf {
    pub place: usize,
    pub value: BigInt,
    pub mask: BigInt,
    pub range: Option<(BigInt, BigInt)>,
}

/// The keys of an entry that are compared.
pub fn keys(shape: &layout::Table, entry: &Entry) -> Vec<KeyOf> {
    let (key, mask) = (number(&entry.key) >> shape.key_shift(), number(&entry.mask) >> shape.key_shift());
    let mut left = shape.key_bits();
    let mut ranges = entry.ranges.chunks(2);
    let key_of = |place: usize| {
        let described = &shape.keys[place];
        left -= described.width;
        let all = value::mask(described.width);
        let range = match (described.kind, ranges.len()) {
            (layout::Match::Range, 1..) => ranges.next().and_then(|bounds| {
                let lowest = value::limits(described.width, described.signed).0;
                let bits = |place: &u64| value::wrap(&(BigInt::from(*place) + &lowest), described.width, false);
                Some((bits(bounds.first()?), bits(bounds.last()?)))
            }),
            _ => None,
        };
        KeyOf { place, value: (&key >> left) & &all, mask: (&mask >> left) & &all, range }
    };
    shape.packed().map(key_of).collect()
}

fn number(words: &[u64]) -> BigInt {
    words.iter().rev().fold(BigInt::from(0), |number, word| (number << 64) | BigInt::from(*word))
}

/// Formats an action with its arguments.
pub fn show_action(table: &TableDescription, action: u32, data: &[u8]) -> String {
    let place = action as usize;
    let Some(described) = table.actions.get(place) else { return "?".to_owned() };
    let values = values(&table.table, place, data);
    let values = described.parameters.iter().zip(values).map(|(name, value)| format!("{name}:{value:#x}"));
    format!("{}({})", described.path, values.collect::<Vec<_>>().join(", "))
}

/// Formats a match on a field of a value set.
pub fn show_match(wanted: &Match) -> String {
    match wanted {
        Match::Any => "*".to_owned(),
        Match::Exact(value) => format!("{:#x}", value.int()),
        Match::Masked(value, mask) => format!("{value:#x}&&&{mask:#x}"),
        Match::Prefix(value, _, length) => format!("{value:#x}/{length}"),
        Match::Range(first, last) => format!("{first:#x}..{last:#x}"),
    }
}

/// Formats an entry in the form that can be parsed.
pub fn show(table: &TableDescription, entry: &Entry, reference: Option<&Reference>) -> String {
    let shape = &table.table;
    let mut parts = vec![shape.path.clone()];
    if shape.has_priorities() {
        parts.push(entry.priority.to_string());
    }
    for KeyOf { place, value, mask, range } in keys(shape, entry) {
        let described = &shape.keys[place];
        let text = match described.kind {
            layout::Match::Range => match range {
                Some((first, last)) => format!("{first:#x}..{last:#x}"),
                None => continue,
            },
            layout::Match::Lpm => format!("{value:#x}/{}", mask.magnitude().count_ones()),
            layout::Match::Ternary => format!("{value:#x}&&&{mask:#x}"),
            layout::Match::Exact | layout::Match::Selector => format!("{value:#x}"),
        };
        parts.push(format!("\"{}\":{text}", described.name));
    }
    parts.push(match reference {
        None => show_action(table, entry.action, &entry.data),
        Some(Reference::Member(id)) => format!("member(id:{id})"),
        Some(Reference::Group(id)) => format!("group(id:{id})"),
        Some(Reference::Set(actions)) if actions.len() == 1 => show_action(table, entry.action, &entry.data),
        // Only P4Runtime controllers create and read larger sets.
        Some(Reference::Set(actions)) => format!("actions(count:{})", actions.len()),
    });
    parts.join(" ")
}
