//! Loads files of entries: all entries of a file, or none. The whole file is read before the first entry is added.

use std::collections::HashMap;
use std::sync::mpsc;
use std::thread;

use namehop_p4_lang::entry_text;
use namehop_p4runtime::WriteError;
use namehop_p4runtime::info::{Object, P4Info};
use namehop_p4runtime::message::entity::Entity as Kind;
use namehop_p4runtime::message::update::Type as UpdateType;
use namehop_p4runtime::message::{TableEntry, Update};

use crate::control::{ControlError, Outcome, Remote, entry, names, update};

/// Maximum number of faulty lines that are reported.
const NAMED_LINES: usize = 10;
/// Number of entries in a request. The status of a request has room for the result of each of them.
const AT_ONCE: usize = 200;
/// Maximum number of requests that wait to be sent.
const REQUESTS_AHEAD: usize = 4;

/// Adds all entries of a text, one per line, or none if one cannot be added. Returns their number.
///
/// # Errors
/// Names the faulty lines, or the line that the program refuses.
pub(crate) fn load(remote: &mut Remote, text: &str) -> Outcome<usize> {
    check(&remote.info, text)?;
    let lines: Vec<(usize, &str)> = lines_of(text).collect();
    let Some(Refused { count, reason, mut added }) = add(remote, &lines)? else { return Ok(lines.len()) };
    added.splice(0..0, lines[..count].iter().map(|(_, line)| *line));
    take_out(remote, &added).map_err(|error| ControlError::HalfLoaded(reason.clone(), Box::new(error)))?;
    Err(ControlError::NotLoaded(reason))
}

/// What is known when the program has refused an entry.
struct Refused<'l> {
    /// Number of lines in earlier requests, which are all added.
    count: usize,
    /// The line and what is wrong with it.
    reason: String,
    /// Lines of the same request that were added.
    added: Vec<&'l str>,
}

/// Adds the entries of lines until one is refused. A second thread makes the next requests meanwhile.
fn add<'l>(remote: &mut Remote, lines: &[(usize, &'l str)]) -> Outcome<Option<Refused<'l>>> {
    let (client, info) = remote.parts();
    thread::scope(|scope| {
        let (sender, requests) = mpsc::sync_channel(REQUESTS_AHEAD);
        scope.spawn(move || {
            // Ends early if an entry was refused.
            lines.chunks(AT_ONCE).map(|part| insertions(info, part)).try_for_each(|request| sender.send(request))
        });
        for (number, (part, request)) in lines.chunks(AT_ONCE).zip(requests).enumerate() {
            let results = match client.write(request?) {
                Ok(()) => continue,
                Err(WriteError::Updates(results)) => results,
                Err(WriteError::Request(status)) => vec![Err(status)],
            };
            let failed = results.iter().position(Result::is_err).unwrap_or_default();
            let (line, reason) = (part[failed].0, results.get(failed).and_then(|result| result.as_ref().err()));
            let reason = format!("line {line}: {}", reason.map_or("refused", |status| status.message()));
            let added = part.iter().zip(&results).filter(|(_, result)| result.is_ok()).map(|((_, line), _)| *line);
            return Ok(Some(Refused { count: number * AT_ONCE, reason, added: added.collect() }));
        }
        Ok(None)
    })
}

/// The updates that add the entries of lines.
fn insertions(info: &P4Info, lines: &[(usize, &str)]) -> Result<Vec<Update>, String> {
    let insertion = |(_, line): &(usize, &str)| {
        entry_of(info, line).map(|entry| update(UpdateType::Insert, Kind::TableEntry(entry)))
    };
    lines.iter().map(insertion).collect()
}

/// Deletes entries that were added, in reverse order.
fn take_out(remote: &mut Remote, lines: &[&str]) -> Outcome<()> {
    for part in lines.rchunks(AT_ONCE) {
        let mut updates = Vec::with_capacity(part.len());
        for line in part.iter().rev() {
            let entry = TableEntry { action: None, ..entry_of(&remote.info, line)? };
            updates.push(update(UpdateType::Delete, Kind::TableEntry(entry)));
        }
        remote.changes(updates)?;
    }
    Ok(())
}

/// Checks all lines.
fn check(info: &P4Info, text: &str) -> Outcome<()> {
    let mut counts: HashMap<u32, i64> = HashMap::new();
    let mut faults = Vec::new();
    for (number, line) in lines_of(text) {
        let fault = match entry_of(info, line) {
            Err(reason) => reason,
            Ok(entry) => {
                let count = counts.entry(entry.table_id).or_default();
                *count += 1;
                match names::table_with(info, entry.table_id) {
                    Some(table) if *count > table.size => {
                        let (path, size) = (&table.preamble().name, table.size);
                        faults.push(format!("line {number}: table {path} has room for {size} entries"));
                        break;
                    }
                    _ => continue,
                }
            }
        };
        faults.push(format!("line {number}: {fault}"));
        if faults.len() == NAMED_LINES {
            break;
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(ControlError::NotLoaded(faults.join("; "))) }
}

/// Parses a line of a text.
fn entry_of(info: &P4Info, line: &str) -> Result<TableEntry, String> {
    let text = entry_text::entry(line)?;
    if text.action.is_none() {
        return Err("an action is missing".to_owned());
    }
    entry::encode(info, &text)
}

/// The lines of a text that contain an entry, without comments, and their numbers from 1.
fn lines_of(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or("").trim()).enumerate();
    lines.filter(|(_, line)| !line.is_empty()).map(|(place, line)| (place + 1, line))
}
