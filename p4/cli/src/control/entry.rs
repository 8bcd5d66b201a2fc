//! Converts table entries between P4Runtime messages and text in the form of test files
//! (`table [priority] key:value … action(name:value, …)`).

use namehop_p4_lang::entry_text::{ActionCall, EntryText, Number, normal, resolve};
use namehop_p4_lang::value;
use namehop_p4runtime::info::action_ref::Scope;
use namehop_p4runtime::info::match_field::MatchType;
use namehop_p4runtime::info::{self, MatchField, Object, P4Info};
use namehop_p4runtime::message::action::Param;
use namehop_p4runtime::message::table_action::Type as ActionKind;
use namehop_p4runtime::message::{
    Action, ActionProfileAction, ActionProfileActionSet, FieldMatch, TableAction, TableEntry,
};
use num_bigint::BigInt;
use num_traits::ToPrimitive;

use super::matches::{self, Bounds};
use super::names::{action_with, object, path, table_with};
use super::values::{decoded, encoded};

/// The priority of an entry without one.
const USUAL_PRIORITY: i32 = 1;

/// Finds a table by its name.
pub(crate) fn table<'i>(info: &'i P4Info, name: &str) -> Result<&'i info::Table, String> {
    object("table", &info.tables, name)
}

/// True if entries of the table have priorities. In other tables, only keys distinguish entries.
fn has_priorities(table: &info::Table) -> bool {
    let is_ranked =
        |field: &MatchField| matches!(field.match_type(), MatchType::Ternary | MatchType::Range | MatchType::Optional);
    table.match_fields.iter().any(is_ranked)
}

/// Encodes an action call, and finds the action in the list of its table.
///
/// # Errors
/// Returns what is wrong with the call.
pub(crate) fn action(info: &P4Info, table: &info::Table, call: &ActionCall<'_>) -> Result<(Action, Scope), String> {
    let of = path(table);
    let names = table.action_refs.iter().map(|listed| action_with(info, listed.id).map_or("", path));
    let place = resolve(call.name, names).map_err(|reason| format!("table {of}, action: {reason}"))?;
    let listed = &table.action_refs[place];
    let known = action_with(info, listed.id).ok_or_else(|| format!("table {of}: an action is missing"))?;
    let name = path(known);
    if let Some((unknown, _)) =
        call.arguments.iter().find(|(given, _)| !known.params.iter().any(|param| param.name == *given))
    {
        return Err(format!("table {of}: action {name} has no parameter '{unknown}'"));
    }
    let mut params = Vec::new();
    for param in &known.params {
        let given = call.arguments.iter().find(|(given, _)| *given == param.name);
        let (_, number) = given.ok_or_else(|| format!("table {of}: action {name} needs '{}'", param.name))?;
        let width = param.bitwidth as u32;
        if !value::fits(number, width) {
            return Err(format!("table {of}: {number} does not fit into '{}' of {width} bits", param.name));
        }
        params.push(Param { param_id: param.id, value: encoded(&value::wrap(number, width, false)) });
    }
    Ok((Action { action_id: listed.id, params }, listed.scope()))
}

/// The member or group that an entry has instead of an action: `member(id:1)` or `group(id:1)`, unless the program has
/// an action of this name.
fn reference(info: &P4Info, table: &info::Table, call: &ActionCall<'_>) -> Result<Option<ActionKind>, String> {
    let names = table.action_refs.iter().map(|listed| action_with(info, listed.id).map_or("", path));
    if table.implementation_id == 0 || !matches!(call.name, "member" | "group") || resolve(call.name, names).is_ok() {
        return Ok(None);
    }
    let id = match &call.arguments[..] {
        [("id", id)] => id.to_u32(),
        _ => None,
    };
    let id = id.ok_or_else(|| format!("table {}: write {}(id:NUMBER)", path(table), call.name))?;
    Ok(Some(match call.name {
        "group" => ActionKind::ActionProfileGroupId(id),
        _ => ActionKind::ActionProfileMemberId(id),
    }))
}

/// Encodes the action of an entry.
fn entry_action(info: &P4Info, table: &info::Table, call: &ActionCall<'_>) -> Result<TableAction, String> {
    let kind = match reference(info, table, call)? {
        Some(reference) => reference,
        None => {
            let (action, scope) = action(info, table, call)?;
            if scope == Scope::DefaultOnly {
                let name = action_with(info, action.action_id).map_or("", path);
                return Err(format!("table {}: action {name} can only be the default action", path(table)));
            }
            if table.implementation_id == 0 {
                ActionKind::Action(action)
            } else {
                let only = ActionProfileAction { action: Some(action), weight: 1, ..ActionProfileAction::default() };
                let actions = vec![only];
                let set = ActionProfileActionSet { action_profile_actions: actions, ..Default::default() };
                ActionKind::ActionProfileActionSet(set)
            }
        }
    };
    Ok(TableAction { r#type: Some(kind) })
}

/// The keys of an entry, in the order of the table.
fn keys(table: &info::Table, text: &EntryText<'_>) -> Result<Vec<FieldMatch>, String> {
    let of = path(table);
    let fields = &table.match_fields;
    let mut given: Vec<Option<&Number>> = vec![None; fields.len()];
    for (name, number) in &text.keys {
        let name = normal(name);
        let fits = |field: &MatchField| {
            let key = normal(&field.name);
            key.strip_suffix(&*name).is_some_and(|above| above.is_empty() || above.ends_with('.'))
        };
        let mut found = fields.iter().enumerate().filter(|(_, field)| fits(field));
        match (found.next(), found.next()) {
            (Some((place, _)), None) if given[place].is_none() => given[place] = Some(number),
            (Some(_), None) => return Err(format!("table {of}: duplicate key '{name}'")),
            (Some(_), Some(_)) => {
                return Err(format!("table {of}: '{name}' matches several keys; write more of the name"));
            }
            (None, _) => {
                let names: Vec<&str> = fields.iter().map(|field| &*field.name).collect();
                return Err(format!("table {of} has no key '{name}'; its keys are {}", names.join(", ")));
            }
        }
    }
    let what = || format!("table {of}");
    let mut all = Vec::new();
    for (field, number) in fields.iter().zip(given) {
        all.extend(matches::encode(&what, field, number)?);
    }
    Ok(all)
}

/// Encodes an entry. An entry without an action refers to one that exists.
///
/// # Errors
/// Returns what is wrong with the entry.
pub(crate) fn encode(info: &P4Info, text: &EntryText<'_>) -> Result<TableEntry, String> {
    let table = table(info, text.table)?;
    let of = path(table);
    if table.is_const_table {
        return Err(format!("the entries of table {of} are constant"));
    }
    let action = text.action.as_ref().map(|call| entry_action(info, table, call)).transpose()?;
    let r#match = keys(table, text)?;
    let priority = match text.priority {
        _ if !has_priorities(table) => 0,
        None => USUAL_PRIORITY,
        Some(given) => {
            let fits = i32::try_from(given).ok().filter(|given| *given >= 1);
            fits.ok_or_else(|| format!("table {of}: priority {given} is not from 1 to {}", i32::MAX))?
        }
    };
    Ok(TableEntry { table_id: table.preamble().id, r#match, action, priority, ..TableEntry::default() })
}

/// Formats an action with its arguments.
pub(crate) fn show_action(info: &P4Info, action: &Action) -> String {
    let Some(known) = action_with(info, action.action_id) else { return "?".to_owned() };
    let value = |param: &info::action::Param| {
        let given = action.params.iter().find(|given| given.param_id == param.id);
        let value = given.map_or(BigInt::from(0), |given| decoded(&given.value));
        format!("{}:{value:#x}", param.name)
    };
    format!("{}({})", path(known), known.params.iter().map(value).collect::<Vec<_>>().join(", "))
}

/// Formats an entry in the form that can be parsed.
pub(crate) fn show(info: &P4Info, entry: &TableEntry) -> String {
    let Some(table) = table_with(info, entry.table_id) else { return "?".to_owned() };
    let mut parts = vec![path(table).to_owned()];
    if has_priorities(table) {
        parts.push(entry.priority.to_string());
    }
    for field in packed(table) {
        let bounds = matches::bounds(field, &entry.r#match);
        parts.push(format!("\"{}\":{}", field.name, matches::show(field, &bounds)));
    }
    parts.push(match entry.action.as_ref().and_then(|action| action.r#type.as_ref()) {
        None => "?".to_owned(),
        Some(ActionKind::Action(action)) => show_action(info, action),
        Some(ActionKind::ActionProfileMemberId(id)) => format!("member(id:{id})"),
        Some(ActionKind::ActionProfileGroupId(id)) => format!("group(id:{id})"),
        Some(ActionKind::ActionProfileActionSet(set)) => match &set.action_profile_actions[..] {
            [ActionProfileAction { action: Some(action), .. }] => show_action(info, action),
            // Only controllers create larger sets.
            actions => format!("actions(count:{})", actions.len()),
        },
    });
    parts.join(" ")
}

/// The keys of a table in the order in which entries are listed: prefixes follow all others.
fn packed(table: &info::Table) -> impl Iterator<Item = &MatchField> {
    let of =
        |prefix: bool| table.match_fields.iter().filter(move |field| (field.match_type() == MatchType::Lpm) == prefix);
    of(false).chain(of(true))
}

/// The position of an entry among all listed entries: bytes that compare as the entries do.
pub(crate) fn order(info: &P4Info, entry: &TableEntry) -> Vec<u8> {
    let place = info.tables.iter().position(|table| table.preamble().id == entry.table_id);
    let mut order = (place.unwrap_or_default() as u32).to_be_bytes().to_vec();
    let Some(table) = table_with(info, entry.table_id) else { return order };
    let all: Vec<(u32, Bounds)> =
        packed(table).map(|field| (field.bitwidth as u32, matches::bounds(field, &entry.r#match))).collect();
    let lpm = packed(table).zip(&all).filter(|(field, _)| field.match_type() == MatchType::Lpm);
    let prefix: u64 = lpm.map(|(_, (_, bounds))| bounds.mask.magnitude().count_ones()).sum();
    order.extend(prefix.to_be_bytes());
    let mut put = |width: u32, number: &BigInt| {
        let bytes = encoded(number);
        order.extend(vec![0; (width.div_ceil(8) as usize).saturating_sub(bytes.len())]);
        order.extend(bytes);
    };
    all.iter().for_each(|(width, bounds)| put(*width, &bounds.value));
    all.iter().for_each(|(width, bounds)| put(*width, &bounds.mask));
    for (width, bounds) in &all {
        if let Some((first, last)) = &bounds.range {
            put(*width, first);
            put(*width, last);
        }
    }
    order.extend(entry.priority.to_be_bytes());
    order
}
