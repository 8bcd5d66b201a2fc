//! Table entries and default actions: decoding for writes, and encoding for reads.

use namehop_p4_compile::description::TableDescription;
use namehop_p4_lang::interpret::table::{Match, RuntimeEntry};
use namehop_p4_lang::value::{self, Value};
use namehop_p4runtime::Status;
use namehop_p4runtime::info::{self, Object, match_field::MatchType};
use namehop_p4runtime::message::action::Param;
use namehop_p4runtime::message::field_match::FieldMatchType as FieldKind;
use namehop_p4runtime::message::field_match::{Exact, Lpm, Optional, Range, Ternary};
use namehop_p4runtime::message::table_action::Type as ActionKind;
use namehop_p4runtime::message::update::Type as UpdateType;
use namehop_p4runtime::message::{
    Action, ActionProfileAction, ActionProfileActionSet, FieldMatch, TableAction, TableEntry,
};
use num_bigint::BigInt;

use super::direct::Direct;
use super::keys::key_match;
use super::profiles::{internal, status, watched_by_port};
use super::{Running, bits, place};
use crate::objects::defaults::default_data;
use crate::objects::entry;
use crate::objects::error::ObjectError;
use crate::objects::profiles::{ActionOf, Reference, SetAction};
use crate::objects::rows::identity;
use crate::objects::state::{Extra, Notes, State};
use crate::program::{Change, Entry};

/// A table in p4info and in the compiled program.
pub(super) struct Table<'t> {
    pub(super) info: &'t info::Table,
    pub(super) described: &'t TableDescription,
}

impl Table<'_> {
    pub(super) fn bad(&self, reason: &str) -> Status {
        Status::invalid_argument(format!("table {}: {reason}", self.info.preamble().name))
    }

    /// The index of an action in the table's list, and its arguments.
    pub(super) fn action(&self, action: &Action, is_default: bool) -> Result<(usize, Vec<Value>), Status> {
        let place = self.place_of(action)?;
        let (described, listed) = (&self.described.actions[place], &self.described.table.actions[place]);
        if described.default_only && !is_default {
            return Err(self.bad(&format!("action {} can only be the default action", described.path)));
        }
        if described.table_only && is_default {
            return Err(self.bad(&format!("action {} cannot be the default action", described.path)));
        }
        if action.params.len() != listed.arguments.len() {
            let (count, given) = (listed.arguments.len(), action.params.len());
            return Err(self.bad(&format!("action {} has {count} parameters, but {given} were given", described.path)));
        }
        let mut values = Vec::new();
        for (number, (name, width)) in described.parameters.iter().zip(&listed.arguments).enumerate() {
            let given = action.params.iter().find(|param| param.param_id == number as u32 + 1);
            let given = given.ok_or_else(|| self.bad(&format!("action {} needs {name}", described.path)))?;
            let what = || format!("table {}, action {}, {name}", self.info.preamble().name, described.path);
            values.push(Value::Int(bits::read(&what, &given.value, *width)?));
        }
        Ok((place, values))
    }

    /// The index of the action in a read request for entries with their own actions; its arguments are ignored.
    pub(super) fn own_action(&self, action: &TableAction) -> Result<u32, Status> {
        let Some(ActionKind::Action(action)) = &action.r#type else {
            return Err(Status::unimplemented(
                "entries can be selected only by their own action, not by members, groups or sets",
            ));
        };
        self.place_of(action).map(|place| place as u32)
    }

    fn place_of(&self, action: &Action) -> Result<usize, Status> {
        let found = self.info.action_refs.iter().position(|listed| listed.id == action.action_id);
        found.ok_or_else(|| self.bad(&format!("it has no action with id {:#010x}", action.action_id)))
    }

    /// The action of an entry, with index and arguments, or its reference.
    fn table_action(&self, action: &TableAction, is_default: bool) -> Result<Chosen, Status> {
        match &action.r#type {
            Some(ActionKind::Action(action)) if self.info.implementation_id == 0 || is_default => {
                self.action(action, is_default).map(|(place, values)| Chosen::Own(place, values))
            }
            Some(ActionKind::Action(_)) => {
                Err(self.bad("it has an action profile: give an action_profile_action_set with one action"))
            }
            Some(_) if is_default => Err(self.bad("a default action must be an action, not a member, group or set")),
            Some(_) if self.info.implementation_id == 0 => Err(self.bad("it has no action profile")),
            Some(ActionKind::ActionProfileMemberId(id)) => Ok(Chosen::Other(Reference::Member(*id))),
            Some(ActionKind::ActionProfileGroupId(id)) => Ok(Chosen::Other(Reference::Group(*id))),
            Some(ActionKind::ActionProfileActionSet(set)) => self.action_set(set),
            None => Err(self.bad("the action is empty")),
        }
    }

    /// A one-shot action set: a single action, or several with weights.
    fn action_set(&self, set: &ActionProfileActionSet) -> Result<Chosen, Status> {
        if set.group_action.is_some() || set.action_selection_mode != 0 || set.size_semantics != 0 {
            return Err(Status::unimplemented(
                "sets with group_action, action_selection_mode or size_semantics are not supported: a hash selects \
                 members, and weights are numbers of slots",
            ));
        }
        let mut actions = Vec::new();
        for weighted in &set.action_profile_actions {
            watched_by_port(weighted.watch)?;
            let Some(action) = &weighted.action else { return Err(self.bad("an action of a set is empty")) };
            let (place, values) = self.action(action, false)?;
            let weight = u32::try_from(weighted.weight).ok().filter(|weight| *weight > 0);
            let weight = weight.ok_or_else(|| self.bad("an action of a set must have a weight of at least 1"))?;
            let path = self.described.actions[place].path.clone();
            let watch_port = weighted.watch_port.clone();
            actions.push(SetAction { action: ActionOf { path, values }, weight, watch_port });
        }
        match &actions[..] {
            [] => Err(self.bad("an action set has no actions")),
            [_, _, ..] if self.described.table.members.is_none() => {
                Err(self.bad("its action profile is not a selector, so an action set must have one action"))
            }
            _ => Ok(Chosen::Other(Reference::Set(actions))),
        }
    }

    /// Decodes an entry. Without an action (for deletion and lookup), the first action stands for it.
    pub(super) fn entry(&self, given: &TableEntry, needs_action: bool) -> Result<(Entry, Option<Reference>), Status> {
        let mut keys = Vec::new();
        for (number, key) in self.described.table.keys.iter().enumerate() {
            let Some(field) = self.info.match_fields.iter().find(|field| field.id as usize == number + 1) else {
                // A selector's key.
                keys.push(Match::Any);
                continue;
            };
            let mut values = given.r#match.iter().filter(|value| value.field_id == field.id);
            let value = values.next();
            if values.next().is_some() {
                return Err(self.bad(&format!("duplicate key {}", key.name)));
            }
            let of = || format!("table {}", self.info.preamble().name);
            keys.push(key_match(&of, field, key.signed, value)?);
        }
        let known = |id: u32| self.info.match_fields.iter().any(|field| field.id == id);
        if let Some(unknown) = given.r#match.iter().find(|value| !known(value.field_id)) {
            return Err(self.bad(&format!("it has no key with id {}", unknown.field_id)));
        }
        match (self.described.table.has_priorities(), given.priority) {
            (true, ..=0) => {
                return Err(
                    self.bad("it has ternary, range or optional keys, so entries need a priority of at least 1")
                );
            }
            (false, priority) if priority != 0 => return Err(self.bad("its entries cannot have priorities")),
            _ => {}
        }
        let (action, arguments, reference) = match &given.action {
            Some(action) if needs_action => match self.table_action(action, false)? {
                Chosen::Own(place, values) => (place, values, None),
                Chosen::Other(reference) => (0, Vec::new(), Some(reference)),
            },
            None if needs_action => return Err(self.bad("an entry needs an action")),
            _ => (0, Vec::new(), None),
        };
        let priority = i64::from(given.priority);
        let entry = RuntimeEntry { keys, action, arguments, priority, cell: 0, packets: 0, bytes: 0 };
        Ok((entry::packed(&self.described.table, &entry), reference))
    }

    /// Encodes the reference of an entry.
    fn show_reference(&self, reference: &Reference, actions: &[info::Action]) -> TableAction {
        let weighted = |set: &SetAction| ActionProfileAction {
            action: Some(show_action(&set.action, actions)),
            weight: set.weight as i32,
            watch_port: set.watch_port.clone(),
            ..ActionProfileAction::default()
        };
        let kind = match reference {
            Reference::Member(id) => ActionKind::ActionProfileMemberId(*id),
            Reference::Group(id) => ActionKind::ActionProfileGroupId(*id),
            Reference::Set(set) => ActionKind::ActionProfileActionSet(ActionProfileActionSet {
                action_profile_actions: set.iter().map(weighted).collect(),
                ..ActionProfileActionSet::default()
            }),
        };
        TableAction { r#type: Some(kind) }
    }

    pub(super) fn show_action(&self, action: u32, data: &[u8]) -> TableAction {
        let place = action as usize;
        let id = self.info.action_refs.get(place).map_or(0, |action| action.id);
        let values = entry::values(&self.described.table, place, data);
        let action = Action { action_id: id, params: fields(values) };
        let kind = if self.info.implementation_id == 0 {
            ActionKind::Action(action)
        } else {
            let action = ActionProfileAction { action: Some(action), weight: 1, ..ActionProfileAction::default() };
            ActionKind::ActionProfileActionSet(ActionProfileActionSet {
                action_profile_actions: vec![action],
                ..ActionProfileActionSet::default()
            })
        };
        TableAction { r#type: Some(kind) }
    }

    pub(super) fn show(&self, entry: &Entry, extra: Option<&Extra>, actions: &[info::Action]) -> TableEntry {
        let shape = &self.described.table;
        let mut matches = Vec::new();
        for key in entry::keys(shape, entry) {
            let id = key.place as u32 + 1;
            let Some(field) = self.info.match_fields.iter().find(|field| field.id == id) else { continue };
            let (width, is_signed) = (field.bitwidth as u32, shape.keys[key.place].signed);
            let is_all = key.mask == BigInt::from(0);
            let (value, mask) = (bits::write(&key.value), bits::write(&key.mask));
            let kind = match field.match_type() {
                MatchType::Exact => FieldKind::Exact(Exact { value }),
                MatchType::Lpm | MatchType::Ternary | MatchType::Optional if is_all => continue,
                MatchType::Optional => FieldKind::Optional(Optional { value }),
                MatchType::Lpm => FieldKind::Lpm(Lpm { value, prefix_len: key.mask.magnitude().count_ones() as i32 }),
                MatchType::Ternary => FieldKind::Ternary(Ternary { value, mask }),
                MatchType::Range => {
                    let Some((low, high)) = key.range else { continue };
                    let (lowest, highest) = value::limits(width, is_signed);
                    if (&low, &high) == (&value::wrap(&lowest, width, false), &value::wrap(&highest, width, false)) {
                        continue;
                    }
                    FieldKind::Range(Range { low: bits::write(&low), high: bits::write(&high) })
                }
                MatchType::Unspecified => continue,
            };
            matches.push(FieldMatch { field_id: id, field_match_type: Some(kind) });
        }
        matches.sort_by_key(|value| value.field_id);
        TableEntry {
            table_id: self.info.preamble().id,
            r#match: matches,
            action: Some(match extra.and_then(|extra| extra.reference.as_ref()) {
                Some(reference) => self.show_reference(reference, actions),
                None => self.show_action(entry.action, &entry.data),
            }),
            idle_timeout_ns: extra.map_or(0, |extra| extra.timeout_ns),
            controller_metadata: extra.map_or(0, |extra| extra.notes.number),
            metadata: extra.map(|extra| extra.notes.metadata.clone()).unwrap_or_default(),
            priority: i32::try_from(entry.priority).unwrap_or(i32::MAX),
            ..TableEntry::default()
        }
    }
}

/// The controller's metadata of an entry.
pub(super) fn notes(entry: &TableEntry) -> Notes {
    Notes { metadata: entry.metadata.clone(), number: entry.controller_metadata }
}

/// The action of an entry: its own, or a reference.
enum Chosen {
    Own(usize, Vec<Value>),
    Other(Reference),
}

/// Encodes action arguments, with parameter ids from 1.
fn fields(values: impl IntoIterator<Item = BigInt>) -> Vec<Param> {
    let field = |(place, value): (usize, BigInt)| Param { param_id: place as u32 + 1, value: bits::write(&value) };
    values.into_iter().enumerate().map(field).collect()
}

/// Encodes an action of a profile.
pub(super) fn show_action(action: &ActionOf, actions: &[info::Action]) -> Action {
    let known = actions.iter().find(|known| known.preamble().name == action.path);
    let params = fields(action.values.iter().map(Value::int));
    Action { action_id: known.map_or(0, |known| known.preamble().id), params }
}

impl Running {
    pub(super) fn change_table(&self, update: UpdateType, given: &TableEntry) -> Result<(), Status> {
        let number = place(&self.info.tables, "table", given.table_id)?;
        let mut state = self.objects.state();
        let described = state.description.tables.get(number).ok_or_else(|| Status::internal("a table is missing"))?;
        let table = Table { info: &self.info.tables[number], described };
        if given.is_default_action {
            table.check_direct(given)?;
            return self.change_default(&mut state, update, number, given);
        }
        // For a deletion, only the key matters.
        let direct = if update == UpdateType::Delete { Direct::default() } else { table.check_direct(given)? };
        let name = table.info.preamble().name.as_str();
        if described.entries_are_const && update != UpdateType::Modify {
            return Err(Status::permission_denied(format!("the entries of table {name} are constant")));
        }
        if update == UpdateType::Insert && table.info.match_fields.is_empty() {
            return Err(table.bad("it has no keys, so it has only the default action"));
        }
        let has_action = update != UpdateType::Delete && given.action.is_some();
        let (entry, reference) = table.entry(given, has_action)?;
        let key = identity(&entry);
        // For an insertion, whether the entry exists is checked only if adding it fails, which saves a lookup in most
        // cases.
        let known = if update == UpdateType::Insert { None } else { state.entry(number, &key) };
        if known.is_some() && state.is_const(number, &key) {
            if update == UpdateType::Delete || has_action || has_more(given) {
                return Err(Status::permission_denied(format!("this entry of table {name} is constant")));
            }
            // Counter and meter of a constant entry may still be set.
            let cell = known.and_then(|entry| state.cell(number, &entry));
            cell.into_iter().for_each(|cell| self.set_direct(&described.table.cells, cell, &direct));
            return Ok(());
        }
        if update != UpdateType::Delete && !has_action {
            return Err(table.bad("an entry needs an action"));
        }
        let (change, new) = match (update, known) {
            (UpdateType::Insert, _) => (Change::Insert, entry),
            (UpdateType::Modify, Some(_)) => (Change::Modify, entry),
            // The deletion compares the length of the action data with the action's, so use the real entry.
            (UpdateType::Delete, Some(known)) => (Change::Delete, known),
            _ => return Err(Status::not_found(format!("table {name} has no entry with this key"))),
        };
        if let Err(error) = state.put(number, change, new, reference) {
            return Err(match error {
                ObjectError::Table(reason) if change == Change::Insert && state.entry(number, &key).is_some() => {
                    Status::already_exists(reason.to_string())
                }
                error => status(error),
            });
        }
        if change != Change::Delete {
            state.set_extra(number, &key, given.idle_timeout_ns, notes(given));
            if direct.is_something() {
                let cell = state.entry(number, &key).and_then(|entry| state.cell(number, &entry));
                let cells = &state.description.tables[number].table.cells;
                cell.into_iter().for_each(|cell| self.set_direct(cells, cell, &direct));
            }
        }
        Ok(())
    }

    fn change_default(
        &self,
        state: &mut State,
        update: UpdateType,
        number: usize,
        given: &TableEntry,
    ) -> Result<(), Status> {
        let described = &state.description.tables[number];
        let table = Table { info: &self.info.tables[number], described };
        if given.counter_data.is_some() || given.meter_config.is_some() || given.idle_timeout_ns != 0 {
            return Err(table.bad("a default action has no counter, meter or time-out"));
        }
        if described.default_is_const {
            let name = &table.info.preamble().name;
            return Err(Status::permission_denied(format!("the default action of table {name} is constant")));
        }
        if update != UpdateType::Modify || !given.r#match.is_empty() || given.priority != 0 {
            return Err(table.bad("a default action can only be modified, and has no keys and no priority"));
        }
        let Some(action) = &given.action else {
            return state.reset_default(number).map_err(internal);
        };
        let Chosen::Own(action, values) = table.table_action(action, true)? else {
            return Err(Status::internal("a default action must not be a reference"));
        };
        let data = default_data(&described.table, action, &values);
        state.put_default(number, action as u32, data).map_err(internal)?;
        state.set_default_notes(number, notes(given));
        Ok(())
    }
}

/// True if a change sets more than an entry's counter and meter.
fn has_more(given: &TableEntry) -> bool {
    given.idle_timeout_ns != 0 || notes(given) != Notes::default()
}
