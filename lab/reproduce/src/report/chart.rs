//! Charts, as plain data.

use serde::Serialize;

use super::{Cell, Row};

/// A value in a chart.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// The value; of what was measured more than once, the median.
    pub value: f64,
    /// Least and most of the runs, where there were several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread: Option<(f64, f64)>,
}

impl From<f64> for Point {
    fn from(value: f64) -> Self {
        Point { value, spread: None }
    }
}

impl Point {
    fn of(cell: &Cell) -> Option<Self> {
        let spread = match cell {
            Cell::Measured(measured) if measured.runs() > 1 => Some((measured.least(), measured.most())),
            _ => None,
        };
        cell.value().map(|value| Point { value, spread })
    }
}

/// Values of one thing in a chart.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// What the values are of.
    pub name: String,
    /// One value for each category (bars), none where it is unknown; or for each point on the horizontal axis (lines).
    pub points: Vec<Option<Point>>,
}

impl Series {
    /// A series.
    pub(crate) fn new(name: impl Into<String>, points: impl Into<Vec<Option<Point>>>) -> Self {
        Series { name: name.into(), points: points.into() }
    }

    /// The cells of one column.
    pub(crate) fn of_column<'a>(
        name: impl Into<String>,
        rows: impl IntoIterator<Item = &'a Row>,
        column: usize,
    ) -> Self {
        Series::new(name, rows.into_iter().map(|row| Point::of(&row.cells[column])).collect::<Vec<_>>())
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
    /// Short name, for a file. Items give what follows the name of their own, if they have several charts.
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
