//! `namehop p4 counter`: shows and resets the counters of a running program.

use clap::{Args, Subcommand};
use namehop_p4runtime::message::entity::Entity as Kind;
use namehop_p4runtime::message::update::Type as UpdateType;
use namehop_p4runtime::message::{CounterData, CounterEntry, DirectCounterEntry, TableEntry};
use serde_json::{Value, json};

use crate::control::names::{self, Measure, selected};
use crate::control::{Outcome, Remote, To, answer, entry};

#[derive(Subcommand)]
pub(crate) enum CounterCommand {
    /// Show cells that are not zero
    Read(CounterArgs),
    /// Set cells to zero
    Reset(CounterArgs),
}

#[derive(Args)]
pub(crate) struct CounterArgs {
    /// The counter, by its name or the end of it
    counter: String,
    /// Only this cell
    index: Option<u64>,
    #[command(flatten)]
    to: To,
}

/// Runs the command.
pub(crate) fn run(command: &CounterCommand) -> Outcome<()> {
    let (to, answer) = match command {
        CounterCommand::Read(args) => (&args.to, read(args)?),
        CounterCommand::Reset(args) => (&args.to, reset(args)?),
    };
    Ok(answer::print(to, &answer)?)
}

fn read(args: &CounterArgs) -> Outcome<Value> {
    let mut remote = Remote::connect(&args.to)?;
    let (path, counter) = names::counter(&remote.info, &args.counter)?;
    let mut cells = Vec::new();
    match counter {
        Measure::Cells { id, size } => {
            selected("counter", &path, args.index, size as usize)?;
            let asked = CounterEntry { counter_id: id, index: names::index(args.index), data: None };
            for kind in remote.read(Kind::CounterEntry(asked))? {
                let Kind::CounterEntry(CounterEntry { index, data, .. }) = kind else { continue };
                let (index, data) = (index.unwrap_or_default().index, data.unwrap_or_default());
                if args.index.is_some() || data != CounterData::default() {
                    cells.push(json!({"index": index, "packets": data.packet_count, "bytes": data.byte_count}));
                }
            }
        }
        Measure::Entries { table_id } => {
            let entries = remote.measured_entries(table_id)?;
            for place in selected("counter", &path, args.index, entries.len())? {
                let (text, data) = (entry::show(&remote.info, &entries[place]), entries[place].counter_data);
                let CounterData { packet_count, byte_count } = data.unwrap_or_default();
                cells.push(json!({"index": place, "entry": text, "packets": packet_count, "bytes": byte_count}));
            }
        }
    }
    Ok(json!({ "counter": path, "cells": cells }))
}

fn reset(args: &CounterArgs) -> Outcome<Value> {
    let mut remote = Remote::connect(&args.to)?;
    let (path, counter) = names::counter(&remote.info, &args.counter)?;
    match counter {
        Measure::Cells { id, size } => {
            selected("counter", &path, args.index, size as usize)?;
            let cells = CounterEntry { counter_id: id, index: names::index(args.index), data: None };
            remote.change(UpdateType::Modify, Kind::CounterEntry(cells))?;
        }
        Measure::Entries { table_id } => {
            let entries = remote.measured_entries(table_id)?;
            for entry in &entries[selected("counter", &path, args.index, entries.len())?] {
                let TableEntry { table_id, r#match, priority, .. } = entry.clone();
                let table_entry = Some(TableEntry { table_id, r#match, priority, ..TableEntry::default() });
                let cell = DirectCounterEntry { table_entry, data: None };
                remote.change(UpdateType::Modify, Kind::DirectCounterEntry(cell))?;
            }
        }
    }
    Ok(json!({ "counter": path }))
}
