//! Tables in tests: omitted keys match anything.

use num_bigint::BigInt;

use super::{Operation, Test};
use crate::entry_text::{ActionCall, Number, normal, resolve};
use crate::interpret::Object;
use crate::interpret::table::{Match, RuntimeEntry, key_value};
use crate::tree::{Function, Table, Target};
use crate::types::Ty;
use crate::value::{self, Value};

/// A table that was found by name.
struct Found<'p> {
    object: usize,
    number: usize,
    control: usize,
    path: String,
    table: &'p Table,
}

impl<'p> Test<'p> {
    fn table(&self, name: &str) -> Result<Found<'p>, String> {
        let mut all = Vec::new();
        for (object, unit) in self.switch.objects.iter().enumerate() {
            let Object::Unit(unit) = unit else { continue };
            let Some(control) = unit.control() else { continue };
            for (number, state) in unit.tables.iter().enumerate() {
                let table = &self.program.controls[control].tables[number];
                all.push((state.path.clone(), Found { object, number, control, path: unit.path.clone(), table }));
            }
        }
        let place = resolve(name, all.iter().map(|(path, _)| &**path)).map_err(|reason| format!("table: {reason}"))?;
        Ok(all.swap_remove(place).1)
    }

    fn function(&self, found: &Found<'p>, target: &Target) -> Option<&'p Function> {
        self.program.action(found.control, target)
    }

    /// An action of a table by its name, with arguments for the parameters that the control plane sets.
    fn action(&self, found: &Found<'p>, call: &ActionCall<'_>) -> Result<(usize, Vec<Value>), String> {
        let mut names = Vec::new();
        for action in &found.table.actions {
            let function = self.function(found, &action.action).ok_or("an action is missing")?;
            names.push(function.control_name(&action.action, &found.path));
        }
        let place =
            resolve(call.name, names.iter().map(|name| &**name)).map_err(|reason| format!("action: {reason}"))?;
        let action = &found.table.actions[place];
        let function = self.function(found, &action.action).ok_or("an action is missing")?;
        let parameters = &function.parameters[action.bound.len()..];
        if let Some((name, _)) = call.arguments.iter().find(|(name, _)| !parameters.iter().any(|p| *p.name == **name)) {
            return Err(format!("action {} has no parameter '{name}'", call.name));
        }
        let mut values = Vec::new();
        for parameter in parameters {
            let argument = call.arguments.iter().find(|(name, _)| *parameter.name == **name);
            let (_, number) = argument.ok_or_else(|| format!("the argument '{}' is missing", parameter.name))?;
            values.push(key_value(&self.program.types, number, parameter.ty));
        }
        Ok((place, values))
    }

    pub(super) fn set_default(&mut self, table: &str, call: &ActionCall<'_>) -> Result<(), String> {
        let found = self.table(table)?;
        let action = self.action(&found, call)?;
        if found.table.actions[action.0].table_only {
            return Err(format!("the action {} cannot be the default action of table {table}", call.name));
        }
        if found.table.default_is_const {
            return Err(format!("the default action of table {table} is constant"));
        }
        if let Some(Object::Unit(unit)) = self.switch.objects.get_mut(found.object) {
            unit.tables[found.number].default = Some(action.clone());
        }
        self.record(Operation::Default(found.object, found.number, action.0, action.1));
        Ok(())
    }

    pub(super) fn add(
        &mut self,
        table: &str,
        priority: Option<i64>,
        keys: &[(&str, Number)],
        call: &ActionCall<'_>,
    ) -> Result<(), String> {
        let found = self.table(table)?;
        if found.table.entries_are_const {
            return Err(format!("the entries of table {table} are constant"));
        }
        let (action, arguments) = self.action(&found, call)?;
        if found.table.actions[action].default_only {
            return Err(format!("the action {} can only be the default action of table {table}", call.name));
        }
        let mut given: Vec<Option<&Number>> = vec![None; found.table.keys.len()];
        for (name, number) in keys {
            let name = normal(name);
            let fits = |key: &str| {
                let key = normal(key);
                key == name || key.ends_with(&format!(".{name}")) || name.ends_with(&format!(".{key}"))
            };
            let place = found.table.keys.iter().position(|key| fits(&key.name));
            let place = place.ok_or_else(|| format!("table {table} has no key '{name}'"))?;
            given[place] = Some(number);
        }
        let mut matches = Vec::new();
        for (key, number) in found.table.keys.iter().zip(given) {
            matches.push(self.key(&key.kind, key.value.ty, number)?);
        }
        // Without ternary, range or optional keys, two entries with different keys never compete.
        let ranked = found.table.keys.iter().any(|key| !matches!(&*key.kind, "exact" | "lpm" | "selector"));
        let priority = priority.filter(|_| ranked).unwrap_or(0);
        let mut entry = RuntimeEntry { keys: matches, action, arguments, priority, cell: 0, packets: 0, bytes: 0 };
        let Some(Object::Unit(unit)) = self.switch.objects.get_mut(found.object) else {
            return Err(format!("table {table} is missing"));
        };
        let state = &mut unit.tables[found.number];
        if state.entries.iter().any(|other| other.keys == entry.keys && (!ranked || other.priority == entry.priority)) {
            return Err(format!("table {table} already has an entry with these keys"));
        }
        entry.cell = state.entries.len() as u32;
        state.entries.push(entry.clone());
        self.record(Operation::Add(found.object, found.number, entry));
        Ok(())
    }

    /// Adds a member to a value set.
    pub(super) fn add_member(&mut self, name: &str, values: &[Number]) -> Result<(), String> {
        let mut sets = Vec::new();
        for (object, found) in self.switch.objects.iter().enumerate() {
            let Object::Unit(unit) = found else { continue };
            for place in 0..unit.value_sets.len() {
                let Some(set) = self.switch.value_set((object, place)) else { continue };
                let path = match &set.naming.name {
                    Some(name) => name.trim_start_matches('.').to_owned(),
                    None => format!("{}.{}", unit.path, set.name),
                };
                sets.push((path, object, place));
            }
        }
        let found =
            resolve(name, sets.iter().map(|(path, ..)| &**path)).map_err(|reason| format!("value set: {reason}"))?;
        let (_, object, place) = sets[found];
        let set = self.switch.value_set((object, place)).ok_or("a value set is missing")?;
        if values.len() != set.fields.len() {
            return Err(format!("a member of {name} must have {} values", set.fields.len()));
        }
        let mut member = Vec::new();
        for ((_, ty, kind), number) in set.fields.iter().zip(values) {
            member.push(self.key(kind, *ty, Some(number))?);
        }
        let Some(Object::Unit(unit)) = self.switch.objects.get_mut(object) else { return Ok(()) };
        let members = &mut unit.value_sets[place];
        if members.len() as u64 >= set.size {
            return Err(format!("value set {name} is full: it has {} members", set.size));
        }
        members.push(member);
        let members = members.clone();
        self.record(Operation::ValueSet(object, place, members));
        Ok(())
    }

    fn key(&self, kind: &str, ty: Ty, number: Option<&Number>) -> Result<Match, String> {
        let types = &self.program.types;
        let width = types.representation(ty).map_or(1, |(width, _)| width);
        let all = value::mask(width);
        let Some(number) = number else {
            return Ok(match kind {
                "exact" => Match::Exact(key_value(types, &BigInt::from(0), ty)),
                "lpm" => Match::Prefix(BigInt::from(0), BigInt::from(0), 0),
                _ => Match::Any,
            });
        };
        if number.value > all {
            return Err(format!("the value {} does not fit into a key of {width} bits", number.value));
        }
        Ok(match kind {
            "lpm" => {
                let length = number.prefix.unwrap_or(width);
                if length > width {
                    return Err(format!("a prefix of {length} bits is longer than its key of {width} bits"));
                }
                let mask = value::mask(length) << (width - length);
                Match::Prefix(&number.value & &mask, mask, length)
            }
            "exact" => Match::Exact(key_value(types, &number.value, ty)),
            "range" => Match::Range(number.value.clone(), number.mask.clone().unwrap_or_else(|| number.value.clone())),
            _ => {
                let mask = number.mask.clone().unwrap_or(all);
                Match::Masked(&number.value & &mask, mask)
            }
        })
    }
}
