//! Requests about counters, registers, meters and digests: cells by name and index, and their values.

use std::ops::Range;
use std::sync::Arc;

use namehop_p4_compile::description::{Description, RegisterDescription};
use namehop_p4_compile::layout::{Leaf, Shape};
use namehop_p4_lang::entry_text::{integer, resolve};
use namehop_p4_lang::value;
use num_bigint::{BigInt, Sign};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::entry;
use super::live::{Live, at};
use super::server::Control;
use super::state::State;
use crate::cells::Rates;

/// Maximum number of digests in one response.
const MOST_DIGESTS: u64 = 1024;

/// Rates of a meter cell, in packets or bytes, depending on the meter; per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct MeterRates {
    /// Rate of green packets or bytes, per second
    #[arg(long = "cir", value_name = "RATE")]
    pub committed_rate: u64,
    /// Burst of green packets or bytes
    #[arg(long = "cburst", value_name = "COUNT")]
    pub committed_burst: u64,
    /// Rate of green and yellow packets or bytes, per second
    #[arg(long = "pir", value_name = "RATE")]
    pub peak_rate: u64,
    /// Burst of green and yellow packets or bytes; everything above is red
    #[arg(long = "pburst", value_name = "COUNT")]
    pub peak_burst: u64,
}

impl From<MeterRates> for Rates {
    fn from(rates: MeterRates) -> Rates {
        let MeterRates { committed_rate, committed_burst, peak_rate, peak_burst } = rates;
        Rates { committed_rate, committed_burst, peak_rate, peak_burst }
    }
}

/// Cells of a request: index of the object, its full name, and the cell indices.
type Cells = (usize, String, Range<u64>);

/// The value of a part of a cell; bits outside of the part are masked out.
pub fn read_leaf(leaf: &Leaf, cell: &[u8]) -> BigInt {
    let bytes = cell.get(leaf.offset..leaf.offset + leaf.size).unwrap_or_default();
    BigInt::from_bytes_le(Sign::Plus, bytes) & value::mask(leaf.width)
}

/// Writes a part of a cell; the number must fit.
pub fn write_leaf(leaf: &Leaf, cell: &mut [u8], number: &BigInt) {
    let extended = value::wrap(&value::wrap(number, leaf.width, leaf.signed), leaf.size as u32 * 8, false);
    let mut bytes = extended.magnitude().to_bytes_le();
    bytes.resize(leaf.size, 0);
    if let Some(to) = cell.get_mut(leaf.offset..leaf.offset + leaf.size) {
        to.copy_from_slice(&bytes);
    }
}

/// The parts of a digest, which are packed one behind the other.
pub fn unpack(leaves: &[Leaf], bytes: &[u8]) -> Vec<BigInt> {
    let mut left: u32 = leaves.iter().map(|leaf| leaf.width).sum();
    let all = BigInt::from_bytes_be(Sign::Plus, bytes) >> (bytes.len() as u32 * 8).saturating_sub(left);
    let number = |leaf: &Leaf| {
        left -= leaf.width;
        (&all >> left) & value::mask(leaf.width)
    };
    leaves.iter().map(number).collect()
}

/// Formats a value: a number, or an object with one member per part.
fn show(leaves: &[Leaf], numbers: &[BigInt]) -> Value {
    let text = |number: &BigInt| Value::from(format!("{number:#x}"));
    match (leaves, numbers) {
        ([leaf], [number]) if leaf.name.is_empty() => text(number),
        _ => leaves
            .iter()
            .zip(numbers)
            .map(|(leaf, number)| (leaf.name.clone(), text(number)))
            .collect::<Map<_, _>>()
            .into(),
    }
}

/// The parts of a register's cells.
///
/// # Errors
/// Fails if the cells contain headers or stacks.
pub fn leaves_of(register: &RegisterDescription) -> Result<Vec<Leaf>, String> {
    let leaves = register.shape.as_ref().map(Shape::leaves).map(|(leaves, _)| leaves);
    leaves.ok_or_else(|| {
        format!("register {}: its cells contain headers or stacks, which cannot be read or written", register.path)
    })
}

/// Parses values written as `VALUE` or `PART:VALUE …`. Returns each with its part.
fn parts<'l>(path: &str, leaves: &'l [Leaf], values: &[String]) -> Result<Vec<(&'l Leaf, BigInt)>, String> {
    let mut read: Vec<(&Leaf, BigInt)> = Vec::new();
    for text in values {
        let (leaf, number) = match leaves {
            [leaf] if leaf.name.is_empty() => (leaf, text.as_str()),
            _ => {
                let names = || leaves.iter().map(|leaf| &*leaf.name).collect::<Vec<_>>().join(", ");
                let named = text
                    .split_once(':')
                    .and_then(|(name, number)| leaves.iter().find(|leaf| leaf.name == name).map(|leaf| (leaf, number)));
                named.ok_or_else(|| {
                    format!("register {path}: '{text}' must be PART:VALUE with one of the parts {}", names())
                })?
            }
        };
        let number = integer(number).map_err(|reason| format!("register {path}: {reason}"))?;
        if number.sign() == Sign::Minus || number > value::mask(leaf.width) {
            return Err(format!("register {path}: {number} does not fit into {} bits", leaf.width));
        }
        if read.iter().any(|(other, _)| other.name == leaf.name) {
            return Err(format!("register {path}: a part has more than one value"));
        }
        read.push((leaf, number));
    }
    if read.is_empty() { Err(format!("register {path}: a value is missing")) } else { Ok(read) }
}

/// The cells that a request names: an object by its name or the end of it, and one index or all.
pub(super) struct Asked<'a> {
    description: &'a Description,
    name: &'a str,
    index: Option<u64>,
}

impl<'a> Asked<'a> {
    pub(super) fn new(description: &'a Description, name: &'a str, index: Option<u64>) -> Self {
        Asked { description, name, index }
    }

    fn counter_cells(&self) -> Result<Cells, String> {
        self.cells("counter", self.description.counters.iter().map(|counter| (&*counter.path, counter.size)))
    }

    fn register_cells(&self) -> Result<Cells, String> {
        self.cells("register", self.description.registers.iter().map(|register| (&*register.path, register.size)))
    }

    fn meter_cells(&self) -> Result<Cells, String> {
        self.cells("meter", self.description.meters.iter().map(|meter| (&*meter.path, meter.size)))
    }

    /// Finds the object among all of its kind.
    fn cells<'d>(&self, kind: &str, all: impl Iterator<Item = (&'d str, u64)> + Clone) -> Result<Cells, String> {
        let Asked { name, index, .. } = *self;
        let refused = |reason| format!("{kind}: {reason}");
        let place = resolve(name, all.clone().map(|(path, _)| path)).map_err(refused)?;
        let (path, size) = all.clone().nth(place).ok_or_else(|| refused(format!("there is no '{name}'")))?;
        let range = match index {
            None => 0..size,
            Some(index) if index < size => index..index + 1,
            Some(index) => return Err(format!("{kind} {path}: index {index} is out of range for {size} cells")),
        };
        Ok((place, path.to_owned(), range))
    }
}

/// Entries of a table with their cell numbers: of one cell, or of all.
fn entries_with_cells(state: &State<Arc<Live>>, table: usize, only: Option<u64>) -> Vec<(u64, String)> {
    let described = &state.description.tables[table];
    let numbered = state.entries_in_order(table).filter_map(|(identity, entry)| {
        let cell = u64::from(state.cell(table, &entry)?);
        let reference = state.extra(table, identity).and_then(|extra| extra.reference.as_ref());
        let wanted = only.is_none_or(|only| only == cell);
        wanted.then(|| (cell, entry::show(described, &entry, reference)))
    });
    numbered.collect()
}

impl Control {
    pub(super) fn read_counter(&self, state: &State<Arc<Live>>, asked: &Asked<'_>) -> Result<Value, String> {
        let (place, path, indices) = asked.counter_cells()?;
        let counter = |cell: u64| self.live.program.counter(place, at(cell));
        if let Some(table) = asked.description.counters[place].table {
            let cells = entries_with_cells(state, table, asked.index).into_iter().filter_map(|(cell, entry)| {
                let (packets, bytes) = counter(cell)?;
                Some(json!({"index": cell, "entry": entry, "packets": packets, "bytes": bytes}))
            });
            return Ok(json!({ "counter": path, "cells": cells.collect::<Vec<_>>() }));
        }
        let cell = |index: u64| counter(index).map(|cell| (index, cell));
        let cells = indices.filter_map(cell).filter(|(_, cell)| asked.index.is_some() || *cell != (0, 0));
        let cells = cells.map(|(index, (packets, bytes))| json!({"index": index, "packets": packets, "bytes": bytes}));
        Ok(json!({ "counter": path, "cells": cells.collect::<Vec<_>>() }))
    }

    pub(super) fn reset_counter(&self, state: &State<Arc<Live>>, asked: &Asked<'_>) -> Result<Value, String> {
        let (place, path, indices) = asked.counter_cells()?;
        let reset = |cell: u64| {
            // The cell of an entry always exists.
            let _ = self.live.program.set_counter(place, at(cell), 0, 0);
        };
        match asked.description.counters[place].table {
            Some(table) => entries_with_cells(state, table, asked.index).into_iter().for_each(|(cell, _)| reset(cell)),
            None => indices.for_each(reset),
        }
        Ok(json!({ "counter": path }))
    }

    pub(super) fn read_register(&self, asked: &Asked<'_>) -> Result<Value, String> {
        let (place, path, indices) = asked.register_cells()?;
        let leaves = leaves_of(&asked.description.registers[place])?;
        let mut cells = Vec::new();
        self.live.each_register_cell(place, indices, |at, cell| {
            if asked.index.is_some() || cell.iter().any(|byte| *byte != 0) {
                let numbers: Vec<_> = leaves.iter().map(|leaf| read_leaf(leaf, cell)).collect();
                cells.push(json!({"index": at, "value": show(&leaves, &numbers)}));
            }
        });
        Ok(json!({ "register": path, "cells": cells }))
    }

    pub(super) fn write_register(&self, asked: &Asked<'_>, values: &[String]) -> Result<Value, String> {
        let (place, path, indices) = asked.register_cells()?;
        let leaves = leaves_of(&asked.description.registers[place])?;
        let parts = parts(&path, &leaves, values)?;
        self.live.each_register_cell(place, indices, |_, cell| {
            parts.iter().for_each(|(leaf, number)| write_leaf(leaf, cell, number));
        });
        Ok(json!({ "register": path }))
    }

    pub(super) fn reset_register(&self, asked: &Asked<'_>) -> Result<Value, String> {
        let (place, path, indices) = asked.register_cells()?;
        self.live.each_register_cell(place, indices, |_, cell| cell.fill(0));
        Ok(json!({ "register": path }))
    }

    pub(super) fn read_meter(&self, state: &State<Arc<Live>>, asked: &Asked<'_>) -> Result<Value, String> {
        let (place, path, indices) = asked.meter_cells()?;
        let described = &asked.description.meters[place];
        let unit = if described.bytes { "bytes" } else { "packets" };
        let all = self.live.rates();
        let known = all.get(place).ok_or("a meter is missing")?;
        let cells: Vec<_> = match described.table {
            Some(table) => {
                let entries = entries_with_cells(state, table, asked.index).into_iter();
                let set = entries.filter_map(|(cell, entry)| Some((cell, entry, known.get(&cell)?)));
                set.map(|(cell, entry, rates)| json!({"index": cell, "entry": entry, "rates": rates})).collect()
            }
            None => known.range(indices).map(|(index, rates)| json!({"index": index, "rates": rates})).collect(),
        };
        Ok(json!({ "meter": path, "unit": unit, "cells": cells }))
    }

    pub(super) fn set_meter(&self, asked: &Asked<'_>, rates: MeterRates) -> Result<Value, String> {
        let (place, path, indices) = asked.meter_cells()?;
        if rates.committed_rate > rates.peak_rate {
            let MeterRates { committed_rate, peak_rate, .. } = rates;
            return Err(format!(
                "meter {path}: the committed rate of {committed_rate} is above the peak rate of {peak_rate}"
            ));
        }
        self.live.set_rates(place, indices, Some(rates));
        Ok(json!({ "meter": path }))
    }

    pub(super) fn reset_meter(&self, asked: &Asked<'_>) -> Result<Value, String> {
        let (place, path, indices) = asked.meter_cells()?;
        self.live.set_rates(place, indices, None);
        Ok(json!({ "meter": path }))
    }

    pub(super) fn take_digests(&self, description: &Description, most: u64) -> Result<Value, String> {
        let mut taken = Vec::new();
        while (taken.len() as u64) < most.min(MOST_DIGESTS)
            && let Some(digest) = self.live.program.digests.take()
        {
            let Some(described) = description.digests.get(digest.number as usize) else { continue };
            let (leaves, _) = described.shape.leaves();
            let values = show(&leaves, &unpack(&leaves, digest.bytes()));
            taken.push(json!({"digest": described.name, "value": values}));
        }
        Ok(json!({ "digests": taken, "dropped": self.live.program.digests.dropped() }))
    }
}
