//! Groups of members of action selectors.

use std::collections::BTreeSet;

use super::error::{ObjectError, ProfileObject};
use super::profiles::{ActionOf, Group, Placed, Reference, Share, Users, weights};
use super::state::State;
use crate::program::Change;

impl State {
    /// Writes a group's slots again, with the current actions of its members.
    pub(super) fn place_again(&mut self, profile: usize, id: u32) -> Result<(), ObjectError> {
        let Some(group) = self.profiles[profile].groups.get(&id) else { return Ok(()) };
        let (shares, most) = (group.shares.clone(), group.most);
        self.place_others(profile, id, shares, most)
    }

    /// Replaces the members of a group, in new slots. After an error the group is unchanged.
    fn place_others(&mut self, profile: usize, id: u32, shares: Vec<Share>, most: u32) -> Result<(), ObjectError> {
        let tables = self.tables_of(profile);
        let new = self.place_shares(profile, &tables, &shares)?;
        let Some(group) = self.profiles[profile].groups.get_mut(&id) else { return Ok(()) };
        let users = group.users.clone();
        let mut other = (shares, most, new.number);
        let mut exchange = |state: &mut Self| {
            if let Some(group) = state.profiles[profile].groups.get_mut(&id) {
                std::mem::swap(&mut group.shares, &mut other.0);
                std::mem::swap(&mut group.most, &mut other.1);
                std::mem::swap(&mut group.number, &mut other.2);
            }
            state.write_again(&users, &Reference::Group(id))
        };
        let outcome = exchange(self);
        if outcome.is_err() {
            // Restoring the previous state cannot fail, because it fitted before.
            let _ = exchange(self);
        }
        let gone = Placed { number: other.2, count: weights(&other.0) as u32 };
        self.live.wait();
        self.clear(&tables, gone);
        outcome
    }

    fn place_shares(
        &mut self,
        profile: usize,
        tables: &[(usize, usize)],
        shares: &[Share],
    ) -> Result<Placed, ObjectError> {
        let action =
            |share: &Share| Some((self.profiles[profile].members.get(&share.member)?.action.clone(), share.weight));
        let actions: Vec<(ActionOf, u32)> = shares.iter().filter_map(action).collect();
        let list: Vec<(&ActionOf, u32)> = actions.iter().map(|(action, weight)| (action, *weight)).collect();
        self.fill(tables, &list)
    }

    /// Adds, changes or deletes a group.
    pub fn change_group(
        &mut self,
        profile: usize,
        id: u32,
        change: Change,
        shares: Vec<Share>,
        most: u32,
    ) -> Result<(), ObjectError> {
        let path = self.profile_path(profile).to_owned();
        let what = ProfileObject::group(id, &path);
        if !self.description.profiles[profile].selector {
            return Err(ObjectError::NotASelector(path));
        }
        let tables = self.tables_of(profile);
        let known = self.profiles[profile].groups.get(&id);
        match (change, known.is_some()) {
            (Change::Insert, true) => return Err(ObjectError::Exists(what)),
            (Change::Modify | Change::Delete, false) => return Err(ObjectError::NotFound(what)),
            _ => {}
        }
        let before = known.map_or(0, |group| weights(&group.shares));
        if change == Change::Delete {
            if known.is_some_and(|group| !group.users.is_empty()) {
                return Err(ObjectError::InUse(what));
            }
            if let Some(group) = self.profiles[profile].groups.remove(&id) {
                self.live.wait();
                self.clear(&tables, Placed { number: group.number, count: before as u32 });
                self.profiles[profile].places -= before;
            }
            return Ok(());
        }
        let mut seen = BTreeSet::new();
        for share in &shares {
            if !self.profiles[profile].members.contains_key(&share.member) {
                return Err(ObjectError::NoMember(what, share.member));
            }
            if share.weight == 0 || !seen.insert(share.member) {
                return Err(ObjectError::Weight(what, share.member));
            }
        }
        let after = weights(&shares);
        let limit = match known {
            Some(group) if most == 0 => group.most,
            _ => most,
        };
        if limit > 0 && after > u64::from(limit) {
            return Err(ObjectError::GroupFull(what, after, limit));
        }
        self.has_room(profile, before, after)?;
        if change == Change::Insert {
            let placed = self.place_shares(profile, &tables, &shares)?;
            let group = Group { shares, most: limit, number: placed.number, users: Users::new() };
            self.profiles[profile].groups.insert(id, group);
        } else {
            self.place_others(profile, id, shares, limit)?;
        }
        let places = &mut self.profiles[profile].places;
        *places = *places - before + after;
        Ok(())
    }
}
