//! Charts, as plain data.

use serde::Serialize;

use super::{Cell, Row};

/// A value in a chart.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// The value; the median if measured several times.
    pub value: f64,
    /// Least and most of the runs, if there were several.
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

/// One series of values in a chart.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// Name of the series.
    pub name: String,
    /// One value per category (bars; `None` if unknown) or per point on the horizontal axis (lines).
    pub points: Vec<Option<Point>>,
}

impl Series {
    pub(crate) fn new(name: impl Into<String>, points: impl Into<Vec<Option<Point>>>) -> Self {
        Series { name: name.into(), points: points.into() }
    }

    /// Creates a series from the cells of one column.
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
    /// Groups of bars, one group per category.
    Bars {
        /// Names of the groups.
        categories: Vec<String>,
    },
    /// Curves over a numeric horizontal axis.
    Lines {
        /// Label of the horizontal axis, with the unit.
        x_label: String,
        /// Points on the horizontal axis.
        x: Vec<f64>,
    },
}

/// A chart.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Chart {
    /// Short name for a file. The item's own name is prepended; only items with several charts need this.
    pub name: String,
    /// Title.
    pub title: String,
    /// Label of the vertical axis, with the unit.
    pub y_label: String,
    /// Kind of the chart.
    #[serde(flatten)]
    pub kind: ChartKind,
    /// Series of values.
    pub series: Vec<Series>,
}
