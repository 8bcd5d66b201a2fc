//! `namehop p4 group`: changes and shows the groups of action selectors of a running program.

use clap::Subcommand;
use namehop_p4runtime::info::Object;
use namehop_p4runtime::message::ActionProfileGroup;
use namehop_p4runtime::message::action_profile_group::Member;
use namehop_p4runtime::message::entity::Entity as Kind;
use namehop_p4runtime::message::update::Type as UpdateType;
use serde_json::{Value, json};

use super::member::{ListArgs, ProfileArgs, profile};
use crate::control::names::path;
use crate::control::{Outcome, Remote, answer};

#[derive(Subcommand)]
pub(crate) enum GroupCommand {
    /// Create or change a group of members: PROFILE ID MEMBER[:WEIGHT]…
    ///
    /// Entries refer to a group instead of an action: group(id:ID). A hash of the keys of kind selector chooses one
    /// member for each packet: packets with the same keys get the same member, and a member with twice the weight gets
    /// twice as many packets.
    Set {
        #[command(flatten)]
        of: ProfileArgs,
        /// The members, each with its weight; the default weight is 1
        #[arg(required = true, value_name = "MEMBER[:WEIGHT]", value_parser = share)]
        members: Vec<(u32, u32)>,
    },
    /// Delete a group that no entry uses
    Delete(ProfileArgs),
    /// Show all groups
    List(ListArgs),
}

fn share(text: &str) -> Result<(u32, u32), String> {
    let (member, weight) = text.split_once(':').unwrap_or((text, "1"));
    match (member.parse(), weight.parse()) {
        (Ok(member), Ok(weight)) => Ok((member, weight)),
        _ => Err("a member of a group must be MEMBER or MEMBER:WEIGHT".to_owned()),
    }
}

/// Runs the command.
pub(crate) fn run(command: &GroupCommand) -> Outcome<()> {
    let (to, answer) = match command {
        GroupCommand::Set { of, members } => (&of.to, set(of, members)?),
        GroupCommand::Delete(of) => (&of.to, delete(of)?),
        GroupCommand::List(args) => (&args.to, list(args)?),
    };
    Ok(answer::print(to, &answer)?)
}

/// Reads the groups of a profile.
fn groups(remote: &mut Remote, action_profile_id: u32) -> Outcome<Vec<ActionProfileGroup>> {
    let asked = ActionProfileGroup { action_profile_id, ..ActionProfileGroup::default() };
    let found = remote.read(Kind::ActionProfileGroup(asked))?.into_iter();
    Ok(found.filter_map(|kind| if let Kind::ActionProfileGroup(group) = kind { Some(group) } else { None }).collect())
}

fn set(of: &ProfileArgs, members: &[(u32, u32)]) -> Outcome<Value> {
    let mut remote = Remote::connect(&of.to)?;
    let action_profile_id = profile(&remote.info, &of.profile)?.preamble().id;
    let is_there = groups(&mut remote, action_profile_id)?.iter().any(|group| group.group_id == of.id);
    let member = |(member_id, weight): &(u32, u32)| Member {
        member_id: *member_id,
        weight: i32::try_from(*weight).unwrap_or(i32::MAX),
        ..Member::default()
    };
    let members = members.iter().map(member).collect();
    // Without a maximum size, that of its controller stays.
    let group = ActionProfileGroup { action_profile_id, group_id: of.id, members, max_size: 0 };
    let kind = if is_there { UpdateType::Modify } else { UpdateType::Insert };
    remote.change(kind, Kind::ActionProfileGroup(group))?;
    Ok(Value::Null)
}

fn delete(of: &ProfileArgs) -> Outcome<Value> {
    let mut remote = Remote::connect(&of.to)?;
    let action_profile_id = profile(&remote.info, &of.profile)?.preamble().id;
    let group = ActionProfileGroup { action_profile_id, group_id: of.id, ..ActionProfileGroup::default() };
    remote.change(UpdateType::Delete, Kind::ActionProfileGroup(group))?;
    Ok(Value::Null)
}

fn list(args: &ListArgs) -> Outcome<Value> {
    let mut remote = Remote::connect(&args.to)?;
    let profile = profile(&remote.info, &args.profile)?;
    let (path, id) = (path(profile).to_owned(), profile.preamble().id);
    let group = |group: ActionProfileGroup| {
        let members: Vec<_> = group.members.iter().map(|member| (member.member_id, member.weight)).collect();
        json!({ "id": group.group_id, "members": members })
    };
    let groups: Vec<Value> = groups(&mut remote, id)?.into_iter().map(group).collect();
    Ok(json!({ "profile": path, "groups": groups }))
}
