//! Output of `namehop bench engine`.

use namehop_bench::counters::CounterFigures;
use namehop_bench::schedule::{ByPacket, PacketCosts, ScheduleFigures, Spread};
use namehop_orders::ScheduleKind;

use super::{FloodRow, Report};
use namehop_cli::output::{Align, Table, properties};

pub(super) fn describe(report: &Report) -> String {
    let machine = &report.machine;
    let mut text = properties(&[
        ("CPU", format!("{}, {} cores, {:.2} GHz counter", machine.processor, machine.cores, machine.cycles_hz / 1e9)),
        ("Load", report.load.to_owned()),
        (
            "FIB",
            format!(
                "{} prefixes, {:.1} bytes each, {:.2} lookups per match",
                report.fib_prefixes, report.fib_bytes_per_prefix, report.lookups_per_match
            ),
        ),
        ("Table pages", report.table_pages.join(", ")),
        ("Tables per worker", table_size(report)),
        ("Workers", report.workers.to_string()),
    ]);
    if let Some(row) = report.schedules.first() {
        let ByPacket { interest_miss, data, .. } = row.figures.lines;
        let text_of_lines = match row.figures.lines_are_clear {
            true => {
                let floor = row.floor_ns.map_or_else(String::new, |floor| format!(", DRAM floor {floor:.0} ns"));
                format!("{:.1} (Interest {interest_miss:.1}, Data {data:.1}){floor}", interest_miss + data)
            }
            false => "unknown: the pending entries only just fit into that cache".to_owned(),
        };
        text.push_str(&properties(&[("Lines per exchange from outside the core's cache", text_of_lines)]));
    }
    text.push('\n');
    let mut table = Table::new(&[
        ("SCHEDULE", Align::Left),
        ("EXCHANGE ns", Align::Right),
        ("SPREAD", Align::Right),
        ("VS NAIVE", Align::Right),
        ("VS BEST PUBLISHED", Align::Right),
        ("VS FLOOR", Align::Right),
        ("Mpps", Align::Right),
    ]);
    for row in &report.schedules {
        let Spread { least, most } = row.figures.exchange_ns_spread;
        table.row([
            row.figures.schedule.to_string(),
            format!("{:.0}", row.figures.exchange_ns),
            format!("{least:.0} to {most:.0}"),
            ratio(row.exchange_vs_naive),
            ratio(row.exchange_vs_best_published),
            ratio(row.floor_ratio),
            format!("{:.2}", row.figures.mpps),
        ]);
    }
    text.push_str(&table.render());
    text.push('\n');
    text.push_str(&describe_packets(report));
    text.push('\n');
    if report.schedules.iter().any(|row| row.figures.stripped.is_some()) {
        text.push_str(&describe_stripped(report));
        text.push('\n');
    }
    if report.schedules.iter().any(|row| row.figures.computing.is_some()) {
        text.push_str(&describe_computing(report));
        text.push('\n');
    }
    match &report.no_counters {
        Some(reason) => text.push_str(&format!("No hardware counter columns: {reason}\n")),
        None => text.push_str(&describe_counters(report)),
    }
    text
}

/// Formats the size of the tables, also relative to the last-level cache.
fn table_size(report: &Report) -> String {
    let size = |bytes: f64| format!("{:.2} GiB", bytes / (1u64 << 30) as f64);
    let bytes = report.table_bytes as f64;
    match report.machine.last_level_cache_bytes {
        Some(cache) => {
            format!("{}, {:.1} times the last-level cache of {}", size(bytes), bytes / cache as f64, size(cache as f64))
        }
        None => size(bytes),
    }
}

/// Formats the costs of bursts of one kind: totals and medians.
fn describe_packets(report: &Report) -> String {
    let mut table = Table::new(&[
        ("CYCLES PER PACKET", Align::Left),
        ("I-MISS", Align::Right),
        ("median", Align::Right),
        ("I-HIT", Align::Right),
        ("median", Align::Right),
        ("DATA", Align::Right),
        ("median", Align::Right),
        ("PAIR ns, median", Align::Right),
    ]);
    for row in &report.schedules {
        let ScheduleFigures { imiss_cycles, ihit_cycles, data_cycles, total_cycles, pair_ns, .. } = &row.figures;
        let ByPacket { interest_miss, interest_hit, data } = total_cycles;
        let figures = [interest_miss, imiss_cycles, interest_hit, ihit_cycles, data, data_cycles, pair_ns];
        let figures = figures.map(|figure| format!("{figure:.0}"));
        table.row([row.figures.schedule.to_string()].into_iter().chain(figures).collect::<Vec<_>>());
    }
    table.render()
}

fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"))
}

/// Returns the cells of a row: the costs of a schedule's packets under other conditions, and further cells.
fn cells<const OTHERS: usize>(schedule: ScheduleKind, costs: &PacketCosts, others: [String; OTHERS]) -> Vec<String> {
    let Spread { least, most } = costs.exchange_ns_spread;
    let figures = [costs.exchange_ns, costs.imiss_cycles, costs.ihit_cycles, costs.data_cycles];
    let figures = figures.map(|figure| format!("{figure:.0}"));
    let spread = format!("{least:.0} to {most:.0}");
    [schedule.to_string()].into_iter().chain(figures).chain([spread]).chain(others).collect()
}

/// Formats the costs on the stripped path, and the relative cost of the full protocol.
fn describe_stripped(report: &Report) -> String {
    let mut table = Table::new(&[
        ("STRIPPED PATH", Align::Left),
        ("EXCHANGE ns", Align::Right),
        ("I-MISS cycles", Align::Right),
        ("I-HIT", Align::Right),
        ("DATA", Align::Right),
        ("SPREAD", Align::Right),
        ("WHOLE VS STRIPPED", Align::Right),
    ]);
    for row in &report.schedules {
        let (Some(figures), Some(ratio)) = (&row.figures.stripped, row.figures.whole_vs_stripped) else { continue };
        table.row(cells(row.figures.schedule, figures, [format!("{ratio:.2}")]));
    }
    table.render()
}

/// Formats the costs with small tables, and the waiting time that they save.
fn describe_computing(report: &Report) -> String {
    let mut table = Table::new(&[
        ("SMALL TABLES", Align::Left),
        ("COMPUTING ns", Align::Right),
        ("I-MISS cycles", Align::Right),
        ("I-HIT", Align::Right),
        ("DATA", Align::Right),
        ("SPREAD", Align::Right),
        ("WAITING ns", Align::Right),
        ("VS NAIVE", Align::Right),
    ]);
    let naive = report.schedules.iter().find(|row| row.figures.schedule == ScheduleKind::Naive);
    let naive_waiting = naive.and_then(|naive| naive.figures.waiting_ns);
    for row in &report.schedules {
        let (Some(computing), Some(waiting)) = (&row.figures.computing, row.figures.waiting_ns) else { continue };
        let others = [format!("{waiting:.0}"), ratio(naive_waiting.map(|naive| waiting / naive))];
        table.row(cells(row.figures.schedule, computing, others));
    }
    table.render()
}

/// A column that only some processors can count, and its value from the counters.
type Column = (&'static str, fn(&CounterFigures) -> Option<f64>);
const COLUMNS: [Column; 10] = [
    ("CYCLES", |counted| Some(counted.cycles)),
    ("INSTRUCTIONS", |counted| Some(counted.instructions)),
    ("FRONTEND", |counted| Some(counted.stages?.frontend)),
    ("BACKEND", |counted| Some(counted.stages?.backend)),
    ("SPECULATION", |counted| Some(counted.stages?.speculation)),
    ("RETIRING", |counted| Some(counted.stages?.retirement)),
    ("L1", |counted| Some(counted.load_stalls?.l1d)),
    ("L2", |counted| Some(counted.load_stalls?.l2)),
    ("L3", |counted| Some(counted.load_stalls?.l3)),
    ("DRAM", |counted| Some(counted.load_stalls?.dram)),
];

fn describe_counters(report: &Report) -> String {
    let rows = report.schedules.iter().filter_map(|row| Some((row.figures.schedule, row.figures.counters.as_ref()?)));
    let rows = rows.flat_map(|(schedule, counted)| {
        let ByPacket { interest_miss, interest_hit, data } = counted;
        [("I-miss", interest_miss), ("I-hit", interest_hit), ("Data", data)]
            .map(|(kind, counted)| (schedule, kind, counted))
    });
    let rows: Vec<_> = rows.collect();
    let columns = COLUMNS.iter().filter(|(_, of)| rows.iter().any(|(_, _, counted)| of(counted).is_some()));
    let columns: Vec<_> = columns.collect();
    let mut titles = vec![("SCHEDULE", Align::Left), ("PACKET", Align::Left)];
    titles.extend(columns.iter().map(|(title, _)| (*title, Align::Right)));
    let mut table = Table::new(&titles);
    for (schedule, kind, counted) in &rows {
        let figures =
            columns.iter().map(|(_, of)| of(counted).map_or_else(|| "-".to_owned(), |value| format!("{value:.0}")));
        table.row([schedule.to_string(), (*kind).to_owned()].into_iter().chain(figures).collect::<Vec<_>>());
    }
    table.render()
}

pub(super) fn describe_flood(rows: &[FloodRow]) -> String {
    let mut table = Table::new(&[
        ("SCHEDULE", Align::Left),
        ("I-MISS cycles", Align::Right),
        ("in flood", Align::Right),
        ("DATA", Align::Right),
        ("in flood", Align::Right),
        ("FLOOD", Align::Right),
        ("VS ORDINARY", Align::Right),
        ("FORWARDED", Align::Right),
        ("Mpps", Align::Right),
        ("in flood", Align::Right),
        ("LOST", Align::Right),
        ("SHARE", Align::Right),
        ("LOST/SHARE", Align::Right),
    ]);
    for FloodRow { schedule, figures } in rows {
        table.row([
            (*schedule).to_owned(),
            format!("{:.0}", figures.imiss_cycles.without),
            format!("{:.0}", figures.imiss_cycles.with),
            format!("{:.0}", figures.data_cycles.without),
            format!("{:.0}", figures.data_cycles.with),
            format!("{:.0}", figures.flood_cycles),
            format!("{:.2}", figures.flood_vs_ordinary),
            format!("{:.2}", figures.flood_forwarded),
            format!("{:.2}", figures.ordinary_mpps.without),
            format!("{:.2}", figures.ordinary_mpps.with),
            format!("{:.2}", 1.0 - figures.throughput_ratio),
            format!("{:.2}", figures.flood.share),
            format!("{:.2}", figures.slowdown_vs_share),
        ]);
    }
    table.render()
}
