//! `namehop p4 member`: changes and shows the members of action profiles and selectors of a running program.

use clap::{Args, Subcommand};
use namehop_p4_lang::entry_text;
use namehop_p4runtime::info::{self, Object, P4Info};
use namehop_p4runtime::message::entity::Entity as Kind;
use namehop_p4runtime::message::update::Type as UpdateType;
use namehop_p4runtime::message::{Action, ActionProfileMember};
use serde_json::{Value, json};

use crate::control::names::{object, path};
use crate::control::{Outcome, Remote, To, answer, entry};

#[derive(Subcommand)]
pub(crate) enum MemberCommand {
    /// Add a member to an action profile or selector: PROFILE ID ACTION(NAME:VALUE,…)
    ///
    /// Entries refer to a member instead of an action: member(id:ID).
    Add(MemberArgs),
    /// Replace the action of a member; entries and groups that use it change with it
    Modify(MemberArgs),
    /// Delete a member that no entry and no group uses
    Delete(ProfileArgs),
    /// Show all members
    List(ListArgs),
}

#[derive(Args)]
pub(crate) struct ProfileArgs {
    /// The action profile or selector, by its name or the end of it
    pub(crate) profile: String,
    /// The number of the member or group
    pub(crate) id: u32,
    #[command(flatten)]
    pub(crate) to: To,
}

#[derive(Args)]
pub(crate) struct MemberArgs {
    #[command(flatten)]
    of: ProfileArgs,
    /// Its action; quote it, because it contains parentheses
    #[arg(required = true, value_name = "ACTION")]
    words: Vec<String>,
}

#[derive(Args)]
pub(crate) struct ListArgs {
    /// The action profile or selector, by its name or the end of it
    pub(crate) profile: String,
    #[command(flatten)]
    pub(crate) to: To,
}

/// Runs the command.
pub(crate) fn run(command: &MemberCommand) -> Outcome<()> {
    let (to, answer) = match command {
        MemberCommand::Add(MemberArgs { of, words }) => (&of.to, change(UpdateType::Insert, of, Some(words))?),
        MemberCommand::Modify(MemberArgs { of, words }) => (&of.to, change(UpdateType::Modify, of, Some(words))?),
        MemberCommand::Delete(of) => (&of.to, change(UpdateType::Delete, of, None)?),
        MemberCommand::List(args) => (&args.to, list(args)?),
    };
    Ok(answer::print(to, &answer)?)
}

/// Finds an action profile or selector by its name.
pub(crate) fn profile<'i>(info: &'i P4Info, name: &str) -> Result<&'i info::ActionProfile, String> {
    object("action profile", &info.action_profiles, name)
}

/// Encodes an action as in the entries of the first table that uses the profile.
fn action_of(info: &P4Info, profile: &info::ActionProfile, text: &str) -> Result<Action, String> {
    let call = entry_text::action(text)?;
    let id = profile.preamble().id;
    let table = info.tables.iter().find(|table| table.implementation_id == id);
    let table = table.ok_or("no table uses this action profile")?;
    entry::action(info, table, &call).map(|(action, _)| action)
}

fn change(kind: UpdateType, of: &ProfileArgs, words: Option<&Vec<String>>) -> Outcome<Value> {
    let mut remote = Remote::connect(&of.to)?;
    let profile = profile(&remote.info, &of.profile)?;
    let action = words.map(|words| action_of(&remote.info, profile, &words.join(" "))).transpose()?;
    let member = ActionProfileMember { action_profile_id: profile.preamble().id, member_id: of.id, action };
    remote.change(kind, Kind::ActionProfileMember(member))?;
    Ok(Value::Null)
}

fn list(args: &ListArgs) -> Outcome<Value> {
    let mut remote = Remote::connect(&args.to)?;
    let profile = profile(&remote.info, &args.profile)?;
    let (path, action_profile_id) = (path(profile).to_owned(), profile.preamble().id);
    let asked = ActionProfileMember { action_profile_id, ..ActionProfileMember::default() };
    let mut members = Vec::new();
    for kind in remote.read(Kind::ActionProfileMember(asked))? {
        if let Kind::ActionProfileMember(ActionProfileMember { member_id, action: Some(action), .. }) = kind {
            members.push(json!({ "id": member_id, "action": entry::show_action(&remote.info, &action) }));
        }
    }
    Ok(json!({ "profile": path, "members": members }))
}
