//! `namehop p4 value-set`: sets and shows the members of parser value sets of a running program.

use clap::Subcommand;
use namehop_p4_lang::entry_text;
use namehop_p4runtime::info::{self, Object, P4Info};
use namehop_p4runtime::message::entity::Entity as Kind;
use namehop_p4runtime::message::update::Type as UpdateType;
use namehop_p4runtime::message::{FieldMatch, ValueSetEntry, ValueSetMember};
use serde_json::{Value, json};

use crate::control::names::{object, path};
use crate::control::{Outcome, Remote, To, answer, matches};

#[derive(Subcommand)]
pub(crate) enum ValueSetCommand {
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

/// Runs the command.
pub(crate) fn run(command: &ValueSetCommand) -> Outcome<()> {
    let (to, answer) = match command {
        ValueSetCommand::Set { set, members, to } => (to, put(set, members, to)?),
        ValueSetCommand::List { set, to } => (to, list(set, to)?),
    };
    Ok(answer::print(to, &answer)?)
}

fn value_set<'i>(info: &'i P4Info, name: &str) -> Result<&'i info::ValueSet, String> {
    object("value set", &info.value_sets, name)
}

/// Encodes a member.
fn member(set: &info::ValueSet, text: &str) -> Result<Vec<FieldMatch>, String> {
    let what = || format!("value set {}", path(set));
    let values = entry_text::member(text).map_err(|reason| format!("{}: {reason}", what()))?;
    if values.len() != set.r#match.len() {
        return Err(format!("{}: a member must have {} values, as in A,B", what(), set.r#match.len()));
    }
    let mut all = Vec::new();
    for (field, number) in set.r#match.iter().zip(&values) {
        all.extend(matches::encode(&what, field, Some(number))?);
    }
    Ok(all)
}

fn put(name: &str, members: &[String], to: &To) -> Outcome<Value> {
    let mut remote = Remote::connect(to)?;
    let set = value_set(&remote.info, name)?;
    let made = members.iter().map(|text| Ok(ValueSetMember { r#match: member(set, text)? }));
    let members = made.collect::<Result<Vec<_>, String>>()?;
    let entry = ValueSetEntry { value_set_id: set.preamble().id, members };
    remote.change(UpdateType::Modify, Kind::ValueSetEntry(entry))?;
    Ok(Value::Null)
}

fn list(name: &str, to: &To) -> Outcome<Value> {
    let mut remote = Remote::connect(to)?;
    let value_set_id = value_set(&remote.info, name)?.preamble().id;
    let asked = ValueSetEntry { value_set_id, members: Vec::new() };
    let found = remote.read(Kind::ValueSetEntry(asked))?;
    let set = value_set(&remote.info, name)?;
    let show = |member: &ValueSetMember| {
        let shown = set.r#match.iter().map(|field| matches::show_member(field, &member.r#match));
        shown.collect::<Vec<_>>().join(",")
    };
    let members =
        found.iter().filter_map(|kind| if let Kind::ValueSetEntry(set) = kind { Some(&set.members) } else { None });
    let values: Vec<String> = members.flatten().map(show).collect();
    Ok(json!({ "value_set": path(set), "values": values }))
}
