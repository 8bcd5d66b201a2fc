//! Reads table entries and default actions for P4Runtime: all that match a request.

use namehop_p4_compile::description::Identity;
use namehop_p4runtime::Status;
use namehop_p4runtime::device::Parts;
use namehop_p4runtime::info::Object;
use namehop_p4runtime::message::entity::Entity as Kind;
use namehop_p4runtime::message::table_action::Type as ActionKind;
use namehop_p4runtime::message::{Entity, TableEntry};

use super::tables::{Table, notes};
use super::{PART, Running, parts, places};
use crate::objects::rows::identity;
use crate::objects::state::{Extra, Notes};
use crate::program::Entry;

/// A filter on the entries of a table; fields that are not set match any entry.
struct Wanted {
    /// Identity of the entry; with `any_priority`, its last word is ignored.
    key: Option<Identity>,
    any_priority: bool,
    priority: i64,
    /// Index of the entry's own action.
    action: Option<u32>,
    notes: Notes,
}

impl Wanted {
    /// The filter of a request.
    fn of(table: &Table<'_>, given: &TableEntry) -> Result<Wanted, Status> {
        let any_priority = given.priority == 0 && table.described.table.has_priorities();
        let key = if given.r#match.is_empty() {
            None
        } else {
            let priority = if any_priority { 1 } else { given.priority };
            let whole = TableEntry { r#match: given.r#match.clone(), priority, ..TableEntry::default() };
            Some(identity(&table.entry(&whole, false)?.0))
        };
        let action = given.action.as_ref().map(|action| table.own_action(action)).transpose()?;
        Ok(Wanted { key, any_priority, priority: i64::from(given.priority), action, notes: notes(given) })
    }

    fn fit(&self, identity: &[u64], entry: &Entry, extra: Option<&Extra>) -> bool {
        let compared = identity.len() - usize::from(self.any_priority);
        let none = Notes::default();
        self.key.as_ref().is_none_or(|key| key[..compared] == identity[..compared])
            && (self.priority == 0 || self.priority == entry.priority)
            && self
                .action
                .is_none_or(|action| action == entry.action && extra.is_none_or(|extra| extra.reference.is_none()))
            && extra.map_or(&none, |extra| &extra.notes).fit(&self.notes)
    }
}

fn entity(entry: TableEntry) -> Entity {
    Entity { entity: Some(Kind::TableEntry(entry)) }
}

impl Running {
    pub(super) fn read_tables(&self, given: &TableEntry) -> Result<Parts<'_>, Status> {
        let numbers = places(&self.info.tables, "table", given.table_id)?;
        if given.is_default_action {
            let asked = notes(given);
            let all = numbers.into_iter().filter_map(move |number| self.default_entry(number, &asked));
            return Ok(parts(all.map(Ok)));
        }
        if given.table_id == 0 && (!given.r#match.is_empty() || given.priority != 0 || given.action.is_some()) {
            return Err(Status::invalid_argument("keys, priorities and actions need the id of one table"));
        }
        let mut wanted = Vec::new();
        for number in numbers {
            let state = self.objects.state();
            let table = Table { info: &self.info.tables[number], described: &state.description.tables[number] };
            wanted.push((number, Wanted::of(&table, given)?));
        }
        let asked = given.clone();
        let mut wanted = wanted.into_iter().peekable();
        let mut row = 0;
        Ok(Box::new(std::iter::from_fn(move || {
            loop {
                let (number, wanted_here) = wanted.peek()?;
                let number = *number;
                let state = self.objects.state();
                let table = Table { info: &self.info.tables[number], described: &state.description.tables[number] };
                let show = |identity: &[u64], entry: &Entry| {
                    entity(self.with_direct(&state, number, (identity, entry), &asked, &table))
                };
                let mut part = Vec::new();
                // Look up a single entry by its identity instead of scanning the table.
                let one = wanted_here.key.as_ref().filter(|_| !wanted_here.any_priority);
                let is_end = if let Some(identity) = one {
                    let found = state.entry(number, identity);
                    let found = found.filter(|entry| wanted_here.fit(identity, entry, state.extra(number, identity)));
                    part.extend(found.map(|entry| show(identity, &entry)));
                    true
                } else {
                    let first = row;
                    for (next, identity, entry) in state.entries_from(number, first).take(PART) {
                        row = next;
                        if wanted_here.fit(identity, &entry, state.extra(number, identity)) {
                            part.push(show(identity, &entry));
                        }
                    }
                    row == first
                };
                if is_end {
                    row = 0;
                    wanted.next();
                }
                if !part.is_empty() {
                    return Some(Ok(part));
                }
            }
        })))
    }

    /// The default action of a table, if its metadata match the request.
    fn default_entry(&self, number: usize, asked: &Notes) -> Option<Entity> {
        let state = self.objects.state();
        let table = Table { info: &self.info.tables[number], described: &state.description.tables[number] };
        let ((action, data), notes) = state.default(number)?;
        if !notes.fit(asked) {
            return None;
        }
        let mut action = table.show_action(*action, data);
        if let Some(ActionKind::ActionProfileActionSet(set)) = &action.r#type {
            let plain = set.action_profile_actions.first().and_then(|action| action.action.clone());
            action.r#type = plain.map(ActionKind::Action);
        }
        Some(entity(TableEntry {
            table_id: table.info.preamble().id,
            action: Some(action),
            is_default_action: true,
            controller_metadata: notes.number,
            metadata: notes.metadata.clone(),
            ..TableEntry::default()
        }))
    }
}
