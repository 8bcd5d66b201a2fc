//! Every item runs, with an engine whose figures are known and without one.

use std::time::Duration;

use namehop_bench::counters::CounterFigures;
use namehop_bench::schedule::ByPacket;
use namehop_model::pipeline::{BackendCycles, LoadLevels, StageCycles};

use super::*;

fn settings() -> Settings {
    let memory = MemoryOptions { area_bytes: 4 << 20, time: Duration::from_millis(2) };
    Settings { prefixes: 2000, memory }
}

/// Figures as published, for every schedule, the later ones cheaper.
struct PublishedEngine {
    counters: bool,
    asked: usize,
}

impl EngineMeasurements for PublishedEngine {
    fn measure(&mut self, parameters: &EngineParameters) -> Result<Vec<ScheduleFigures>, Box<dyn Error + Send + Sync>> {
        self.asked += 1;
        let counters = |packet: usize| CounterFigures {
            cycles: published::PACKET_CYCLES[packet],
            instructions: 1000.0,
            stages: Some(StageCycles {
                frontend: published::STAGES[1].1[packet],
                backend: published::STAGES[2].1[packet],
                speculation: published::STAGES[3].1[packet],
                retirement: published::STAGES[4].1[packet],
            }),
            backend: Some(BackendCycles {
                load: published::BACKEND[1].1[packet],
                store: published::BACKEND[2].1[packet],
                core: published::BACKEND[3].1[packet],
            }),
            load_stalls: Some(levels(&published::LOAD_STALLS, packet)),
            retired_loads: Some(levels(&published::RETIRED_LOADS, packet)),
        };
        let figures = parameters.schedules.iter().enumerate().map(|(position, &schedule)| {
            let cheaper = 1.0 - 0.1 * position as f64;
            let [imiss_cycles, ihit_cycles, data_cycles] = published::PACKET_CYCLES.map(|cycles| cycles * cheaper);
            ScheduleFigures {
                schedule,
                imiss_cycles,
                ihit_cycles,
                data_cycles,
                pair_ns: (imiss_cycles + data_cycles) / 2.2,
                pair_ns_spread: Default::default(),
                total_cycles: ByPacket { interest_miss: imiss_cycles, interest_hit: ihit_cycles, data: data_cycles },
                exchange_ns: (imiss_cycles + data_cycles) / 2.2,
                exchange_ns_spread: Default::default(),
                mpps: parameters.workers as f64 * 2.0,
                lines: ByPacket { interest_miss: 8.0, interest_hit: 4.0, data: 4.0 },
                lines_are_clear: true,
                counters: self.counters.then(|| ByPacket {
                    interest_miss: counters(0),
                    interest_hit: counters(1),
                    data: counters(2),
                }),
                stripped: None,
                whole_vs_stripped: None,
                computing: None,
                waiting_ns: None,
            }
        });
        Ok(figures.collect())
    }
}

fn levels(table: &[(&str, published::Packets); 5], packet: usize) -> LoadLevels {
    let value = |row: usize| table[row].1[packet];
    LoadLevels { l1d: value(1), l2: value(2), l3: value(3), dram: value(4) }
}

fn check(report: &Report, item: &Item) {
    assert_eq!(report.id, item.id);
    assert!(!report.rows.is_empty() && report.difference.ends_with('.'), "{}", item.id);
    assert!(report.rows.iter().all(|row| row.cells.len() == report.columns.len()), "{}", item.id);
    for chart in &report.charts {
        let places = match &chart.kind {
            ChartKind::Bars { categories } => categories.len(),
            ChartKind::Lines { x, .. } => x.len(),
        };
        assert!(chart.series.iter().all(|series| series.values.len() == places), "{}: {}", item.id, chart.name);
        assert!(chart.to_svg().contains("</svg>"));
    }
    serde_json::to_string(report).expect("JSON");
}

#[test]
fn without_an_engine_there_are_the_items_that_need_none() {
    let mut steps = Vec::new();
    let mut on_progress = |step: &str| steps.push(step.to_owned());
    let mut context = Context::new(settings(), None, &mut on_progress);
    let items: Vec<&Item> = context.items().collect();
    let ids: Vec<&str> = items.iter().map(|item| item.id).collect();
    assert_eq!(ids, ["throughput-bound", "patricia", "hash-table", "two-stage", "prefetch-overhead"]);
    for item in items {
        let report = context.run(item.id).expect("report");
        check(&report, item);
    }
    assert!(matches!(context.run("table-3.1"), Err(ReproduceError::Unknown(_))));
    assert!(matches!(context.run("nonsense"), Err(ReproduceError::Unknown(_))));
    drop(context);
    assert!(steps.iter().any(|step| step.contains("2-stage")));
}

#[test]
fn with_an_engine_that_measures_the_published_values_both_columns_agree() {
    let mut engine = PublishedEngine { counters: true, asked: 0 };
    let mut on_progress = |_: &str| ();
    let mut context = Context::new(settings(), Some(&mut engine), &mut on_progress);
    for id in ["table-3.2", "table-3.3", "table-3.4", "table-3.5", "icn17-table-1", "icn17-table-2"] {
        let report = context.run(id).expect("report");
        assert!(report.rows.len() >= 4);
        for row in &report.rows {
            for pair in row.cells.chunks_exact(2) {
                assert_eq!(pair[0], pair[1], "{id}, {}", row.label);
            }
        }
        assert!(report.not_measured().is_empty());
    }
    let items: Vec<&Item> = context.items().collect();
    assert_eq!(items.len(), ITEMS.len());
    for item in items {
        let report = context.run(item.id).expect("report");
        check(&report, item);
    }
    let cores = context.machine.cores;
    drop(context);
    assert_eq!(engine.asked, cores, "each number of workers is measured once");
}

#[test]
fn without_counters_the_rows_say_so() {
    let mut engine = PublishedEngine { counters: false, asked: 0 };
    let mut on_progress = |_: &str| ();
    let mut context = Context::new(settings(), Some(&mut engine), &mut on_progress);
    let report = context.run("table-3.2").expect("report");
    assert_eq!(report.rows[0].cells[1], Cell::Number(1470.0));
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
    let mut engine = PublishedEngine { counters: false, asked: 0 };
    let mut on_progress = |_: &str| ();
    let mut context = Context::new(settings(), Some(&mut engine), &mut on_progress);
    let report = context.run("figure-4.5").expect("report");
    let speculative = &report.rows[3];
    let Cell::Number(saved) = speculative.cells[2] else { panic!("published") };
    assert!((saved - 28.85).abs() < 0.01);
    let Cell::Number(saved) = speculative.cells[3] else { panic!("here") };
    assert!((saved - 30.0).abs() < 1e-9);
    assert_eq!(report.rows[4].cells[0], Cell::Empty);
}
