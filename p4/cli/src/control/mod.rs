//! The operator's side of a running program: requests at its control socket by P4Runtime, objects by name (`names`),
//! entries as text (`entry`, `matches`), values of cells (`values`), and answers as text (`answer`).

pub(crate) mod answer;
pub(crate) mod entry;
mod error;
pub(crate) mod matches;
pub(crate) mod names;
#[cfg(test)]
mod tests;
pub(crate) mod values;

use std::path::PathBuf;

use clap::Args;
use namehop_p4runtime::info::P4Info;
use namehop_p4runtime::message::entity::Entity as Kind;
use namehop_p4runtime::message::update::Type as UpdateType;
use namehop_p4runtime::message::{CounterData, Entity, MeterConfig, TableEntry, Update};
use namehop_p4runtime::{Client, WriteError};

pub(crate) use error::{ControlError, Outcome};

/// Where to send requests, and how to print responses.
#[derive(Args)]
pub(crate) struct To {
    /// The control socket of 'namehop p4 run'
    #[arg(long, value_name = "SOCKET")]
    pub(crate) control: PathBuf,
    /// Write JSON to the standard output
    #[arg(long)]
    pub(crate) json: bool,
}

/// A running program.
pub(crate) struct Remote {
    client: Client,
    pub(crate) info: P4Info,
}

impl Remote {
    /// Connects to the control socket of a running program.
    pub(crate) fn connect(to: &To) -> Outcome<Remote> {
        let unreachable = |error| ControlError::Unreachable(to.control.clone(), error);
        let mut client = Client::connect(&to.control).map_err(unreachable)?;
        let info = client.p4info()?;
        Ok(Remote { client, info })
    }

    /// Makes one change.
    pub(crate) fn change(&mut self, kind: UpdateType, entity: Kind) -> Outcome<()> {
        Ok(self.changes(vec![update(kind, entity)])?)
    }

    /// Makes changes, each one that can be made.
    pub(crate) fn changes(&mut self, updates: Vec<Update>) -> Result<(), WriteError> {
        self.client.write(updates)
    }

    /// Reads everything that matches an entity.
    pub(crate) fn read(&mut self, entity: Kind) -> Outcome<Vec<Kind>> {
        let mut found = Vec::new();
        self.client.read(Entity { entity: Some(entity) }, &mut |entity| found.extend(entity.entity))?;
        Ok(found)
    }

    /// Reads entries of a table, or of all tables if the id is 0, and calls a function with each.
    pub(crate) fn entries(&mut self, asked: TableEntry, each: &mut dyn FnMut(&P4Info, TableEntry)) -> Outcome<()> {
        let Remote { client, info } = self;
        let entity = Entity { entity: Some(Kind::TableEntry(asked)) };
        client.read(entity, &mut |entity| {
            if let Some(Kind::TableEntry(entry)) = entity.entity {
                each(info, entry);
            }
        })?;
        Ok(())
    }

    /// Reads the entries of a table with their counters and meters, in the order in which they are listed.
    pub(crate) fn measured_entries(&mut self, table_id: u32) -> Outcome<Vec<TableEntry>> {
        let asked = TableEntry {
            table_id,
            counter_data: Some(CounterData::default()),
            meter_config: Some(MeterConfig::default()),
            ..TableEntry::default()
        };
        let mut found = Vec::new();
        self.entries(asked, &mut |info, entry| found.push((entry::order(info, &entry), entry)))?;
        found.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(found.into_iter().map(|(_, entry)| entry).collect())
    }

    /// The client and the p4info, so that requests can be made while one is on its way.
    pub(crate) fn parts(&mut self) -> (&mut Client, &P4Info) {
        (&mut self.client, &self.info)
    }

    /// The client, for requests that P4Runtime does not have.
    pub(crate) fn client(&mut self) -> &mut Client {
        &mut self.client
    }
}

/// An update of one entity.
pub(crate) fn update(kind: UpdateType, entity: Kind) -> Update {
    Update { r#type: kind as i32, entity: Some(Entity { entity: Some(entity) }) }
}
