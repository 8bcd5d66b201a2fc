//! Output of commands: aligned tables, lists of properties, and JSON.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::Serialize;

use crate::failure::Failure;
use crate::printable;

/// Prints text to standard output. Ends the program without an error if the reader has closed the pipe, as `head` does.
pub fn print(text: &str) -> Result<(), Failure> {
    write(&printable::lines(text))
}

fn write(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        other => Ok(other?),
    }
}

/// Prints one line.
pub fn line(text: impl AsRef<str>) -> Result<(), Failure> {
    print(&format!("{}\n", text.as_ref()))
}

/// Prints a value as indented JSON.
pub fn json<T: Serialize + ?Sized>(value: &T) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(Failure::failed)? + "\n";
    write(&printable::json(&text))
}

/// Prints a value as JSON on one line.
pub fn json_line<T: Serialize + ?Sized>(value: &T) -> Result<(), Failure> {
    let text = serde_json::to_string(value).map_err(Failure::failed)? + "\n";
    write(&printable::json(&text))
}

/// Side on which a column is aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// For texts.
    Left,
    /// For numbers.
    Right,
}

/// A table with a header line.
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates a table without rows, with these column titles.
    pub fn new(columns: &[(&str, Align)]) -> Self {
        let columns = columns.iter().map(|&(title, align)| (title.to_owned(), align)).collect();
        Self { columns, rows: Vec::new() }
    }

    /// Adds a row, which must have a cell for every column.
    pub fn row(&mut self, cells: impl Into<Vec<String>>) {
        let mut cells = cells.into();
        for cell in &mut cells {
            if let Cow::Owned(harmless) = printable::in_line(cell) {
                *cell = harmless;
            }
        }
        self.rows.push(cells);
    }

    /// Formats the table as text.
    pub fn render(&self) -> String {
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
                cells.max().unwrap_or(0).max(self.columns[column].0.len())
            })
            .collect();
        let head: Vec<String> = self.columns.iter().map(|(title, _)| title.clone()).collect();
        let mut text = String::new();
        for row in std::iter::once(&head).chain(&self.rows) {
            let mut out = String::new();
            for ((cell, width), (_, align)) in row.iter().zip(&widths).zip(&self.columns) {
                if !out.is_empty() {
                    out.push_str("  ");
                }
                match align {
                    Align::Left => out.push_str(&format!("{cell:<width$}")),
                    Align::Right => out.push_str(&format!("{cell:>width$}")),
                }
            }
            text.push_str(out.trim_end());
            text.push('\n');
        }
        text
    }

    /// Prints the table to standard output.
    pub fn print(&self) -> Result<(), Failure> {
        print(&self.render())
    }
}

/// Formats names and aligned values, one pair per line.
pub fn properties(pairs: &[(&str, String)]) -> String {
    let width = pairs.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    pairs.iter().map(|(name, value)| format!("{name:<width$}  {}\n", printable::in_line(value))).collect()
}

/// Formats a value, or `-` if it is absent.
pub fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_aligned_and_have_no_trailing_spaces() {
        let mut table = Table::new(&[("NAME", Align::Left), ("COST", Align::Right), ("NOTE", Align::Left)]);
        table.row(["/a".to_owned(), "7".to_owned(), String::new()]);
        table.row(["/long/name".to_owned(), "12345".to_owned(), "x".to_owned()]);
        assert_eq!(table.render(), "NAME         COST  NOTE\n/a              7\n/long/name  12345  x\n");
    }

    #[test]
    fn properties_are_aligned() {
        assert_eq!(properties(&[("A", "1".to_owned()), ("Long", "2".to_owned())]), "A     1\nLong  2\n");
        assert_eq!(or_dash(None::<u64>), "-");
    }

    #[test]
    fn what_a_forwarder_says_stays_in_its_cell() {
        let evil = "x\u{1b}]0;y\u{7}\nFACE";
        let mut table = Table::new(&[("A", Align::Left), ("B", Align::Left)]);
        table.row([evil.to_owned(), "1".to_owned()]);
        assert_eq!(table.render(), "A                       B\nx\\u{1b}]0;y\\u{7}\\nFACE  1\n");
        assert_eq!(properties(&[("A", evil.to_owned())]), "A  x\\u{1b}]0;y\\u{7}\\nFACE\n");
    }
}
