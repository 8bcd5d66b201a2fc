//! What workers hand to each other, and what that costs: `namehop bench engine --workers N --misplaced SHARES`.

use namehop_bench::engine::{DivisionFigures, EngineBench};
use namehop_bench::schedule::EngineParameters;
use serde::Serialize;

use crate::failure::Failure;
use crate::output::{self, Align, Table};

/// Figures of so many workers beside those of one.
#[derive(Serialize)]
struct Row {
    #[serde(flatten)]
    figures: DivisionFigures,
    /// Packets a second of all workers by those of one.
    speedup: f64,
    /// What a packet that is handed over costs more than one that is not, in nanoseconds; absent where none is.
    handover_ns: Option<f64>,
}

/// Measures one worker, and then all workers with each of these shares of packets at the wrong one.
pub(super) fn run(
    bench: &EngineBench,
    parameters: &EngineParameters,
    shares: &[f64],
    json: bool,
) -> Result<(), Failure> {
    let one = bench.run_divided(parameters, 1, 0.0)?;
    let mut rows = vec![Row { figures: one, speedup: 1.0, handover_ns: None }];
    let mut placed_ns = None;
    for &share in shares {
        let figures = bench.run_divided(parameters, parameters.workers, share)?;
        if share == 0.0 {
            placed_ns = Some(figures.packet_ns);
        }
        let handover_ns = placed_ns.filter(|_| figures.handed_over > 0.0);
        let handover_ns = handover_ns.map(|placed| (figures.packet_ns - placed) / figures.handed_over);
        rows.push(Row { figures, speedup: figures.mpps / one.mpps, handover_ns });
    }
    if json {
        return output::json(&rows);
    }
    let mut table = Table::new(&[
        ("WORKERS", Align::Right),
        ("MISPLACED", Align::Right),
        ("NS/PACKET", Align::Right),
        ("MPPS", Align::Right),
        ("SPEED-UP", Align::Right),
        ("HANDED OVER", Align::Right),
        ("NS/HAND-OVER", Align::Right),
        ("LOST", Align::Right),
    ]);
    for Row { figures, speedup, handover_ns } in &rows {
        table.row([
            figures.workers.to_string(),
            format!("{:.0} %", 100.0 * figures.misplaced),
            format!("{:.0}", figures.packet_ns),
            format!("{:.2}", figures.mpps),
            format!("{speedup:.2}"),
            format!("{:.0} %", 100.0 * figures.handed_over),
            handover_ns.map_or_else(|| "-".to_owned(), |ns| format!("{ns:.0}")),
            figures.lost.to_string(),
        ]);
    }
    output::print(&table.render())
}
