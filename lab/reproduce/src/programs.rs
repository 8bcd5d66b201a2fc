//! Compiled P4 programs: figures 1 to 4, equations 1 to 6 and section 4.6 of "Compiler Based Optimization For Software
//! Packet Processing" (APSys 2017), measured between two rings.

use crate::context::{Context, count};
use crate::measured::programs::ProgramRuns;
use crate::published::programs::{
    BEST_BATCH, COMPRESSED_TRIE_MPPS, COMPRESSION_BEST, COMPRESSION_GAIN, COMPRESSION_WORST, FOUR_CARDS_MPPS,
    FOUR_CORES_MPPS, PLAIN_TRIE_MPPS, PROGRAMS, TABLE_SIZES,
};
use crate::report::{Cell, Chart, ChartKind, Column, Report, Row, Series, number};
use crate::{NO_FIGURES, ReproduceError};

/// Names of the ways of `namehop p4 bench`.
const DPDK_TABLES: &str = "DPDK tables, per packet";
const BY_HAND: &str = "by hand on DPDK tables";
const PER_PACKET: &str = "per packet";
const BATCHES: &str = "batches";
const PREFETCH: &str = "batches, prefetch";
const GOPT_ORDER: &str = "G-Opt's order, prefetch";
const GOPT: &str = "G-Opt's order and tables";
const TOGETHER: &str = "burst and batch";
/// Batch sizes: of the paper's comparisons and loops by hand, and of G-Opt.
const BATCH: u32 = 32;
const GOPT_BATCH: u32 = 16;
/// Burst sizes in figure 4. A burst of more than 64 packets is processed in batches of 64.
const BURSTS: [u32; 7] = [1, 8, 16, 32, 64, 128, 256];
const MOST_BATCH: u32 = 64;

/// Reason for empty rows of several cores.
const ONE_THREAD: &str = "measurements between two rings use one thread";
/// Reason for a missing way.
const NOT_THIS_WAY: &str = "this program has no such way";

fn measured(value: Option<crate::Measured>) -> Cell {
    Cell::measured(value, NO_FIGURES)
}

fn of_way(value: Option<crate::Measured>) -> Cell {
    Cell::measured(value, NOT_THIS_WAY)
}

/// Adds the conditions and limits of measurements between rings to a report.
fn between_rings(context: &Context<'_>, report: Report) -> Report {
    let conditions = [
        format!("{}, time-stamp counter of {} GHz", context.machine.processor, number(context.machine.cycles_hz / 1e9)),
        format!(
            "{} of 'namehop p4 bench', in which the ways take turns of 4096 packets for random entries; all ways \
             output the same packets",
            count(context.settings.runs.max(1), "run")
        ),
    ];
    let limits = [
        "No network card is involved: packets come from a ring in memory and go into another one.",
        "The paper's vanilla code is P4C's; here it is the same program, one packet after the other, on DPDK tables as \
         P4C uses them.",
    ];
    let missing = context.programs_measured.iter().filter_map(|(program, _, runs)| {
        runs.missing().map(|what| format!("'{program}' was not measured on this host: {what}"))
    });
    report.with_conditions(conditions).with_limits(limits).with_limits(missing)
}

/// Figure 1 and section 4.2.
pub(crate) fn figure_1(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let mut rows = Vec::new();
    for published in PROGRAMS {
        let runs = context.program(published.program, 0)?;
        rows.push(Row::new(
            published.name,
            [
                published.batching.into(),
                measured(runs.gain_percent((PER_PACKET, 1), (BATCHES, BATCH))),
                published.prefetching.into(),
                measured(runs.gain_percent((BATCHES, BATCH), (PREFETCH, BATCH))),
                published.over_p4c.into(),
                measured(runs.gain_percent((DPDK_TABLES, 1), (PREFETCH, BATCH))),
            ],
        ));
    }
    let columns = vec![
        Column::published("batching %"),
        Column::measured("batching %"),
        Column::published("prefetching %"),
        Column::measured("prefetching %"),
        Column::published("both over vanilla %"),
        Column::measured("both over vanilla %"),
    ];
    let difference = "Batching and prefetching are compared on Namehop's own tables, the columns over vanilla with \
        DPDK tables, so the last columns include the gain of the tables. Without network cards, whose cost no batch \
        hides, gains are larger.";
    let chart = bars("Throughput gained over vanilla, per cent", &rows, &[("published", 4), ("measured", 5)]);
    Ok(between_rings(context, Report::new(columns, rows, difference).with_charts([chart])))
}

fn bars(title: &str, rows: &[Row], series: &[(&str, usize)]) -> Chart {
    Chart {
        name: String::new(),
        title: title.into(),
        y_label: "per cent".into(),
        kind: ChartKind::Bars { categories: rows.iter().map(|row| row.label.clone()).collect() },
        series: series.iter().map(|(name, column)| Series::of_column(*name, rows, *column)).collect(),
    }
}

/// Figure 2 and section 4.3.
pub(crate) fn figure_2(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let mut rows = Vec::new();
    for published in PROGRAMS {
        let runs = context.program(published.program, 0)?;
        let ours = (PREFETCH, BATCH);
        rows.push(Row::new(
            published.name,
            [
                published.over_p4c.into(),
                measured(runs.gain_percent((DPDK_TABLES, 1), ours)),
                published.over_gopt.into(),
                of_way(runs.gain_percent((GOPT_ORDER, GOPT_BATCH), ours)),
                of_way(runs.gain_percent((GOPT, GOPT_BATCH), ours)),
                published.over_dpdk.into(),
                of_way(runs.gain_percent((BY_HAND, BATCH), ours)),
            ],
        ));
    }
    let columns = vec![
        Column::published("over vanilla %"),
        Column::measured("over vanilla %"),
        Column::published("over G-Opt %"),
        Column::measured("over G-Opt's order on these tables %"),
        Column::measured("over G-Opt's order and tables %"),
        Column::published("over DPDK's program %"),
        Column::measured("over a hand-written loop on DPDK's tables %"),
    ];
    let difference = "G-Opt's order (run a packet until it accesses memory, then switch to the next one) is measured \
        on the same tables, and for names also with G-Opt's own table. Hand-written loops follow DPDK's examples \
        l2fwd, l3fwd and l2fwd-crypto. In G-Opt's order packets would be encrypted one at a time, so it is not \
        measured with encryption.";
    let chart = bars(
        "Throughput gained, per cent",
        &rows,
        &[("over vanilla", 1), ("over G-Opt's order", 3), ("over a hand-written loop", 6)],
    );
    Ok(between_rings(context, Report::new(columns, rows, difference).with_charts([chart])))
}

/// Figure 3 and section 4.4.
pub(crate) fn figure_3(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let mut rows = vec![
        Row::new("all programs but IPv6, 4 cores", [FOUR_CORES_MPPS.into(), Cell::NotMeasured(ONE_THREAD)]),
        Row::new("line rate of 4 cards of 10 Gbit/s", [FOUR_CARDS_MPPS.into(), Cell::NotMeasured(ONE_THREAD)]),
    ];
    for published in PROGRAMS {
        let runs = context.program(published.program, 0)?;
        rows.push(Row::new(
            format!("{}, 1 core", published.name),
            [Cell::Empty, measured(runs.mpps(PREFETCH, None, Some(BATCH)))],
        ));
    }
    let columns = vec![Column::published("Mpps"), Column::measured("Mpps")];
    let difference =
        "The paper prints no number for one core; its four cores were limited by PCIe, which is not involved here.";
    Ok(between_rings(context, Report::new(columns, rows, difference)))
}

/// Figure 4 and section 4.5.
pub(crate) fn figure_4(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let mut rows = Vec::new();
    for entries in TABLE_SIZES {
        let runs = context.program("l2", entries)?;
        let mut cells: Vec<Cell> = BURSTS
            .iter()
            .map(|&burst| measured(runs.mpps(TOGETHER, Some(burst), Some(burst.min(MOST_BATCH)))))
            .collect();
        cells.insert(0, BEST_BATCH.into());
        cells.push(measured(runs.model(|model| f64::from(model.batch))));
        rows.push(Row::new(format!("{} entries", runs.entries()), cells));
    }
    let mut columns = vec![Column::published("best batch")];
    columns.extend(BURSTS.iter().map(|burst| Column::measured(format!("Mpps, {burst}"))));
    columns.push(Column::measured("best batch by the model"));
    let series =
        (0..BURSTS.len()).map(|at| Series::of_column(format!("batches of {}", BURSTS[at]), &rows, at + 1)).collect();
    let chart = Chart {
        name: String::new(),
        title: "Throughput by size of batches and of the table".into(),
        y_label: "Mpps, measured".into(),
        kind: ChartKind::Bars { categories: rows.iter().map(|row| row.label.clone()).collect() },
        series,
    };
    let difference = "The paper's program has one lookup, this one two. The paper's throughput falls beyond 64 packets \
        because its card holds 40 descriptors; a ring has no such limit. Bursts of more than 64 packets are processed \
        in batches of 64.";
    Ok(between_rings(context, Report::new(columns, rows, difference).with_charts([chart])))
}

/// Equations 1 to 6.
pub(crate) fn equations(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let mut rows = Vec::new();
    for published in PROGRAMS {
        let runs = context.program(published.program, 0)?;
        let of = |of: fn(&crate::measured::programs::ModelFigures) -> f64| measured(runs.model(of));
        rows.push(Row::new(
            published.name,
            [
                of(|model| model.program.input_output.each),
                of(|model| model.program.input_output.burst),
                of(|model| model.program.processing.necessary),
                of(|model| model.program.processing.shared),
                of(|model| model.program.processing.fetch),
                of(|model| model.program.processing.others),
                of(|model| f64::from(model.batch)),
                of(|model| f64::from(model.measured_batch)),
                of(|model| model.loss_percent),
            ],
        ));
    }
    let columns = [
        "Υ, each packet",
        "Υ, each burst",
        "Δnecessary",
        "Δshared",
        "Δfetch",
        "other packets that hide half of it",
        "best batch by the model",
        "best batch",
        "loss %",
    ];
    let difference = "The paper prints the equations without values. Here their terms (in cycles, except numbers of \
        packets) are fitted to batches of 1, 4, 16 and 64 packets, and the best size is predicted; the loss is the \
        additional cost of the predicted size over the best one.";
    let columns = columns.map(Column::measured).to_vec();
    Ok(between_rings(context, Report::new(columns, rows, difference)))
}

/// Section 4.6.
pub(crate) fn trie(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let runs = context.program("ipv6", 0)?;
    let mpps = |way| measured(runs.mpps(way, None, Some(1)));
    let rows = vec![
        Row::new("plain trie, Mpps", [PLAIN_TRIE_MPPS.into(), mpps(DPDK_TABLES)]),
        Row::new("compressed trie, Mpps", [COMPRESSED_TRIE_MPPS.into(), mpps(PER_PACKET)]),
        Row::new("gain, %", [COMPRESSION_GAIN.into(), measured(runs.gain_percent((DPDK_TABLES, 1), (PER_PACKET, 1)))]),
        Row::new("gain in the worst case, %", [COMPRESSION_WORST.into(), Cell::Empty]),
        Row::new("gain in the best case, %", [COMPRESSION_BEST.into(), Cell::Empty]),
        Row::new("cycles, plain trie", [Cell::Empty, measured(runs.cycles(DPDK_TABLES, Some(1)))]),
        Row::new("cycles, compressed trie", [Cell::Empty, measured(runs.cycles(PER_PACKET, Some(1)))]),
    ];
    let difference = "The plain trie is rte_lpm6 of DPDK, with 8 bits per level after the first 24, as the paper \
        describes the one it replaced; the compressed one is Namehop's, with nodes sized by their entries. Both \
        process one packet after the other.";
    let columns = vec![Column::published(""), Column::measured("")];
    Ok(between_rings(context, Report::new(columns, rows, difference)))
}

/// Figures of P4 programs, measured once for all items.
impl Context<'_> {
    pub(crate) fn program(&mut self, program: &str, entries: u64) -> Result<ProgramRuns, ReproduceError> {
        let asked = |(name, size, _): &&(String, u64, ProgramRuns)| name == program && *size == entries;
        if let Some((.., runs)) = self.programs_measured.iter().find(asked) {
            return Ok(runs.clone());
        }
        let what = if entries == 0 {
            format!("P4 program {program}")
        } else {
            format!("P4 program {program}, {entries} entries")
        };
        self.progress(&what);
        let runs = self.settings.runs;
        let programs = self
            .instruments
            .programs
            .as_deref_mut()
            .ok_or_else(|| ReproduceError::Program("no measurement of P4 programs is available".into()))?;
        let measured = ProgramRuns::measure(programs, program, entries, runs).map_err(ReproduceError::Program)?;
        self.programs_measured.push((program.to_owned(), entries, measured.clone()));
        Ok(measured)
    }
}
