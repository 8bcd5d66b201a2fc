//! Cache policies: cycles by the published blocks, Filter's model, and simulations of the published workloads.

use namehop_model::cache::{BlockCosts, FilterModel, filter_false_positives};
use namehop_simulate::run::{Outcome, Plan, Source, run};
use namehop_simulate::workload::{Workload, WorkloadKind, WorkloadShape};
use namehop_store::{PolicyChoice, PolicyKind, Tuning};

use crate::ReproduceError;
use crate::context::Context;
use crate::published::{self, BlockRow, Published};
use crate::report::{Cell, Chart, ChartKind, Column, Report, Row, Series};

/// Packets in the cache of the published rates.
const CAPACITY: usize = 100_000;
/// Requests of a sample of the published TinyLFU, for each packet of the cache.
const SAMPLE: u32 = 50;
/// Counters of the published Filter.
const COUNTERS: u32 = 1 << 24;
/// Exponent with which the model comes close to the published rates.
const FITTING_ALPHA: f64 = 0.809;
/// Objects with which it does so, too, if the exponent is the published one.
const FITTING_OBJECTS: u64 = 8_200_000;
/// How what is computed came about.
pub(crate) const ARITHMETIC: &str = "arithmetic only, nothing is measured";
/// Distance below which a rate counts as regenerated.
const CLOSE: f64 = 0.005;

/// The model of the web workload.
fn web_model(history: f64, threshold: u32) -> FilterModel {
    let shape = WorkloadShape::published(WorkloadKind::Web);
    FilterModel { packets: shape.objects, alpha: shape.alpha, capacity: CAPACITY as u64, history, threshold }
}

/// The policies that were compared, with their published settings.
fn compared() -> [(&'static str, PolicyChoice, Published); 6] {
    let [fifo, random, lfu, arc, tinylfu, filter] = published::WEB_HIT_RATES;
    let with = |kind, tuning| PolicyChoice { kind, tuning };
    let usual = Tuning::default();
    [
        ("FIFO", PolicyKind::Fifo.into(), fifo),
        ("Random", PolicyKind::Random.into(), random),
        ("LFU", PolicyKind::Lfu.into(), lfu),
        ("ARC", PolicyKind::Arc.into(), arc),
        ("TinyLFU", with(PolicyKind::TinyLfuRandom, Tuning { sample: SAMPLE, ..usual }), tinylfu),
        ("Filter", with(PolicyKind::Filter, Tuning { counters: Some(COUNTERS), ..usual }), filter),
    ]
}

/// Simulates the compared policies over a workload, all with one capacity.
fn simulated(context: &Context<'_>, kind: WorkloadKind, capacity: usize) -> Result<Vec<Outcome>, ReproduceError> {
    context.progress(&format!("simulating: {kind}, {capacity} packets"));
    let requests = context.settings.cache_requests;
    let stores = compared().iter().map(|&(_, choice, _)| (choice, capacity)).collect();
    let plan = Plan { stores, requests, warm_up: requests / 2, threads: context.machine.cores };
    let mut source = Source::Workload(Workload::new(WorkloadShape::published(kind)));
    Ok(run(&mut source, &plan, &|_| ())?)
}

fn conditions(context: &Context<'_>) -> [String; 1] {
    let requests = context.settings.cache_requests;
    [format!("{requests} requests, of which the first half is not counted; caches are empty at the start")]
}

/// Average cycles by the printed ones of a policy's blocks.
fn blocks(policy: &BlockRow, insertion: Published) -> BlockCosts {
    let [b1, b3, b4, b5, b6, b7, b8, b9, b11] = published::BLOCKS.map(Published::value);
    let [history, eviction, admission] = policy.cycles.map(Published::value);
    BlockCosts {
        always: b1 + b3 + b11,
        hit: b4,
        miss: b5 + b6 + b7 + b8 + b9,
        insertion: insertion.value(),
        history,
        eviction,
        admission,
    }
}

/// Thesis equations 5.1 and 5.2, 5.1.2.
pub(crate) fn cycles(_: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let [of_table, of_text] = published::INSERTION_CYCLES;
    let (hit, insertion) = (published::HIT_RATIO.value(), published::TINYLFU_INSERTION.value());
    let [printed_arc, printed_tinylfu] = published::AVERAGE_CYCLES;
    let [_, tinylfu, arc, ..] = published::block_rows();
    let mut rows = Vec::new();
    for (b10, of) in [(of_text, "B10 of the text, 188"), (of_table, "B10 of table 5.1, 329")] {
        let of_arc = blocks(&arc, b10).average(hit, 1.0);
        let of_tinylfu = blocks(&tinylfu, b10).average(hit, insertion);
        rows.push(Row::new(format!("ARC, {of}"), [printed_arc.into(), Cell::Computed(of_arc)]));
        rows.push(Row::new(format!("TinyLFU, {of}"), [printed_tinylfu.into(), Cell::Computed(of_tinylfu)]));
        let printed = Cell::Published(published::CYCLES_SAVED);
        rows.push(Row::new(format!("less with TinyLFU, {of}"), [printed, Cell::Computed(of_arc - of_tinylfu)]));
    }
    let columns = vec![Column::published("cycles"), Column::computed("cycles")];
    let difference = "Equations 5.1 and 5.2 with the cycles of tables 5.1 and 5.2 give more than the text says, by the same amount \
                      for both policies where B10 is the text's, except for history updates (B2), which the text leaves out.";
    let limits = ["The cycles are those of the published machine; no block is measured on this one."];
    Ok(Report::new(columns, rows, difference).with_conditions([ARITHMETIC.to_owned()]).with_limits(limits))
}

/// Thesis 5.2.3 and 5.3.3.
pub(crate) fn false_positives(_: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let percent = 100.0 * filter_false_positives(1e4, f64::from(COUNTERS));
    let megabytes = (f64::from(COUNTERS) * 2.0 + 1e4 * 8.0) / f64::from(1 << 20);
    let once = 100.0 - published::ONCE_PERCENT.value();
    let rows = vec![
        Row::new(
            "names with a counter that another name uses, %, q = 10^4, h = 2^24",
            [published::FALSE_POSITIVES_PERCENT.into(), Cell::Computed(percent)],
        ),
        Row::new(
            "memory of history and counters, MiB",
            [published::FILTER_MEGABYTES.into(), Cell::Computed(megabytes)],
        ),
        Row::new("videos that are requested once, %", [published::ONCE_PERCENT.into(), Cell::Empty]),
        Row::new("the others, which a threshold of 2 lets in, %", [Cell::Empty, Cell::Computed(once)]),
    ];
    let columns = vec![Column::published(""), Column::computed("")];
    let difference = "The router's own Filter notes a request in 4 bytes instead of 8, the place of its counter.";
    let limits = ["Hashes are taken to be perfectly random."];
    Ok(Report::new(columns, rows, difference).with_conditions([ARITHMETIC.to_owned()]).with_limits(limits))
}

/// Thesis figure 5.4.
pub(crate) fn figure_5_4(_: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let thresholds = [1_u32, 2, 3, 4, 5, 10, 15, 20, 25, 30];
    let row = |threshold: u32| {
        let rates = [1e4, 1e5, 1e6].map(|history| web_model(history, threshold).rates());
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
    let difference = "The figure is printed without numbers. Its text says that insertion rates are low from θ = 2 on, and hit \
                      rates then nearly as high as they get.";
    let limits =
        ["The model takes the time that a packet stays to be the same for all, and requests to be independent."];
    let report = Report::new(columns, rows, difference).with_charts(charts);
    Ok(report.with_conditions([ARITHMETIC.to_owned()]).with_limits(limits))
}

/// Capacities that are simulated, for each workload in per cent of what can be asked for.
const PERCENTAGES: [(WorkloadKind, &[u64]); 3] =
    [(WorkloadKind::Web, &[1, 2, 5, 10]), (WorkloadKind::Video, &[1]), (WorkloadKind::Mixed, &[1])];

/// Hit and insertion rates of all policies on a workload, one row for each.
fn rate_rows(context: &Context<'_>) -> Result<Vec<Row>, ReproduceError> {
    let mut rows = Vec::new();
    for (kind, percentages) in PERCENTAGES {
        for percent in percentages {
            let capacity = (WorkloadShape::published(kind).packets() / 100 * percent) as usize;
            let is_published = kind == WorkloadKind::Web && capacity == CAPACITY;
            for (outcome, (name, choice, printed)) in simulated(context, kind, capacity)?.iter().zip(compared()) {
                let is_filter = choice.kind == PolicyKind::Filter;
                let model = FilterModel { capacity: capacity as u64, ..web_model(capacity as f64, 2) };
                let threshold = if is_filter { 2 } else { 1 };
                let is_modelled = kind == WorkloadKind::Web && (is_filter || choice.kind == PolicyKind::Fifo);
                let rates = is_modelled.then(|| FilterModel { threshold, ..model }.rates());
                let modelled = |rate: Option<f64>| rate.map_or(Cell::Empty, Cell::Computed);
                let only = |is: bool, value: Published| if is { Cell::Published(value) } else { Cell::Empty };
                rows.push(Row::new(
                    format!("{kind}, {percent} %, {name}"),
                    [
                        only(is_published, printed),
                        Cell::Computed(outcome.counts.hit_rate()),
                        modelled(rates.map(|rates| rates.hit)),
                        only(is_published && is_filter, published::FILTER_INSERTION),
                        Cell::Computed(outcome.counts.insertion_rate()),
                        modelled(rates.map(|rates| rates.insertion)),
                    ],
                ));
            }
        }
    }
    Ok(rows)
}

/// Thesis figures 5.5 and 5.6.
pub(crate) fn rates(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let rows = rate_rows(context)?;
    let far = |row: &&Row| match (row.cells[0].value(), row.cells[1].value()) {
        (Some(published), Some(simulated)) => (published - simulated).abs() > CLOSE,
        _ => false,
    };
    let apart = rows.iter().filter(far).count();
    let best = |alpha: f64, objects: u64| {
        let weight = |ranks: u64| (1..=ranks).map(|rank| (rank as f64).powf(-alpha)).sum::<f64>();
        weight(CAPACITY as u64) / weight(objects)
    };
    let model =
        |alpha, packets, threshold| FilterModel { alpha, packets, ..web_model(CAPACITY as f64, threshold) }.rates().hit;
    let WorkloadShape { alpha: printed_alpha, objects: printed_objects, .. } =
        WorkloadShape::published(WorkloadKind::Web);
    let difference = format!(
        "{apart} of the six published hit rates are more than {CLOSE} away. With independent requests for 10^7 objects by Zipf's law \
         no policy that does not know the future answers more than the share of the {CAPACITY} most popular objects, which is \
         {:.4}: the published rate of LFU lies above it, so that the published workload was not exactly the one described. All \
         published rates are higher by about as much. Slightly steeper popularity would give such rates: with an exponent of \
         {FITTING_ALPHA} that share is {:.4}, and by the model FIFO answers {:.4} and Filter {:.4}. So would fewer objects: with \
         {FITTING_OBJECTS} and an exponent of {printed_alpha} these are {:.4}, {:.4} and {:.4}. Which of the two it was, if either, \
         the rates do not tell.",
        best(printed_alpha, printed_objects),
        best(FITTING_ALPHA, printed_objects),
        model(FITTING_ALPHA, printed_objects, 1),
        model(FITTING_ALPHA, printed_objects, 2),
        best(printed_alpha, FITTING_OBJECTS),
        model(printed_alpha, FITTING_OBJECTS, 1),
        model(printed_alpha, FITTING_OBJECTS, 2),
    );
    let heads = ["hit rate, simulated", "hit rate, model", "insertion rate, simulated", "insertion rate, model"];
    let columns = vec![
        Column::published("hit rate"),
        Column::computed(heads[0]),
        Column::computed(heads[1]),
        Column::published("insertion rate"),
        Column::computed(heads[2]),
        Column::computed(heads[3]),
    ];
    let web: Vec<&Row> = rows.iter().filter(|row| row.label.starts_with("web, 1 %,")).collect();
    let charts = [Chart {
        name: String::new(),
        title: "Hit rates, web workload, cache of 10^5 packets".to_owned(),
        y_label: "hit rate".to_owned(),
        kind: ChartKind::Bars { categories: compared().map(|(name, ..)| name.to_owned()).to_vec() },
        series: vec![
            Series::of_column("published", web.iter().copied(), 0),
            Series::of_column("simulated", web.iter().copied(), 1),
        ],
    }];
    let limits = [
        "Curves over the cache size are printed without numbers, but for the web workload at 1 %.",
        "How many requests were simulated, and whether caches were full at the start, is not published.",
        "How popular videos are is not published; here they follow the same law as web objects.",
    ];
    let report = Report::new(columns, rows, difference).with_charts(charts);
    Ok(report.with_conditions(conditions(context)).with_limits(limits))
}

/// Thesis figure 5.7.
pub(crate) fn figure_5_7(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let outcomes = simulated(context, WorkloadKind::Web, CAPACITY)?;
    let [insertion, _] = published::INSERTION_CYCLES;
    let named: Vec<(&str, Outcome)> = compared().iter().map(|&(name, ..)| name).zip(outcomes).collect();
    let mut averages = Vec::new();
    for policy in published::block_rows() {
        let outcome = named.iter().find(|(name, _)| *name == policy.name).map(|(_, outcome)| outcome.counts);
        let counts = outcome.unwrap_or_default();
        let cycles = blocks(&policy, insertion).average(counts.hit_rate(), counts.insertion_rate());
        averages.push((policy.name, counts, cycles));
    }
    let filter = averages.iter().find(|(name, ..)| *name == "Filter").map_or(f64::NAN, |average| average.2);
    let rows = averages.iter().map(|&(name, counts, cycles)| {
        let printed = published::FILTER_SAVES_PERCENT.iter().find(|(of, _)| *of == name);
        let (printed, less) = match printed {
            Some(&(_, printed)) => (Cell::Published(printed), Cell::Computed(100.0 * (1.0 - filter / cycles))),
            None => (Cell::Empty, Cell::Empty),
        };
        let (hits, insertions) = (Cell::Computed(counts.hit_rate()), Cell::Computed(counts.insertion_rate()));
        Row::new(name, [hits, insertions, Cell::Computed(cycles), printed, less])
    });
    let columns = vec![
        Column::computed("hit rate"),
        Column::computed("insertion rate"),
        Column::computed("cycles"),
        Column::published("less with Filter, %"),
        Column::computed("less with Filter, %"),
    ];
    let difference = "Rates are simulated, cycles of the blocks are those of tables 5.1 and 5.2, and B10 is 329 cycles. The printed \
                      savings do not follow from the printed tables.";
    let limits =
        ["The cycles of blocks are those of the published machine, and only the cache of 10^5 packets is simulated."];
    let report = Report::new(columns, rows.collect(), difference);
    Ok(report.with_conditions(conditions(context)).with_limits(limits))
}
