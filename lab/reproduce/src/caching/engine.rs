//! Blocks of packet flow and forwarding rate, measured in the engine with each policy.

use namehop_orders::{FlowBlock, ScheduleKind};
use namehop_store::{PolicyKind, TINYLFU_SAMPLE};

use crate::compared_policies::WINDOW;
use crate::context::Context;
use crate::measured::policies::{POLICIES, Policies, sizes};
use crate::published;
use crate::report::{Cell, Chart, ChartKind, Column, Report, Row, Series};
use crate::{NO_FIGURES, ReproduceError};

/// A published block: its name in figures 5.1 and 5.2, its name in figure 3.3, its task, and the engine's parts of it.
type PublishedBlock = (&'static str, &'static str, &'static str, &'static [FlowBlock]);

/// Blocks of table 5.1.
const BLOCKS: [PublishedBlock; 10] = [
    ("B1", "B1", "Interest: decoding and hashing", &[FlowBlock::InterestDecoding, FlowBlock::InterestHashing]),
    ("B3", "B2", "Content Store lookup", &[FlowBlock::StoreLookup]),
    ("B4", "B3", "fetching cached Data", &[FlowBlock::StoreFetch]),
    ("B5", "B4", "PIT insertion", &[FlowBlock::PitInsertion]),
    ("B6", "B5", "FIB longest prefix match", &[FlowBlock::FibLookup]),
    ("B7", "B6", "Interest transmission", &[FlowBlock::InterestTransmission]),
    ("B8", "B7", "Data: decoding and hashing", &[FlowBlock::DataDecoding, FlowBlock::DataHashing]),
    ("B9", "B8", "PIT lookup and removal", &[FlowBlock::PitLookup, FlowBlock::PitRemoval]),
    ("B10", "B9", "Content Store insertion", &[FlowBlock::StoreInsertion]),
    ("B11", "B10", "Data transmission", &[FlowBlock::DataTransmission]),
];
const NOT_REACHED: &str = "no packet reaches this block with this policy";
const LIMITS: [&str; 3] = [
    "The blocks exclude receiving and sending on links; the published B1, B7, B8 and B11 include it.",
    "A block ends when all its instructions have completed, so the sum of the blocks exceeds the cost of a packet \
     without the clock.",
    "Cycles are ticks of the time-stamp counter, without the cost of reading the clock; the published cycles are of \
     another processor.",
];

fn conditions(context: &Context<'_>) -> [String; 2] {
    let settings = &context.settings;
    let (packets, objects) = sizes(settings);
    [
        format!(
            "web workload of {objects} objects, cache of {packets} packets of 1024 bytes, filled before measuring; {} \
             prefixes; all policies in each of {} runs of {} s",
            settings.prefixes,
            settings.runs.max(1),
            settings.engine_time.as_secs_f64()
        ),
        "blocks: the published path (Content Store, PIT and FIB by name), clock in the engine".to_owned(),
    ]
}

/// Condition of the items with TinyLFU: its window, which differs from that of the simulations.
fn window() -> String {
    format!(
        "TinyLFU is the router's 'tinylfu-random' with its default window of {TINYLFU_SAMPLE} C (C is the cache's \
         capacity); figures 5.5 to 5.7 have the published window of {WINDOW} C, with which TinyLFU admits less and \
         answers more"
    )
}

fn blocks(policies: &Policies, of: &[FlowBlock]) -> Cell {
    Cell::measured(policies.blocks(PolicyKind::Fifo, ScheduleKind::Naive, of), NO_FIGURES)
}

/// Thesis table 5.1.
pub(crate) fn table_5_1(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let policies = context.policies()?;
    let printed = published::block_cycles();
    let rows = BLOCKS.iter().zip(printed);
    let rows: Vec<Row> = rows
        .map(|(&(name, _, what, parts), printed)| {
            Row::new(format!("{name}: {what}"), [printed.into(), blocks(policies, parts)])
        })
        .collect();
    let chart = Chart {
        name: String::new(),
        title: "Cycles of blocks, Naive, FIFO".to_owned(),
        y_label: "CPU cycles".to_owned(),
        kind: ChartKind::Bars { categories: BLOCKS.map(|(name, ..)| name.to_owned()).to_vec() },
        series: vec![Series::of_column("published", &rows, 0), Series::of_column("measured", &rows, 1)],
    };
    let difference = "The published blocks are those of another program on another processor; decoding and \
        transmission are shorter here because they exclude receiving and sending. B10 has 188 cycles in the text of \
        5.1.2 and 329 in the table.";
    let columns = vec![Column::published("cycles"), Column::measured("cycles")];
    let report = Report::new(columns, rows, difference).with_charts([chart]);
    Ok(report.with_conditions(conditions(context)).with_limits(LIMITS))
}

/// Thesis figure 3.3: the same blocks with other numbers.
pub(crate) fn figure_3_3(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let policies = context.policies()?;
    let row = |&(_, name, what, parts): &PublishedBlock| {
        Row::new(format!("{name}: {what}"), [Cell::Empty, blocks(policies, parts)])
    };
    let mut rows: Vec<Row> = BLOCKS.iter().map(row).collect();
    let parts = |names: &[&str]| -> Vec<FlowBlock> {
        BLOCKS.iter().filter(|(name, ..)| names.contains(name)).flat_map(|(.., parts)| parts.iter().copied()).collect()
    };
    let [miss, hit] = published::FLOW_CYCLES;
    let of_hit = parts(&["B1", "B3", "B4", "B11"]);
    let of_miss = parts(&["B1", "B3", "B5", "B6", "B7", "B8", "B9", "B10", "B11"]);
    rows.push(Row::new("a miss: all but B3", [miss.into(), blocks(policies, &of_miss)]));
    rows.push(Row::new("a hit: B1, B2, B3 and B10", [hit.into(), blocks(policies, &of_hit)]));
    let difference = "The text does not contain the numbers of the figure. By table 5.1, the printed 2016 cycles of a \
        miss are all blocks except fetching cached Data, and the printed 791 of a hit are B1, B2 and B3 without B10.";
    let columns = vec![Column::published("cycles"), Column::measured("cycles")];
    let report = Report::new(columns, rows, difference);
    Ok(report.with_conditions(conditions(context)).with_limits(LIMITS))
}

/// The published policies, and the router's default.
fn policies_with_default() -> Vec<(&'static str, PolicyKind)> {
    POLICIES.into_iter().chain([("Namehop's default", PolicyKind::default())]).collect()
}

/// Thesis table 5.2, and 5.2.4.
pub(crate) fn table_5_2(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let policies = context.policies()?;
    let mut rows = Vec::new();
    for (name, policy) in policies_with_default() {
        let printed = published::block_rows().into_iter().find(|row| row.name == name).map(|row| row.cycles);
        for (place, block) in ["B2: history update", "B12: eviction", "B13: admission"].into_iter().enumerate() {
            let measured = |schedule| {
                let measured = match place {
                    0 => policies.history(policy, schedule),
                    1 => policies.blocks(policy, schedule, &[FlowBlock::Eviction]),
                    _ => policies.blocks(policy, schedule, &[FlowBlock::Admission]),
                };
                Cell::measured(measured, NOT_REACHED)
            };
            let printed = printed.map(|cycles| cycles[place]);
            let measured = [ScheduleKind::Naive, ScheduleKind::Burst].map(measured);
            rows.push(Row::new(format!("{name}, {block}"), [vec![printed.into()], measured.into()].concat()));
        }
    }
    let columns = vec![
        Column::published("cycles"),
        Column::measured("cycles, without prefetching"),
        Column::measured("cycles, as in the router"),
    ];
    let difference = format!(
        "The text of 5.2.4 gives {} cycles for the decision of TinyLFU, the table 282. A decision of Filter reads one \
         counter, which was touched when the Interest arrived. TinyLFU also reads state of another packet; whether \
         that state is in the CPU's caches depends on their size.",
        published::TINYLFU_DECISION.value()
    );
    let report = Report::new(columns, rows, difference);
    Ok(report.with_conditions(conditions(context)).with_conditions([window()]).with_limits(LIMITS))
}

/// Thesis figure 5.8.
pub(crate) fn figure_5_8(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let policies = context.policies()?;
    let printed = |name: &str| published::SPEEDS.iter().find(|(of, _)| *of == name).map(|&(_, speed)| speed);
    let [(_, fifo), ..] = published::SPEEDS;
    let rows: Vec<Row> = policies_with_default()
        .into_iter()
        .map(|(name, policy)| {
            let of = |of: fn(&namehop_bench::policy::PolicyFigures) -> f64| {
                Cell::measured(policies.figure(policy, of), NO_FIGURES)
            };
            let ratio = printed(name).map_or(Cell::Empty, |speed| Cell::Computed(speed.value() / fifo.value()));
            Row::new(
                name,
                [
                    printed(name).into(),
                    of(|figures| figures.gigabits_per_s),
                    ratio,
                    of(|figures| figures.speed),
                    of(|figures| figures.request_ns),
                    of(|figures| figures.hit_rate),
                    of(|figures| figures.insertion_rate),
                ],
            )
        })
        .collect();
    let chart = Chart {
        name: String::new(),
        title: "Forwarding speed by cache policy, one thread, web workload".to_owned(),
        y_label: "Gb/s".to_owned(),
        kind: ChartKind::Bars { categories: rows.iter().map(|row| row.label.clone()).collect() },
        series: vec![Series::of_column("published", &rows, 0), Series::of_column("measured", &rows, 1)],
    };
    let columns = vec![
        Column::published("Gb/s"),
        Column::measured("Gb/s"),
        Column::computed("of FIFO's, as printed"),
        Column::measured("of FIFO's"),
        Column::measured("ns per request"),
        Column::measured("hit rate"),
        Column::measured("insertion rate"),
    ];
    let difference = "The text rounds: Filter is 1.3 times as fast as ARC and 1.1 times as FIFO; the printed speeds \
        give 1.44 and 1.16. The measurement covers the whole protocol with the router's schedule, without network \
        cards, and counts all frames that the worker sends.";
    let report = Report::new(columns, rows, difference).with_charts([chart]);
    let limits = [
        "No network card is involved: frames come from memory, where the same core has just written them, and go to \
         memory.",
        "Speeds relative to FIFO are medians over intervals of 25 ms, in which the policies take turns.",
    ];
    Ok(report.with_conditions(conditions(context)).with_conditions([window()]).with_limits(limits))
}
