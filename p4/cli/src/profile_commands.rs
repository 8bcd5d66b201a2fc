//! Commands for action profiles and value sets of a running program.

use std::io;

use clap::{Args, Subcommand};
use namehop_switch::server::Request;

use crate::control_commands::{To, ask};

#[derive(Subcommand)]
pub enum MemberCommand {
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

#[derive(Subcommand)]
pub enum GroupCommand {
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

#[derive(Subcommand)]
pub enum ValueSetCommand {
    /// Replace the members of a value set; without members, it is empty
    ///
    /// A member is a value as in table entries; the fields of a member are separated by commas: 0x0800,6. A field
    /// marked with @match(ternary), @match(lpm) or @match(range) takes VALUE&&&MASK, VALUE/LENGTH or FIRST..LAST.
    Set {
        /// The value set, by its name or the end of it
        set: String,
        /// Its members
        members: Vec<String>,
        #[command(flatten)]
        to: To,
    },
    /// Show its members
    List {
        /// The value set, by its name or the end of it
        set: String,
        #[command(flatten)]
        to: To,
    },
}

#[derive(Args)]
pub struct ProfileArgs {
    /// The action profile or selector, by its name or the end of it
    profile: String,
    /// The number of the member or group
    id: u32,
    #[command(flatten)]
    to: To,
}

#[derive(Args)]
pub struct MemberArgs {
    #[command(flatten)]
    of: ProfileArgs,
    /// Its action; quote it, because it contains parentheses
    #[arg(required = true, value_name = "ACTION")]
    words: Vec<String>,
}

#[derive(Args)]
pub struct ListArgs {
    /// The action profile or selector, by its name or the end of it
    profile: String,
    #[command(flatten)]
    to: To,
}

fn share(text: &str) -> Result<(u32, u32), String> {
    let (member, weight) = text.split_once(':').unwrap_or((text, "1"));
    match (member.parse(), weight.parse()) {
        (Ok(member), Ok(weight)) => Ok((member, weight)),
        _ => Err("a member of a group must be MEMBER or MEMBER:WEIGHT".to_owned()),
    }
}

pub fn member(command: MemberCommand) -> io::Result<bool> {
    match command {
        MemberCommand::Add(MemberArgs { of: ProfileArgs { profile, id, to }, words }) => {
            ask(&to, &Request::MemberAdd { profile, id, action: words.join(" ") })
        }
        MemberCommand::Modify(MemberArgs { of: ProfileArgs { profile, id, to }, words }) => {
            ask(&to, &Request::MemberModify { profile, id, action: words.join(" ") })
        }
        MemberCommand::Delete(ProfileArgs { profile, id, to }) => ask(&to, &Request::MemberDelete { profile, id }),
        MemberCommand::List(ListArgs { profile, to }) => ask(&to, &Request::MemberList { profile }),
    }
}

pub fn value_set(command: ValueSetCommand) -> io::Result<bool> {
    match command {
        ValueSetCommand::Set { set, members, to } => ask(&to, &Request::ValueSetPut { set, members }),
        ValueSetCommand::List { set, to } => ask(&to, &Request::ValueSetList { set }),
    }
}

pub fn group(command: GroupCommand) -> io::Result<bool> {
    match command {
        GroupCommand::Set { of: ProfileArgs { profile, id, to }, members } => {
            ask(&to, &Request::GroupSet { profile, id, members })
        }
        GroupCommand::Delete(ProfileArgs { profile, id, to }) => ask(&to, &Request::GroupDelete { profile, id }),
        GroupCommand::List(ListArgs { profile, to }) => ask(&to, &Request::GroupList { profile }),
    }
}
