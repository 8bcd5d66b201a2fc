//! What is in the tables of a program that runs: changed here and there together, one request at a time.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use namehop_switch::program::{Change, Entry, Program};

use super::describe::Description;
use super::entry;
use crate::stf::command;

/// How many faulty lines of a file are named.
const NAMED_LINES: usize = 10;

/// What tells entries of a table apart.
pub type Identity = (u32, Vec<u64>, Vec<u64>, Vec<u64>, i64);

/// What tells this entry apart from others of its table.
pub fn identity(entry: &Entry) -> Identity {
    (entry.prefix, entry.key.clone(), entry.mask.clone(), entry.ranges.clone(), entry.priority)
}

/// Something whose tables can be changed.
pub trait Tables {
    /// Changes a table; nothing has changed after an error, which names the table.
    fn change(&self, table: usize, change: Change, entry: &Entry) -> Result<(), String>;
    /// Sets what keys without an entry get.
    fn set_default(&self, table: usize, action: u32, data: &[u8]) -> Result<(), String>;
}

impl Tables for Arc<Program> {
    fn change(&self, table: usize, change: Change, entry: &Entry) -> Result<(), String> {
        Program::change(self, table, change, entry)
    }

    fn set_default(&self, table: usize, action: u32, data: &[u8]) -> Result<(), String> {
        Program::set_default(self, table, action, data)
    }
}

/// The tables of a program, and what is in them.
pub struct State<T> {
    pub description: Description,
    tables: T,
    entries: Vec<BTreeMap<Identity, Entry>>,
    /// What the program began with.
    initial: Vec<(usize, Entry)>,
    defaults: Vec<Option<DefaultAction>>,
    initial_defaults: Vec<Option<DefaultAction>>,
}

/// The place of a default action in the table's list, and its values.
pub type DefaultAction = (u32, Vec<u8>);

impl<T: Tables> State<T> {
    /// Of tables in which these entries are already.
    pub fn new(description: Description, tables: T, initial: Vec<(usize, Entry)>) -> Self {
        let mut entries: Vec<BTreeMap<_, _>> = description.tables.iter().map(|_| BTreeMap::new()).collect();
        for (table, entry) in &initial {
            if let Some(known) = entries.get_mut(*table) {
                known.insert(identity(entry), entry.clone());
            }
        }
        let defaults = vec![None; description.tables.len()];
        State { description, tables, entries, initial, initial_defaults: defaults.clone(), defaults }
    }

    /// The default actions that tables have already.
    pub fn with_defaults(mut self, list: Vec<(usize, u32, Vec<u8>)>) -> Self {
        for (table, action, data) in list {
            if let Some(known) = self.defaults.get_mut(table) {
                *known = Some((action, data));
            }
        }
        self.initial_defaults.clone_from(&self.defaults);
        self
    }

    /// Makes tables as they were when the program began.
    pub fn reset(&mut self) -> Result<(), String> {
        for table in 0..self.entries.len() {
            if self.description.tables[table].entries_are_const {
                continue;
            }
            while let Some(entry) = self.entries[table].values().next().cloned() {
                self.apply(table, Change::Delete, entry)?;
            }
            for (_, entry) in self.initial.clone().into_iter().filter(|(place, _)| *place == table) {
                self.apply(table, Change::Insert, entry)?;
            }
            self.reset_default(table)?;
        }
        Ok(())
    }

    /// The entry of a table with this identity.
    pub fn entry(&self, table: usize, identity: &Identity) -> Option<&Entry> {
        self.entries.get(table)?.get(identity)
    }

    /// Entries of a table behind this one, or the first ones; so many at most.
    pub fn entries_after(&self, table: usize, after: Option<&Identity>, most: usize) -> Vec<(Identity, Entry)> {
        let Some(entries) = self.entries.get(table) else { return Vec::new() };
        let first = after.map_or(Bound::Unbounded, Bound::Excluded);
        let range = entries.range::<Identity, _>((first, Bound::Unbounded));
        range.take(most).map(|(identity, entry)| (identity.clone(), entry.clone())).collect()
    }

    /// What keys without an entry get.
    pub fn default(&self, table: usize) -> Option<&DefaultAction> {
        self.defaults.get(table)?.as_ref()
    }

    /// Sets it.
    pub fn put_default(&mut self, table: usize, action: u32, data: Vec<u8>) -> Result<(), String> {
        self.tables.set_default(table, action, &data)?;
        self.defaults[table] = Some((action, data));
        Ok(())
    }

    /// Sets it to what the program has.
    pub fn reset_default(&mut self, table: usize) -> Result<(), String> {
        match self.initial_defaults[table].clone() {
            Some((action, data)) if self.defaults[table] != self.initial_defaults[table] => {
                self.put_default(table, action, data)
            }
            _ => Ok(()),
        }
    }

    /// Changes one entry, given as text.
    pub fn change(&mut self, change: Change, text: &str) -> Result<(), String> {
        let text = command::entry(text)?;
        if text.action.is_none() && change != Change::Delete {
            return Err(format!("an action is missing, for table {}", text.table));
        }
        let (table, mut entry) = entry::read(&self.description, &text)?;
        if change == Change::Delete {
            // The size of its values is compared with that of its action.
            let known = self.entries[table].get(&identity(&entry));
            let path = &self.description.tables[table].table.path;
            entry = known.cloned().ok_or_else(|| format!("table {path} has no entry with this key"))?;
        }
        self.apply(table, change, entry)
    }

    /// Changes one entry.
    pub fn apply(&mut self, table: usize, change: Change, entry: Entry) -> Result<(), String> {
        self.tables.change(table, change, &entry)?;
        match change {
            Change::Insert | Change::Modify => self.entries[table].insert(identity(&entry), entry),
            Change::Delete => self.entries[table].remove(&identity(&entry)),
        };
        Ok(())
    }

    /// Sets the default action of a table: `table action(name:value, …)`.
    pub fn set_default(&mut self, text: &str) -> Result<(), String> {
        let (table, call) = command::default_action(text)?;
        let place = entry::table(&self.description, &table)?;
        let described = &self.description.tables[place];
        let path = &described.table.path;
        if described.default_is_const {
            return Err(format!("the default action of table {path} is constant"));
        }
        let (action, values) = entry::action(described, &call)?;
        if described.actions[action].table_only {
            return Err(format!("table {path}: action {} is for entries only", described.actions[action].path));
        }
        let listed = &described.table.actions[action];
        let data = crate::emit::lines::data_bytes(listed, &crate::lower::pack_arguments(listed, &values));
        self.put_default(place, action as u32, data)
    }

    /// Adds all entries of a text, one a line; none when one cannot be added. Gives how many.
    pub fn load(&mut self, text: &str) -> Result<usize, String> {
        let mut read = Vec::new();
        let mut faults = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or("").trim();
            if line.is_empty() {
                continue;
            }
            let entry = command::entry(line).and_then(|text| match text.action {
                Some(_) => entry::read(&self.description, &text),
                None => Err("an action is missing".to_owned()),
            });
            match entry {
                Ok((table, entry)) => read.push((number + 1, table, entry)),
                Err(reason) if faults.len() < NAMED_LINES => faults.push(format!("line {}: {reason}", number + 1)),
                Err(_) => {}
            }
        }
        if !faults.is_empty() {
            return Err(format!("nothing was loaded: {}", faults.join("; ")));
        }
        for place in 0..read.len() {
            let (line, table, entry) = read[place].clone();
            let Err(reason) = self.apply(table, Change::Insert, entry) else { continue };
            for (_, table, entry) in read.drain(..place).rev() {
                self.apply(table, Change::Delete, entry)
                    .map_err(|failed| format!("line {line}: {reason}; and {failed}"))?;
            }
            return Err(format!("nothing was loaded: line {line}: {reason}"));
        }
        Ok(read.len())
    }

    /// All entries of a table, or of all, in the form in which they are loaded.
    pub fn list(&self, table: Option<&str>) -> Result<Vec<String>, String> {
        let only = table.map(|name| entry::table(&self.description, name)).transpose()?;
        let all = self.description.tables.iter().zip(&self.entries).enumerate();
        let wanted = all.filter(|(place, _)| only.is_none_or(|only| only == *place));
        Ok(wanted.flat_map(|(_, (table, entries))| entries.values().map(|entry| entry::show(table, entry))).collect())
    }
}
