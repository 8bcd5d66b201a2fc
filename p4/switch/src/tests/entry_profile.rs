//! Actions of entries of a random table: their own, or the actions of a member, a group or a set of an action profile.

use std::collections::BTreeMap;

/// Capacity of a profile, in members and in slots.
pub const ROOM: u32 = 6;

/// Arguments of the action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Values {
    pub id: u16,
    pub further: u128,
}

impl Values {
    /// The action's result for a packet.
    fn result(self) -> u16 {
        self.id ^ self.further as u16
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Does {
    Own(Values),
    Member(u32),
    Group(u32),
    /// Actions with their weights.
    Set(Vec<(Values, u32)>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Members with their weights and watched ports.
    pub members: Vec<(u32, u32, Vec<u8>)>,
    /// Maximum number of slots; 0 means none was given.
    pub most: u32,
}

impl Group {
    pub fn places(&self) -> u32 {
        self.members.iter().map(|(_, weight, _)| weight).sum()
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    pub is_selector: bool,
    pub members: BTreeMap<u32, Values>,
    pub groups: BTreeMap<u32, Group>,
}

impl Profile {
    pub fn new(is_selector: bool) -> Profile {
        Profile { is_selector, members: BTreeMap::new(), groups: BTreeMap::new() }
    }

    /// Slots of all groups.
    pub fn places(&self) -> u32 {
        self.groups.values().map(Group::places).sum()
    }

    pub fn has_in_group(&self, member: u32) -> bool {
        self.groups.values().any(|group| group.members.iter().any(|(id, ..)| *id == member))
    }

    /// True if a group can be created, or changed from `before`, while `others` slots are in use elsewhere.
    pub fn takes(&self, group: &Group, before: Option<&Group>, others: u32) -> bool {
        let mut seen = Vec::new();
        let are_members = group.members.iter().all(|(id, weight, _)| {
            let is_new = !seen.contains(id);
            seen.push(*id);
            is_new && *weight > 0 && self.members.contains_key(id)
        });
        let most = if group.most == 0 { before.map_or(0, |before| before.most) } else { group.most };
        self.is_selector && are_members && (most == 0 || group.places() <= most) && others + group.places() <= ROOM
    }
}

impl Does {
    /// Slots that it needs itself.
    pub fn places(&self) -> u32 {
        match self {
            Does::Set(set) if set.len() > 1 => set.iter().map(|(_, weight)| weight).sum(),
            _ => 0,
        }
    }

    /// True if an entry can have this action while `others` slots are in use elsewhere.
    pub fn is_possible(&self, profile: Option<&Profile>, others: u32) -> bool {
        match (self, profile) {
            (Does::Own(_), _) => true,
            (_, None) => false,
            (Does::Member(id), Some(profile)) => profile.members.contains_key(id),
            (Does::Group(id), Some(profile)) => profile.groups.contains_key(id),
            (Does::Set(set), Some(profile)) => set.len() == 1 || profile.is_selector && others + self.places() <= ROOM,
        }
    }

    /// The possible results of a packet.
    pub fn results(&self, profile: Option<&Profile>) -> Vec<u16> {
        let member =
            |id: &u32| profile.and_then(|profile| profile.members.get(id)).expect("the profile has this id").result();
        match self {
            Does::Own(values) => vec![values.result()],
            Does::Member(id) => vec![member(id)],
            Does::Set(set) => set.iter().map(|(values, _)| values.result()).collect(),
            Does::Group(id) => {
                let group = profile.and_then(|profile| profile.groups.get(id)).expect("the profile has this id");
                let mut results: Vec<u16> = group.members.iter().map(|(id, ..)| member(id)).collect();
                if results.is_empty() {
                    // An empty group does nothing.
                    results.push(0);
                }
                results
            }
        }
    }
}
