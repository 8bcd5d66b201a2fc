//! Average cycles per request, from rates and from the published cycles of blocks.

use namehop_model::cache::BlockCosts;
use namehop_traffic::workload::WorkloadKind;

use super::{ARITHMETIC, rates};
use crate::ReproduceError;
use crate::compared_policies::named;
use crate::context::Context;
use crate::published::{self, BlockRow, Published};
use crate::report::{Cell, Chart, ChartKind, Column, Report, Row, Series};

/// Block costs from printed cycles, for a policy and the given cycles of B10.
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
    let difference = "Equations 5.1 and 5.2 with the cycles of tables 5.1 and 5.2 give more than the text. With the \
        text's B10 the difference is the same for both policies, except for history updates (B2), which the text \
        omits.";
    let limits = ["The cycles are those of the published machine; no block is measured on this host."];
    Ok(Report::new(columns, rows, difference).with_conditions([ARITHMETIC.to_owned()]).with_limits(limits))
}

/// Capacities of figure 5.7 in 10^5 packets, equal to per cent of the web workload.
const CAPACITIES: [u64; 10] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];

/// Thesis figure 5.7.
pub(crate) fn figure_5_7(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let [of_table, of_text] = published::INSERTION_CYCLES;
    let mut rows = Vec::new();
    let mut more_cycles = f64::NAN;
    let compared = named(&published::block_rows().map(|row| row.name));
    let outcomes = rates::outcomes(context, WorkloadKind::Web, &CAPACITIES, &compared)?;
    for (percent, outcomes) in CAPACITIES.into_iter().zip(outcomes) {
        let rates_of = |name: &str| {
            let mut of = compared.iter().zip(&outcomes).filter(|(policy, _)| policy.name == name);
            of.next().map(|(_, outcome)| outcome.counts)
        };
        let cycles = |policy: &BlockRow, b10: Published| {
            let counts = rates_of(policy.name).unwrap_or_default();
            blocks(policy, b10).average(counts.hit_rate(), counts.insertion_rate())
        };
        let policies = published::block_rows();
        let [filter, tinylfu, ..] = policies;
        if percent == 1 {
            // Filter with TinyLFU's hit rate, and with its own.
            let counts = rates_of(filter.name).unwrap_or_default();
            let average = |hit| blocks(&filter, of_table).average(hit, counts.insertion_rate());
            let own = counts.hit_rate();
            more_cycles = average(own) - average(rates_of(tinylfu.name).unwrap_or_default().hit_rate());
        }
        for policy in &policies {
            let counts = rates_of(policy.name).unwrap_or_default();
            let less = |b10| {
                let saved = 100.0 * (1.0 - cycles(&filter, b10) / cycles(policy, b10));
                if policy.name == filter.name { Cell::Empty } else { Cell::Computed(saved) }
            };
            let printed = published::FILTER_SAVES_PERCENT.iter().find(|(of, _)| *of == policy.name && percent == 1);
            rows.push(Row::new(
                format!("{percent} x 10^5, {}", policy.name),
                [
                    Cell::Computed(counts.hit_rate()),
                    Cell::Computed(counts.insertion_rate()),
                    Cell::Computed(cycles(policy, of_table)),
                    printed.map(|&(_, saved)| saved).into(),
                    less(of_table),
                    less(of_text),
                ],
            ));
        }
    }
    let charts = [Chart {
        name: String::new(),
        title: "Average cycles per request by capacity, from simulated rates and published blocks".to_owned(),
        y_label: "CPU cycles".to_owned(),
        kind: ChartKind::Lines {
            x_label: "cache, 10^5 packets".to_owned(),
            x: CAPACITIES.map(|percent| percent as f64).to_vec(),
        },
        series: published::block_rows()
            .iter()
            .map(|policy| {
                let of_policy = rows.iter().filter(|row| row.label.ends_with(&format!(", {}", policy.name)));
                Series::of_column(policy.name, of_policy.collect::<Vec<_>>(), 2)
            })
            .collect(),
    }];
    let columns = vec![
        Column::computed("hit rate"),
        Column::computed("insertion rate"),
        Column::computed("cycles"),
        Column::published("less with Filter, %"),
        Column::computed("less with Filter, %, B10 329"),
        Column::computed("less with Filter, %, B10 188"),
    ];
    let difference = format!(
        "Rates are simulated; cycles of blocks are those of tables 5.1 and 5.2. The printed savings do not follow from \
         the printed tables with either value of B10. The text gives {} cycles for the additional hits of TinyLFU, the \
         tables and these rates give {more_cycles:.0}: the text and the tables use different measurements of the \
         blocks.",
        published::CYCLES_OF_LOST_HITS.value()
    );
    let limits =
        ["The cycles of blocks are those of the published machine; 'table-5.1' and 'table-5.2' measure them on this \
            host."];
    let report = Report::new(columns, rows, difference).with_charts(charts);
    Ok(report.with_conditions(rates::conditions(context)).with_limits(limits))
}
