//! Loads files of entries: all entries of a file, or none. Several threads parse the file before the first entry is
//! added.

use std::num::NonZero;
use std::thread;

use namehop_p4_compile::description::Description;
use namehop_p4_compile::layout;
use namehop_p4_lang::entry_text;

use super::entry;
use super::profiles::Reference;
use super::rows::identity;
use super::state::{State, Tables};
use crate::program::{Change, Entry};

/// Maximum number of faulty lines that are reported.
const NAMED_LINES: usize = 10;
/// Maximum number of threads that parse a file.
const MOST_READERS: usize = 4;

impl<T: Tables> State<T> {
    /// Adds all entries of a text, one per line, or none if one cannot be added. Returns their number.
    pub fn load(&mut self, text: &str) -> Result<usize, String> {
        let parts = parts_of(text, thread::available_parallelism().map_or(1, NonZero::get).min(MOST_READERS));
        let description = &self.description;
        let read = thread::scope(|scope| {
            let (first, others) = parts.split_first().map_or((&"", &[][..]), |(first, others)| (first, others));
            let others: Vec<_> = others.iter().map(|part| scope.spawn(|| Part::read(description, part))).collect();
            let mut read = vec![Part::read(description, first)];
            for other in others {
                read.push(
                    other.join().map_err(|_| "nothing was loaded: a reading thread panicked; please report this")?,
                );
            }
            Ok::<_, String>(read)
        })?;
        let mut faults = Vec::new();
        let mut before = 0;
        for part in &read {
            let named = part.faults.iter().map(|(line, reason)| format!("line {}: {reason}", before + line));
            faults.extend(named.take(NAMED_LINES - faults.len()));
            before += part.lines;
        }
        if !faults.is_empty() {
            return Err(format!("nothing was loaded: {}", faults.join("; ")));
        }
        for table in 0..self.entries.len() {
            self.entries[table].reserve(read.iter().map(|part| part.counts[table]).sum());
        }
        let (mut count, mut before) = (0, 0);
        for part in read {
            for (line, table, entry, reference) in part.entries {
                let Err(reason) = self.put(table, Change::Insert, entry, reference) else {
                    count += 1;
                    continue;
                };
                let line = before + line;
                self.take_out(text, count).map_err(|failed| format!("line {line}: {reason}; and {failed}"))?;
                return Err(format!("nothing was loaded: line {line}: {reason}"));
            }
            before += part.lines;
        }
        Ok(count)
    }

    /// Deletes the first `count` entries of a text that was loaded, in reverse order.
    fn take_out(&mut self, text: &str, count: usize) -> Result<(), String> {
        let lines: Vec<&str> = lines_of(text).take(count).map(|(_, line)| line).collect();
        for line in lines.into_iter().rev() {
            let (table, entry, _) = entry_of(&self.description, line)?;
            // The deletion compares the length of the action data with the action's, so use the real entry.
            let known = self.entry(table, &identity(&entry));
            self.apply(table, Change::Delete, known.unwrap_or(entry))?;
        }
        Ok(())
    }
}

/// The parsed entries of a part of a text.
struct Part {
    lines: usize,
    /// Entries with their line numbers, from 1, and tables.
    entries: Vec<(usize, usize, Entry, Option<Reference>)>,
    /// Number of entries of each table.
    counts: Vec<usize>,
    /// The first faulty lines, with their errors.
    faults: Vec<(usize, String)>,
}

impl Part {
    fn read(description: &Description, text: &str) -> Part {
        let counts = vec![0; description.tables.len()];
        let mut part = Part { lines: text.lines().count(), entries: Vec::new(), counts, faults: Vec::new() };
        for (number, line) in lines_of(text) {
            match entry_of(description, line) {
                Ok((table, entry, reference)) => {
                    part.counts[table] += 1;
                    part.entries.push((number, table, entry, reference));
                    let layout::Table { path, size, .. } = &description.tables[table].table;
                    // Stop early, so that a file that cannot fit takes no more memory.
                    if part.counts[table] as u64 > *size {
                        part.faults.push((number, format!("table {path} has room for {size} entries")));
                        break;
                    }
                }
                Err(reason) if part.faults.len() < NAMED_LINES => part.faults.push((number, reason)),
                Err(_) => break,
            }
        }
        part
    }
}

/// Parses a line of a text.
fn entry_of(description: &Description, line: &str) -> Result<(usize, Entry, Option<Reference>), String> {
    let text = entry_text::entry(line)?;
    if text.action.is_none() {
        return Err("an action is missing".to_owned());
    }
    entry::read(description, &text)
}

/// Splits a text into at most `count` parts of whole lines.
fn parts_of(text: &str, count: usize) -> Vec<&str> {
    let (mut parts, mut rest) = (Vec::new(), text);
    for left in (1..=count).rev() {
        let end = rest.as_bytes()[rest.len() / left..].iter().position(|byte| *byte == b'\n');
        let (part, behind) = rest.split_at(end.map_or(rest.len(), |end| rest.len() / left + end + 1));
        parts.push(part);
        rest = behind;
    }
    parts
}

/// The lines of a text that contain an entry, without comments, and their numbers from 1.
fn lines_of(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or("").trim()).enumerate();
    lines.filter(|(_, line)| !line.is_empty()).map(|(place, line)| (place + 1, line))
}
