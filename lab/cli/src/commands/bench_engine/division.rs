//! `namehop bench engine --workers N --misplaced SHARES`: transfers between workers and their cost.

use namehop_bench::engine::{CostSpread, DivisionCase, DivisionFigures, EngineBench};
use namehop_bench::progress::OnProgress;
use namehop_bench::schedule::EngineParameters;

use super::failure;
use namehop_cli::failure::Failure;
use namehop_cli::output::{self, Align, Table};

/// Measures one worker, and all workers with each of these shares of misplaced packets.
pub(super) fn measure(
    bench: &EngineBench,
    parameters: &EngineParameters,
    shares: &[f64],
    on_progress: &OnProgress<'_>,
) -> Result<Vec<DivisionFigures>, Failure> {
    let of_all = shares.iter().map(|&misplaced| DivisionCase { workers: parameters.workers, misplaced });
    let cases: Vec<DivisionCase> = [DivisionCase { workers: 1, misplaced: 0.0 }].into_iter().chain(of_all).collect();
    bench.run_divided(parameters, &cases, on_progress).map_err(failure)
}

/// Prints the figures of all cases.
pub(super) fn show(rows: &[DivisionFigures], json: bool) -> Result<(), Failure> {
    if json {
        return output::json(&rows);
    }
    let mut table = Table::new(&[
        ("WORKERS", Align::Right),
        ("MISPLACED", Align::Right),
        ("NS/PACKET", Align::Right),
        ("MPPS", Align::Right),
        ("SPEED-UP", Align::Right),
        ("QUARTILES", Align::Right),
        ("TRANSFERRED", Align::Right),
        ("NS/TRANSFER", Align::Right),
        ("MOVED", Align::Right),
        ("BEYOND", Align::Right),
        ("FLOOR", Align::Right),
        ("LOST", Align::Right),
    ]);
    for figures in rows {
        let (lower, upper) = figures.speedup_quartiles;
        table.row([
            figures.case.workers.to_string(),
            format!("{:.0} %", 100.0 * figures.case.misplaced),
            format!("{:.0}", figures.packet_ns),
            format!("{:.2}", figures.mpps),
            format!("{:.2}", figures.speedup),
            format!("{lower:.2} to {upper:.2}"),
            format!("{:.0} %", 100.0 * figures.handed_over),
            spread(figures.handover),
            spread(figures.moved),
            spread(figures.beyond_moved),
            spread(figures.floor),
            figures.lost.to_string(),
        ]);
    }
    output::print(&table.render())
}

fn spread(of: Option<CostSpread>) -> String {
    of.map_or_else(
        || "-".to_owned(),
        |CostSpread { ns, quartiles_ns: (lower, upper) }| format!("{ns:.0} ({lower:.0} to {upper:.0})"),
    )
}
