//! Tests of the whole memory measurement, on areas too small for figures of DRAM.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

fn options() -> MemoryOptions {
    MemoryOptions { area_bytes: 5 << 20, time: Duration::from_millis(2) }
}

fn figures(rates: &[(usize, f64, f64)]) -> DramFigures {
    let rate = |&(in_flight, chains_lines_per_second, sweep_lines_per_second)| LineRate {
        in_flight,
        chains_lines_per_second,
        sweep_lines_per_second,
    };
    DramFigures {
        dependent_ns: 100.0,
        lines_per_second_by_in_flight: rates.iter().map(rate).collect(),
        page_bytes: 4096,
    }
}

#[test]
fn floor_and_sufficient_number_follow_from_the_rates() {
    let figures = figures(&[(1, 1e7, 9e6), (16, 4e7, 4.8e7), (32, 4.9e7, 5e7), (64, 4.9e7, 4.9e7)]);
    assert_eq!(figures.best_lines_per_second(), 5e7);
    assert_eq!(figures.sufficient_in_flight(), 16);
    assert!((figures.floor_ns(12.0) - 240.0).abs() < 1e-6);
    assert_eq!(DramFigures { lines_per_second_by_in_flight: Vec::new(), ..figures }.best_lines_per_second(), 0.0);
}

#[test]
fn a_whole_report() {
    let steps = Mutex::new(Vec::new());
    let report =
        measure(&options(), &|progress| steps.lock().expect("no thread holding the lock has panicked").push(progress))
            .expect("memory");
    let steps = steps.into_inner().expect("no thread holding the lock has panicked");
    assert_eq!(report.area_bytes, 4 << 20);
    let total = steps[0].total;
    assert_eq!(steps.len() as u64, total, "the number of steps must equal the announced total");
    assert!(steps.iter().enumerate().all(|(number, step)| step.done == number as u64 && step.total == total));
    let best = report.best().expect("at least one kind of pages must be measured");
    assert_eq!(best.dram.lines_per_second_by_in_flight.len(), IN_FLIGHT.len());
    assert_eq!(best.lines_per_second_by_threads.len(), report.machine.cores);
    assert!(report.by_pages.iter().any(|figures| figures.pages.page_bytes == 4096));
    // Every kind of page is either measured or missing.
    assert_eq!(report.by_pages.len() + report.missing.len(), 4);
    assert!(report.by_pages.windows(2).all(|pair| pair[0].pages.page_bytes >= pair[1].pages.page_bytes));
    assert_eq!(report.by_area.last().map(|area| area.area_bytes), Some(4 << 20));
    assert!(report.sequential_bytes_per_second > 0.0);
    let json = serde_json::to_value(&report).expect("JSON");
    assert!(json["by_pages"][0]["dram"]["dependent_ns"].is_number());
}

#[test]
fn one_kind_of_page_alone() {
    let steps = AtomicUsize::new(0);
    let count = |_| {
        steps.fetch_add(1, Ordering::Relaxed);
    };
    let (info, figures) = measure_dram(PageKind::Ordinary, &options(), &count).expect("memory");
    assert_eq!(steps.into_inner(), steps_per_pages(0));
    assert_eq!(figures.page_bytes, info.page_bytes);
    assert!(figures.dependent_ns > 0.0);
}

#[test]
fn sequential_reading_and_prefetch_instructions() {
    assert!(sequential_bytes_per_second(&options(), 2).expect("memory") > 0.0);
    let issue = measure_prefetch_issue(&options()).expect("memory");
    assert!(issue.cached_cycles > 0.0 && issue.dram_cycles.is_finite(), "{issue:?}");
}

#[test]
fn impossible_areas_are_refused() {
    let measure = |area_bytes| measure(&MemoryOptions { area_bytes, ..options() }, &|_| ()).expect_err("refused");
    assert_eq!(measure(1000), MemoryError::TooSmall);
    assert!(matches!(measure(1 << 50), MemoryError::TooLarge { .. } | MemoryError::Table(_)));
}
