//! `namehop p4 table`: changes and shows the tables of a running program.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use namehop_p4_lang::entry_text;
use namehop_p4runtime::info::action_ref::Scope;
use namehop_p4runtime::info::{self, Object, P4Info};
use namehop_p4runtime::message::entity::Entity as Kind;
use namehop_p4runtime::message::table_action::Type as ActionKind;
use namehop_p4runtime::message::update::Type as UpdateType;
use namehop_p4runtime::message::{TableAction, TableEntry};
use serde_json::{Value, json};

use crate::control::{ControlError, Outcome, Remote, To, answer, entry, names};
use crate::load_entries;

#[derive(Subcommand)]
pub(crate) enum TableCommand {
    /// Add an entry: TABLE [PRIORITY] KEY:VALUE… ACTION(NAME:VALUE,…)
    ///
    /// Values are decimal, 0x…, 0b… or IPv4 addresses; IPv6 and hardware addresses are in double quotes. /LENGTH makes
    /// a prefix, &&&MASK selects bits, FIRST..LAST is a range. The largest priority wins; the default is 1.
    Add(EntryArgs),
    /// Replace the action of an entry
    Modify(EntryArgs),
    /// Delete an entry: TABLE [PRIORITY] KEY:VALUE…
    Delete(EntryArgs),
    /// Set the action for keys that match no entry: TABLE ACTION(NAME:VALUE,…)
    Default(EntryArgs),
    /// Add all entries of a file, one per line as 'list' prints them, or none if one fails
    Load {
        /// The file; - is the standard input
        file: PathBuf,
        #[command(flatten)]
        to: To,
    },
    /// Show all entries of a table, or of all tables
    List {
        /// The table, by its name or the end of it
        table: Option<String>,
        #[command(flatten)]
        to: To,
    },
    /// Write all entries to a file that 'load' can read
    Dump {
        /// The file
        file: PathBuf,
        #[command(flatten)]
        to: To,
    },
}

#[derive(Args)]
pub(crate) struct EntryArgs {
    /// The entry; quote it, because it contains parentheses
    #[arg(required = true, value_name = "ENTRY")]
    words: Vec<String>,
    #[command(flatten)]
    to: To,
}

/// Runs the command.
pub(crate) fn run(command: &TableCommand) -> Outcome<()> {
    let (to, answer) = match command {
        TableCommand::Add(args) => (&args.to, change(args, UpdateType::Insert)?),
        TableCommand::Modify(args) => (&args.to, change(args, UpdateType::Modify)?),
        TableCommand::Delete(args) => (&args.to, change(args, UpdateType::Delete)?),
        TableCommand::Default(args) => (&args.to, set_default(args)?),
        TableCommand::Load { file, to } => {
            let text = read(file).map_err(|error| ControlError::Unreadable(file.clone(), error))?;
            let count = load_entries::load(&mut Remote::connect(to)?, &text)?;
            (to, json!({ "loaded": count }))
        }
        TableCommand::List { table, to } => {
            let lines = list(&mut Remote::connect(to)?, table.as_deref())?;
            (to, json!({ "entries": lines }))
        }
        TableCommand::Dump { file, to } => {
            let lines: String =
                list(&mut Remote::connect(to)?, None)?.into_iter().map(|entry| format!("{entry}\n")).collect();
            std::fs::write(file, lines).map_err(|error| ControlError::Unwritable(file.clone(), error))?;
            return Ok(());
        }
    };
    Ok(answer::print(to, &answer)?)
}

fn read(file: &Path) -> io::Result<String> {
    let mut text = String::new();
    if file == Path::new("-") {
        io::stdin().read_to_string(&mut text)?;
    } else {
        File::open(file)?.read_to_string(&mut text)?;
    }
    Ok(text)
}

/// Adds, modifies or deletes an entry.
fn change(args: &EntryArgs, kind: UpdateType) -> Outcome<Value> {
    let words = args.words.join(" ");
    let text = entry_text::entry(&words)?;
    if text.action.is_none() && kind != UpdateType::Delete {
        return Err(format!("the entry of table {} has no action", text.table).into());
    }
    let mut remote = Remote::connect(&args.to)?;
    let mut wanted = entry::encode(&remote.info, &text)?;
    if kind == UpdateType::Modify {
        // Its other properties, which controllers have set, stay.
        if let Some(known) = known(&mut remote, &wanted)? {
            wanted = TableEntry { action: wanted.action, is_const: false, ..known };
        }
    }
    remote.change(kind, Kind::TableEntry(wanted))?;
    Ok(Value::Null)
}

/// Reads the entry with the same table, key and priority.
fn known(remote: &mut Remote, wanted: &TableEntry) -> Outcome<Option<TableEntry>> {
    let asked = TableEntry { action: None, ..wanted.clone() };
    let mut found = None;
    remote.entries(asked, &mut |_, entry| {
        let is_same = entry.r#match == wanted.r#match && entry.priority == wanted.priority;
        found = found.take().or_else(|| Some(entry).filter(|_| is_same));
    })?;
    Ok(found)
}

fn set_default(args: &EntryArgs) -> Outcome<Value> {
    let words = args.words.join(" ");
    let (table, call) = entry_text::default_action(&words)?;
    let mut remote = Remote::connect(&args.to)?;
    let table = entry::table(&remote.info, table)?;
    let (action, scope) = entry::action(&remote.info, table, &call)?;
    if scope == Scope::TableOnly {
        return Err(table_only(&remote.info, table, action.action_id).into());
    }
    let asked = TableEntry { table_id: table.preamble().id, is_default_action: true, ..TableEntry::default() };
    let mut known = asked.clone();
    remote.entries(asked, &mut |_, entry| known = entry)?;
    let action = Some(TableAction { r#type: Some(ActionKind::Action(action)) });
    // Its metadata, which a controller has set, stay.
    remote.change(UpdateType::Modify, Kind::TableEntry(TableEntry { action, ..known }))?;
    Ok(Value::Null)
}

fn table_only(info: &P4Info, table: &info::Table, action: u32) -> String {
    let action = names::action_with(info, action).map_or("", names::path);
    format!("table {}: action {action} cannot be the default action", names::path(table))
}

/// All entries of one table or of all tables, in the form in which they can be loaded.
fn list(remote: &mut Remote, table: Option<&str>) -> Outcome<Vec<String>> {
    let table_id = match table {
        Some(name) => entry::table(&remote.info, name)?.preamble().id,
        None => 0,
    };
    let mut found = Vec::new();
    remote.entries(TableEntry { table_id, ..TableEntry::default() }, &mut |info, entry| {
        found.push((entry::order(info, &entry), entry::show(info, &entry)));
    })?;
    found.sort_unstable();
    Ok(found.into_iter().map(|(_, line)| line).collect())
}
