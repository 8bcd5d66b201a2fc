//! Filter: false positives, threshold, and rates by the published model.

use namehop_model::cache::filter_false_positives;

use super::{ARITHMETIC, web_model};
use crate::ReproduceError;
use crate::compared_policies::COUNTERS;
use crate::context::Context;
use crate::published;
use crate::report::{Cell, Chart, ChartKind, Column, Report, Row, Series};

/// Thesis 5.2.3 and 5.3.3.
pub(crate) fn false_positives(_: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let percent = 100.0 * filter_false_positives(1e4, f64::from(COUNTERS));
    let megabytes = (f64::from(COUNTERS) * 2.0 + 1e4 * 8.0) / f64::from(1 << 20);
    let once = 100.0 - published::ONCE_PERCENT.value();
    let rows = vec![
        Row::new(
            "names that share a counter with another name, %, q = 10^4, h = 2^24",
            [published::FALSE_POSITIVES_PERCENT.into(), Cell::Computed(percent)],
        ),
        Row::new(
            "memory of history and counters, MiB",
            [published::FILTER_MEGABYTES.into(), Cell::Computed(megabytes)],
        ),
        Row::new("videos requested once, %", [published::ONCE_PERCENT.into(), Cell::Empty]),
        Row::new("the others, admitted by a threshold of 2, %", [Cell::Empty, Cell::Computed(once)]),
    ];
    let columns = vec![Column::published(""), Column::computed("")];
    let difference = "The router's Filter records a request in 4 bytes instead of 8: the index of its counter.";
    let limits = [
        "Hashes are assumed to be perfectly random.",
        "The 68.1 % come from the requests of a campus for YouTube, which are not public; 'figure-5.4' shows the \
         effect of other thresholds.",
    ];
    Ok(Report::new(columns, rows, difference).with_conditions([ARITHMETIC.to_owned()]).with_limits(limits))
}

/// Thesis figure 5.4.
pub(crate) fn figure_5_4(_: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let thresholds = [1_u32, 2, 3, 4, 5, 10, 15, 20, 25, 30];
    let row = |threshold: u32| {
        let rates = [1e4, 1e5, 1e6].map(|history| web_model(history, threshold).published());
        let cells: Vec<Cell> =
            rates.iter().flat_map(|rates| [Cell::Computed(rates.hit), Cell::Computed(rates.insertion)]).collect();
        Row::new(format!("θ = {threshold}"), cells)
    };
    let rows: Vec<Row> = thresholds.into_iter().map(row).collect();
    let heads = ["10^4", "10^5", "10^6"];
    let head = |q: &str| [Column::computed(format!("hits, q = {q}")), Column::computed(format!("insertions, q = {q}"))];
    let columns = heads.into_iter().flat_map(head).collect();
    let chart = |name: &str, y_label: &str, first_column: usize| Chart {
        name: name.to_owned(),
        title: "Filter on the web workload, 10^5 packets, by the model".to_owned(),
        y_label: y_label.to_owned(),
        kind: ChartKind::Lines { x_label: "threshold θ".to_owned(), x: thresholds.map(f64::from).to_vec() },
        series: heads
            .iter()
            .enumerate()
            .map(|(place, q)| Series::of_column(format!("q = {q}"), &rows, 2 * place + first_column))
            .collect(),
    };
    let charts = [chart("-insertions", "insertion rate, computed", 1), chart("-hits", "hit rate, computed", 0)];
    let difference = "The figure is printed without numbers. According to the text, insertion rates are low from θ = 2 \
        on, and hit rates are then close to their maximum.";
    let limits =
        ["The model assumes that all packets stay equally long, that requests are independent, and that the history \
         seen by a request does not depend on the previous one; 'namehop cache model' also prints the result without \
         the last assumption."];
    let report = Report::new(columns, rows, difference).with_charts(charts);
    Ok(report.with_conditions([ARITHMETIC.to_owned()]).with_limits(limits))
}

#[cfg(test)]
mod tests {
    use namehop_model::cache::{FilterModel, FilterRates};
    use namehop_simulate::run::{Plan, Source, run};
    use namehop_store::{PolicyChoice, PolicyKind, Tuning};
    use namehop_traffic::workload::{Workload, WorkloadKind, WorkloadShape};

    /// Compares the model with the router's policies over requests of the model's kind. The form that follows misses is
    /// compared in all cases. The published form is compared with the published settings only (a history as long as the
    /// cache, a threshold of 2 or 1).
    #[test]
    fn the_model_agrees_with_simulations() {
        const COUNTERS: u32 = 1 << 16;
        const REQUESTS: u64 = 1_000_000;
        let shape = WorkloadShape { objects: 100_000, ..WorkloadShape::published(WorkloadKind::Web) };
        for capacity in [1_000, 10_000] {
            let filter = |threshold, history, counters| (PolicyKind::Filter, threshold, history, counters);
            let cases = [
                (PolicyKind::Fifo, 1, capacity, 1 << 24),
                filter(2, capacity, 1 << 24),
                filter(2, 4 * capacity, 1 << 24),
                filter(2, 10 * capacity, COUNTERS),
                filter(3, capacity, 1 << 24),
                filter(3, 4 * capacity, 1 << 24),
                filter(3, 4 * capacity, COUNTERS),
                filter(5, 10 * capacity, 1 << 24),
                filter(10, 10 * capacity, 1 << 24),
            ];
            let choice = |(kind, threshold, history, counters): (PolicyKind, u16, usize, u32)| {
                let (history, counters) = (Some(history as u32), Some(counters));
                PolicyChoice { kind, tuning: Tuning { threshold, history, counters, ..Tuning::default() } }
            };
            let stores = cases.map(|case| (choice(case).into(), capacity)).to_vec();
            let plan = Plan { stores, requests: REQUESTS, warm_up: REQUESTS / 2, threads: 1 };
            let outcomes = run(&mut Source::Workload(Workload::new(shape)), &plan, &|_| ()).expect("a simulation");
            for (place, (case, outcome)) in cases.into_iter().zip(outcomes).enumerate() {
                let (_, threshold, history, counters) = case;
                let (packets, capacity, history) = (shape.objects, capacity as u64, history as f64);
                let (threshold, counters) = (threshold.into(), Some(counters.into()));
                let model = FilterModel { packets, alpha: shape.alpha, capacity, history, threshold, counters };
                let counts = outcome.counts;
                let distance = |rates: FilterRates| {
                    (rates.hit - counts.hit_rate()).abs().max((rates.insertion - counts.insertion_rate()).abs())
                };
                let rates = model.rates_between(REQUESTS as f64 / 2.0, REQUESTS as f64);
                assert!(distance(rates) < 0.006, "{case:?}, {capacity}: {rates:?} instead of {counts:?}");
                if place < 2 {
                    assert!(distance(model.published()) < 0.01, "{case:?}, {capacity}: {counts:?}");
                }
            }
        }
    }
}
