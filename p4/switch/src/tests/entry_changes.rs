//! Random changes of a random table: whether they are possible, and their result.

use super::entry_model::{Known, SIZE, Table};
use super::entry_profile::{Does, Group, ROOM, Values};
use crate::program::Change;

/// The object of a change.
#[derive(Clone, Debug)]
pub enum What {
    Entry(Known),
    Member(u32, Values),
    Group(u32, Group),
}

impl Table {
    pub fn some_change(&mut self) -> (Change, What) {
        let change = self.one_of(&[Change::Insert, Change::Insert, Change::Modify, Change::Delete]);
        let way = if self.profile.is_some() { self.below(6) } else { 5 };
        let what = match way {
            0 | 1 => What::Member(1 + self.below(4) as u32, self.values()),
            2 => {
                let count = self.below(4);
                let member = |table: &mut Table| {
                    let watched = table.one_of(&[&b""[..], &[7]]).to_vec();
                    (1 + table.below(4) as u32, table.below(4) as u32, watched)
                };
                let members = (0..count).map(|_| member(self)).collect();
                What::Group(1 + self.below(3) as u32, Group { members, most: self.one_of(&[0, 0, 3, 9]) })
            }
            _ => What::Entry(self.some_entry()),
        };
        (change, what)
    }

    /// True if a change is possible.
    pub fn fits(&self, change: Change, what: &What) -> bool {
        let profile = self.profile.as_ref();
        match what {
            What::Entry(entry) => {
                let known = self.place(entry).map(|place| &self.entries[place]);
                let taken = self.places() - known.map_or(0, |known| known.does.places());
                let is_possible = entry.does.is_possible(profile, taken);
                match change {
                    Change::Insert => !self.is_const && known.is_none() && self.entries.len() < SIZE && is_possible,
                    Change::Modify => known.is_some_and(|known| !known.is_const) && is_possible,
                    Change::Delete => known.is_some_and(|known| !known.is_const),
                }
            }
            What::Member(id, _) => {
                let profile = profile.expect("the table has a profile");
                let is_there = profile.members.contains_key(id);
                match change {
                    Change::Insert => !is_there && profile.members.len() < ROOM as usize,
                    Change::Modify => is_there,
                    Change::Delete => is_there && !profile.has_in_group(*id) && !self.has(&Does::Member(*id)),
                }
            }
            What::Group(id, group) => {
                let profile = profile.expect("the table has a profile");
                let known = profile.groups.get(id);
                let others = self.places() - known.map_or(0, Group::places);
                match change {
                    Change::Insert => known.is_none() && profile.takes(group, None, others),
                    Change::Modify => known.is_some() && profile.takes(group, known, others),
                    Change::Delete => known.is_some() && !self.has(&Does::Group(*id)),
                }
            }
        }
    }

    fn has(&self, does: &Does) -> bool {
        self.entries.iter().any(|entry| entry.does == *does)
    }

    /// Makes a possible change.
    pub fn make(&mut self, change: Change, what: What) {
        match what {
            What::Entry(entry) => {
                let known = self.place(&entry);
                match (change, known) {
                    (Change::Delete, Some(place)) => drop(self.entries.remove(place)),
                    (Change::Modify, Some(place)) => self.entries[place] = entry,
                    _ => self.entries.push(entry),
                }
            }
            What::Member(id, values) => {
                let members = &mut self.profile.as_mut().expect("the table has a profile").members;
                match change {
                    Change::Delete => drop(members.remove(&id)),
                    _ => drop(members.insert(id, values)),
                }
            }
            What::Group(id, mut group) => {
                let groups = &mut self.profile.as_mut().expect("the table has a profile").groups;
                if change == Change::Delete {
                    groups.remove(&id);
                    return;
                }
                if group.most == 0 {
                    group.most = groups.get(&id).map_or(0, |known| known.most);
                }
                groups.insert(id, group);
            }
        }
    }

    /// Moves an entry behind equally good ones, as if it was deleted and inserted again.
    pub fn renew(&mut self, entry: &Known) {
        if let Some(place) = self.place(entry) {
            let entry = self.entries.remove(place);
            self.entries.push(entry);
        }
    }
}
