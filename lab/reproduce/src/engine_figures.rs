//! Figures about whole packets: schedules compared, on one thread and on many.

use namehop_bench::schedule::PacketKind;
use namehop_model::prefetch::{after_reductions, reduction_percent};
use namehop_model::throughput::{Cost, Host, threads_at_memory_bound};
use namehop_orders::ScheduleKind;

use crate::context::{Context, ManyWorkers, count};
use crate::measured::Measured;
use crate::measured::engine::{Path, ScheduleRuns};
use crate::published::{self, PACKET_CYCLES, Published, Reductions};
use crate::report::{Cell, Chart, ChartKind, Column, Report, Row, Series};
use crate::{NO_CORES, NO_FIGURES, ReproduceError};

fn columns() -> Vec<Column> {
    let of = |packet: &str| {
        let cycles = format!("{packet} cycles");
        let saved = format!("{packet} saved %");
        [Column::computed(&cycles), Column::measured(&cycles), Column::computed(&saved), Column::measured(&saved)]
    };
    ["I-miss", "Data"].into_iter().flat_map(of).collect()
}

/// Cycles of I-miss and Data with a schedule, derived from published values.
type Bars = (Option<f64>, Option<f64>);

/// On one thread: the cycles of Naive (table 3.1), reduced as the text states.
fn bars_one_thread(schedule: ScheduleKind, reductions: &Reductions) -> Bars {
    let [interest, _, data] = PACKET_CYCLES.map(Published::value);
    let steps = reductions.interest_steps.map(Published::value);
    let after = |count: usize| Some(after_reductions(interest, &steps[..count]));
    match schedule {
        ScheduleKind::Naive => (Some(interest), Some(data)),
        ScheduleKind::BucketPrefetch => (after(1), Some(data)),
        ScheduleKind::PreHash => (after(2), Some(data)),
        // The measured schedules are variants of one technique.
        schedule if schedule.is_speculative() => {
            (after(3), Some(after_reductions(data, &[reductions.data_total.value()])))
        }
        _ => (None, None),
    }
}

/// On 20 threads: the slowest (table 3.6) and the fastest ("does not change").
fn bars_many_threads(schedule: ScheduleKind, reductions: &Reductions) -> Bars {
    match schedule {
        ScheduleKind::Naive => (published::BY_THREADS.last().map(|row| row.cycles.value()), None),
        schedule if schedule.is_speculative() => bars_one_thread(schedule, reductions),
        _ => (None, None),
    }
}

/// One row per schedule on the published path, then one per schedule with the whole protocol.
fn schedule_rows(all: &[ScheduleRuns], bars: impl Fn(ScheduleKind) -> Bars) -> Vec<Row> {
    let before = bars(ScheduleKind::Naive);
    let naive = all.iter().find(|runs| runs.schedule == ScheduleKind::Naive);
    let computed = |value: Option<f64>| value.map_or(Cell::Empty, Cell::Computed);
    let saved = |before: Option<f64>, after: Option<f64>| {
        computed(before.zip(after).map(|(before, after)| reduction_percent(before, after)))
    };
    let row = |runs: &ScheduleRuns, path: Path| {
        let (label, (interest, data)) = match path {
            Path::Stripped => (runs.schedule.to_string(), bars(runs.schedule)),
            Path::Whole => (format!("{}, whole protocol", runs.schedule), (None, None)),
        };
        let cycles = |kind| runs.cycles(path, kind);
        // Naive is the baseline.
        let is_compared = runs.schedule != ScheduleKind::Naive;
        let reduction = |kind: PacketKind| -> Option<Measured> {
            cycles(kind)?.reduction_percent_from(&naive?.cycles(path, kind)?)
        };
        let measured_saved = |kind| match is_compared {
            true => Cell::measured(reduction(kind), NO_FIGURES),
            false => Cell::Empty,
        };
        let saved = |before, after| if is_compared { saved(before, after) } else { Cell::Empty };
        let (imiss, data_kind) = (PacketKind::InterestMiss, PacketKind::Data);
        Row::new(
            label,
            [
                computed(interest),
                Cell::measured(cycles(imiss), NO_FIGURES),
                saved(before.0, interest),
                measured_saved(imiss),
                computed(data),
                Cell::measured(cycles(data_kind), NO_FIGURES),
                saved(before.1, data),
                measured_saved(data_kind),
            ],
        )
    };
    let rows = |path| all.iter().map(move |runs| row(runs, path));
    rows(Path::Stripped).chain(rows(Path::Whole)).collect()
}

/// Bar chart of cycles by schedule on the published path.
fn schedule_chart(name: &str, title: &str, rows: &[Row]) -> Chart {
    let rows: Vec<&Row> = rows.iter().filter(|row| !row.label.ends_with("whole protocol")).collect();
    let columns =
        [("I-miss, from published", 0), ("I-miss, measured", 1), ("Data, from published", 4), ("Data, measured", 5)];
    Chart {
        name: name.to_owned(),
        title: title.to_owned(),
        y_label: "CPU cycles per packet".to_owned(),
        kind: ChartKind::Bars { categories: rows.iter().map(|row| row.label.clone()).collect() },
        series: columns.map(|(name, index)| Series::of_column(name, rows.iter().copied(), index)).to_vec(),
    }
}

const ONE_THREAD: &str = "The published bars carry no numbers: they are computed from table 3.1 and the reductions in \
    the text. The measurements use the same schedules in another program on another processor. Speculative is measured \
    in several interpretations of its description: one packet ahead, with FIB entries of all matching tags or of the \
    first one, with or without a third step that prefetches what entries point to; and two packets at a time. Burst \
    has no published counterpart.";
const MANY_THREADS: &str = "The published figure has 20 threads; the text gives Naive's I-miss, and that Speculative \
    has the cycles of one thread. The measurement uses one thread per core of this host.";
/// Difference of the thesis's baseline from its table.
const MIXED_BASELINE: &str = "The computed bars start from table 3.1, whose program evicts by FIFO and admits all \
    Data. The thesis' Naive of figures 4.5 to 4.7 admits by TinyLFU, and its cycles are not printed, so these bars are \
    off by that difference; the measurement admits all Data.";

fn one_thread_rows(context: &mut Context<'_>, reductions: &Reductions) -> Result<Vec<Row>, ReproduceError> {
    Ok(schedule_rows(&context.schedules(1)?, |schedule| bars_one_thread(schedule, reductions)))
}

fn many_threads_rows(context: &mut Context<'_>, reductions: &Reductions) -> Result<Vec<Row>, ReproduceError> {
    Ok(schedule_rows(&context.schedules(context.machine.cores)?, |schedule| bars_many_threads(schedule, reductions)))
}

const TITLE_ONE: &str = "CPU cycles of one packet, one thread";

fn title_many(context: &Context<'_>) -> String {
    format!("CPU cycles of one packet: 20 threads published, {} measured", context.machine.cores)
}

pub(crate) fn figure_4_5(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let rows = one_thread_rows(context, &published::THESIS)?;
    let chart = schedule_chart("", TITLE_ONE, &rows);
    let report = Report::new(columns(), rows, ONE_THREAD).with_charts([chart]).with_limits([MIXED_BASELINE]);
    Ok(context.of_engine(report, ManyWorkers::No))
}

pub(crate) fn figure_4_6(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let rows = many_threads_rows(context, &published::THESIS)?;
    let chart = schedule_chart("", &title_many(context), &rows);
    let report = Report::new(columns(), rows, MANY_THREADS).with_charts([chart]).with_limits([MIXED_BASELINE]);
    Ok(context.of_engine(report, ManyWorkers::Yes))
}

pub(crate) fn icn17_figure_4(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let one = one_thread_rows(context, &published::ICN17)?;
    let many = many_threads_rows(context, &published::ICN17)?;
    let charts = [schedule_chart("a", TITLE_ONE, &one), schedule_chart("b", &title_many(context), &many)];
    let part = |part: &'static str, rows: Vec<Row>| {
        rows.into_iter().map(move |row| Row { label: format!("{part} {}", row.label), ..row })
    };
    let rows = part("(a)", one).chain(part("(b)", many)).collect();
    let report = Report::new(columns(), rows, format!("(a) {ONE_THREAD} (b) {MANY_THREADS}")).with_charts(charts);
    Ok(context.of_engine(report, ManyWorkers::Yes))
}

/// Forwarding rate by number of threads.
fn speed(context: &mut Context<'_>, reductions: &Reductions) -> Result<Report, ReproduceError> {
    let cores = context.machine.cores;
    let mut threads: Vec<usize> = (1..=cores).chain([published::THREADS]).collect();
    threads.sort_unstable();
    threads.dedup();
    let schedules: Vec<ScheduleKind> = context.schedules(1)?.iter().map(|runs| runs.schedule).collect();
    let mut rows = Vec::new();
    for &threads in &threads {
        let best = (threads == published::THREADS).then_some(reductions.best_mpps);
        let mut cells = vec![Cell::from(best)];
        for &schedule in &schedules {
            cells.push(match threads <= cores {
                true => Cell::measured(context.schedule(schedule, threads)?.mpps(), NO_FIGURES),
                false => Cell::NotMeasured(NO_CORES),
            });
        }
        rows.push(Row::new(count(threads, "thread"), cells));
    }
    let mut columns = vec![Column::published("Speculative, Mpps")];
    columns.extend(schedules.iter().map(|schedule| Column::measured(format!("{schedule}, Mpps"))));
    let series = columns.iter().enumerate().map(|(index, head)| Series::of_column(head.show(), &rows, index)).collect();
    let chart = Chart {
        name: String::new(),
        title: "Forwarding speed by number of threads".to_owned(),
        y_label: "million packets per second".to_owned(),
        kind: ChartKind::Lines {
            x_label: "threads".to_owned(),
            x: threads.iter().map(|&threads| threads as f64).collect(),
        },
        series,
    };
    let mut extrapolated = vec![Cell::from(published::EXTRAPOLATED_MPPS)];
    extrapolated.resize(columns.len(), Cell::Empty);
    rows.push(Row::new("both processors, extrapolated by the authors", extrapolated));
    let difference = format!(
        "The text gives only the best published speed: 20 threads at 2.2 GHz, receiving from and sending to network \
         cards. The measurement has no network cards: packets come from memory and go to memory, which alone makes it \
         faster. All time counts, including interruptions. By equation 3.1 with the published C and M, memory ends \
         linear growth at {:.1} threads (the text says {:.0}).",
        memory_bound_threads(),
        published::THREADS_AT_MEMORY_BOUND.value()
    );
    let report = Report::new(columns, rows, difference).with_charts([chart]);
    Ok(context.of_engine(report, ManyWorkers::Yes))
}

/// Threads at which the published host's memory bandwidth is exhausted, by the published cost of a packet.
fn memory_bound_threads() -> f64 {
    let (cycles, bytes) = published::THESIS_COST;
    let row = &published::BOUNDS[2];
    let host = Host {
        cores: 1,
        hz: row.ghz.value() * 1e9,
        memory_bytes_per_second: row.memory_gigabytes_per_second.value() * 1e9,
    };
    threads_at_memory_bound(&host, &Cost { cycles: cycles.value(), bytes: bytes.value() })
}

pub(crate) fn figure_4_7(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    Ok(speed(context, &published::THESIS)?
        .with_limits(["The thesis' program admits Data by TinyLFU; the measurement admits all Data."]))
}

pub(crate) fn icn17_figure_5(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    speed(context, &published::ICN17)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_reductions_and_totals_agree() {
        for reductions in [published::THESIS, published::ICN17] {
            let (Some(interest), Some(data)) = bars_one_thread(ScheduleKind::Naive, &reductions) else { panic!() };
            let best = bars_one_thread(ScheduleKind::Speculative, &reductions);
            let (Some(best_interest), Some(best_data)) = best else { panic!() };
            let total = reduction_percent(interest, best_interest);
            assert!((total - reductions.interest_total.value()).abs() < 0.01, "{total}");
            assert!((reduction_percent(data, best_data) - reductions.data_total.value()).abs() < 1e-9);
        }
        assert_eq!(bars_one_thread(ScheduleKind::Burst, &published::THESIS), (None, None));
    }

    #[test]
    fn memory_is_used_up_where_the_text_says() {
        assert!((memory_bound_threads() - published::THREADS_AT_MEMORY_BOUND.value()).abs() < 0.5);
    }
}
