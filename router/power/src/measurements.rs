//! Measurements for fitting a server, as a CSV file. Each row is one state of the host and its power at the wall.
//!
//! | column | content |
//! |---|---|
//! | `load` | busy share of the last active core, 0 to 1; the cores before it are fully busy |
//! | `frequency_ghz` | frequency of the active CPU, in 10^9 cycles per second |
//! | `active_cores` | cores with work, all of one CPU; 0 when the host is idle |
//! | `watts` | power of the whole host |
//! | `memory_bytes_per_second` | optional: bytes read from and written to memory |
//! | `packets_per_second` | optional: packets forwarded by network cards |
//!
//! The first line names the columns, in any order. Empty lines and lines that start with `#` are skipped.

use csv::{ErrorKind, Position, ReaderBuilder, StringRecord, Trim};

/// Maximum number of rows in a file.
const MOST_ROWS: usize = 1_000_000;
/// Maximum number of active cores.
const MOST_CORES: f64 = 1024.0;
/// Required columns.
const REQUIRED: [&str; 4] = ["load", "frequency_ghz", "active_cores", "watts"];
/// Optional columns.
const OPTIONAL: [&str; 2] = ["memory_bytes_per_second", "packets_per_second"];

/// One row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measurement {
    /// Line of the file, from 1.
    pub line: u64,
    /// Busy share of the last active core, 0 to 1.
    pub load: f64,
    /// Frequency in 10^9 cycles per second.
    pub ghz: f64,
    /// Active cores of one CPU; 0 when idle.
    pub active_cores: u32,
    /// Power of the whole host, in watts.
    pub watts: f64,
    /// Bytes read from and written to memory, per second.
    pub memory_bytes_per_second: f64,
    /// Packets forwarded, per second.
    pub packets_per_second: f64,
}

/// Why a file of measurements cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum MeasurementsError {
    /// It is not CSV.
    #[error("line {line}: {what}")]
    Syntax {
        /// Line of the file, from 1.
        line: u64,
        /// What is wrong.
        what: String,
    },
    /// A column is missing in the first line.
    #[error(
        "line {line}: there is no column '{column}'; \
         the first line must name load, frequency_ghz, active_cores and watts"
    )]
    MissingColumn {
        /// Line of the file, from 1.
        line: u64,
        /// The column.
        column: &'static str,
    },
    /// The first line names an unknown column, or a column twice.
    #[error(
        "line {line}: column '{column}' is unknown or duplicate; the columns are {}, and optionally {}",
        REQUIRED.join(", "),
        OPTIONAL.join(", ")
    )]
    Column {
        /// Line of the file, from 1.
        line: u64,
        /// The column.
        column: String,
    },
    /// A value is out of range.
    #[error("line {line}: {column} is '{value}'; it must be {must}")]
    Value {
        /// Line of the file, from 1.
        line: u64,
        /// The column.
        column: &'static str,
        /// The value in the file.
        value: String,
        /// The allowed values.
        must: &'static str,
    },
    /// The file has more than `MOST_ROWS` rows.
    #[error("more than {MOST_ROWS} rows")]
    TooMany,
}

/// Parses the content of a file.
pub fn parse(content: &[u8]) -> Result<Vec<Measurement>, MeasurementsError> {
    let mut reader = ReaderBuilder::new().comment(Some(b'#')).trim(Trim::All).from_reader(content);
    let line = |position: Option<&Position>| line_of(content, position);
    let syntax =
        |error: csv::Error| MeasurementsError::Syntax { line: line(error.position()), what: complaint(&error) };
    let head = reader.headers().map_err(syntax)?;
    let columns = Columns::of(head, line(head.position()))?;
    let mut measurements = Vec::new();
    for record in reader.records() {
        if measurements.len() == MOST_ROWS {
            return Err(MeasurementsError::TooMany);
        }
        let record = record.map_err(syntax)?;
        measurements.push(columns.measurement(&record, line(record.position()))?);
    }
    Ok(measurements)
}

/// Returns the line of a record, counted from 1. The CSV reader's position includes the skipped lines before a record.
fn line_of(content: &[u8], position: Option<&Position>) -> u64 {
    let Some(position) = position else { return 1 };
    let start = usize::try_from(position.byte()).unwrap_or(usize::MAX);
    let rest = content.get(start..).unwrap_or_default();
    let is_passed_over = |line: &&[u8]| matches!(*line, b"\n" | b"\r\n") || line.starts_with(b"#");
    position.line() + rest.split_inclusive(|&byte| byte == b'\n').take_while(is_passed_over).count() as u64
}

fn complaint(error: &csv::Error) -> String {
    match error.kind() {
        ErrorKind::Utf8 { .. } => "the text is not UTF-8".to_owned(),
        ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("there are {len} values, but the first line names {expected_len} columns")
        }
        _ => error.to_string(),
    }
}

/// Indices of the columns.
struct Columns {
    required: [usize; REQUIRED.len()],
    optional: [Option<usize>; OPTIONAL.len()],
}

impl Columns {
    fn of(head: &StringRecord, line: u64) -> Result<Self, MeasurementsError> {
        let place = |column: &str| head.iter().position(|name| name == column);
        for (number, name) in head.iter().enumerate() {
            let is_known = REQUIRED.contains(&name) || OPTIONAL.contains(&name);
            if !is_known || place(name) != Some(number) {
                return Err(MeasurementsError::Column { line, column: name.to_owned() });
            }
        }
        let mut required = [0; REQUIRED.len()];
        for (found, column) in required.iter_mut().zip(REQUIRED) {
            *found = place(column).ok_or(MeasurementsError::MissingColumn { line, column })?;
        }
        Ok(Columns { required, optional: OPTIONAL.map(place) })
    }

    fn measurement(&self, record: &StringRecord, line: u64) -> Result<Measurement, MeasurementsError> {
        let value = |place: usize, column: &'static str, must: &'static str, allowed: fn(f64) -> bool| {
            let text = record.get(place).unwrap_or_default();
            let number = text.parse::<f64>().ok().filter(|&number| number.is_finite() && allowed(number));
            let value = text.to_owned();
            number.ok_or(MeasurementsError::Value { line, column, value, must })
        };
        let required = |number: usize, must, allowed| value(self.required[number], REQUIRED[number], must, allowed);
        let optional = |number: usize| match self.optional[number] {
            Some(place) if record.get(place).is_some_and(|text| !text.is_empty()) => {
                value(place, OPTIONAL[number], "a number of at least 0, or empty", |rate| rate >= 0.0)
            }
            _ => Ok(0.0),
        };
        Ok(Measurement {
            line,
            load: required(0, "a share from 0 to 1", |load| (0.0..=1.0).contains(&load))?,
            ghz: required(1, "a frequency in GHz above 0 and at most 1000", |ghz| ghz > 0.0 && ghz <= 1e3)?,
            active_cores: required(2, "a whole number from 0 to 1024", |cores| {
                cores.fract() == 0.0 && (0.0..=MOST_CORES).contains(&cores)
            })? as u32,
            watts: required(3, "a power in watts above 0 and at most 1000000", |watts| watts > 0.0 && watts <= 1e6)?,
            memory_bytes_per_second: optional(0)?,
            packets_per_second: optional(1)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rows_are_read_in_any_order_of_columns() {
        let text = "# server in rack 3\nwatts, load ,frequency_ghz,active_cores,packets_per_second\n\n\
                    34.2,0,1.6,0,\n44.6,1,3.1,1,1e6\n";
        let idle = Measurement {
            line: 4,
            load: 0.0,
            ghz: 1.6,
            active_cores: 0,
            watts: 34.2,
            memory_bytes_per_second: 0.0,
            packets_per_second: 0.0,
        };
        let busy =
            Measurement { line: 5, load: 1.0, ghz: 3.1, active_cores: 1, watts: 44.6, packets_per_second: 1e6, ..idle };
        assert_eq!(parse(text.as_bytes()).expect("valid"), [idle, busy]);
        // As spreadsheet programs write it.
        let quoted = "\u{feff}\"load\",frequency_ghz,active_cores,watts\r\n\"0\",1.6,0,34.2\r\n";
        assert_eq!(parse(quoted.as_bytes()).expect("valid"), [Measurement { line: 2, ..idle }]);
    }

    #[test]
    fn errors_say_the_line_and_what_may_stand_there() {
        let head = "load,frequency_ghz,active_cores,watts\n";
        for (text, message) in [
            (format!("{head}0,1,0,30\n1.5,1,1,40\n"), "line 3: load is '1.5'; it must be a share from 0 to 1"),
            (format!("{head}0,fast,1,40\n"), "line 2: frequency_ghz is 'fast'; it must be a frequency in GHz"),
            (format!("{head}0,1,1.5,40\n"), "line 2: active_cores is '1.5'; it must be a whole number from 0 to 1024"),
            (format!("{head}0,1,1,-3\n"), "line 2: watts is '-3'; it must be a power in watts above 0"),
            (format!("{head}0,1,1,NaN\n"), "line 2: watts is 'NaN'"),
            (format!("{head}0,1,1\n"), "line 2: there are 3 values, but the first line names 4 columns"),
            ("load,watts,active_cores\n".to_owned(), "line 1: there is no column 'frequency_ghz'"),
            ("load,watts,watts\n".to_owned(), "line 1: column 'watts' is unknown or duplicate"),
            ("load,Watt\n".to_owned(), "column 'Watt' is unknown"),
            (String::new(), "line 1: there is no column 'load'"),
            (format!("# a\r\n\r\n{head}# b\r\n\r\n0,1,1,x\r\n"), "line 6: watts is 'x'"),
            (format!("{head}# b\n0,1\n"), "line 3: there are 2 values"),
        ] {
            let error = parse(text.as_bytes()).expect_err(&text).to_string();
            assert!(error.starts_with(message) || error.contains(message), "{error}");
        }
        let error = parse(b"load,frequency_ghz,active_cores,watts\n0,1,1,\xff\n").expect_err("bytes").to_string();
        assert!(error.contains("line 2: the text is not UTF-8"), "{error}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&bytes);
        }

        #[test]
        fn any_rows_are_answered(rows in prop::collection::vec("[0-9.,e\" #-]{0,30}", 0..6)) {
            let text = format!("load,frequency_ghz,active_cores,watts\n{}", rows.join("\n"));
            if let Ok(measurements) = parse(text.as_bytes()) {
                prop_assert!(measurements.iter().all(|row| row.watts > 0.0 && (0.0..=1.0).contains(&row.load)));
            }
        }
    }
}
