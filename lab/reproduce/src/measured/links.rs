//! Measurements of routers between links: rates per run, latency over all runs.

use namehop_bench::sweep::CaseFigures;
use namehop_client::nfd::LatencyCounts;
use namehop_model::theil_sen;

use super::Measured;

/// Thousand Data per second.
pub(crate) fn kpps(case: &CaseFigures) -> Option<Measured> {
    Measured::of_runs(case.data_per_s.iter().map(|per_s| per_s / 1e3))
}

/// 10^9 bits of payload per second.
pub(crate) fn gbps(case: &CaseFigures) -> Option<Measured> {
    let bits = 8.0 * case.setting.payload_bytes as f64;
    Measured::of_runs(case.data_per_s.iter().map(|per_s| per_s * bits / 1e9))
}

/// Standard deviation of the rate over runs, in thousand Data per second; `None` for a single run.
pub(crate) fn kpps_deviation(case: &CaseFigures) -> Option<Measured> {
    let runs = &case.data_per_s;
    let mean = runs.iter().sum::<f64>() / runs.len() as f64;
    let squares: f64 = runs.iter().map(|per_s| (per_s - mean).powi(2)).sum();
    (runs.len() > 1)
        .then(|| (squares / (runs.len() - 1) as f64).sqrt() / 1e3)
        .and_then(|sigma| Measured::of_runs([sigma]))
}

/// Share of Interests answered by the Content Store, 0 to 1.
pub(crate) fn hit_ratio(case: &CaseFigures) -> Option<Measured> {
    Measured::of_runs(case.hit_share)
}

/// Latency quantile at `share` (0 to 1), in microseconds.
pub(crate) fn latency_us(times: &LatencyCounts, share: f64) -> Option<Measured> {
    Measured::of_runs(times.quantile_ns(share).map(|ns| ns as f64 / 1e3))
}

/// Increase of the rate from no hits to hits only, in thousand Data per second, by a Theil-Sen fit.
pub(crate) fn kpps_by_hits(cases: &[&CaseFigures]) -> Option<Measured> {
    let runs = cases.iter().map(|case| case.data_per_s.len()).min()?;
    let of_run = |run: usize| {
        let points: Vec<(f64, f64)> =
            cases.iter().filter_map(|case| Some((case.hit_share?, case.data_per_s[run] / 1e3))).collect();
        theil_sen::slope(&points)
    };
    Measured::of_runs((0..runs).map(of_run).collect::<Option<Vec<f64>>>()?)
}
