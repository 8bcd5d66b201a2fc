//! What entries of a random table do: an action of their own, or that of a member, a group or a set of an action profile.

use std::collections::BTreeMap;

/// Members, and places in groups and sets, that a profile has room for.
pub const ROOM: u32 = 6;

/// Values for the action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Values {
    pub id: u16,
    pub further: u128,
}

impl Values {
    /// What the action makes of a packet.
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
    /// Members with their weights and what is watched for them.
    pub members: Vec<(u32, u32, Vec<u8>)>,
    /// Places at most; 0 says nothing.
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

    /// Places in all groups.
    pub fn places(&self) -> u32 {
        self.groups.values().map(Group::places).sum()
    }

    pub fn has_in_group(&self, member: u32) -> bool {
        self.groups.values().any(|group| group.members.iter().any(|(id, ..)| *id == member))
    }

    /// Whether a group can be made, or changed from what it was, when so many places are taken besides.
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
    /// Places that it takes for itself.
    pub fn places(&self) -> u32 {
        match self {
            Does::Set(set) if set.len() > 1 => set.iter().map(|(_, weight)| weight).sum(),
            _ => 0,
        }
    }

    /// Whether an entry can do this, when so many places are taken besides.
    pub fn is_possible(&self, profile: Option<&Profile>, others: u32) -> bool {
        match (self, profile) {
            (Does::Own(_), _) => true,
            (_, None) => false,
            (Does::Member(id), Some(profile)) => profile.members.contains_key(id),
            (Does::Group(id), Some(profile)) => profile.groups.contains_key(id),
            (Does::Set(set), Some(profile)) => set.len() == 1 || profile.is_selector && others + self.places() <= ROOM,
        }
    }

    /// What a packet may get.
    pub fn results(&self, profile: Option<&Profile>) -> Vec<u16> {
        let member = |id: &u32| profile.and_then(|profile| profile.members.get(id)).expect("it is there").result();
        match self {
            Does::Own(values) => vec![values.result()],
            Does::Member(id) => vec![member(id)],
            Does::Set(set) => set.iter().map(|(values, _)| values.result()).collect(),
            Does::Group(id) => {
                let group = profile.and_then(|profile| profile.groups.get(id)).expect("it is there");
                let mut results: Vec<u16> = group.members.iter().map(|(id, ..)| member(id)).collect();
                if results.is_empty() {
                    // Nothing is done.
                    results.push(0);
                }
                results
            }
        }
    }
}
