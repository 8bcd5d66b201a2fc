//! Figures and tables on a router between links: Shi et al. (2020), section 7.

use std::fs;

use namehop_bench::sweep::{CaseFigures, NameMatch, Sweep, SweepFigures};
use namehop_client::nfd::LatencyCounts;

use crate::context::{Context, count};
use crate::measured::links::{gbps, hit_ratio, kpps, kpps_by_hits, kpps_deviation, latency_us};
use crate::published::links as published;
use crate::report::{Cell, Chart, ChartKind, Column, Point, Report, Row, Series};
use crate::{NO_FIGURES, ReproduceError};

/// Points on the horizontal axis of a distribution.
const DISTRIBUTION_STEPS: usize = 60;
/// Share of packets that a distribution shows, so that a few very slow ones do not compress the rest.
const SHOWN_SHARE: f64 = 0.99;
const KPPS: &str = "thousand Data per second";

/// Charts of a sweep measured without published values beside it.
pub fn charts(figures: &SweepFigures) -> Vec<Chart> {
    let cases = &figures.cases;
    match figures.sweep {
        Sweep::Workers => vec![workers_chart(cases)],
        Sweep::Payload => payload_charts(cases),
        Sweep::Fib => vec![fib_chart(cases)],
        Sweep::Cache => capacities(cases).into_iter().map(|capacity| cache_chart(cases, capacity)).collect(),
        Sweep::Latency => cases
            .iter()
            .map(|case| Chart { name: format!("-{}", word(case.setting.matches)), ..latency_chart(case) })
            .collect(),
    }
}

fn word(matches: NameMatch) -> &'static str {
    match matches {
        NameMatch::Exact => "exact",
        NameMatch::Prefix => "prefix",
    }
}

fn cell(value: Option<crate::Measured>) -> Cell {
    Cell::measured(value, NO_FIGURES)
}

/// Adds the conditions and limits of all sweeps to a report.
fn of_links(context: &Context<'_>, policy: &str, cases: &[CaseFigures], report: Report) -> Report {
    let runs = count(context.settings.runs.max(1), "run");
    let lost: u64 = cases.iter().map(|case| case.lost).sum();
    let busiest = cases.iter().map(|case| case.generator_busy_share).fold(0.0, f64::max);
    let mut limits = vec![
        "The published setup has two network cards of 100 Gbit/s and generators on separate hosts; here consumer and \
         producer are one thread on the router's host, and links are shared memory."
            .to_owned(),
        "Published runs last 60 s each.".to_owned(),
    ];
    if cases.iter().any(|case| case.shares_processor) {
        limits.push(
            "In cases with as many workers as CPUs, one worker shares its CPU with consumer and producer: they show \
             the cost of sharing, not the gain of another worker."
                .to_owned(),
        );
    }
    report
        .with_conditions([
            format!("{}, {} CPUs", context.machine.processor, context.machine.cores),
            format!(
                "{runs}, each of all cases with a new router; 512 Interests in flight; Content Store policy {policy}; \
                 {lost} Interests unanswered within a second; consumer and producer busy for at most {:.0} % of the \
                 time",
                100.0 * busiest
            ),
        ])
        .with_limits(limits)
}

fn workers_of(cases: &[CaseFigures]) -> Vec<usize> {
    distinct(cases, |case| case.setting.workers)
}

fn capacities(cases: &[CaseFigures]) -> Vec<usize> {
    distinct(cases, |case| case.setting.cs_packets_per_worker)
}

fn distinct(cases: &[CaseFigures], of: impl Fn(&CaseFigures) -> usize) -> Vec<usize> {
    let mut values: Vec<usize> = cases.iter().map(of).collect();
    values.sort_unstable();
    values.dedup();
    values
}

fn points(of: &str, cases: &[&CaseFigures], value: impl Fn(&CaseFigures) -> Option<crate::Measured>) -> Series {
    let rows: Vec<Row> = cases.iter().map(|case| Row::new("", [cell(value(case))])).collect();
    Series::of_column(of, &rows, 0)
}

fn rate_chart(title: &str, x_label: &str, x: Vec<f64>, series: Vec<Series>) -> Chart {
    Chart {
        name: String::new(),
        title: title.to_owned(),
        y_label: KPPS.to_owned(),
        kind: ChartKind::Lines { x_label: x_label.to_owned(), x },
        series,
    }
}

fn workers_chart(cases: &[CaseFigures]) -> Chart {
    let workers = workers_of(cases);
    let series = distinct(cases, |case| case.setting.components).into_iter().map(|components| {
        let of: Vec<&CaseFigures> = cases.iter().filter(|case| case.setting.components == components).collect();
        let mut series = points(&count(components, "component"), &of, kpps);
        series.points.resize(workers.len(), None);
        series
    });
    let x = workers.iter().map(|&workers| workers as f64).collect();
    rate_chart("Forwarding speed by workers and components of names", "workers", x, series.collect())
}

pub(crate) fn figure_6(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let SweepFigures { cases, cs_policy, .. } = context.sweep(Sweep::Workers)?;
    let rows = cases.iter().map(|case| {
        let shortest = cases.iter().find(|other| other.setting.workers == case.setting.workers);
        let is_published = case.setting.workers == published::BEST_THREADS && case.setting.components == 4;
        let slower = shortest.filter(|shortest| shortest.setting != case.setting);
        let slower = slower.map(|shortest| {
            cell(kpps(case).zip(kpps(shortest)).and_then(|(of, from)| of.reduction_percent_from(&from)))
        });
        let label = format!("{}, {} components", count(case.setting.workers, "worker"), case.setting.components);
        let label = if case.shares_processor { label + ", one CPU shared" } else { label };
        Row::new(
            label,
            [
                if is_published { Cell::Computed(1e3 * published::BEST_MPPS.value()) } else { Cell::Empty },
                cell(kpps(case)),
                slower.unwrap_or(Cell::Empty),
            ],
        )
    });
    let mut rows: Vec<Row> = rows.collect();
    rows.push(Row::new(
        "longest names, any number of threads: at most",
        [Cell::Empty, Cell::Empty, Cell::Published(published::LONG_NAMES_PERCENT)],
    ));
    let columns = vec![
        Column::mixed(format!("{KPPS}, from the text")),
        Column::measured(KPPS),
        Column::mixed("slower than with 4 components, %"),
    ];
    let difference = format!(
        "The text gives {} Mpps with {} threads, and growth that is nearly linear up to 4 threads and ends at 8; the \
         other bars carry no numbers. Namehop's workers also receive and send, for which the published program has \
         separate threads, so the compared forwarding threads have less to do.",
        published::BEST_MPPS.value(),
        published::BEST_THREADS
    );
    let report = Report::new(columns, rows, difference).with_charts([workers_chart(&cases)]);
    Ok(of_links(context, &cs_policy, &cases, report))
}

fn payload_charts(cases: &[CaseFigures]) -> Vec<Chart> {
    let of: Vec<&CaseFigures> = cases.iter().collect();
    let x: Vec<f64> = cases.iter().map(|case| case.setting.payload_bytes as f64).collect();
    let rate = rate_chart("Forwarding speed by payload", "bytes of payload", x, vec![points("Data", &of, kpps)]);
    let bits = Chart {
        y_label: "Gbit/s of payload".to_owned(),
        title: "Payload throughput by payload size".to_owned(),
        series: vec![points("payload", &of, gbps)],
        ..rate.clone()
    };
    vec![Chart { name: "a".to_owned(), ..rate }, Chart { name: "b".to_owned(), ..bits }]
}

pub(crate) fn figure_7(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let SweepFigures { cases, cs_policy, .. } = context.sweep(Sweep::Payload)?;
    let smallest = cases.first().and_then(kpps);
    let mut rows: Vec<Row> = cases
        .iter()
        .map(|case| {
            let is_largest = case.setting.payload_bytes == published::LARGEST_PAYLOAD_BYTES;
            let slower = kpps(case).zip(smallest.as_ref()).and_then(|(of, from)| of.reduction_percent_from(from));
            Row::new(
                format!("{} bytes", case.setting.payload_bytes),
                [
                    if is_largest { Cell::Published(published::BEST_GBPS) } else { Cell::Empty },
                    cell(gbps(case)),
                    cell(kpps(case)),
                    cell(slower),
                ],
            )
        })
        .collect();
    let limit = Cell::Published(published::PAYLOAD_PERCENT);
    rows.push(Row::new("all payloads differ by at most", [Cell::Empty, Cell::Empty, Cell::Empty, limit]));
    let columns = vec![
        Column::published("Gbit/s of payload"),
        Column::measured("Gbit/s of payload"),
        Column::measured(KPPS),
        Column::mixed("slower than the first, %"),
    ];
    let difference = "Network cards move payload without the CPU. Over shared memory the receiving side copies every \
        byte, and so does a Content Store that admits Data, so larger payloads cost more here.";
    let report = Report::new(columns, rows, difference).with_charts(payload_charts(&cases));
    Ok(of_links(context, &cs_policy, &cases, report))
}

fn fib_chart(cases: &[CaseFigures]) -> Chart {
    let of: Vec<&CaseFigures> = cases.iter().collect();
    let categories = cases.iter().map(|case| format!("{} prefixes", case.setting.fib_entries)).collect();
    let kind = ChartKind::Bars { categories };
    Chart {
        kind,
        ..rate_chart("Forwarding speed by prefixes in the FIB", "", Vec::new(), vec![points("Data", &of, kpps)])
    }
}

pub(crate) fn table_7_3(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let SweepFigures { cases, cs_policy, .. } = context.sweep(Sweep::Fib)?;
    let rows = cases.iter().map(|case| {
        let printed = published::FIB.iter().find(|row| row.entries == case.setting.fib_entries);
        let times = &case.latency.cache_miss;
        Row::new(
            format!("{} prefixes", case.setting.fib_entries),
            [
                printed.map(|row| row.kpps).into(),
                cell(kpps(case)),
                printed.map(|row| row.kpps_deviation).into(),
                Cell::measured(kpps_deviation(case), "a deviation needs more than one run"),
                printed.map(|row| row.latency_p50_us).into(),
                cell(latency_us(times, 0.5)),
                printed.map(|row| row.latency_p95_us).into(),
                cell(latency_us(times, 0.95)),
            ],
        )
    });
    let both = |head: &str| [Column::published(head), Column::measured(head)];
    let heads = ["thousand Data/s", "deviation", "Interest latency, median, us", "95th percentile, us"];
    let difference = "Published rates are those of eight threads, limited by their input thread; here one worker does \
        everything. Each requested name is a random prefix of the FIB, so lookups are spread over the whole FIB; the \
        published distribution of names is unknown.";
    let report = Report::new(heads.iter().flat_map(|head| both(head)).collect(), rows.collect(), difference);
    Ok(of_links(context, &cs_policy, &cases, report.with_charts([fib_chart(&cases)])))
}

fn cache_chart(cases: &[CaseFigures], capacity: usize) -> Chart {
    let x: Vec<f64> = {
        let mut shares: Vec<f64> = cases.iter().map(|case| 100.0 * case.setting.cached_share).collect();
        shares.sort_unstable_by(f64::total_cmp);
        shares.dedup();
        shares
    };
    let series = [NameMatch::Exact, NameMatch::Prefix].map(|matches| {
        let of = cases_of(cases, capacity, matches);
        let mut series = points(&format!("{} match", word(matches)), &of, kpps);
        series.points.resize(x.len(), None);
        series
    });
    let title = format!("Forwarding speed by hit ratio, capacity of {capacity} packets");
    let chart = rate_chart(&title, "Interests for cached names, %", x, series.to_vec());
    Chart { name: format!("-{capacity}"), ..chart }
}

fn cases_of(cases: &[CaseFigures], capacity: usize, matches: NameMatch) -> Vec<&CaseFigures> {
    let of =
        cases.iter().filter(|case| case.setting.cs_packets_per_worker == capacity && case.setting.matches == matches);
    of.collect()
}

pub(crate) fn figure_8(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let SweepFigures { cases, cs_policy, .. } = context.sweep(Sweep::Cache)?;
    let mut rows = Vec::new();
    for capacity in capacities(&cases) {
        let [exact, prefix] = [NameMatch::Exact, NameMatch::Prefix].map(|matches| cases_of(&cases, capacity, matches));
        for (exact, prefix) in exact.iter().zip(&prefix) {
            let slower = kpps(prefix).zip(kpps(exact)).and_then(|(of, from)| of.reduction_percent_from(&from));
            rows.push(Row::new(
                format!("capacity {capacity}, {:.0} % for cached names", 100.0 * exact.setting.cached_share),
                [cell(hit_ratio(exact)), cell(kpps(exact)), cell(kpps(prefix)), cell(slower)],
            ));
        }
        let slopes = [cell(kpps_by_hits(&exact)), cell(kpps_by_hits(&prefix))];
        let [exact_slope, prefix_slope] = slopes;
        rows.push(Row::new(
            format!("capacity {capacity}, slope from no hits to only hits"),
            [Cell::Empty, exact_slope, prefix_slope, Cell::Empty],
        ));
        if let Some((_, percents)) = published::PREFIX_MATCH_PERCENT.iter().find(|(of, _)| *of == capacity) {
            for (bound, percent) in ["at least", "at most"].into_iter().zip(percents) {
                rows.push(Row::new(
                    format!("capacity {capacity}, {bound}"),
                    [Cell::Empty, Cell::Empty, Cell::Empty, Cell::Published(*percent)],
                ));
            }
        }
    }
    let columns = vec![
        Column::measured("hit ratio, exact"),
        Column::measured(format!("{KPPS}, exact")),
        Column::measured(format!("{KPPS}, prefix")),
        Column::mixed("prefix match slower, %"),
    ];
    let difference = "The figure prints no rates. In the publication, hits come from a second consumer that starts 100 \
        ms later; here a share of the Interests is for recurring names, half as many as the capacity of the Content \
        Store. Slopes are Theil-Sen estimates, as published.";
    let charts: Vec<Chart> = capacities(&cases).into_iter().map(|capacity| cache_chart(&cases, capacity)).collect();
    Ok(of_links(context, &cs_policy, &cases, Report::new(columns, rows, difference).with_charts(charts)))
}

/// Number of NUMA nodes of this host, 0 if unknown.
fn memory_nodes() -> usize {
    let nodes = fs::read_dir("/sys/devices/system/node").into_iter().flatten().flatten();
    let is_node = |name: String| name.strip_prefix("node").is_some_and(|number| number.parse::<u32>().is_ok());
    nodes.filter(|entry| is_node(entry.file_name().to_string_lossy().into_owned())).count()
}

pub(crate) fn figure_9(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let why = match memory_nodes() {
        0 | 1 => "all CPUs of this host have the same memory node",
        _ => "this needs a network card at each CPU socket, given to the router by its PCI address",
    };
    let rows = vec![Row::new(
        "8 threads, cards on two sockets: at most",
        [Cell::Published(published::TWO_SOCKETS_PERCENT), Cell::NotMeasured(why)],
    )];
    let columns = vec![Column::published("slower, %"), Column::measured("slower, %")];
    let report =
        Report::new(columns, rows, "Links in memory would show the effect of memory placement, not of network cards.");
    Ok(report
        .with_conditions([format!("{}, {}", context.machine.processor, count(memory_nodes().max(1), "memory node"))])
        .with_limits(["Nothing was measured for this figure."]))
}

fn latency_chart(case: &CaseFigures) -> Chart {
    let ways = case.latency.ways();
    let longest = ways.iter().filter_map(|(_, times)| times.quantile_ns(SHOWN_SHARE)).max().unwrap_or_default();
    let x_ns = |step: usize| longest * step as u64 / DISTRIBUTION_STEPS as u64;
    let series = ways.iter().map(|(way, times)| {
        let share = |step| {
            let packets = times.packets();
            (packets > 0).then(|| Point::from(100.0 * times.within(x_ns(step)) as f64 / packets as f64))
        };
        Series::new(way_name(way), (0..=DISTRIBUTION_STEPS).map(share).collect::<Vec<_>>())
    });
    Chart {
        name: String::new(),
        title: format!("Latency inside the router, {} match", word(case.setting.matches)),
        y_label: "% of the packets".to_owned(),
        kind: ChartKind::Lines {
            x_label: "latency, microseconds".to_owned(),
            x: (0..=DISTRIBUTION_STEPS).map(|step| x_ns(step) as f64 / 1e3).collect(),
        },
        series: series.collect(),
    }
}

fn way_name(way: &str) -> &str {
    match way {
        "cs_miss" => "CS miss",
        "cs_hit" => "CS hit",
        _ => "Data",
    }
}

fn latency_figure(context: &mut Context<'_>, matches: NameMatch) -> Result<Report, ReproduceError> {
    let SweepFigures { cases, cs_policy, .. } = context.sweep(Sweep::Latency)?;
    let cases: Vec<CaseFigures> = cases.into_iter().filter(|case| case.setting.matches == matches).collect();
    let row = |(way, times): &(&str, &LatencyCounts)| {
        Row::new(way_name(way), [0.5, 0.9, 0.95, 0.99].map(|share| cell(latency_us(times, share))))
    };
    let rows = cases.iter().flat_map(|case| case.latency.ways().iter().map(row).collect::<Vec<Row>>()).collect();
    let columns = ["median, us", "90 %, us", "95 %, us", "99 %, us"].map(Column::measured).to_vec();
    let difference = "The published curves carry no numbers. Both routers are overloaded: most of a packet's latency \
        is queueing time, which follows from the number of packets in flight.";
    let report =
        Report::new(columns, rows, difference).with_charts(cases.iter().map(latency_chart).collect::<Vec<_>>());
    Ok(of_links(context, &cs_policy, &cases, report).with_limits(["One in 64 packets is measured."]))
}

pub(crate) fn figure_10(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    latency_figure(context, NameMatch::Exact)
}

pub(crate) fn figure_11(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    latency_figure(context, NameMatch::Prefix)
}
