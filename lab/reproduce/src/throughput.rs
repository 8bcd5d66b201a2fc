//! The upper bound of the forwarding rate, for the papers' hosts and for this one.

use namehop_bench::schedule::PacketKind;
use namehop_model::throughput::{Bottleneck, Cost, Host, PacketCosts};
use namehop_orders::ScheduleKind;
use namehop_table::prefetch::CACHE_LINE_BYTES;

use crate::context::{Context, ManyWorkers};
use crate::measured::engine::{Path, ScheduleRuns};
use crate::published::{BOUNDS, HIT_RATIO, PACKET_BYTES, PACKET_CYCLES, THESIS_COST};
use crate::report::{Cell, Chart, ChartKind, Column, Report, Row, Series};
use crate::{NO_FIGURES, ReproduceError};

/// Cores used by a host: all, or one.
#[derive(Clone)]
enum Cores {
    All(Cell),
    One,
}

impl Cores {
    fn number(&self) -> Option<u32> {
        match self {
            Cores::All(cell) => cell.value().map(|cores| cores as u32),
            Cores::One => Some(1),
        }
    }

    fn cell(&self) -> Cell {
        match self {
            Cores::All(cell) => cell.clone(),
            Cores::One => Cell::Text("1".to_owned()),
        }
    }
}

/// A host and the cost of what it forwards; each number states its origin.
struct Case {
    label: String,
    /// Label below its bars.
    short: String,
    cores: Cores,
    ghz: Cell,
    memory_gigabytes_per_second: Cell,
    cycles: Cell,
    bytes: Cell,
    /// NF/C and B/M in millions, as printed.
    printed: [Cell; 2],
}

impl Case {
    /// Bounds by the model; `None` if a number is missing.
    fn bound(&self) -> Option<namehop_model::throughput::Bound> {
        let host = Host {
            cores: self.cores.number()?,
            hz: self.ghz.value()? * 1e9,
            memory_bytes_per_second: self.memory_gigabytes_per_second.value()? * 1e9,
        };
        Some(host.bound(&Cost { cycles: self.cycles.value()?, bytes: self.bytes.value()? }))
    }

    fn row(&self) -> Row {
        let bound = self.bound();
        let millions = |rate: Option<f64>| rate.map_or(Cell::Empty, |rate| Cell::Computed(rate / 1e6));
        let limit = bound.map_or(Cell::Empty, |bound| {
            Cell::Text(match bound.bottleneck() {
                Bottleneck::Computation => "computation".to_owned(),
                Bottleneck::Memory => "memory".to_owned(),
            })
        });
        let [by_computation, by_memory] = self.printed.clone();
        Row::new(
            &self.label,
            [
                self.cores.cell(),
                self.ghz.clone(),
                self.memory_gigabytes_per_second.clone(),
                self.cycles.clone(),
                self.bytes.clone(),
                by_computation,
                millions(bound.map(|bound| bound.by_computation)),
                by_memory,
                millions(bound.map(|bound| bound.by_memory)),
                limit,
            ],
        )
    }
}

/// min(NF/C, B/M).
pub(crate) fn bound(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let mut cases = published_cases();
    let (here, conditions) = here(context)?;
    cases.extend(here);
    let rows: Vec<Row> = cases.iter().map(Case::row).collect();
    let columns = vec![
        Column::mixed("N"),
        Column::mixed("F GHz"),
        Column::mixed("B GB/s"),
        Column::mixed("C cycles"),
        Column::mixed("M bytes"),
        Column::published("NF/C, million/s"),
        Column::computed("NF/C, million/s"),
        Column::published("B/M, million/s"),
        Column::computed("B/M, million/s"),
        Column::mixed("limited by"),
    ];
    let chart = Chart {
        name: String::new(),
        title: "Upper bounds of the forwarding rate".to_owned(),
        y_label: "million per second".to_owned(),
        kind: ChartKind::Bars { categories: cases.iter().map(|case| case.short.clone()).collect() },
        series: vec![Series::of_column("NF/C, computed", &rows, 6), Series::of_column("B/M, computed", &rows, 8)],
    };
    let difference = "Letters after numbers: p published, c computed, m measured. C and M of the thesis do not follow \
        from its table 3.1 as a mean over 30 % hits (926.0 and 802.8): rounding allows 0.5, no single share of \
        Interests gives both, and the thesis does not say how they were computed. B is the measured read rate of this \
        host; in the papers it is the specified rate of the memory channels.";
    let reading = "B is measured with reads only, but forwarding also writes. B of random lines is for one core, and N \
        is the number of logical cores that this process may use.";
    let report = Report::new(columns, rows, difference).with_charts([chart]).with_conditions(conditions);
    let report = report.with_limits([reading]);
    if !context.has_engine() {
        return Ok(report);
    }
    let limits =
        ["M in the rows of this host is 64 bytes for each table line that the tests of this program count with the \
         whole protocol and LRU eviction. It excludes packets, timer lists and evicted lines, so B/M is only an upper \
         bound."];
    Ok(context.of_engine(report.with_limits(limits), ManyWorkers::No))
}

/// The papers' hosts.
fn published_cases() -> Vec<Case> {
    let mut cases: Vec<Case> = BOUNDS
        .iter()
        .map(|row| Case {
            label: row.label.to_owned(),
            short: row.label.replace(", computer ", " #").replace(" (pairs)", "").replace(" (packets)", ""),
            cores: Cores::All(row.cores.into()),
            ghz: row.ghz.into(),
            memory_gigabytes_per_second: row.memory_gigabytes_per_second.into(),
            cycles: row.cycles.into(),
            bytes: row.bytes.into(),
            printed: [row.by_computation_millions.into(), row.by_memory_millions.into()],
        })
        .collect();
    let average = table_costs().per_packet(HIT_RATIO.value());
    let thesis = &BOUNDS[2];
    cases.push(Case {
        label: "2019, host 1, C and M as means of table 3.1".to_owned(),
        short: "2019 #1'".to_owned(),
        cores: Cores::All(thesis.cores.into()),
        ghz: thesis.ghz.into(),
        memory_gigabytes_per_second: thesis.memory_gigabytes_per_second.into(),
        cycles: Cell::Computed(average.cycles),
        bytes: Cell::Computed(average.bytes),
        printed: [Cell::Empty, Cell::Empty],
    });
    cases
}

/// Costs of table 3.1.
fn table_costs() -> PacketCosts {
    let cost = |packet: usize| Cost { cycles: PACKET_CYCLES[packet].value(), bytes: PACKET_BYTES[packet].value() };
    PacketCosts { interest_miss: cost(0), interest_hit: cost(1), data: cost(2) }
}

/// Costs on this host with the whole protocol: median cycles, and bytes of the counted lines.
fn costs_here(runs: &ScheduleRuns) -> Option<PacketCosts> {
    let lines = runs.lines_of_whole_protocol();
    let cost = |kind: PacketKind| {
        let bytes = lines.get(kind) * CACHE_LINE_BYTES as f64;
        Some(Cost { cycles: runs.cycles(Path::Whole, kind)?.median(), bytes })
    };
    Some(PacketCosts {
        interest_miss: cost(PacketKind::InterestMiss)?,
        interest_hit: cost(PacketKind::InterestHit)?,
        data: cost(PacketKind::Data)?,
    })
}

/// This host with the published cost and, if the engine is available, with its own cost; and the conditions of the
/// measurement.
fn here(context: &mut Context<'_>) -> Result<(Vec<Case>, [String; 1]), ReproduceError> {
    let sequential = context.sequential_gigabytes_per_second()?;
    let dram = context.dram()?;
    let machine = context.machine_figures();
    let (cycles, bytes) = THESIS_COST;
    let case = |label: &str, short: &str, one_core: bool, cost: [Cell; 2]| {
        let [cycles, bytes] = cost;
        let memory = if one_core { &dram.random_gigabytes_per_second } else { &sequential };
        Case {
            label: label.to_owned(),
            short: short.to_owned(),
            cores: match one_core {
                true => Cores::One,
                false => Cores::All(Cell::measured(machine.cores.clone(), NO_FIGURES)),
            },
            ghz: Cell::measured(machine.ghz.clone(), NO_FIGURES),
            memory_gigabytes_per_second: Cell::measured(memory.clone(), NO_FIGURES),
            cycles,
            bytes,
            printed: [Cell::Empty, Cell::Empty],
        }
    };
    let mut cases = vec![
        case("here, cost of 2019, B sequential", "here", false, [cycles.into(), bytes.into()]),
        case("here, one core, cost of 2019, B random lines", "here, 1 core", true, [cycles.into(), bytes.into()]),
    ];
    if context.has_engine() {
        for schedule in [ScheduleKind::Naive, ScheduleKind::Burst] {
            let costs = costs_here(&context.schedule(schedule, 1)?);
            let cost = costs.map(|costs| costs.per_packet(HIT_RATIO.value()));
            let computed = |value: Option<f64>| value.map_or(Cell::NotMeasured(NO_FIGURES), Cell::Computed);
            cases.push(case(
                &format!("here, one core, {schedule} with the whole protocol, B random lines"),
                &format!("here, {schedule}"),
                true,
                [computed(cost.map(|cost| cost.cycles)), computed(cost.map(|cost| cost.bytes))],
            ));
        }
    }
    Ok((cases, [context.memory_conditions(&dram.pages)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_bounds_are_met() {
        let cases = published_cases();
        for (case, row) in cases.iter().zip(&BOUNDS) {
            let bound = case.bound().expect("all terms of the bound are numbers");
            let (by_computation, by_memory) = (row.by_computation_millions.value(), row.by_memory_millions.value());
            assert!((bound.by_computation / 1e6 - by_computation).abs() < 0.051, "{}", row.label);
            assert!((bound.by_memory / 1e6 - by_memory).abs() < 0.051, "{}", row.label);
        }
        assert_eq!(cases[0].short, "2016, host 1");
    }
}
