//! Tables about whole packets: cycles, memory traffic, stages of the pipeline, threads.

use namehop_bench::counters::CounterFigures;
use namehop_bench::schedule::{ByPacket, ScheduleFigures};
use namehop_forward::schedule::ScheduleKind;
use namehop_model::pipeline::LoadLevels;

use crate::published::{self, Packets};
use crate::report::{Cell, Chart, ChartKind, Report, Row, Series};
use crate::{Context, ReproduceError};

const NO_COUNTERS: &str = "this machine offers no hardware counters";
const NO_CORES: &str = "this machine has fewer cores";
const LINE_BYTES: f64 = 64.0;
/// Columns of all tables by kind of packet.
const BY_PACKET: [&str; 6] =
    ["I-miss published", "I-miss here", "I-hit published", "I-hit here", "Data published", "Data here"];

/// A row of a table by kind of packet.
fn packet_row(label: &str, published: Packets, here: [Option<f64>; 3]) -> Row {
    let cells = published.into_iter().zip(here);
    let cells = cells.flat_map(|(published, here)| [Cell::Number(published), Cell::measured(here, NO_COUNTERS)]);
    Row::new(label, cells.collect::<Vec<_>>())
}

fn cycles(figures: &ScheduleFigures) -> [Option<f64>; 3] {
    [Some(figures.imiss_cycles), Some(figures.ihit_cycles), Some(figures.data_cycles)]
}

/// A counted figure for each kind of packet.
fn counted(figures: &ScheduleFigures, of: impl Fn(&CounterFigures) -> Option<f64>) -> [Option<f64>; 3] {
    match &figures.counters {
        Some(ByPacket { interest_miss, interest_hit, data }) => [of(interest_miss), of(interest_hit), of(data)],
        None => [None; 3],
    }
}

/// One of the counted figures, if it was counted.
type Counted = fn(&CounterFigures) -> Option<f64>;

/// Rows of a published table, each with the function that gives its value here.
fn counted_rows(figures: &ScheduleFigures, table: &[(&str, Packets)], of: &[Counted]) -> Vec<Row> {
    let rows = table.iter().zip(of);
    rows.map(|(&(label, published), of)| packet_row(label, published, counted(figures, of))).collect()
}

/// Levels, their sum first.
const LEVELS: [fn(&LoadLevels) -> f64; 5] =
    [LoadLevels::total, |levels| levels.l1d, |levels| levels.l2, |levels| levels.l3, |levels| levels.dram];

fn level_rows(
    figures: &ScheduleFigures,
    table: &[(&str, Packets)],
    levels: fn(&CounterFigures) -> Option<LoadLevels>,
) -> Vec<Row> {
    let rows = table.iter().zip(LEVELS);
    rows.map(|(&(label, published), level)| {
        packet_row(label, published, counted(figures, |counters| Some(level(&levels(counters)?))))
    })
    .collect()
}

/// Bars of the published values and those here, for I-miss.
fn bars(name: &str, title: &str, y_label: &str, rows: &[Row]) -> Chart {
    let value = |row: &Row, column: usize| match row.cells[column] {
        Cell::Number(value) => Some(value),
        _ => None,
    };
    let column = |column| rows.iter().map(|row| value(row, column)).collect::<Vec<_>>();
    let series = BY_PACKET.iter().enumerate().map(|(index, &name)| Series::new(name, column(index)));
    Chart {
        name: name.to_owned(),
        title: title.to_owned(),
        y_label: y_label.to_owned(),
        kind: ChartKind::Bars { categories: rows.iter().map(|row| row.label.clone()).collect() },
        series: series.collect(),
    }
}

pub(crate) fn table_3_1(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let figures = context.schedule(ScheduleKind::Naive, 1)?;
    let ByPacket { interest_miss, interest_hit, data } = figures.lines;
    let bytes = [interest_miss, interest_hit, data].map(|lines| Some(lines * LINE_BYTES));
    let rows = vec![
        packet_row("CPU cycles", published::PACKET_CYCLES, cycles(&figures)),
        packet_row("Memory traffic, bytes", published::PACKET_BYTES, bytes),
    ];
    let difference = "Cycles are time-stamp counter ticks of another processor and another program; bytes were measured \
                      at the memory controllers and are here those of the table lines counted, packets not included.";
    let chart = bars("table-3.1", "CPU cycles of one packet, Naive", "CPU cycles", &rows[..1]);
    Ok(Report::new(&BY_PACKET, rows, difference).with_charts([chart]))
}

const OTHER_MACHINE: &str = "Published on a Xeon E5-2699 v4 with its counters; the total here is in time-stamp counter \
                             ticks of this processor, and its division needs counters that virtual machines rarely offer.";

fn stage_rows(figures: &ScheduleFigures) -> Vec<Row> {
    let mut rows = vec![packet_row("Total", published::STAGES[0].1, cycles(figures))];
    rows.extend(counted_rows(
        figures,
        &published::STAGES[1..],
        &[
            |counters| Some(counters.stages?.frontend),
            |counters| Some(counters.stages?.backend),
            |counters| Some(counters.stages?.speculation),
            |counters| Some(counters.stages?.retirement),
        ],
    ));
    rows
}

fn backend_rows(figures: &ScheduleFigures) -> Vec<Row> {
    counted_rows(
        figures,
        &published::BACKEND,
        &[
            |counters| Some(counters.backend?.total()),
            |counters| Some(counters.backend?.load),
            |counters| Some(counters.backend?.store),
            |counters| Some(counters.backend?.core),
        ],
    )
}

fn load_rows(figures: &ScheduleFigures) -> Vec<Row> {
    level_rows(figures, &published::LOAD_STALLS, |counters| counters.load_stalls)
}

pub(crate) fn table_3_2(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let rows = stage_rows(&context.schedule(ScheduleKind::Naive, 1)?);
    let chart = bars("table-3.2", "Cycles by stage of the pipeline, Naive", "CPU cycles", &rows);
    Ok(Report::new(&BY_PACKET, rows, OTHER_MACHINE).with_charts([chart]))
}

pub(crate) fn table_3_3(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let rows = backend_rows(&context.schedule(ScheduleKind::Naive, 1)?);
    let chart = bars("table-3.3", "Backend stalls by unit, Naive", "CPU cycles", &rows);
    Ok(Report::new(&BY_PACKET, rows, OTHER_MACHINE).with_charts([chart]))
}

pub(crate) fn table_3_4(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let rows = load_rows(&context.schedule(ScheduleKind::Naive, 1)?);
    let chart = bars("table-3.4", "Load-unit stalls by level, Naive", "CPU cycles", &rows);
    Ok(Report::new(&BY_PACKET, rows, OTHER_MACHINE).with_charts([chart]))
}

pub(crate) fn table_3_5(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let figures = context.schedule(ScheduleKind::Naive, 1)?;
    let rows = level_rows(&figures, &published::RETIRED_LOADS, |counters| counters.retired_loads);
    let difference = "Another program retires other loads, and loads of a line that is already on its way are counted \
                      for no level.";
    let chart = bars("table-3.5", "Retired loads by level, Naive", "loads", &rows);
    Ok(Report::new(&BY_PACKET, rows, difference).with_charts([chart]))
}

pub(crate) fn icn17_table_1(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let figures = context.schedule(ScheduleKind::Naive, 1)?;
    let parts = [("(a) ", stage_rows(&figures)), ("(b) ", backend_rows(&figures)), ("(c) ", load_rows(&figures))];
    let rows = parts
        .into_iter()
        .flat_map(|(part, rows)| rows.into_iter().map(move |row| Row { label: format!("{part}{}", row.label), ..row }));
    Ok(Report::new(&BY_PACKET, rows.collect(), OTHER_MACHINE))
}

pub(crate) fn table_3_6(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let cores = context.machine.cores;
    let published_threads = published::BY_THREADS.iter().map(|row| row.threads);
    let mut threads: Vec<usize> = published_threads.chain(1..=cores).collect();
    threads.sort_unstable();
    threads.dedup();
    let mut rows = Vec::new();
    for &threads in &threads {
        let published = published::BY_THREADS.iter().find(|row| row.threads == threads);
        let [cycles, dram_cycles, lines] = if threads <= cores {
            let figures = context.schedule(ScheduleKind::Naive, threads)?;
            let [dram, _, _] = counted(&figures, |counters| Some(counters.load_stalls?.dram));
            [
                Cell::Number(figures.imiss_cycles),
                Cell::measured(dram, NO_COUNTERS),
                Cell::Number(figures.lines.interest_miss),
            ]
        } else {
            [const { Cell::NotMeasured(NO_CORES) }; 3]
        };
        let cells = [
            published.map(|row| row.cycles).into(),
            cycles,
            published.map(|row| row.dram_cycles).into(),
            dram_cycles,
            published.map(|row| row.dram_accesses).into(),
            lines,
        ];
        rows.push(Row::new(format!("{threads} threads"), cells));
    }
    let columns = [
        "cycles published",
        "cycles here",
        "waiting for DRAM published",
        "waiting for DRAM here",
        "DRAM accesses published",
        "table lines here",
    ];
    let difference = "Published accesses are loads that missed all caches and were not prefetched by the processor; here \
                      all lines of tables that an Interest touches are counted, on as many cores as there are.";
    let series = [("published", 0), ("here", 1)].map(|(name, column)| {
        let values = rows.iter().map(|row| match row.cells[column] {
            Cell::Number(value) => Some(value),
            _ => None,
        });
        Series::new(name, values.collect::<Vec<_>>())
    });
    let chart = Chart {
        name: "table-3.6".to_owned(),
        title: "Cycles of an I-miss by number of threads, Naive".to_owned(),
        y_label: "CPU cycles".to_owned(),
        kind: ChartKind::Lines {
            x_label: "threads".to_owned(),
            x: threads.iter().map(|&threads| threads as f64).collect(),
        },
        series: series.to_vec(),
    };
    Ok(Report::new(&columns, rows, difference).with_charts([chart]))
}
