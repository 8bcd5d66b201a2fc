//! The upper bound of the forwarding rate, for the papers' computers and for this one.

use namehop_bench::schedule::ScheduleFigures;
use namehop_forward::schedule::ScheduleKind;
use namehop_model::throughput::{Bottleneck, Computer, Cost, PacketCosts};

use crate::published::{BOUNDS, HIT_RATIO, PACKET_BYTES, PACKET_CYCLES, THESIS_COST};
use crate::report::{Cell, Chart, ChartKind, Report, Row, Series};
use crate::{Context, ReproduceError};

const LINE_BYTES: f64 = 64.0;

/// A computer, what it forwards, and the bounds as printed, in millions.
struct Case {
    label: String,
    computer: Computer,
    cost: Cost,
    published: Option<(f64, f64)>,
}

/// min(NF/C, B/M).
pub(crate) fn bound(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let mut cases: Vec<Case> = BOUNDS
        .iter()
        .map(|row| Case {
            label: row.label.to_owned(),
            computer: Computer { cores: row.cores, hz: row.hz, memory_bytes_per_second: row.memory_bytes_per_second },
            cost: Cost { cycles: row.cycles, bytes: row.bytes },
            published: Some((row.by_computation_millions, row.by_memory_millions)),
        })
        .collect();
    cases.push(Case {
        label: "2019, computer 1, C and M from table 3.1".to_owned(),
        computer: cases[2].computer,
        cost: table_costs().per_packet(HIT_RATIO),
        published: None,
    });
    cases.extend(here(context)?);

    let rows: Vec<Row> = cases.iter().map(row).collect();
    let categories: Vec<String> = cases.iter().map(|case| short(&case.label)).collect();
    let series = [
        Series::new("NF/C", values(&cases, |case| case.computer.bound(&case.cost).by_computation)),
        Series::new("B/M", values(&cases, |case| case.computer.bound(&case.cost).by_memory)),
    ];
    let chart = Chart {
        name: "throughput-bound".to_owned(),
        title: "Upper bounds of the forwarding rate".to_owned(),
        y_label: "million per second".to_owned(),
        kind: ChartKind::Bars { categories },
        series: series.to_vec(),
    };
    let columns = [
        "N",
        "F GHz",
        "B GB/s",
        "C cycles",
        "M bytes",
        "NF/C published M/s",
        "NF/C M/s",
        "B/M published M/s",
        "B/M M/s",
        "limited by",
    ];
    let difference = "The papers' bounds follow from their C and M in all digits printed; here N and F are this machine's, and \
                      B is what it was measured to read rather than what its memory channels are specified for.";
    Ok(Report::new(&columns, rows, difference).with_charts([chart]))
}

/// Costs of table 3.1.
fn table_costs() -> PacketCosts {
    let cost = |packet: usize| Cost { cycles: PACKET_CYCLES[packet], bytes: PACKET_BYTES[packet] };
    PacketCosts { interest_miss: cost(0), interest_hit: cost(1), data: cost(2) }
}

/// Costs measured here; bytes are those of the counted lines.
fn measured_costs(figures: &ScheduleFigures) -> PacketCosts {
    let cost = |cycles: f64, lines: f64| Cost { cycles, bytes: lines * LINE_BYTES };
    PacketCosts {
        interest_miss: cost(figures.imiss_cycles, figures.lines.interest_miss),
        interest_hit: cost(figures.ihit_cycles, figures.lines.interest_hit),
        data: cost(figures.data_cycles, figures.lines.data),
    }
}

/// This machine, with the published cost and, if the engine can be measured, with its own.
fn here(context: &mut Context<'_>) -> Result<Vec<Case>, ReproduceError> {
    let sequential = context.sequential_bytes_per_second()?;
    let random = context.dram()?.best_lines_per_second() * LINE_BYTES;
    let all = Computer {
        cores: context.machine.cores as u32,
        hz: context.machine.cycles_hz,
        memory_bytes_per_second: sequential,
    };
    let one = Computer { cores: 1, memory_bytes_per_second: random, ..all };
    let (cycles, bytes) = THESIS_COST;
    let case = |label: &str, computer, cost| Case { label: label.to_owned(), computer, cost, published: None };
    let cost = Cost { cycles, bytes };
    let mut cases = vec![
        case("here, cost of 2019, B sequential", all, cost),
        case("here, one core, cost of 2019, B random lines", one, cost),
    ];
    if context.engine.is_some() {
        for schedule in [ScheduleKind::Naive, ScheduleKind::Burst] {
            let cost = measured_costs(&context.schedule(schedule, 1)?).per_packet(HIT_RATIO);
            cases.push(case(&format!("here, one core, {schedule}, B random lines"), one, cost));
        }
    }
    Ok(cases)
}

fn row(case: &Case) -> Row {
    let bound = case.computer.bound(&case.cost);
    let limit = match bound.bottleneck() {
        Bottleneck::Computation => "computation",
        Bottleneck::Memory => "memory",
    };
    Row::new(
        &case.label,
        [
            Cell::Number(f64::from(case.computer.cores)),
            Cell::Number(case.computer.hz / 1e9),
            Cell::Number(case.computer.memory_bytes_per_second / 1e9),
            Cell::Number(case.cost.cycles),
            Cell::Number(case.cost.bytes),
            case.published.map(|(by_computation, _)| by_computation).into(),
            Cell::Number(bound.by_computation / 1e6),
            case.published.map(|(_, by_memory)| by_memory).into(),
            Cell::Number(bound.by_memory / 1e6),
            Cell::Text(limit.to_owned()),
        ],
    )
}

fn values(cases: &[Case], of: impl Fn(&Case) -> f64) -> Vec<Option<f64>> {
    cases.iter().map(|case| Some(of(case) / 1e6)).collect()
}

/// What fits under a group of bars.
fn short(label: &str) -> String {
    let words: Vec<&str> = label.split(", ").collect();
    match words[..] {
        ["here", "one core", what, _] => format!("here/{}", what.split(' ').next_back().unwrap_or(what)),
        ["here", ..] => "here".to_owned(),
        [year, "computer 1", _] => format!("{year} #1'"),
        [year, computer] => {
            let number = if computer.starts_with("computer 1") { 1 } else { 2 };
            format!("{year} #{number}")
        }
        _ => label.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_bounds_are_met() {
        for row in &BOUNDS {
            let computer =
                Computer { cores: row.cores, hz: row.hz, memory_bytes_per_second: row.memory_bytes_per_second };
            let bound = computer.bound(&Cost { cycles: row.cycles, bytes: row.bytes });
            assert!((bound.by_computation / 1e6 - row.by_computation_millions).abs() < 0.051, "{}", row.label);
            assert!((bound.by_memory / 1e6 - row.by_memory_millions).abs() < 0.051, "{}", row.label);
        }
    }
}
