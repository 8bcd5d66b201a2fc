//! `namehop p4 meter`: shows and sets the rates of the meters of a running program.

use clap::{Args, Subcommand};
use namehop_p4runtime::message::entity::Entity as Kind;
use namehop_p4runtime::message::update::Type as UpdateType;
use namehop_p4runtime::message::{DirectMeterEntry, MeterConfig, MeterEntry, TableEntry};
use serde_json::{Value, json};

use crate::control::names::{self, Measure, selected};
use crate::control::{Outcome, Remote, To, answer, entry};

#[derive(Subcommand)]
pub(crate) enum MeterCommand {
    /// Show cells that are set
    Read(MeterArgs),
    /// Set the rates of a cell, in packets or bytes, depending on the meter
    ///
    /// Packets above the peak rate are red, packets above the committed rate yellow, all others green (RFC 2698). A
    /// burst size limits the packets or bytes that may come at once; for a meter of bytes, it must be at least the
    /// longest packet.
    Set {
        /// The meter, by its name or the end of it
        meter: String,
        /// The cell
        index: u64,
        #[command(flatten)]
        rates: Rates,
        #[command(flatten)]
        to: To,
    },
    /// Remove the limits of cells, as at the start: all packets are green
    Reset(MeterArgs),
}

#[derive(Args)]
pub(crate) struct MeterArgs {
    /// The meter, by its name or the end of it
    meter: String,
    /// Only this cell
    index: Option<u64>,
    #[command(flatten)]
    to: To,
}

/// Rates of a meter cell, in packets or bytes, depending on the meter; per second.
#[derive(Args)]
pub(crate) struct Rates {
    /// Rate of green packets or bytes, per second
    #[arg(long = "cir", value_name = "RATE")]
    committed_rate: u64,
    /// Burst of green packets or bytes
    #[arg(long = "cburst", value_name = "COUNT")]
    committed_burst: u64,
    /// Rate of green and yellow packets or bytes, per second
    #[arg(long = "pir", value_name = "RATE")]
    peak_rate: u64,
    /// Burst of green and yellow packets or bytes; everything above is red
    #[arg(long = "pburst", value_name = "COUNT")]
    peak_burst: u64,
}

impl Rates {
    /// Encodes the rates. Numbers that P4Runtime cannot express are unlimited.
    fn config(&self) -> MeterConfig {
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        MeterConfig {
            cir: number(self.committed_rate),
            cburst: number(self.committed_burst),
            pir: number(self.peak_rate),
            pburst: number(self.peak_burst),
            eburst: 0,
        }
    }
}

/// Runs the command.
pub(crate) fn run(command: &MeterCommand) -> Outcome<()> {
    let (to, answer) = match command {
        MeterCommand::Read(args) => (&args.to, read(args)?),
        MeterCommand::Set { meter, index, rates, to } => {
            let mut remote = Remote::connect(to)?;
            let (path, meter, _) = names::meter(&remote.info, meter)?;
            if rates.committed_rate > rates.peak_rate {
                let Rates { committed_rate, peak_rate, .. } = rates;
                return Err(format!(
                    "meter {path}: the committed rate of {committed_rate} is above the peak rate of {peak_rate}"
                )
                .into());
            }
            set(&mut remote, &path, meter, Some(*index), Some(rates.config()))?;
            (to, json!({ "meter": path }))
        }
        MeterCommand::Reset(MeterArgs { meter, index, to }) => {
            let mut remote = Remote::connect(to)?;
            let (path, meter, _) = names::meter(&remote.info, meter)?;
            set(&mut remote, &path, meter, *index, None)?;
            (to, json!({ "meter": path }))
        }
    };
    Ok(answer::print(to, &answer)?)
}

fn rates_of(config: MeterConfig) -> Value {
    json!({
        "committed_rate": config.cir, "committed_burst": config.cburst,
        "peak_rate": config.pir, "peak_burst": config.pburst,
    })
}

fn read(args: &MeterArgs) -> Outcome<Value> {
    let mut remote = Remote::connect(&args.to)?;
    let (path, meter, unit) = names::meter(&remote.info, &args.meter)?;
    let mut cells = Vec::new();
    match meter {
        Measure::Cells { id, size } => {
            selected("meter", &path, args.index, size as usize)?;
            let asked = MeterEntry { meter_id: id, index: names::index(args.index), ..MeterEntry::default() };
            for kind in remote.read(Kind::MeterEntry(asked))? {
                if let Kind::MeterEntry(MeterEntry { index, config: Some(config), .. }) = kind {
                    cells.push(json!({"index": index.unwrap_or_default().index, "rates": rates_of(config)}));
                }
            }
        }
        Measure::Entries { table_id } => {
            let entries = remote.measured_entries(table_id)?;
            for place in selected("meter", &path, args.index, entries.len())? {
                let Some(config) = entries[place].meter_config else { continue };
                let text = entry::show(&remote.info, &entries[place]);
                cells.push(json!({"index": place, "entry": text, "rates": rates_of(config)}));
            }
        }
    }
    Ok(json!({ "meter": path, "unit": unit, "cells": cells }))
}

/// Sets the rates of one cell or of all, or removes them.
fn set(
    remote: &mut Remote,
    path: &str,
    meter: Measure,
    index: Option<u64>,
    config: Option<MeterConfig>,
) -> Outcome<()> {
    match meter {
        Measure::Cells { id, size } => {
            selected("meter", path, index, size as usize)?;
            let cells = MeterEntry { meter_id: id, index: names::index(index), config, counter_data: None };
            remote.change(UpdateType::Modify, Kind::MeterEntry(cells))
        }
        Measure::Entries { table_id } => {
            let entries = remote.measured_entries(table_id)?;
            entries[selected("meter", path, index, entries.len())?].iter().try_for_each(|entry| {
                let TableEntry { table_id, r#match, priority, .. } = entry.clone();
                let table_entry = Some(TableEntry { table_id, r#match, priority, ..TableEntry::default() });
                let cell = DirectMeterEntry { table_entry, config, counter_data: None };
                remote.change(UpdateType::Modify, Kind::DirectMeterEntry(cell))
            })
        }
    }
}
