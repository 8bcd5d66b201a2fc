//! Results of an item as plain data: a table, a sentence and charts.
//!
//! Each cell states the origin of its value ([`Cell`]), and each column the origin of its values ([`Origin`]);
//! [`Report::new`] checks that they agree. The words "published", "computed" and "measured" in column heads come from
//! the columns' origins.

mod chart;

use std::fmt;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::measured::Measured;
use crate::published::Published;

pub use chart::{Chart, ChartKind, Point, Series};

/// One cell of the table.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// A value as printed, in the column's unit.
    Published(Published),
    /// A value computed from published values, from counts of the program's structure, or from measured values.
    Computed(f64),
    /// A value measured on this host.
    Measured(Measured),
    /// A word, or a chosen number.
    Text(String),
    /// Not published, or meaningless.
    Empty,
    /// Not measurable here, with the reason.
    NotMeasured(&'static str),
}

impl Cell {
    /// Returns the measured value, or the reason why it is missing.
    pub(crate) fn measured(value: Option<Measured>, why_not: &'static str) -> Self {
        value.map_or(Cell::NotMeasured(why_not), Cell::Measured)
    }

    /// Returns the number; for measured values, the median.
    pub fn value(&self) -> Option<f64> {
        match self {
            Cell::Published(published) => Some(published.value()),
            Cell::Computed(value) => Some(*value),
            Cell::Measured(measured) => Some(measured.median()),
            Cell::Text(_) | Cell::Empty | Cell::NotMeasured(_) => None,
        }
    }

    /// Returns the origin of the value; `None` if it is not a number.
    pub fn origin(&self) -> Option<Origin> {
        match self {
            Cell::Published(_) => Some(Origin::Published),
            Cell::Computed(_) => Some(Origin::Computed),
            Cell::Measured(_) => Some(Origin::Measured),
            Cell::Text(_) | Cell::Empty | Cell::NotMeasured(_) => None,
        }
    }

    /// Formats the value with as many digits as papers print. Values measured in several runs show least and most too.
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

/// Formats a number with as many digits as papers print, whole numbers without decimals.
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

/// Origin of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A publication.
    Published,
    /// Arithmetic.
    Computed,
    /// This host.
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

/// Head of a column.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Column {
    /// Text of the head, with the unit and without the origin.
    pub head: String,
    /// Origin of all values in the column; `None` if each cell shows its own.
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

    /// A column with values of different origins.
    pub(crate) fn mixed(head: impl Into<String>) -> Self {
        Column { head: head.into(), origin: None }
    }

    /// Formats the head with the origin.
    pub fn show(&self) -> String {
        match self.origin {
            Some(origin) if self.head.is_empty() => origin.to_string(),
            Some(origin) => format!("{}, {origin}", self.head),
            None => self.head.clone(),
        }
    }

    /// Formats a cell of this column. If the head does not state the origin, the first letter of the cell's origin
    /// follows.
    pub fn show_cell(&self, cell: &Cell) -> String {
        match (self.origin, cell.origin()) {
            (None, Some(origin)) => format!("{} {}", cell.show(), &origin.to_string()[..1]),
            _ => cell.show(),
        }
    }

    /// True if this cell may stand in this column.
    fn takes(&self, cell: &Cell) -> bool {
        match (self.origin, cell.origin()) {
            (Some(column), Some(cell)) => column == cell,
            (Some(column), None) => column == Origin::Measured || !matches!(cell, Cell::NotMeasured(_)),
            (None, _) => true,
        }
    }
}

/// A row, with one cell per column of the report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Subject of the row.
    pub label: String,
    /// Cells of the row.
    pub cells: Vec<Cell>,
}

impl Row {
    pub(crate) fn new(label: impl Into<String>, cells: impl Into<Vec<Cell>>) -> Self {
        Row { label: label.into(), cells: cells.into() }
    }
}

/// A further table of a report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Table {
    /// Subject of the table.
    pub title: String,
    /// Heads of the columns.
    pub columns: Vec<Column>,
    /// Rows.
    pub rows: Vec<Row>,
}

impl Table {
    /// Creates a table.
    ///
    /// # Panics
    /// As [`Report::new`].
    pub(crate) fn new(title: impl Into<String>, columns: Vec<Column>, rows: Vec<Row>) -> Self {
        assert_fit(&columns, &rows);
        Table { title: title.into(), columns, rows }
    }
}

/// Checks that the columns take all cells.
fn assert_fit(columns: &[Column], rows: &[Row]) {
    for row in rows {
        assert_eq!(row.cells.len(), columns.len(), "{}: a row must have one cell per column", row.label);
        for (cell, column) in row.cells.iter().zip(columns) {
            assert!(column.takes(cell), "{}: {cell:?} does not belong in column {}", row.label, column.show());
        }
    }
}

/// One table, figure or estimate, regenerated.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Identifier of the item.
    pub id: &'static str,
    /// Title of the item.
    pub title: &'static str,
    /// Publication.
    pub source: &'static str,
    /// Heads of the columns.
    pub columns: Vec<Column>,
    /// Rows of the table.
    pub rows: Vec<Row>,
    /// Further tables.
    pub tables: Vec<Table>,
    /// Why the published values differ from the values of this host.
    pub difference: String,
    /// Conditions of the measurements; empty if nothing was measured.
    pub conditions: Vec<String>,
    /// What these figures leave out.
    pub limits: Vec<String>,
    /// Charts.
    pub charts: Vec<Chart>,
}

impl Report {
    /// Creates a report without charts; the caller fills in `id`, `title` and `source`.
    ///
    /// # Panics
    /// Panics if a row does not have one cell per column, or if a cell's origin differs from its column's.
    pub(crate) fn new(columns: Vec<Column>, rows: Vec<Row>, difference: impl Into<String>) -> Self {
        assert_fit(&columns, &rows);
        Report {
            id: "",
            title: "",
            source: "",
            columns,
            rows,
            tables: Vec::new(),
            difference: difference.into(),
            conditions: Vec::new(),
            limits: Vec::new(),
            charts: Vec::new(),
        }
    }

    pub(crate) fn with_tables(mut self, tables: impl Into<Vec<Table>>) -> Self {
        self.tables = tables.into();
        self
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

    /// Returns the reasons why cells were not measured, each once.
    pub fn not_measured(&self) -> Vec<&'static str> {
        let mut reasons = Vec::new();
        let rows = self.rows.iter().chain(self.tables.iter().flat_map(|table| &table.rows));
        for cell in rows.flat_map(|row| &row.cells) {
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
