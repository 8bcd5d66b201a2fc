//! Action profiles and selectors of a running program: members, groups of members, and the entries that refer to them.
//!
//! Compiled programs have no notion of members: an entry that refers to a member contains its action, and is rewritten
//! when the member changes. A group has its own number in the table of members (see `layout::profile`). A group that
//! changes first gets a new number with all of its slots; then its entries are rewritten, and the old slots are deleted
//! once no packet uses them any more. So a packet sees the group either before or after the change, never in between.

use std::collections::{BTreeMap, BTreeSet};

use namehop_p4_compile::description::Identity;
use namehop_p4_compile::layout;
use namehop_p4_lang::interpret::table::{Match, RuntimeEntry};
use namehop_p4_lang::value::Value;

use super::entry;
use super::error::{ObjectError, ProfileObject};
use super::state::State;
use crate::program::{Change, Entry};

/// An action with its arguments, by its full name, because tables that share a profile may number actions differently.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionOf {
    pub path: String,
    pub values: Vec<Value>,
}

/// A member of a group, with its number of slots.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    pub member: u32,
    pub weight: u32,
    /// The port that a controller watches for this member, in the controller's encoding.
    pub watch_port: Vec<u8>,
}

/// An action of a one-shot action set of an entry.
#[derive(Clone, Debug, PartialEq)]
pub struct SetAction {
    pub action: ActionOf,
    pub weight: u32,
    pub watch_port: Vec<u8>,
}

/// A reference that an entry has instead of its own action.
#[derive(Clone, Debug, PartialEq)]
pub enum Reference {
    Member(u32),
    Group(u32),
    Set(Vec<SetAction>),
}

/// Entries that refer to an object, with their tables.
pub(super) type Users = BTreeSet<(usize, Identity)>;

pub struct Member {
    pub action: ActionOf,
    users: Users,
}

pub struct Group {
    pub shares: Vec<Share>,
    /// Maximum size as a controller gave it; 0 if it gave none.
    pub most: u32,
    /// Its number in tables of members.
    pub(super) number: u32,
    pub(super) users: Users,
}

/// A profile with its contents.
#[derive(Default)]
pub struct Profile {
    pub members: BTreeMap<u32, Member>,
    pub groups: BTreeMap<u32, Group>,
    /// Slots in use by groups and sets.
    pub(super) places: u64,
}

/// Slots in tables of members: the number of their group, and their count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Placed {
    pub number: u32,
    pub(super) count: u32,
}

impl State {
    pub(super) fn profile_path(&self, profile: usize) -> &str {
        &self.description.profiles[profile].path
    }

    /// Index of an action in a table's list.
    fn place_of(&self, table: usize, action: &ActionOf) -> Result<usize, ObjectError> {
        let described = &self.description.tables[table];
        let path = &described.table.path;
        let place = described.actions.iter().position(|known| known.path == action.path);
        let place = place.ok_or_else(|| ObjectError::NoAction(path.clone(), action.path.clone()))?;
        if described.actions[place].default_only {
            return Err(ObjectError::DefaultOnly(path.clone(), action.path.clone()));
        }
        Ok(place)
    }

    /// The action and action data of an entry that has a reference; the slots of a set must have been written before.
    pub(super) fn referred(
        &self,
        table: usize,
        reference: &Reference,
        set: Option<Placed>,
    ) -> Result<(u32, Vec<u8>), ObjectError> {
        let shape = &self.description.tables[table].table;
        let path = &shape.path;
        let profile = self.description.tables[table].profile();
        let profile = profile.ok_or_else(|| ObjectError::NoProfile(path.clone()))?;
        let group = |placed: Placed| {
            let action = self.description.tables[table].actions.len();
            let values = [placed.number, placed.count].map(|number| Value::Int(number.into()));
            (action, values.to_vec())
        };
        let none = |object| ObjectError::NoReferred(path.clone(), object);
        let of = self.profile_path(profile);
        let (action, values) = match reference {
            Reference::Member(id) => {
                let member =
                    self.profiles[profile].members.get(id).ok_or_else(|| none(ProfileObject::member(*id, of)))?;
                (self.place_of(table, &member.action)?, member.action.values.clone())
            }
            Reference::Group(id) => {
                let known = self.profiles[profile].groups.get(id).ok_or_else(|| none(ProfileObject::group(*id, of)))?;
                group(Placed { number: known.number, count: weights(&known.shares) as u32 })
            }
            Reference::Set(actions) => match (set, &actions[..]) {
                (Some(placed), _) => group(placed),
                (None, [only]) => (self.place_of(table, &only.action)?, only.action.values.clone()),
                _ => return Err(ObjectError::EmptySet(path.clone())),
            },
        };
        let data = layout::pack_values(shape, action, 0, &values);
        Ok((action as u32, data))
    }

    /// Records that an entry uses the object of a reference, or no longer uses it.
    pub(super) fn note_user(&mut self, table: usize, identity: &Identity, reference: &Reference, uses: bool) {
        let Some(profile) = self.description.tables[table].profile() else { return };
        let known = &mut self.profiles[profile];
        let users = match reference {
            Reference::Member(id) => known.members.get_mut(id).map(|member| &mut member.users),
            Reference::Group(id) => known.groups.get_mut(id).map(|group| &mut group.users),
            Reference::Set(_) => None,
        };
        let Some(users) = users else { return };
        if uses {
            users.insert((table, identity.clone()));
        } else {
            users.remove(&(table, identity.clone()));
        }
    }

    /// Tables that use groups of a profile, each with its table of members.
    pub(super) fn tables_of(&self, profile: usize) -> Vec<(usize, usize)> {
        let own = self.description.tables.iter().enumerate().filter(|(_, table)| table.profile() == Some(profile));
        own.filter_map(|(place, table)| Some((place, table.members()?))).collect()
    }

    fn place_entry(&self, members: usize, number: u32, place: u32, action: usize, values: &[Value]) -> Entry {
        let key = |number: u32| Match::Exact(Value::Int(number.into()));
        let keys = vec![key(number), key(place)];
        let entry =
            RuntimeEntry { keys, action, arguments: values.to_vec(), priority: 0, cell: 0, packets: 0, bytes: 0 };
        entry::packed(&self.description.tables[members].table, &entry)
    }

    /// Writes actions, each in as many slots as its weight, into these tables under a new number. After an error, no
    /// slot remains.
    pub(super) fn fill(
        &mut self,
        tables: &[(usize, usize)],
        actions: &[(&ActionOf, u32)],
    ) -> Result<Placed, ObjectError> {
        self.next_group = self.next_group.wrapping_add(1);
        let mut placed = Placed { number: self.next_group, count: 0 };
        let mut work = || {
            let mut next = 0;
            for (action, weight) in actions {
                for _ in 0..*weight {
                    for (main, members) in tables {
                        let place = self.place_of(*main, action)?;
                        let entry = self.place_entry(*members, placed.number, next, place, &action.values);
                        self.live.change(*members, Change::Insert, &entry)?;
                    }
                    next += 1;
                    placed.count = next;
                }
            }
            Ok(())
        };
        let outcome: Result<(), ObjectError> = work();
        outcome.map(|()| placed).inspect_err(|_| self.clear(tables, Placed { count: placed.count + 1, ..placed }))
    }

    /// Deletes slots from tables.
    pub(super) fn clear(&self, tables: &[(usize, usize)], placed: Placed) {
        for (_, members) in tables {
            for place in 0..placed.count {
                // Only the length of the action data is compared; use that of the first action.
                let entry = self.place_entry(*members, placed.number, place, 0, &[]);
                // A slot that does not exist needs no deletion.
                let _ = self.live.change(*members, Change::Delete, &entry);
            }
        }
    }

    /// Checks that there is room for more slots.
    pub(super) fn has_room(&self, profile: usize, before: u64, after: u64) -> Result<(), ObjectError> {
        let size = self.description.profiles[profile].size;
        if self.profiles[profile].places - before + after > size {
            return Err(ObjectError::SlotsFull(self.profile_path(profile).to_owned(), size));
        }
        Ok(())
    }

    /// Writes the slots of a set of more than one action, for an entry that had `before` slots until now.
    pub(super) fn place_set(
        &mut self,
        table: usize,
        reference: &Reference,
        before: u64,
    ) -> Result<Option<Placed>, ObjectError> {
        let described = &self.description.tables[table];
        let Reference::Set(actions) = reference else { return Ok(None) };
        if actions.len() < 2 {
            return Ok(None);
        }
        let (Some(profile), Some(members)) = (described.profile(), described.members()) else {
            return Err(ObjectError::NoSelector(described.table.path.clone()));
        };
        let count = actions.iter().map(|action| u64::from(action.weight)).sum();
        self.has_room(profile, before, count)?;
        let list: Vec<(&ActionOf, u32)> = actions.iter().map(|action| (&action.action, action.weight)).collect();
        let placed = self.fill(&[(table, members)], &list)?;
        self.profiles[profile].places += count;
        Ok(Some(placed))
    }

    /// Deletes the slots of a set that no entry uses.
    pub(super) fn remove_set(&mut self, table: usize, placed: Placed) {
        let described = &self.description.tables[table];
        let (Some(profile), Some(members)) = (described.profile(), described.members()) else { return };
        self.live.wait();
        self.clear(&[(table, members)], placed);
        self.profiles[profile].places -= u64::from(placed.count);
    }

    /// Rewrites entries that refer to a changed object. After an error, some of them may have been rewritten.
    pub(super) fn write_again(&mut self, users: &Users, reference: &Reference) -> Result<(), ObjectError> {
        for (table, identity) in users {
            let Some(entry) = self.entry(*table, identity) else { continue };
            self.put(*table, Change::Modify, entry, Some(reference.clone()))?;
        }
        Ok(())
    }

    /// Adds, changes or deletes a member. Entries and groups that use it change with it.
    pub fn change_member(
        &mut self,
        profile: usize,
        id: u32,
        change: Change,
        action: Option<ActionOf>,
    ) -> Result<(), ObjectError> {
        let path = self.profile_path(profile).to_owned();
        let what = ProfileObject::member(id, &path);
        let size = self.description.profiles[profile].size;
        let known = &self.profiles[profile];
        match (change, known.members.get(&id)) {
            (Change::Insert, Some(_)) => return Err(ObjectError::Exists(what)),
            (Change::Modify | Change::Delete, None) => return Err(ObjectError::NotFound(what)),
            (Change::Insert, None) if known.members.len() as u64 >= size => {
                return Err(ObjectError::MembersFull(path, size));
            }
            _ => {}
        }
        if change == Change::Delete {
            let grouped = known.groups.iter().find(|(_, group)| group.shares.iter().any(|share| share.member == id));
            if let Some((group, _)) = grouped {
                return Err(ObjectError::InGroup(what, *group));
            }
            if known.members.get(&id).is_some_and(|member| !member.users.is_empty()) {
                return Err(ObjectError::InUse(what));
            }
            self.profiles[profile].members.remove(&id);
            return Ok(());
        }
        let Some(action) = action else { return Err(ObjectError::Actionless(what)) };
        let of_profile: Vec<usize> = (0..self.description.tables.len())
            .filter(|table| self.description.tables[*table].profile() == Some(profile))
            .collect();
        for table in of_profile {
            self.place_of(table, &action)?;
        }
        let known = &mut self.profiles[profile];
        let Some(member) = known.members.get_mut(&id) else {
            known.members.insert(id, Member { action, users: Users::new() });
            return Ok(());
        };
        let before = std::mem::replace(&mut member.action, action);
        let users = member.users.clone();
        let groups = known.groups.iter().filter(|(_, group)| group.shares.iter().any(|share| share.member == id));
        let groups: Vec<u32> = groups.map(|(id, _)| *id).collect();
        let again = |state: &mut Self| {
            state.write_again(&users, &Reference::Member(id))?;
            groups.iter().try_for_each(|group| state.place_again(profile, *group))
        };
        again(self).inspect_err(|_| {
            if let Some(member) = self.profiles[profile].members.get_mut(&id) {
                member.action = before;
            }
            // Restoring the previous state cannot fail, because it fitted before.
            let _ = again(self);
        })
    }

    /// Empties all profiles; no entry may refer to them any more.
    pub(super) fn reset_profiles(&mut self) {
        self.live.wait();
        for profile in 0..self.profiles.len() {
            let tables = self.tables_of(profile);
            let old = std::mem::take(&mut self.profiles[profile]);
            for group in old.groups.values() {
                self.clear(&tables, Placed { number: group.number, count: weights(&group.shares) as u32 });
            }
        }
    }
}

/// The sum of a group's weights.
pub(super) fn weights(shares: &[Share]) -> u64 {
    shares.iter().map(|share| u64::from(share.weight)).sum()
}
