//! Routers between links: rates once in every run, latency of all runs together.

use namehop_bench::sweep::CaseFigures;
use namehop_manage::server::LatencyCounts;
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

/// Standard deviation of the rate over runs, in thousand Data per second; `None` of a single run.
pub(crate) fn kpps_deviation(case: &CaseFigures) -> Option<Measured> {
    let runs = &case.data_per_s;
    let mean = runs.iter().sum::<f64>() / runs.len() as f64;
    let squares: f64 = runs.iter().map(|per_s| (per_s - mean).powi(2)).sum();
    (runs.len() > 1)
        .then(|| (squares / (runs.len() - 1) as f64).sqrt() / 1e3)
        .and_then(|sigma| Measured::of_runs([sigma]))
}

/// Share of Interests that the Content Store answered.
pub(crate) fn hit_ratio(case: &CaseFigures) -> Option<Measured> {
    Measured::of_runs(case.hit_share)
}

/// The time that a share of the packets did not exceed, in microseconds.
pub(crate) fn latency_us(times: &LatencyCounts, share: f64) -> Option<Measured> {
    Measured::of_runs(times.quantile_ns(share).map(|ns| ns as f64 / 1e3))
}

/// By how much the rate rises from no hits to hits alone, in thousand Data per second, by the line of Theil and Sen.
pub(crate) fn kpps_by_hits(cases: &[&CaseFigures]) -> Option<Measured> {
    let runs = cases.iter().map(|case| case.data_per_s.len()).min()?;
    let of_run = |run: usize| {
        let points: Vec<(f64, f64)> =
            cases.iter().filter_map(|case| Some((case.hit_share?, case.data_per_s[run] / 1e3))).collect();
        theil_sen::slope(&points)
    };
    Measured::of_runs((0..runs).map(of_run).collect::<Option<Vec<f64>>>()?)
}
