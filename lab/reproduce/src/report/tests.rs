//! Tests of cells and columns, and of which cells a column takes.

use super::*;
use crate::published;

fn row(cells: impl Into<Vec<Cell>>) -> Vec<Row> {
    vec![Row::new("x", cells)]
}

#[test]
fn cells_are_shown_with_useful_digits() {
    assert_eq!(Cell::from(published::PACKET_CYCLES[0]).show(), "1470");
    let computed = |value: f64| Cell::Computed(value).show();
    assert_eq!([24.024, 3.874, 0.0, -0.04, 123.4, 22.0].map(computed), ["24.0", "3.87", "0", "-0.040", "123", "22"]);
    assert_eq!(Cell::from(None::<Published>).show(), "-");
    assert_eq!(Cell::measured(None, "no counters").show(), "not measured");
}

#[test]
fn heads_say_where_values_come_from() {
    let measured = Column::measured("I-miss cycles");
    assert_eq!((measured.show(), Column::published("").show()), ("I-miss cycles, measured".into(), "published".into()));
    let mixed = Column::mixed("M bytes");
    assert_eq!(mixed.show(), "M bytes");
    assert_eq!(mixed.show_cell(&published::PACKET_BYTES[0].into()), "909 p");
    assert_eq!(mixed.show_cell(&Cell::Computed(832.0)), "832 c");
    assert_eq!(mixed.show_cell(&Cell::Empty), "-");
}

#[test]
fn json_tells_origins() {
    let row = Row::new(
        "x",
        [
            published::PREFETCH_CYCLES.into(),
            Cell::Computed(1.5),
            Cell::Empty,
            Cell::NotMeasured("no counters"),
            Cell::Text("a".into()),
        ],
    );
    let json = serde_json::to_string(&row).expect("JSON");
    let cells = r#"[{"published":48.0},{"computed":1.5},null,{"not_measured":"no counters"},"a"]"#;
    assert_eq!(json, format!(r#"{{"label":"x","cells":{cells}}}"#));
    let columns = ["A", "B", "C", "D", "E"].map(Column::mixed).to_vec();
    let report = Report::new(columns, vec![row.clone(), row], "why");
    assert_eq!(report.not_measured(), ["no counters"]);
}

#[test]
#[should_panic(expected = "does not belong in column cycles, measured")]
fn nothing_computed_stands_among_what_was_measured() {
    Report::new(vec![Column::measured("cycles")], row([Cell::Computed(4.0)]), "why");
}

#[test]
#[should_panic(expected = "does not belong in column cycles, measured")]
fn nothing_published_stands_among_what_was_measured() {
    Report::new(vec![Column::measured("cycles")], row([published::PACKET_CYCLES[0].into()]), "why");
}

#[test]
#[should_panic(expected = "does not belong in column cycles, published")]
fn nothing_is_not_measured_among_what_was_published() {
    Report::new(vec![Column::published("cycles")], row([Cell::NotMeasured("why")]), "why");
}
