//! Tables about whole packets: cycles, memory traffic, stages of the pipeline, threads.

use namehop_bench::schedule::PacketKind;
use namehop_orders::ScheduleKind;
use namehop_table::prefetch::CACHE_LINE_BYTES;

use crate::context::{Context, ManyWorkers, count};
use crate::measured::engine::{Counted, Level, Path, ScheduleRuns, Unit};
use crate::published::{self, Packets};
use crate::report::{Cell, Chart, ChartKind, Column, Report, Row, Series};
use crate::{NO_CORES, NO_FIGURES, ReproduceError};

const NO_MEMORY_CONTROLLERS: &str = "memory controller counters are not read";
/// The three packet paths, by their published names.
const KINDS: [(&str, PacketKind); 3] =
    [("I-miss", PacketKind::InterestMiss), ("I-hit", PacketKind::InterestHit), ("Data", PacketKind::Data)];

/// Columns of a table by packet path.
fn by_packet() -> Vec<Column> {
    KINDS.iter().flat_map(|&(name, _)| [Column::published(name), Column::measured(name)]).collect()
}

/// A row of such a table.
fn packet_row(label: &str, published: Packets, measured: impl Fn(PacketKind) -> Cell) -> Row {
    let cells = published.into_iter().zip(KINDS).flat_map(|(published, (_, kind))| [published.into(), measured(kind)]);
    Row::new(label, cells.collect::<Vec<_>>())
}

/// Rows of a published table, each with its counter figure.
fn counted_rows(figures: &ScheduleRuns, table: &[(&str, Packets)], counted: &[Counted]) -> Vec<Row> {
    let rows = table.iter().zip(counted);
    let row = |(&(label, published), &counted): (&(&str, Packets), &Counted)| {
        packet_row(label, published, |kind| Cell::measured(figures.counted(kind, counted), figures.why_not_counted()))
    };
    rows.map(row).collect()
}

const LEVELS: [Level; 5] = [Level::All, Level::L1d, Level::L2, Level::L3, Level::Dram];

fn stage_rows(figures: &ScheduleRuns) -> Vec<Row> {
    let total = packet_row("Total", published::STAGES[0].1, |kind| {
        Cell::measured(figures.cycles(Path::Stripped, kind), NO_FIGURES)
    });
    let stages = [Counted::Frontend, Counted::Backend, Counted::Speculation, Counted::Retirement];
    std::iter::once(total).chain(counted_rows(figures, &published::STAGES[1..], &stages)).collect()
}

fn backend_rows(figures: &ScheduleRuns) -> Vec<Row> {
    let units = [Unit::All, Unit::Load, Unit::Store, Unit::Core].map(Counted::BackendUnits);
    counted_rows(figures, &published::BACKEND, &units)
}

fn load_rows(figures: &ScheduleRuns) -> Vec<Row> {
    counted_rows(figures, &published::LOAD_STALLS, &LEVELS.map(Counted::LoadStalls))
}

/// A bar chart of all columns.
fn bars(name: &str, title: &str, y_label: &str, rows: &[Row]) -> Chart {
    let series = by_packet().into_iter().enumerate().map(|(index, head)| Series::of_column(head.show(), rows, index));
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
    let lines = figures.lines_of_whole_protocol();
    let measured = |path, kind| Cell::measured(figures.cycles(path, kind), NO_FIGURES);
    let mut rows = Vec::new();
    for (packet, (name, kind)) in KINDS.into_iter().enumerate() {
        let cycles = [published::PACKET_CYCLES[packet].into(), Cell::Empty, measured(Path::Stripped, kind)];
        rows.push(Row::new(format!("{name}: CPU cycles"), cycles));
        let whole = [Cell::Empty, Cell::Empty, measured(Path::Whole, kind)];
        rows.push(Row::new(format!("{name}: CPU cycles, whole protocol"), whole));
        let bytes = Cell::Computed(lines.get(kind) * CACHE_LINE_BYTES as f64);
        let traffic = [published::PACKET_BYTES[packet].into(), bytes, Cell::NotMeasured(NO_MEMORY_CONTROLLERS)];
        rows.push(Row::new(format!("{name}: memory traffic, bytes"), traffic));
    }
    let cycles = rows.iter().filter(|row| row.label.contains("cycles"));
    let chart = Chart {
        name: String::new(),
        title: "CPU cycles per packet, Naive".to_owned(),
        y_label: "CPU cycles".to_owned(),
        kind: ChartKind::Bars { categories: cycles.clone().map(|row| row.label.replace(": CPU cycles", "")).collect() },
        series: vec![Series::of_column("published", cycles.clone(), 0), Series::of_column("measured", cycles, 2)],
    };
    let columns = vec![Column::published(""), Column::computed(""), Column::measured("")];
    let difference = "The published cycles are of another processor and another program. The published memory traffic \
        was measured at the memory controllers and includes evictions and packets. The computed traffic is 64 bytes \
        for each table line that the whole protocol needs from outside the core's private cache, as counted by the \
        tests of this program with LRU eviction; it excludes packets.";
    let report = Report::new(columns, rows, difference).with_charts([chart]);
    Ok(context.of_engine(report, ManyWorkers::No))
}

const OTHER_MACHINE: &str = "The published figures are from the counters of a Xeon E5-2699 v4. The measured total is \
    in time-stamp counter ticks; its division is in core cycles, from counters that virtual machines rarely offer.";

pub(crate) fn table_3_2(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let rows = stage_rows(&context.schedule(ScheduleKind::Naive, 1)?);
    let chart = bars("", "Cycles by stage of the pipeline, Naive", "CPU cycles", &rows);
    let report = Report::new(by_packet(), rows, OTHER_MACHINE).with_charts([chart]);
    Ok(context.of_engine(report, ManyWorkers::No))
}

pub(crate) fn table_3_3(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let rows = backend_rows(&context.schedule(ScheduleKind::Naive, 1)?);
    let chart = bars("", "Backend stalls by unit, Naive", "CPU cycles", &rows);
    let report = Report::new(by_packet(), rows, OTHER_MACHINE).with_charts([chart]);
    Ok(context.of_engine(report, ManyWorkers::No))
}

pub(crate) fn table_3_4(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let rows = load_rows(&context.schedule(ScheduleKind::Naive, 1)?);
    let chart = bars("", "Load-unit stalls by level, Naive", "CPU cycles", &rows);
    let report = Report::new(by_packet(), rows, OTHER_MACHINE).with_charts([chart]);
    Ok(context.of_engine(report, ManyWorkers::No))
}

pub(crate) fn table_3_5(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let figures = context.schedule(ScheduleKind::Naive, 1)?;
    let rows = counted_rows(&figures, &published::RETIRED_LOADS, &LEVELS.map(Counted::RetiredLoads));
    let difference = "Another program retires other loads, and a load of a line that is already being fetched is \
        counted for no level.";
    let chart = bars("", "Retired loads by level, Naive", "loads", &rows);
    let report = Report::new(by_packet(), rows, difference).with_charts([chart]);
    Ok(context.of_engine(report, ManyWorkers::No))
}

pub(crate) fn icn17_table_1(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let figures = context.schedule(ScheduleKind::Naive, 1)?;
    let parts = [
        ("a", "Cycles by stage of the pipeline, Naive", stage_rows(&figures)),
        ("b", "Backend stalls by unit, Naive", backend_rows(&figures)),
        ("c", "Load-unit stalls by level, Naive", load_rows(&figures)),
    ];
    let mut rows = Vec::new();
    let mut charts = Vec::new();
    for (part, title, part_rows) in parts {
        charts.push(bars(part, title, "CPU cycles", &part_rows));
        rows.extend(part_rows.into_iter().map(|row| Row { label: format!("({part}) {}", row.label), ..row }));
    }
    let report = Report::new(by_packet(), rows, OTHER_MACHINE).with_charts(charts);
    Ok(context.of_engine(report, ManyWorkers::No))
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
        let here = if threads <= cores { Some(context.schedule(ScheduleKind::Naive, threads)?) } else { None };
        let [cycles, dram_cycles, dram_loads] = match &here {
            None => [const { Cell::NotMeasured(NO_CORES) }; 3],
            Some(figures) => {
                let counted = |what| figures.counted(PacketKind::InterestMiss, what);
                [
                    Cell::measured(figures.cycles(Path::Stripped, PacketKind::InterestMiss), NO_FIGURES),
                    Cell::measured(counted(Counted::LoadStalls(Level::Dram)), figures.why_not_counted()),
                    Cell::measured(counted(Counted::RetiredLoads(Level::Dram)), figures.why_not_counted()),
                ]
            }
        };
        let lines = here.map(|figures| figures.lines_of_whole_protocol().interest_miss);
        let cells = [
            published.map(|row| row.cycles).into(),
            cycles,
            published.map(|row| row.dram_cycles).into(),
            dram_cycles,
            published.map(|row| row.dram_accesses).into(),
            dram_loads,
            lines.map_or(Cell::Empty, Cell::Computed),
        ];
        rows.push(Row::new(count(threads, "thread"), cells));
    }
    let columns = vec![
        Column::published("cycles"),
        Column::measured("cycles"),
        Column::published("waiting for DRAM"),
        Column::measured("waiting for DRAM"),
        Column::published("DRAM accesses"),
        Column::measured("DRAM accesses"),
        Column::computed("table lines"),
    ];
    let difference = "Published accesses, and those measured where counters can be read, are retired loads that missed \
        all caches. Table lines are those that an Interest needs from outside the core's private cache with the whole \
        protocol, as counted by the tests of this program. They are not measured, and are the same for any number of \
        threads.";
    let chart = Chart {
        name: String::new(),
        title: "Cycles of an I-miss by number of threads, Naive".to_owned(),
        y_label: "CPU cycles".to_owned(),
        kind: ChartKind::Lines {
            x_label: "threads".to_owned(),
            x: threads.iter().map(|&threads| threads as f64).collect(),
        },
        series: vec![Series::of_column("published", &rows, 0), Series::of_column("measured", &rows, 1)],
    };
    let report = Report::new(columns, rows, difference).with_charts([chart]);
    Ok(context.of_engine(report, ManyWorkers::Yes))
}
