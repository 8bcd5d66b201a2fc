//! The metrics of latency.

use std::fmt;

use namehop_client::nfd::LatencyStatus;

use super::render::Metrics;

/// Upper bounds of the buckets, in nanoseconds.
const BUCKETS_NS: [u64; 19] = [
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
];

/// Writes histograms of the times that packets stayed in the router, if they are measured.
pub(super) fn latency(metrics: &mut Metrics<'_>, latency: &LatencyStatus) -> fmt::Result {
    let Some(one_in) = latency.one_in else { return Ok(()) };
    metrics.gauge(
        "latency_sample",
        "Sampling interval of the latency measurement: one in this many packets is measured",
        one_in.get().into(),
    )?;
    let help = "Time of sampled packets from reception to transmission";
    metrics.histograms("latency_seconds", help, |family| {
        latency.ways().into_iter().try_for_each(|(way, counts)| {
            let mut before = 0;
            let mut buckets = Vec::with_capacity(BUCKETS_NS.len() + 1);
            for limit_ns in BUCKETS_NS {
                let within = counts.within(limit_ns);
                buckets.push((limit_ns as f64 / 1e9, within - before));
                before = within;
            }
            buckets.push((f64::INFINITY, counts.packets() - before));
            family.histogram(&[("way", way)], counts.total_ns() as f64 / 1e9, counts.packets(), &buckets)
        })
    })
}
