//! The recorded costs, and the tolerance of comparisons.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Failure;
use crate::cachegrind::Counts;

/// Relative tolerance: a count may grow by this share.
pub const TOLERANCE: f64 = 0.05;
/// Absolute tolerance per packet, so that one new miss in a few hundred packets is not a failure.
const SLACK: f64 = 0.05;

/// A count with its name.
type Column = (&'static str, fn(&Counts) -> f64);

/// All counts with their names.
const COLUMNS: [Column; 4] = [
    ("instructions", |counts| counts.instructions),
    ("data-references", |counts| counts.data_references),
    ("data-misses", |counts| counts.data_misses),
    ("last-level-misses", |counts| counts.last_level_misses),
];

/// Versions that the counts depend on besides the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Build {
    /// Version of the compiler.
    pub rustc: String,
    /// Version of valgrind.
    pub valgrind: String,
    /// SIMD instructions used to hash names.
    pub lanes: String,
}

/// Costs per packet, by load and kind of packet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Versions used.
    pub build: Build,
    /// Counts by load, and by kind of packet.
    pub costs: BTreeMap<String, BTreeMap<String, Counts>>,
}

impl Record {
    /// Parses the text that [`fmt::Display`] writes.
    pub fn parse(text: &str) -> Result<Record, Failure> {
        toml::from_str(text).map_err(|error| format!("the recorded costs cannot be read: {error}").into())
    }

    /// Compares new costs with these.
    ///
    /// # Errors
    /// Fails if the costs are not comparable: other loads, or other instructions used to hash names.
    pub fn compare(&self, now: &Record) -> Result<Comparison, Failure> {
        let lanes = (&self.build.lanes, &now.build.lanes);
        if lanes.0 != lanes.1 {
            return Err(format!(
                "the costs were recorded with names hashed by {}, and here it is {}: compare on a machine that has {0}",
                lanes.0, lanes.1
            )
            .into());
        }
        let keys = |record: &Record| -> Vec<(String, String)> {
            let of_load = |(load, kinds): (&String, &BTreeMap<String, Counts>)| {
                kinds.keys().map(|kind| (load.clone(), kind.clone())).collect::<Vec<_>>()
            };
            record.costs.iter().flat_map(of_load).collect()
        };
        if keys(self) != keys(now) {
            return Err("other loads are recorded; 'make cost-record' records these".into());
        }
        let mut rows = Vec::new();
        for (load, kind) in keys(self) {
            let (was, is) = (self.costs[&load][&kind], now.costs[&load][&kind]);
            for (column, of) in COLUMNS {
                rows.push(Row { name: format!("{load} {kind}"), column, recorded: of(&was), now: of(&is) });
            }
        }
        Ok(Comparison { recorded_with: self.build.clone(), compared_with: now.build.clone(), rows })
    }
}

impl fmt::Display for Record {
    /// Writes TOML, one line per kind of packet.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Build { rustc, valgrind, lanes } = &self.build;
        writeln!(
            f,
            "# What packets cost, per packet, as counted by cachegrind: docs/benchmarks.md. Made by 'make cost-record'."
        )?;
        writeln!(f, "\n[build]\nrustc = {rustc:?}\nvalgrind = {valgrind:?}\nlanes = {lanes:?}")?;
        for (load, kinds) in &self.costs {
            writeln!(f, "\n[costs.{load}]")?;
            for (kind, counts) in kinds {
                let counts = COLUMNS.map(|(column, of)| format!("{column} = {:.3}", of(counts))).join(", ");
                writeln!(f, "{kind} = {{ {counts} }}")?;
            }
        }
        Ok(())
    }
}

/// One count, as recorded and as measured now.
#[derive(Debug, Clone, PartialEq)]
struct Row {
    /// Load and kind of packet.
    name: String,
    column: &'static str,
    recorded: f64,
    now: f64,
}

impl Row {
    fn has_grown(&self) -> bool {
        self.now > self.recorded * (1.0 + TOLERANCE) && self.now > self.recorded + SLACK
    }

    /// The change in per cent.
    fn change(&self) -> f64 {
        if self.recorded == 0.0 { 0.0 } else { (self.now / self.recorded - 1.0) * 100.0 }
    }
}

/// Recorded costs compared with new ones.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    recorded_with: Build,
    compared_with: Build,
    rows: Vec<Row>,
}

impl Comparison {
    /// Number of counts that have grown by more than the tolerance.
    pub fn growth(&self) -> usize {
        self.rows.iter().filter(|row| row.has_grown()).count()
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<30} {:<19} {:>10} {:>10} {:>8}", "PER PACKET", "", "RECORDED", "NOW", "CHANGE")?;
        for row in &self.rows {
            let Row { name, column, recorded, now } = row;
            let mark = if row.has_grown() { "  grown" } else { "" };
            writeln!(f, "{name:<30} {column:<19} {recorded:>10.2} {now:>10.2} {:>+7.1}%{mark}", row.change())?;
        }
        let Build { rustc, valgrind, .. } = &self.recorded_with;
        if *rustc != self.compared_with.rustc {
            writeln!(
                f,
                "Recorded with {rustc}, compared with {}: some per cent may be the compiler's.",
                self.compared_with.rustc
            )?;
        }
        if *valgrind != self.compared_with.valgrind {
            writeln!(f, "Recorded with {valgrind}, compared with {}.", self.compared_with.valgrind)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(counts: Counts) -> Record {
        let build = Build { rustc: "rustc 1".into(), valgrind: "valgrind 3".into(), lanes: "AVX2".into() };
        Record { build, costs: [("burst".to_owned(), [("data".to_owned(), counts)].into())].into() }
    }

    const COUNTS: Counts =
        Counts { instructions: 2000.0, data_references: 500.5, data_misses: 20.0, last_level_misses: 0.0 };

    fn growth(now: Counts) -> usize {
        record(COUNTS).compare(&record(now)).expect("comparable").growth()
    }

    #[test]
    fn growth_by_more_than_five_per_cent_fails() {
        assert_eq!(growth(COUNTS), 0);
        assert_eq!(growth(Counts { instructions: 2099.0, ..COUNTS }), 0);
        assert_eq!(growth(Counts { instructions: 2101.0, ..COUNTS }), 1);
        assert_eq!(growth(Counts { data_references: 526.0, data_misses: 21.1, ..COUNTS }), 2);
        assert_eq!(growth(Counts { instructions: 1000.0, ..COUNTS }), 0);
    }

    #[test]
    fn counts_near_zero_have_slack() {
        assert_eq!(growth(Counts { last_level_misses: 0.04, ..COUNTS }), 0);
        assert_eq!(growth(Counts { last_level_misses: 0.06, ..COUNTS }), 1);
    }

    #[test]
    fn what_is_written_is_read_again() {
        let record = record(COUNTS);
        assert_eq!(Record::parse(&record.to_string()).expect("TOML"), record);
        assert!(Record::parse("[build]").is_err());
        assert!(Record::parse(&record.to_string().replace("data-misses", "other-misses")).is_err());
    }

    #[test]
    fn other_lanes_and_other_loads_are_not_compared() {
        let mut other = record(COUNTS);
        other.build.lanes = "scalar".into();
        assert!(record(COUNTS).compare(&other).expect_err("lanes").to_string().contains("scalar"));
        let mut other = record(COUNTS);
        other.costs.insert("naive".into(), BTreeMap::new());
        assert!(record(COUNTS).compare(&other).is_ok(), "a load without packets is none");
        other.costs.insert("naive".into(), [("data".to_owned(), COUNTS)].into());
        assert!(record(COUNTS).compare(&other).is_err());
    }

    #[test]
    fn another_compiler_is_told() {
        let mut other = record(COUNTS);
        other.build.rustc = "rustc 2".into();
        let text = record(COUNTS).compare(&other).expect("comparable").to_string();
        assert!(text.contains("Recorded with rustc 1, compared with rustc 2"), "{text}");
        assert!(!text.contains("valgrind"), "{text}");
        assert!(text.contains("burst data") && text.contains("+0.0%"), "{text}");
    }
}
