//! Runs every item, without an engine and with an engine that returns known figures.

mod caching;
mod links;
mod programs;

use std::sync::Mutex;
use std::time::Duration;

use namehop_bench::counters::CounterFigures;
use namehop_bench::measurements::EngineMeasurements;
use namehop_bench::policy::{BlockFigures, PolicyFigures, PolicyParameters};
use namehop_bench::progress::{OnProgress, Progress};
use namehop_bench::schedule::{ByPacket, EngineParameters, PacketCosts, ScheduleFigures};
use namehop_model::pipeline::{BackendCycles, LoadLevels, StageCycles};
use namehop_store::PolicyKind;

use super::*;
use crate::items::{ITEMS, Item, Needs};

/// Number of runs in tests.
const RUNS: usize = 2;

fn settings() -> Settings {
    let memory = MemoryOptions { area_bytes: 4 << 20, time: Duration::from_millis(2) };
    Settings { prefixes: 2000, memory, engine_time: Duration::from_millis(2), runs: RUNS, cache_requests: 2000 }
}

/// Returns the published figures for every schedule, cheaper for later schedules; the whole protocol costs twice as
/// much as the stripped path.
struct PublishedEngine {
    counters: bool,
    asked: usize,
    /// Multiplies all figures.
    factor: f64,
}

impl PublishedEngine {
    fn new(counters: bool) -> Self {
        PublishedEngine { counters, asked: 0, factor: 1.0 }
    }

    fn counters(&self, packet: usize) -> CounterFigures {
        let value = |table: &[(&str, published::Packets)], row: usize| table[row].1[packet].value() * self.factor;
        CounterFigures {
            cycles: published::PACKET_CYCLES[packet].value() * self.factor,
            instructions: 1000.0,
            stages: Some(StageCycles {
                frontend: value(&published::STAGES, 1),
                backend: value(&published::STAGES, 2),
                speculation: value(&published::STAGES, 3),
                retirement: value(&published::STAGES, 4),
            }),
            backend: Some(BackendCycles {
                load: value(&published::BACKEND, 1),
                store: value(&published::BACKEND, 2),
                core: value(&published::BACKEND, 3),
            }),
            load_stalls: Some(levels(|row| value(&published::LOAD_STALLS, row))),
            retired_loads: Some(levels(|row| value(&published::RETIRED_LOADS, row))),
        }
    }
}

impl EngineMeasurements for PublishedEngine {
    fn measure(
        &mut self,
        parameters: &EngineParameters,
        _: &OnProgress<'_>,
    ) -> Result<Vec<ScheduleFigures>, Box<dyn Error + Send + Sync>> {
        self.asked += 1;
        assert!(parameters.stripped && parameters.cs_policy == namehop_store::PolicyKind::Fifo && parameters.runs == 1);
        let figures = parameters.schedules.iter().enumerate().map(|(position, &schedule)| {
            let cheaper = self.factor * 0.9f64.powi(position as i32);
            let [imiss_cycles, ihit_cycles, data_cycles] =
                published::PACKET_CYCLES.map(|cycles| cycles.value() * cheaper);
            let counters = self.counters.then(|| ByPacket {
                interest_miss: self.counters(0),
                interest_hit: self.counters(1),
                data: self.counters(2),
            });
            let pair_ns = (imiss_cycles + data_cycles) / 2.2;
            let stripped = PacketCosts {
                imiss_cycles,
                ihit_cycles,
                data_cycles,
                pair_ns,
                pair_ns_spread: Default::default(),
                exchange_ns: 1.25 * pair_ns,
                exchange_ns_spread: Default::default(),
                counters,
            };
            ScheduleFigures {
                schedule,
                imiss_cycles: 2.0 * imiss_cycles,
                ihit_cycles: 2.0 * ihit_cycles,
                data_cycles: 2.0 * data_cycles,
                pair_ns: 2.0 * pair_ns,
                pair_ns_spread: Default::default(),
                total_cycles: ByPacket {
                    interest_miss: 2.5 * imiss_cycles,
                    interest_hit: 2.5 * ihit_cycles,
                    data: 2.5 * data_cycles,
                },
                exchange_ns: 2.5 * pair_ns,
                exchange_ns_spread: Default::default(),
                mpps: 0.8 * parameters.workers as f64 / pair_ns,
                lines: ByPacket { interest_miss: 8.0, interest_hit: 4.0, data: 4.0 },
                lines_are_clear: true,
                counters: None,
                stripped: Some(stripped),
                whole_vs_stripped: Some(2.0),
                computing: None,
                waiting_ns: None,
            }
        });
        Ok(figures.collect())
    }

    fn measure_policies(
        &mut self,
        _: &EngineParameters,
        of: &PolicyParameters,
        _: &OnProgress<'_>,
    ) -> Result<Vec<Vec<PolicyFigures>>, Box<dyn Error + Send + Sync>> {
        let figures = |&policy: &PolicyKind| PolicyFigures {
            policy,
            hit_rate: 0.3 * self.factor,
            insertion_rate: 0.1 * self.factor,
            request_ns: 500.0 * self.factor,
            request_ns_quartiles: (400.0, 600.0),
            speed: 1.1 * self.factor,
            speed_quartiles: (1.0, 1.2),
            gigabits_per_s: 16.1 * self.factor,
            requests: 1_000_000,
        };
        Ok(vec![of.policies.iter().map(figures).collect(); of.runs])
    }

    fn measure_blocks(
        &mut self,
        _: &EngineParameters,
        of: &PolicyParameters,
        _: &OnProgress<'_>,
    ) -> Result<Vec<Vec<BlockFigures>>, Box<dyn Error + Send + Sync>> {
        let schedules = [ScheduleKind::Naive, ScheduleKind::Burst].into_iter();
        let figures = schedules.flat_map(|schedule| of.policies.iter().map(move |&policy| (policy, schedule)));
        let run: Vec<_> = figures.map(|(policy, schedule)| blocks(policy, schedule, self.factor)).collect();
        Ok(vec![run; of.runs])
    }
}

/// Cycles of blocks as in tables 5.1 and 5.2. A block with two parts is divided between them.
fn blocks(policy: PolicyKind, schedule: ScheduleKind, factor: f64) -> BlockFigures {
    let [b1, b3, b4, b5, b6, b7, b8, b9, b10, b11] = published::block_cycles().map(|cycles| factor * cycles.value());
    let cycles = [
        b1 / 2.0,
        b1 / 2.0,
        10.0,
        b3,
        b4,
        b5,
        b6,
        b7,
        b8 / 2.0,
        b8 / 2.0,
        b9 / 2.0,
        b9 / 2.0,
        b10,
        b11,
        factor * 62.0,
        factor * 28.0,
    ];
    let history_cycles = Some(factor * 83.0);
    BlockFigures { policy, schedule, cycles: cycles.map(Some), history_cycles, clock_cycles: 20, interruptions: 0 }
}

fn with_engine(engine: &mut PublishedEngine) -> Instruments<'_> {
    Instruments { engine: Some(engine), ..Instruments::default() }
}

fn levels(value: impl Fn(usize) -> f64) -> LoadLevels {
    LoadLevels { l1d: value(1), l2: value(2), l3: value(3), dram: value(4) }
}

fn check(report: &Report, item: &Item) {
    assert_eq!(report.id, item.id);
    assert!(!report.rows.is_empty() && report.difference.ends_with('.'), "{}", item.id);
    assert!(!report.conditions.is_empty() && !report.limits.is_empty(), "{}", item.id);
    assert!(report.limits.iter().all(|limit| limit.ends_with('.')), "{}", item.id);
    assert!(report.tables.iter().all(|table| !table.title.is_empty() && !table.rows.is_empty()), "{}", item.id);
    let rows = report.rows.iter().map(|row| (row, &report.columns));
    let further = report.tables.iter().flat_map(|table| table.rows.iter().map(|row| (row, &table.columns)));
    for (row, columns) in rows.chain(further) {
        assert_eq!(row.cells.len(), columns.len(), "{}", item.id);
        for (cell, column) in row.cells.iter().zip(columns) {
            // Heads state the origin, so a cell of another origin would be mislabelled.
            let agree = column.origin.is_none() || cell.origin().is_none() || column.origin == cell.origin();
            assert!(agree, "{}, {}: {cell:?} under {}", item.id, row.label, column.show());
            assert!(!column.head.contains("published") && !column.head.contains("here"), "{}", item.id);
        }
    }
    for chart in &report.charts {
        let places = match &chart.kind {
            ChartKind::Bars { categories } => categories.len(),
            ChartKind::Lines { x, .. } => x.len(),
        };
        assert!(chart.series.iter().all(|series| series.points.len() == places), "{}: {}", item.id, chart.name);
        assert!(chart.name.starts_with(item.id) && chart.to_svg().contains("</svg>"), "{}", chart.name);
    }
    serde_json::to_string(report).expect("JSON");
}

#[test]
fn without_an_engine_there_are_the_items_that_need_none() {
    let steps = Mutex::new(Vec::new());
    let on_progress = |step: Progress| steps.lock().expect("no thread holding the lock has panicked").push(step.what);
    let mut context = Context::new(settings(), Instruments::default(), &on_progress);
    let items: Vec<&Item> = context.items().collect();
    let ids: Vec<&str> = items.iter().map(|item| item.id).collect();
    let expected = [
        "throughput-bound",
        "patricia",
        "hash-table",
        "two-stage",
        "prefetch-overhead",
        "cache-accesses",
        "cache-cycles",
        "filter",
        "figure-5.4",
        "figure-5.5",
        "figure-5.6",
        "figure-5.7",
        "shi-figure-9",
        "chassis-power",
        "table-6.1",
        "table-6.2",
        "table-6.3",
        "figure-6.1",
        "figure-6.2",
        "power-fits",
        "figure-6.3",
        "figure-6.4",
        "linear-power",
        "figure-6.5",
        "figure-6.6",
        "figure-6.7",
        "figure-6.8",
        "figure-6.9",
        "figure-6.10",
    ];
    assert_eq!(ids, expected);
    for item in items {
        let report = context.run(item.id).expect("report");
        check(&report, item);
    }
    assert!(matches!(context.run("table-3.1"), Err(ReproduceError::Unknown(_))));
    assert!(matches!(context.run("nonsense"), Err(ReproduceError::Unknown(_))));
    assert!(steps.lock().expect("no thread holding the lock has panicked").iter().any(|step| step.contains("2-stage")));
}

#[test]
fn with_an_engine_that_measures_the_published_values_both_columns_agree() {
    let mut engine = PublishedEngine::new(true);
    let on_progress = |_: Progress| ();
    let mut context = Context::new(settings(), with_engine(&mut engine), &on_progress);
    for id in ["table-3.2", "table-3.3", "table-3.4", "table-3.5", "icn17-table-1", "icn17-table-2"] {
        let report = context.run(id).expect("report");
        assert!(report.rows.len() >= 4);
        for row in &report.rows {
            for pair in row.cells.chunks_exact(2) {
                assert_eq!(pair[0].value(), pair[1].value(), "{id}, {}", row.label);
                assert_eq!(
                    pair.iter().map(Cell::origin).collect::<Vec<_>>(),
                    [Some(Origin::Published), Some(Origin::Measured)]
                );
            }
        }
        assert!(report.not_measured().is_empty());
    }
    let items: Vec<&Item> = context.items().collect();
    assert_eq!(items.len(), ITEMS.iter().filter(|item| matches!(item.needs, Needs::Nothing | Needs::Engine)).count());
    for item in items {
        let report = context.run(item.id).expect("report");
        check(&report, item);
    }
    let cores = context.machine.cores;
    drop(context);
    assert_eq!(engine.asked, cores * RUNS, "each number of workers must be measured once per run");
}

/// Runs an item with the engine. Returns all measured values in order, and all published values.
fn values(id: &str, factor: f64) -> (Vec<f64>, Vec<Published>) {
    let mut engine = PublishedEngine { factor, ..PublishedEngine::new(true) };
    let on_progress = |_: Progress| ();
    let mut context = Context::new(settings(), with_engine(&mut engine), &on_progress);
    let report = context.run(id).expect("report");
    let (mut measured, mut published) = (Vec::new(), Vec::new());
    for cell in report.rows.iter().flat_map(|row| &row.cells) {
        match cell {
            Cell::Measured(value) => {
                assert_eq!(value.runs(), RUNS, "{id}");
                measured.push(value.median());
            }
            Cell::Published(value) => published.push(*value),
            _ => {}
        }
    }
    (measured, published)
}

#[test]
fn measured_values_are_those_of_the_engine_and_nothing_else() {
    for item in ITEMS.iter().filter(|item| item.needs == Needs::Engine) {
        let id = item.id;
        let ((measured, published), (twice, published_again)) = (values(id, 1.0), values(id, 2.0));
        assert!(!measured.is_empty() && measured.len() == twice.len(), "{id}");
        assert_eq!(published, published_again, "{id}");
        for (before, after) in measured.iter().zip(&twice) {
            // Reductions compare two figures of the engine, so the factor cancels; rates fall when costs rise.
            let is_as_before = (before - after).abs() < 1e-9;
            let is_reduction = is_as_before && (0.0..=100.0).contains(before) && id.contains("figure");
            let follows = [2.0, 0.5].iter().any(|factor| (after / before - factor).abs() < 1e-9);
            assert!(follows || is_reduction || *before == 0.0, "{id}: {before} became {after}");
        }
    }
}

#[test]
fn charts_have_the_names_of_their_items() {
    let mut engine = PublishedEngine::new(true);
    let on_progress = |_: Progress| ();
    let mut context = Context::new(settings(), with_engine(&mut engine), &on_progress);
    let mut names = |id: &str| -> Vec<String> {
        context.run(id).expect("report").charts.into_iter().map(|chart| chart.name).collect()
    };
    assert_eq!(names("table-3.5"), ["table-3.5"]);
    assert_eq!(names("icn17-table-2"), ["icn17-table-2"]);
    assert_eq!(names("icn17-table-1"), ["icn17-table-1a", "icn17-table-1b", "icn17-table-1c"]);
    assert_eq!(names("icn17-figure-4"), ["icn17-figure-4a", "icn17-figure-4b"]);
    assert_eq!(names("two-stage"), ["two-stage-4", "two-stage-2-6"]);
}

#[test]
fn without_counters_the_rows_say_so() {
    let mut engine = PublishedEngine::new(false);
    let on_progress = |_: Progress| ();
    let mut context = Context::new(settings(), with_engine(&mut engine), &on_progress);
    let report = context.run("table-3.2").expect("report");
    assert_eq!(report.rows[0].cells[1].value(), Some(1470.0));
    assert!(matches!(report.rows[1].cells[1], Cell::NotMeasured(_)));
    assert_eq!(report.not_measured().len(), 1);
}

#[test]
fn identifiers_are_unique() {
    let mut ids: Vec<&str> = ITEMS.iter().map(|item| item.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), ITEMS.len());
}

#[test]
fn schedules_are_compared_with_naive() {
    let mut engine = PublishedEngine::new(false);
    let on_progress = |_: Progress| ();
    let mut context = Context::new(settings(), with_engine(&mut engine), &on_progress);
    let report = context.run("figure-4.5").expect("report");
    let speculative = &report.rows[3];
    let saved = speculative.cells[2].value().expect("published");
    assert!((saved - 28.85).abs() < 0.01);
    let saved = speculative.cells[3].value().expect("measured");
    assert!((saved - 100.0 * (1.0 - 0.9f64.powi(3))).abs() < 1e-9, "{saved}");
    // The next rows are other readings of the published schedule; the router's own has no published values.
    let (others, router) = (&report.rows[4..8], &report.rows[8]);
    assert!(others.iter().all(|row| row.cells[2] == speculative.cells[2]));
    assert_eq!((router.label.as_str(), &router.cells[0]), ("burst", &Cell::Empty));
    assert!(report.rows.last().is_some_and(|row| row.label.ends_with("whole protocol")));
}

#[test]
fn speed_follows_from_all_time_and_not_from_medians() {
    let mut engine = PublishedEngine::new(false);
    let on_progress = |_: Progress| ();
    let mut context = Context::new(settings(), with_engine(&mut engine), &on_progress);
    let report = context.run("figure-4.7").expect("report");
    let [imiss, _, data] = published::PACKET_CYCLES.map(|cycles| cycles.value());
    let mpps = report.rows[0].cells[1].value().expect("measured");
    assert!((mpps - 2e3 / (1.25 * (imiss + data) / 2.2)).abs() < 1e-9, "{mpps}");
}

#[test]
fn every_computer_has_its_bounds() {
    let mut engine = PublishedEngine::new(false);
    let on_progress = |_: Progress| ();
    let mut context = Context::new(settings(), with_engine(&mut engine), &on_progress);
    let report = context.run("throughput-bound").expect("report");
    for row in &report.rows {
        let bounds = [6, 8].map(|column| row.cells[column].value().expect("computed"));
        assert!(bounds.iter().all(|&bound| bound > 0.0) && matches!(row.cells[9], Cell::Text(_)), "{}", row.label);
    }
    assert_eq!(report.rows.len(), 9);
}

#[test]
fn many_threads_are_not_described_as_one() {
    let mut engine = PublishedEngine::new(false);
    let on_progress = |_: Progress| ();
    let mut context = Context::new(settings(), with_engine(&mut engine), &on_progress);
    let one = context.run("figure-4.5").expect("report");
    let many = context.run("figure-4.6").expect("report");
    let both = context.run("icn17-figure-4").expect("report");
    assert!(both.difference.contains(&one.difference) && both.difference.contains(&many.difference));
    let shares_a_fib = |report: &Report| report.limits.iter().any(|limit| limit.contains("share one FIB"));
    assert!(!shares_a_fib(&one) && shares_a_fib(&many) && shares_a_fib(&both));
}
