//! What an item gives: a table, a sentence and charts, as plain data.

use serde::{Serialize, Serializer};

/// One field of the table.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// A number, in the column's unit.
    Number(f64),
    /// A word.
    Text(String),
    /// Not published, or of no meaning.
    Empty,
    /// Cannot be measured here; why.
    NotMeasured(&'static str),
}

impl Cell {
    /// The number, or what to say when there is none.
    pub fn measured(value: Option<f64>, why_not: &'static str) -> Self {
        value.map_or(Cell::NotMeasured(why_not), Cell::Number)
    }

    /// As text, with as many digits as papers print.
    pub fn show(&self) -> String {
        match self {
            Cell::Number(value) if *value == 0.0 || value.abs() >= 100.0 => format!("{value:.0}"),
            Cell::Number(value) if value.abs() >= 10.0 => format!("{value:.1}"),
            Cell::Number(value) => format!("{value:.2}"),
            Cell::Text(text) => text.clone(),
            Cell::Empty => "-".to_owned(),
            Cell::NotMeasured(_) => "not measured".to_owned(),
        }
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        Cell::Number(value)
    }
}

impl From<Option<f64>> for Cell {
    fn from(value: Option<f64>) -> Self {
        value.map_or(Cell::Empty, Cell::Number)
    }
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Cell::Number(value) => serializer.serialize_f64(*value),
            Cell::Text(text) => serializer.serialize_str(text),
            Cell::Empty => serializer.serialize_none(),
            Cell::NotMeasured(why) => serializer.collect_map([("not_measured", why)]),
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
    pub fn new(label: impl Into<String>, cells: impl Into<Vec<Cell>>) -> Self {
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
    /// Heads of the columns, units included.
    pub columns: Vec<String>,
    /// The table.
    pub rows: Vec<Row>,
    /// Why the two kinds of value differ, in one sentence.
    pub difference: String,
    /// Charts.
    pub charts: Vec<Chart>,
}

impl Report {
    /// A report without charts; the item fills in what it is called.
    pub(crate) fn new(columns: &[&str], rows: Vec<Row>, difference: impl Into<String>) -> Self {
        debug_assert!(rows.iter().all(|row| row.cells.len() == columns.len()), "every row has all columns");
        Report {
            id: "",
            title: "",
            source: "",
            columns: columns.iter().map(|&column| column.to_owned()).collect(),
            rows,
            difference: difference.into(),
            charts: Vec::new(),
        }
    }

    pub(crate) fn with_charts(mut self, charts: impl Into<Vec<Chart>>) -> Self {
        self.charts = charts.into();
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

/// Values of one thing in a chart.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// What.
    pub name: String,
    /// One value for each category (bars), none where it is unknown; or for each point on the horizontal axis (lines).
    pub values: Vec<Option<f64>>,
}

impl Series {
    /// A series.
    pub fn new(name: impl Into<String>, values: impl Into<Vec<Option<f64>>>) -> Self {
        Series { name: name.into(), values: values.into() }
    }
}

/// How a chart is drawn.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum ChartKind {
    /// Groups of bars, one group for each category.
    Bars {
        /// Names of the groups.
        categories: Vec<String>,
    },
    /// Curves over a horizontal axis of numbers.
    Lines {
        /// What the horizontal axis is, unit included.
        x_label: String,
        /// Its points.
        x: Vec<f64>,
    },
}

/// A chart.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Chart {
    /// Short name, for a file.
    pub name: String,
    /// Title.
    pub title: String,
    /// What the vertical axis is, unit included.
    pub y_label: String,
    /// How it is drawn.
    #[serde(flatten)]
    pub kind: ChartKind,
    /// What it shows.
    pub series: Vec<Series>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_shown_with_useful_digits() {
        let show = |cell: Cell| cell.show();
        assert_eq!(show(1470.0.into()), "1470");
        assert_eq!(show(24.024.into()), "24.0");
        assert_eq!(show(3.874.into()), "3.87");
        assert_eq!(show(0.0.into()), "0");
        assert_eq!(show(None.into()), "-");
        assert_eq!(show(Cell::measured(None, "no counters")), "not measured");
    }

    #[test]
    fn json_tells_numbers_from_reasons() {
        let row =
            Row::new("x", [Cell::Number(1.5), Cell::Empty, Cell::NotMeasured("no counters"), Cell::Text("a".into())]);
        let json = serde_json::to_string(&row).expect("JSON");
        assert_eq!(json, r#"{"label":"x","cells":[1.5,null,{"not_measured":"no counters"},"a"]}"#);
        let report = Report::new(&["A", "B", "C", "D"], vec![row.clone(), row], "why");
        assert_eq!(report.not_measured(), ["no counters"]);
    }
}
