//! Figures about whole packets: schedules compared, on one thread and on many.

use namehop_bench::schedule::ScheduleFigures;
use namehop_forward::schedule::ScheduleKind;
use namehop_model::prefetch::{after_reductions, reduction_percent};

use crate::published::{self, PACKET_CYCLES, Reductions};
use crate::report::{Cell, Chart, ChartKind, Report, Row, Series};
use crate::{Context, ReproduceError};

const COLUMNS: [&str; 8] = [
    "I-miss published cycles",
    "I-miss here",
    "saved published %",
    "saved here %",
    "Data published cycles",
    "Data here",
    "saved published %",
    "saved here %",
];

/// Published I-miss and Data cycles of a schedule on one thread: those of Naive (table 3.1), lowered as the text says.
fn published_cycles(schedule: ScheduleKind, reductions: &Reductions) -> Option<(f64, f64)> {
    let [interest, _, data] = PACKET_CYCLES;
    let after = |steps: usize| after_reductions(interest, &reductions.interest_steps[..steps]);
    match schedule {
        ScheduleKind::Naive => Some((interest, data)),
        ScheduleKind::BucketPrefetch => Some((after(1), data)),
        ScheduleKind::PreHash => Some((after(2), data)),
        ScheduleKind::Speculative => Some((after(3), after_reductions(data, &[reductions.data_total]))),
        _ => None,
    }
}

/// What was published of a schedule on many threads: the slowest (table 3.6) and the fastest ("does not change").
fn published_cycles_many(schedule: ScheduleKind, reductions: &Reductions) -> Option<(f64, Option<f64>)> {
    match schedule {
        ScheduleKind::Naive => published::BY_THREADS.last().map(|row| (row.cycles, None)),
        ScheduleKind::Speculative => {
            published_cycles(schedule, reductions).map(|(interest, data)| (interest, Some(data)))
        }
        _ => None,
    }
}

/// A row for each schedule; what was published is I-miss and Data cycles.
fn schedule_rows(
    figures: &[ScheduleFigures],
    published: impl Fn(ScheduleKind) -> (Option<f64>, Option<f64>),
) -> Vec<Row> {
    let (naive_interest, naive_data) = published(ScheduleKind::Naive);
    let naive = figures.iter().find(|figures| figures.schedule == ScheduleKind::Naive);
    let saved = |before: Option<f64>, after: Option<f64>| -> Cell {
        before.zip(after).map(|(before, after)| reduction_percent(before, after)).into()
    };
    let row = |figures: &ScheduleFigures| {
        let (interest, data) = published(figures.schedule);
        Row::new(
            figures.schedule.to_string(),
            [
                interest.into(),
                figures.imiss_cycles.into(),
                saved(naive_interest, interest),
                saved(naive.map(|naive| naive.imiss_cycles), Some(figures.imiss_cycles)),
                data.into(),
                figures.data_cycles.into(),
                saved(naive_data, data),
                saved(naive.map(|naive| naive.data_cycles), Some(figures.data_cycles)),
            ],
        )
    };
    figures.iter().map(row).collect()
}

/// Bars of cycles by schedule.
fn schedule_chart(name: &str, title: &str, rows: &[Row]) -> Chart {
    let column = |column: usize| -> Vec<Option<f64>> {
        let cell = |row: &Row| match row.cells[column] {
            Cell::Number(value) => Some(value),
            _ => None,
        };
        rows.iter().map(cell).collect()
    };
    let columns = [("I-miss published", 0), ("I-miss here", 1), ("Data published", 4), ("Data here", 5)];
    Chart {
        name: name.to_owned(),
        title: title.to_owned(),
        y_label: "CPU cycles per packet".to_owned(),
        kind: ChartKind::Bars { categories: rows.iter().map(|row| row.label.clone()).collect() },
        series: columns.map(|(name, index)| Series::new(name, column(index))).to_vec(),
    }
}

const ONE_THREAD: &str = "Published bars carry no numbers and are computed from table 3.1 and the reductions in the text; \
                          here the same orders of work run in another program on another processor, and Burst has no \
                          published counterpart.";
const MANY_THREADS: &str = "Published are 20 threads, of which the text gives Naive's cycles and that Speculative's do not \
                            change; here it is as many threads as this machine has cores.";

fn one_thread_rows(context: &mut Context<'_>, reductions: &Reductions) -> Result<Vec<Row>, ReproduceError> {
    let figures = context.schedules(1)?;
    Ok(schedule_rows(&figures, |schedule| published_cycles(schedule, reductions).unzip()))
}

fn many_threads_rows(context: &mut Context<'_>, reductions: &Reductions) -> Result<Vec<Row>, ReproduceError> {
    let figures = context.schedules(context.machine.cores)?;
    Ok(schedule_rows(&figures, |schedule| match published_cycles_many(schedule, reductions) {
        Some((interest, data)) => (Some(interest), data),
        None => (None, None),
    }))
}

pub(crate) fn figure_4_5(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let rows = one_thread_rows(context, &published::THESIS)?;
    let chart = schedule_chart("figure-4.5", "CPU cycles of one packet, one thread", &rows);
    Ok(Report::new(&COLUMNS, rows, ONE_THREAD).with_charts([chart]))
}

pub(crate) fn figure_4_6(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let rows = many_threads_rows(context, &published::THESIS)?;
    let chart = schedule_chart("figure-4.6", "CPU cycles of one packet, many threads", &rows);
    Ok(Report::new(&COLUMNS, rows, MANY_THREADS).with_charts([chart]))
}

pub(crate) fn icn17_figure_4(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let one = one_thread_rows(context, &published::ICN17)?;
    let many = many_threads_rows(context, &published::ICN17)?;
    let charts = [
        schedule_chart("icn17-figure-4a", "CPU cycles of one packet, one thread", &one),
        schedule_chart("icn17-figure-4b", "CPU cycles of one packet, many threads", &many),
    ];
    let part = |part: &'static str, rows: Vec<Row>| {
        rows.into_iter().map(move |row| Row { label: format!("{part} {}", row.label), ..row })
    };
    let rows = part("(a)", one).chain(part("(b)", many)).collect();
    Ok(Report::new(&COLUMNS, rows, ONE_THREAD).with_charts(charts))
}

/// Forwarding speed by number of threads.
fn speed(context: &mut Context<'_>, name: &str, reductions: &Reductions) -> Result<Report, ReproduceError> {
    let cores = context.machine.cores;
    let mut threads: Vec<usize> = (1..=cores).chain([published::THREADS]).collect();
    threads.sort_unstable();
    threads.dedup();
    let mut here: Vec<Vec<Option<f64>>> = vec![Vec::new(); ScheduleKind::TECHNIQUES.len()];
    for &threads in &threads {
        for (values, schedule) in here.iter_mut().zip(ScheduleKind::TECHNIQUES) {
            let figures = if threads <= cores { Some(context.schedule(schedule, threads)?) } else { None };
            values.push(figures.map(|figures| figures.mpps));
        }
    }
    let published: Vec<Option<f64>> =
        threads.iter().map(|&threads| (threads == published::THREADS).then_some(reductions.best_mpps)).collect();
    let rows = threads.iter().enumerate().map(|(position, threads)| {
        let mut cells = vec![Cell::from(published[position])];
        cells.extend(here.iter().map(|values| Cell::measured(values[position], "this machine has fewer cores")));
        Row::new(format!("{threads} threads"), cells)
    });
    let columns = [
        "Speculative published Mpps",
        "Naive Mpps",
        "BucketPrefetch Mpps",
        "PreHash Mpps",
        "Speculative Mpps",
        "Burst Mpps",
    ];
    let difference = "The text gives the best published speed only, of 20 threads at 2.2 GHz on real links; here packets \
                      come from memory, to as many threads as this machine has cores.";
    let mut series = vec![Series::new("Speculative published", published.clone())];
    series.extend(
        ScheduleKind::TECHNIQUES
            .iter()
            .zip(&here)
            .map(|(schedule, values)| Series::new(format!("{schedule} here"), values.clone())),
    );
    let chart = Chart {
        name: name.to_owned(),
        title: "Forwarding speed by number of threads".to_owned(),
        y_label: "million packets per second".to_owned(),
        kind: ChartKind::Lines {
            x_label: "threads".to_owned(),
            x: threads.iter().map(|&threads| threads as f64).collect(),
        },
        series,
    };
    Ok(Report::new(&columns, rows.collect(), difference).with_charts([chart]))
}

pub(crate) fn figure_4_7(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    speed(context, "figure-4.7", &published::THESIS)
}

pub(crate) fn icn17_figure_5(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    speed(context, "icn17-figure-5", &published::ICN17)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_reductions_and_totals_agree() {
        for reductions in [published::THESIS, published::ICN17] {
            let naive = published_cycles(ScheduleKind::Naive, &reductions).expect("published");
            let best = published_cycles(ScheduleKind::Speculative, &reductions).expect("published");
            assert!((reduction_percent(naive.0, best.0) - reductions.interest_total).abs() < 0.01);
            assert!((reduction_percent(naive.1, best.1) - reductions.data_total).abs() < 1e-9);
        }
        assert_eq!(published_cycles(ScheduleKind::Burst, &published::THESIS), None);
    }
}
