//! `namehop bench engine --workload`: measures the engine with each cache policy.

use namehop_bench::engine::EngineBench;
use namehop_bench::policy::{BlockFigures, PolicyFigures, PolicyParameters};
use namehop_bench::progress::OnProgress;
use namehop_bench::schedule::EngineParameters;
use namehop_orders::FlowBlock;
use namehop_store::{PolicyKind, UnknownPolicy};
use serde::Serialize;

use super::failure;
use namehop_cli::failure::Failure;
use namehop_cli::output::{self, Align, Table, properties};

/// One policy or all.
#[derive(Debug, Clone, Copy)]
pub(super) enum Chosen {
    All,
    One(PolicyKind),
}

pub(super) fn parse(text: &str) -> Result<Chosen, UnknownPolicy> {
    if text.eq_ignore_ascii_case("all") { Ok(Chosen::All) } else { text.parse().map(Chosen::One) }
}

/// Returns the chosen policies without duplicates. Without a choice: FIFO, the default and the other published
/// policies.
pub(super) fn chosen(choice: &[Chosen]) -> Vec<PolicyKind> {
    use PolicyKind::{Arc, Fifo, Filter, Random, TinyLfu};
    let usual = [Fifo, PolicyKind::default(), Filter, TinyLfu, Arc, Random].map(Chosen::One);
    let mut policies = Vec::new();
    for choice in if choice.is_empty() { &usual } else { choice } {
        let of_choice = match choice {
            Chosen::All => PolicyKind::ALL,
            Chosen::One(policy) => std::slice::from_ref(policy),
        };
        for policy in of_choice {
            if !policies.contains(policy) {
                policies.push(*policy);
            }
        }
    }
    policies
}

#[derive(Serialize)]
pub(super) struct Report {
    workload: &'static str,
    objects: u64,
    cs_capacity: usize,
    in_flight: usize,
    payload_bytes: usize,
    fib_prefixes: u64,
    policies: Vec<PolicyFigures>,
    /// Absent unless requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    blocks: Option<Vec<Blocks>>,
}

/// Cost of blocks, in ticks of the time-stamp counter.
#[derive(Serialize)]
struct Blocks {
    policy: &'static str,
    schedule: &'static str,
    /// B2, per Interest.
    history_cycles: Option<f64>,
    /// B12, per evicted packet.
    eviction_cycles: Option<f64>,
    /// B13, per arriving Data.
    admission_cycles: Option<f64>,
    /// B10, per inserted Data.
    insertion_cycles: Option<f64>,
    /// Cost of reading the clock, which is subtracted each time.
    clock_cycles: u64,
    interruptions: u64,
}

impl Blocks {
    fn new(figures: &BlockFigures) -> Self {
        Blocks {
            policy: figures.policy.name(),
            schedule: figures.schedule.name(),
            history_cycles: figures.history_cycles,
            eviction_cycles: figures.of(FlowBlock::Eviction),
            admission_cycles: figures.of(FlowBlock::Admission),
            insertion_cycles: figures.of(FlowBlock::StoreInsertion),
            clock_cycles: figures.clock_cycles,
            interruptions: figures.interruptions,
        }
    }
}

pub(super) fn measure(
    bench: &EngineBench,
    parameters: &EngineParameters,
    of: &PolicyParameters,
    with_blocks: bool,
    on_progress: &OnProgress<'_>,
) -> Result<Report, Failure> {
    let policies = bench.run_policies(parameters, of, on_progress).map_err(failure)?.concat();
    let blocks =
        if with_blocks { Some(bench.run_blocks(parameters, of, on_progress).map_err(failure)?.concat()) } else { None };
    Ok(Report {
        workload: of.shape.kind.name(),
        objects: of.shape.packets(),
        cs_capacity: parameters.cs_capacity,
        in_flight: parameters.in_flight,
        payload_bytes: parameters.payload_bytes,
        fib_prefixes: parameters.workload.prefixes,
        policies,
        blocks: blocks.map(|blocks| blocks.iter().map(Blocks::new).collect()),
    })
}

pub(super) fn show(report: &Report, as_json: bool) -> Result<(), Failure> {
    if as_json { output::json(report) } else { output::print(&describe(report)) }
}

fn describe(report: &Report) -> String {
    let mut text = properties(&[
        ("Workload", format!("{}, {} distinct packets", report.workload, report.objects)),
        ("Content Store", format!("{} packets, {} bytes of content each", report.cs_capacity, report.payload_bytes)),
        ("Pending Interests", report.in_flight.to_string()),
        ("FIB", format!("{} prefixes", report.fib_prefixes)),
    ]);
    text.push('\n');
    let mut table = Table::new(&[
        ("POLICY", Align::Left),
        ("HITS", Align::Right),
        ("INSERTIONS", Align::Right),
        ("NS/REQUEST", Align::Right),
        ("QUARTILES", Align::Right),
        ("SPEED", Align::Right),
        ("QUARTILES", Align::Right),
        ("Gb/s", Align::Right),
    ]);
    for figures in &report.policies {
        let ((ns_low, ns_high), (low, high)) = (figures.request_ns_quartiles, figures.speed_quartiles);
        table.row([
            figures.policy.to_string(),
            format!("{:.4}", figures.hit_rate),
            format!("{:.4}", figures.insertion_rate),
            format!("{:.0}", figures.request_ns),
            format!("{ns_low:.0} to {ns_high:.0}"),
            format!("{:.3}", figures.speed),
            format!("{low:.3} to {high:.3}"),
            format!("{:.2}", figures.gigabits_per_s),
        ]);
    }
    text.push_str(&table.render());
    let Some(blocks) = &report.blocks else { return text };
    let mut table = Table::new(&[
        ("CYCLES", Align::Left),
        ("SCHEDULE", Align::Left),
        ("HISTORY", Align::Right),
        ("EVICTION", Align::Right),
        ("ADMISSION", Align::Right),
        ("INSERTION", Align::Right),
        ("CLOCK", Align::Right),
    ]);
    let cycles = |cycles: Option<f64>| cycles.map_or_else(|| "-".to_owned(), |cycles| format!("{cycles:.0}"));
    for row in blocks {
        let figures = [row.history_cycles, row.eviction_cycles, row.admission_cycles, row.insertion_cycles];
        let start = [row.policy.to_owned(), row.schedule.to_owned()];
        table.row(
            start.into_iter().chain(figures.map(cycles)).chain([row.clock_cycles.to_string()]).collect::<Vec<_>>(),
        );
    }
    text.push('\n');
    text.push_str(&table.render());
    text
}
