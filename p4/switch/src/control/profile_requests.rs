//! Requests about action profiles and value sets from commands: names, actions and members as text.

use namehop_p4_lang::entry_text::{self, resolve};
use namehop_p4_lang::interpret::table::Match;
use serde_json::{Value, json};

use super::entry;
use super::profiles::{ActionOf, Group, Member, Refused, Share};
use super::state::{State, Tables};
use crate::program::Change;

impl<T: Tables> State<T> {
    fn profile(&self, name: &str) -> Result<usize, String> {
        let paths = self.description.profiles.iter().map(|profile| &*profile.path);
        resolve(name, paths).map_err(|reason| format!("action profile: {reason}"))
    }

    /// Parses an action as in the entries of the first table that uses the profile.
    fn action_of(&self, profile: usize, text: &str) -> Result<ActionOf, String> {
        let call = entry_text::action(text)?;
        let described = self.description.tables.iter().find(|table| table.profile() == Some(profile));
        let described = described.ok_or("no table uses this action profile")?;
        let (place, values) = entry::action(described, &call)?;
        Ok(ActionOf { path: described.actions[place].path.clone(), values })
    }

    pub(super) fn member(
        &mut self,
        change: Change,
        profile: &str,
        id: u32,
        action: Option<&str>,
    ) -> Result<Value, String> {
        let place = self.profile(profile)?;
        let action = action.map(|action| self.action_of(place, action)).transpose()?;
        self.change_member(place, id, change, action).map_err(Refused::text)?;
        Ok(Value::Null)
    }

    fn value_set_place(&self, name: &str) -> Result<usize, String> {
        let paths = self.description.value_sets.iter().map(|set| &*set.path);
        resolve(name, paths).map_err(|reason| format!("value set: {reason}"))
    }

    pub(super) fn put_value_set(&mut self, name: &str, members: &[String]) -> Result<Value, String> {
        let set = self.value_set_place(name)?;
        let described = &self.description.value_sets[set];
        let what = || format!("value set {}", described.path);
        let mut list = Vec::new();
        for text in members {
            let values = entry_text::member(text).map_err(|reason| format!("{}: {reason}", what()))?;
            if values.len() != described.fields.len() {
                return Err(format!("{}: a member must have {} values, as in A,B", what(), described.fields.len()));
            }
            let keys = described.fields.iter().zip(&values);
            list.push(keys.map(|(key, number)| entry::key(&what, key, Some(number))).collect::<Result<Vec<_>, _>>()?);
        }
        self.set_members(set, list)?;
        Ok(Value::Null)
    }

    pub(super) fn value_set(&self, name: &str) -> Result<Value, String> {
        let set = self.value_set_place(name)?;
        let show = |member: &Vec<Match>| member.iter().map(entry::show_match).collect::<Vec<_>>().join(",");
        let members: Vec<String> = self.value_sets[set].iter().map(show).collect();
        Ok(json!({ "value_set": self.description.value_sets[set].path, "values": members }))
    }

    pub(super) fn members(&self, profile: &str) -> Result<Value, String> {
        let place = self.profile(profile)?;
        let described = self.description.tables.iter().find(|table| table.profile() == Some(place));
        let show = |action: &ActionOf| {
            let known = described.and_then(|table| table.actions.iter().find(|known| known.path == action.path));
            let names = known.into_iter().flat_map(|known| &known.parameters);
            let values = names.zip(&action.values).map(|(name, value)| format!("{name}:{:#x}", value.int()));
            format!("{}({})", action.path, values.collect::<Vec<_>>().join(", "))
        };
        let member = |(id, member): (&u32, &Member)| json!({ "id": id, "action": show(&member.action) });
        let members: Vec<Value> = self.profiles[place].members.iter().map(member).collect();
        Ok(json!({ "profile": self.description.profiles[place].path, "members": members }))
    }

    /// Creates or changes a group; deletes it if `members` is `None`.
    pub(super) fn group(&mut self, profile: &str, id: u32, members: Option<&[(u32, u32)]>) -> Result<Value, String> {
        let place = self.profile(profile)?;
        let change = match members {
            None => Change::Delete,
            Some(_) if self.profiles[place].groups.contains_key(&id) => Change::Modify,
            Some(_) => Change::Insert,
        };
        let share = |(member, weight): &(u32, u32)| Share { member: *member, weight: *weight, watch_port: Vec::new() };
        let shares = members.unwrap_or_default().iter().map(share).collect();
        self.change_group(place, id, change, shares, 0).map_err(Refused::text)?;
        Ok(Value::Null)
    }

    pub(super) fn groups(&self, profile: &str) -> Result<Value, String> {
        let place = self.profile(profile)?;
        let group = |(id, group): (&u32, &Group)| {
            let members: Vec<_> = group.shares.iter().map(|share| (share.member, share.weight)).collect();
            json!({ "id": id, "members": members })
        };
        let groups: Vec<Value> = self.profiles[place].groups.iter().map(group).collect();
        Ok(json!({ "profile": self.description.profiles[place].path, "groups": groups }))
    }
}
