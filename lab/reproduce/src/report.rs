//! What an item gives: a table, a sentence and charts, as plain data.
//!
//! Every cell says where its value comes from ([`Cell`]), and every column what it is for ([`Origin`]). The two agree, and the
//! words "published", "computed" and "measured" in the heads are those of the columns' origins, nobody writes them by hand.

mod chart;

use std::fmt;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::measured::Measured;
use crate::published::Published;

pub use chart::{Chart, ChartKind, Point, Series};

/// One field of the table.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// As printed, in the column's unit.
    Published(Published),
    /// From published values, from counts of the program's structure or from measured values, by arithmetic.
    Computed(f64),
    /// What this machine gave.
    Measured(Measured),
    /// A word, or a number that was chosen.
    Text(String),
    /// Not published, or of no meaning.
    Empty,
    /// Cannot be measured here; why.
    NotMeasured(&'static str),
}

impl Cell {
    /// What was measured, or what to say when nothing was.
    pub(crate) fn measured(value: Option<Measured>, why_not: &'static str) -> Self {
        value.map_or(Cell::NotMeasured(why_not), Cell::Measured)
    }

    /// The number: of what was measured, the median.
    pub fn value(&self) -> Option<f64> {
        match self {
            Cell::Published(published) => Some(published.value()),
            Cell::Computed(value) => Some(*value),
            Cell::Measured(measured) => Some(measured.median()),
            Cell::Text(_) | Cell::Empty | Cell::NotMeasured(_) => None,
        }
    }

    /// Where it comes from; `None` of what is no number.
    pub fn origin(&self) -> Option<Origin> {
        match self {
            Cell::Published(_) => Some(Origin::Published),
            Cell::Computed(_) => Some(Origin::Computed),
            Cell::Measured(_) => Some(Origin::Measured),
            Cell::Text(_) | Cell::Empty | Cell::NotMeasured(_) => None,
        }
    }

    /// As text, with as many digits as papers print; of what was measured more than once, least and most as well.
    pub fn show(&self) -> String {
        match self {
            Cell::Published(published) => number(published.value()),
            Cell::Computed(value) => number(*value),
            Cell::Measured(measured) => {
                let (median, least, most) =
                    (number(measured.median()), number(measured.least()), number(measured.most()));
                if least == most { median } else { format!("{median} ({least} to {most})") }
            }
            Cell::Text(text) => text.clone(),
            Cell::Empty => "-".to_owned(),
            Cell::NotMeasured(_) => "not measured".to_owned(),
        }
    }
}

/// A number with as many digits as papers print; a whole one as such.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        size if size.fract() == 0.0 || size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

impl From<Published> for Cell {
    fn from(value: Published) -> Self {
        Cell::Published(value)
    }
}

impl From<Option<Published>> for Cell {
    fn from(value: Option<Published>) -> Self {
        value.map_or(Cell::Empty, Cell::Published)
    }
}

/// `{"published": 1470}`, `{"computed": 4.87}`, `{"measured": {"median": …, "least": …, "most": …, "runs": …}}`,
/// `{"not_measured": "why"}`, a text, or null.
impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = match self {
            Cell::Text(text) => return serializer.serialize_str(text),
            Cell::Empty => return serializer.serialize_none(),
            _ => serializer.serialize_map(Some(1))?,
        };
        match self {
            Cell::Published(published) => map.serialize_entry("published", &published.value())?,
            Cell::Computed(value) => map.serialize_entry("computed", value)?,
            Cell::Measured(measured) => map.serialize_entry("measured", measured)?,
            Cell::NotMeasured(why) => map.serialize_entry("not_measured", why)?,
            Cell::Text(_) | Cell::Empty => {}
        }
        map.end()
    }
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A publication.
    Published,
    /// Arithmetic.
    Computed,
    /// This machine.
    Measured,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Origin::Published => "published",
            Origin::Computed => "computed",
            Origin::Measured => "measured",
        })
    }
}

/// What stands in a column.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Column {
    /// Head, unit included, without the origin.
    pub head: String,
    /// Where all its values come from; `None` when each says so itself.
    pub origin: Option<Origin>,
}

impl Column {
    pub(crate) fn published(head: impl Into<String>) -> Self {
        Column { head: head.into(), origin: Some(Origin::Published) }
    }

    pub(crate) fn computed(head: impl Into<String>) -> Self {
        Column { head: head.into(), origin: Some(Origin::Computed) }
    }

    pub(crate) fn measured(head: impl Into<String>) -> Self {
        Column { head: head.into(), origin: Some(Origin::Measured) }
    }

    /// A column whose values come from here and there.
    pub(crate) fn mixed(head: impl Into<String>) -> Self {
        Column { head: head.into(), origin: None }
    }

    /// The whole head.
    pub fn show(&self) -> String {
        match self.origin {
            Some(origin) if self.head.is_empty() => origin.to_string(),
            Some(origin) => format!("{}, {origin}", self.head),
            None => self.head.clone(),
        }
    }

    /// A cell of this column as text. Where the head does not say where it comes from, a letter behind it does.
    pub fn show_cell(&self, cell: &Cell) -> String {
        match (self.origin, cell.origin()) {
            (None, Some(origin)) => format!("{} {}", cell.show(), &origin.to_string()[..1]),
            _ => cell.show(),
        }
    }

    /// May this cell stand here?
    fn takes(&self, cell: &Cell) -> bool {
        match (self.origin, cell.origin()) {
            (Some(column), Some(cell)) => column == cell,
            (Some(column), None) => column == Origin::Measured || !matches!(cell, Cell::NotMeasured(_)),
            (None, _) => true,
        }
    }
}

/// A row: as many cells as the report has columns.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// What the row is about.
    pub label: String,
    /// Its fields.
    pub cells: Vec<Cell>,
}

impl Row {
    /// A row.
    pub(crate) fn new(label: impl Into<String>, cells: impl Into<Vec<Cell>>) -> Self {
        Row { label: label.into(), cells: cells.into() }
    }
}

/// One table, figure or estimate, regenerated.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Identifier of the item.
    pub id: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// Columns.
    pub columns: Vec<Column>,
    /// The table.
    pub rows: Vec<Row>,
    /// Why what was published and what is here differ.
    pub difference: String,
    /// How and on what it was measured; empty when nothing was.
    pub conditions: Vec<String>,
    /// What these figures leave out or cannot tell.
    pub limits: Vec<String>,
    /// Charts.
    pub charts: Vec<Chart>,
}

impl Report {
    /// A report without charts; the item fills in what it is called.
    ///
    /// # Panics
    /// If a row has not as many cells as there are columns, or a cell of another origin than its column's.
    pub(crate) fn new(columns: Vec<Column>, rows: Vec<Row>, difference: impl Into<String>) -> Self {
        for row in &rows {
            assert_eq!(row.cells.len(), columns.len(), "{}: every row has all columns", row.label);
            for (cell, column) in row.cells.iter().zip(&columns) {
                assert!(column.takes(cell), "{}: {cell:?} is not for the column {}", row.label, column.show());
            }
        }
        Report {
            id: "",
            title: "",
            source: "",
            columns,
            rows,
            difference: difference.into(),
            conditions: Vec::new(),
            limits: Vec::new(),
            charts: Vec::new(),
        }
    }

    pub(crate) fn with_charts(mut self, charts: impl Into<Vec<Chart>>) -> Self {
        self.charts = charts.into();
        self
    }

    pub(crate) fn with_conditions(mut self, conditions: impl IntoIterator<Item = String>) -> Self {
        self.conditions.extend(conditions);
        self
    }

    pub(crate) fn with_limits<L: Into<String>>(mut self, limits: impl IntoIterator<Item = L>) -> Self {
        self.limits.extend(limits.into_iter().map(Into::into));
        self
    }

    /// What could not be measured, once each.
    pub fn not_measured(&self) -> Vec<&'static str> {
        let mut reasons = Vec::new();
        for cell in self.rows.iter().flat_map(|row| &row.cells) {
            if let Cell::NotMeasured(why) = cell
                && !reasons.contains(why)
            {
                reasons.push(*why);
            }
        }
        reasons
    }
}

#[cfg(test)]
mod tests;
