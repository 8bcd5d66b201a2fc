//! P4Runtime access to members and groups of action profiles.

use namehop_p4runtime::Status;
use namehop_p4runtime::device::Parts;
use namehop_p4runtime::info::Object;
use namehop_p4runtime::message::action_profile_group::Member as GroupMember;
use namehop_p4runtime::message::entity::Entity as Kind;
use namehop_p4runtime::message::update::Type as UpdateType;
use namehop_p4runtime::message::{Action, ActionProfileGroup, ActionProfileMember, Entity};

use super::tables::{Table, show_action};
use super::{Running, parts, place, places};
use crate::objects::error::ObjectError;
use crate::objects::profiles::{ActionOf, Share};
use crate::program::Change;

/// The status of a refused change.
pub(super) fn status(error: ObjectError) -> Status {
    let text = error.to_string();
    match error {
        ObjectError::NotFound(_) | ObjectError::NoMember(..) | ObjectError::NoReferred(..) => Status::not_found(text),
        ObjectError::Exists(_) => Status::already_exists(text),
        ObjectError::InUse(_) | ObjectError::InGroup(..) => Status::failed_precondition(text),
        ObjectError::Table(_)
        | ObjectError::ValueSetFull(..)
        | ObjectError::ValueSet(_)
        | ObjectError::SlotsFull(..)
        | ObjectError::MembersFull(..)
        | ObjectError::GroupFull(..) => Status::resource_exhausted(text),
        ObjectError::NoAction(..)
        | ObjectError::DefaultOnly(..)
        | ObjectError::NoProfile(_)
        | ObjectError::EmptySet(_)
        | ObjectError::NoSelector(_)
        | ObjectError::Actionless(_)
        | ObjectError::NotASelector(_)
        | ObjectError::Replication(_)
        | ObjectError::Weight(..) => Status::invalid_argument(text),
    }
}

/// The status of a change that restores a state and cannot fail.
pub(super) fn internal(error: ObjectError) -> Status {
    Status::internal(error.to_string())
}

fn change(update: UpdateType) -> Result<Change, Status> {
    match update {
        UpdateType::Insert => Ok(Change::Insert),
        UpdateType::Modify => Ok(Change::Modify),
        UpdateType::Delete => Ok(Change::Delete),
        UpdateType::Unspecified => Err(Status::invalid_argument("an update must insert, modify or delete")),
    }
}

/// Rejects the deprecated form of a watched port.
pub(super) fn watched_by_port(watch: i32) -> Result<(), Status> {
    match watch {
        0 => Ok(()),
        _ => Err(Status::unimplemented("'watch' is deprecated: give the port as 'watch_port'")),
    }
}

impl Running {
    /// The index of a profile in the program, from its index in p4info.
    fn own_profile(&self, number: usize) -> Result<usize, Status> {
        let name = &self.info.action_profiles[number].preamble().name;
        let state = self.objects.state();
        let found = state.description.profiles.iter().position(|profile| profile.path == *name);
        found.ok_or_else(|| Status::internal(format!("action profile {name} is missing")))
    }

    pub(super) fn profile(&self, id: u32) -> Result<usize, Status> {
        let number = place(&self.info.action_profiles, "action profile", id)?;
        self.own_profile(number)
    }

    fn member_action(&self, profile: usize, given: &Action) -> Result<ActionOf, Status> {
        let state = self.objects.state();
        let of = state.description.tables.iter().position(|table| table.profile() == Some(profile));
        let number = of.ok_or_else(|| Status::internal("no table uses this action profile"))?;
        let table = Table { info: &self.info.tables[number], described: &state.description.tables[number] };
        let (place, values) = table.action(given, false)?;
        Ok(ActionOf { path: table.described.actions[place].path.clone(), values })
    }

    pub(super) fn change_member(&self, update: UpdateType, given: &ActionProfileMember) -> Result<(), Status> {
        let profile = self.profile(given.action_profile_id)?;
        let change = change(update)?;
        let action = match &given.action {
            Some(action) if change != Change::Delete => Some(self.member_action(profile, action)?),
            _ => None,
        };
        self.objects.state().change_member(profile, given.member_id, change, action).map_err(status)
    }

    pub(super) fn change_group(&self, update: UpdateType, given: &ActionProfileGroup) -> Result<(), Status> {
        let profile = self.profile(given.action_profile_id)?;
        let share = |member: &GroupMember| {
            watched_by_port(member.watch)?;
            let weight =
                u32::try_from(member.weight).map_err(|_| Status::invalid_argument("a weight must not be below 0"))?;
            Ok(Share { member: member.member_id, weight, watch_port: member.watch_port.clone() })
        };
        let shares = given.members.iter().map(share).collect::<Result<_, Status>>()?;
        let most = u32::try_from(given.max_size)
            .map_err(|_| Status::invalid_argument("the maximum size must not be below 0"))?;
        self.objects.state().change_group(profile, given.group_id, change(update)?, shares, most).map_err(status)
    }

    /// The profiles of a request, each with its id.
    fn asked_profiles(&self, id: u32) -> Result<Vec<(u32, usize)>, Status> {
        let numbers = places(&self.info.action_profiles, "action profile", id)?;
        let with_id = |number: usize| Ok((self.info.action_profiles[number].preamble().id, self.own_profile(number)?));
        numbers.into_iter().map(with_id).collect()
    }

    pub(super) fn read_members(&self, given: &ActionProfileMember) -> Result<Parts<'_>, Status> {
        let mut found = Vec::new();
        for (action_profile_id, profile) in self.asked_profiles(given.action_profile_id)? {
            let state = self.objects.state();
            let all = state.profiles[profile].members.iter();
            for (id, member) in all.filter(|(id, _)| given.member_id == 0 || **id == given.member_id) {
                let action = Some(show_action(&member.action, &self.info.actions));
                let member = ActionProfileMember { action_profile_id, member_id: *id, action };
                found.push(Entity { entity: Some(Kind::ActionProfileMember(member)) });
            }
        }
        Ok(parts(found.into_iter().map(Ok)))
    }

    pub(super) fn read_groups(&self, given: &ActionProfileGroup) -> Result<Parts<'_>, Status> {
        let mut found = Vec::new();
        for (action_profile_id, profile) in self.asked_profiles(given.action_profile_id)? {
            let state = self.objects.state();
            let all = state.profiles[profile].groups.iter();
            for (id, group) in all.filter(|(id, _)| given.group_id == 0 || **id == given.group_id) {
                let member = |share: &Share| GroupMember {
                    member_id: share.member,
                    weight: share.weight as i32,
                    watch_port: share.watch_port.clone(),
                    ..GroupMember::default()
                };
                let members = group.shares.iter().map(member).collect();
                let max_size = group.most as i32;
                let group = ActionProfileGroup { action_profile_id, group_id: *id, members, max_size };
                found.push(Entity { entity: Some(Kind::ActionProfileGroup(group)) });
            }
        }
        Ok(parts(found.into_iter().map(Ok)))
    }
}
