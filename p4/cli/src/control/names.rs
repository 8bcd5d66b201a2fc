//! Objects of a program by their name or the end of it.

use std::ops::Range;

use namehop_p4_lang::entry_text::resolve;
use namehop_p4runtime::info::{self, Object, P4Info};
use namehop_p4runtime::message::Index;

/// Finds an object by its name.
pub(crate) fn object<'l, T: Object>(kind: &str, list: &'l [T], name: &str) -> Result<&'l T, String> {
    let place = resolve(name, list.iter().map(path)).map_err(|reason| format!("{kind}: {reason}"))?;
    Ok(&list[place])
}

/// The full name of an object.
pub(crate) fn path<T: Object>(object: &T) -> &str {
    &object.preamble().name
}

/// Finds the table with an id.
pub(crate) fn table_with(info: &P4Info, id: u32) -> Option<&info::Table> {
    info.tables.iter().find(|table| table.preamble().id == id)
}

/// Finds the action with an id.
pub(crate) fn action_with(info: &P4Info, id: u32) -> Option<&info::Action> {
    info.actions.iter().find(|action| action.preamble().id == id)
}

/// A counter or meter.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measure {
    /// One with an id and a number of cells.
    Cells { id: u32, size: u64 },
    /// One with a cell for each entry of the table with this id.
    Entries { table_id: u32 },
}

/// Finds a counter, or a direct counter, by its name. Returns its full name, too.
pub(crate) fn counter(info: &P4Info, name: &str) -> Result<(String, Measure), String> {
    let own = info.counters.iter().map(|counter| {
        let cells = Measure::Cells { id: counter.preamble().id, size: counter.size as u64 };
        (path(counter), cells)
    });
    let direct = info.direct_counters.iter().map(|counter| {
        let entries = Measure::Entries { table_id: counter.direct_table_id };
        (path(counter), entries)
    });
    measure("counter", own.chain(direct).collect(), name)
}

/// Finds a meter, or a direct meter, by its name. Returns its full name and what it meters, too.
pub(crate) fn meter(info: &P4Info, name: &str) -> Result<(String, Measure, &'static str), String> {
    let own = info.meters.iter().map(|meter| {
        let cells = Measure::Cells { id: meter.preamble().id, size: meter.size as u64 };
        (path(meter), cells)
    });
    let direct = info.direct_meters.iter().map(|meter| {
        let entries = Measure::Entries { table_id: meter.direct_table_id };
        (path(meter), entries)
    });
    let (path, found) = measure("meter", own.chain(direct).collect(), name)?;
    let own = info.meters.iter().map(|meter| (meter.preamble(), meter.spec));
    let all = own.chain(info.direct_meters.iter().map(|meter| (meter.preamble(), meter.spec)));
    let spec = all.into_iter().find(|(preamble, _)| preamble.name == path).and_then(|(_, spec)| spec);
    let is_bytes = spec.is_some_and(|spec| spec.unit() == info::meter_spec::Unit::Bytes);
    Ok((path, found, if is_bytes { "bytes" } else { "packets" }))
}

fn measure(kind: &str, list: Vec<(&str, Measure)>, name: &str) -> Result<(String, Measure), String> {
    let place = resolve(name, list.iter().map(|(path, _)| *path)).map_err(|reason| format!("{kind}: {reason}"))?;
    let (path, measure) = list[place];
    Ok((path.to_owned(), measure))
}

/// A cell number for a request; `None` for all cells.
pub(crate) fn index(index: Option<u64>) -> Option<Index> {
    index.map(|index| Index { index: i64::try_from(index).unwrap_or(i64::MAX) })
}

/// The positions of a list that an index selects: one, or all.
pub(crate) fn selected(kind: &str, path: &str, index: Option<u64>, size: usize) -> Result<Range<usize>, String> {
    match index.map(usize::try_from) {
        None => Ok(0..size),
        Some(Ok(index)) if index < size => Ok(index..index + 1),
        Some(_) => {
            let index = index.unwrap_or_default();
            Err(format!("{kind} {path}: index {index} is out of range for {size} cells"))
        }
    }
}
