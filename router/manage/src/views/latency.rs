//! Views of the times that packets stay in the router.

use namehop_client::nfd::{LatencyCounts, LatencyStatus};
use serde::Serialize;
use utoipa::ToSchema;

/// Times of a sample of packets from reception to transmission, in steps of one percent.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct LatencyView {
    /// On average, one packet in this many is measured; 0 if the measurement is off.
    pub one_in: u64,
    /// Duration of the measurement, in seconds.
    pub seconds: f64,
    /// Interests that missed in the Content Store, Interests that hit, and Data.
    pub ways: Vec<LatencyWayView>,
}

/// Times of packets of one kind; `null` without packets.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct LatencyWayView {
    /// `cs_miss`, `cs_hit` or `data`.
    pub way: String,
    /// Packets measured.
    pub packets: u64,
    /// Mean, in microseconds.
    #[schema(required)]
    pub mean_us: Option<f64>,
    /// Median, in microseconds.
    #[schema(required)]
    pub p50_us: Option<f64>,
    /// 90th percentile, in microseconds.
    #[schema(required)]
    pub p90_us: Option<f64>,
    /// 99th percentile, in microseconds.
    #[schema(required)]
    pub p99_us: Option<f64>,
    /// 99.9th percentile, in microseconds.
    #[schema(required)]
    pub p999_us: Option<f64>,
    /// Maximum, in microseconds.
    #[schema(required)]
    pub max_us: Option<f64>,
    /// The whole distribution, in ascending order of time.
    pub distribution: Vec<LatencyStepView>,
}

/// A step of the distribution.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct LatencyStepView {
    /// Upper bound of the step, in microseconds.
    pub up_to_us: f64,
    /// Packets that took longer than the previous step, and no longer than this one.
    pub packets: u64,
}

impl From<&LatencyStatus> for LatencyView {
    fn from(status: &LatencyStatus) -> Self {
        LatencyView {
            one_in: status.one_in.map_or(0, |one_in| one_in.get().into()),
            seconds: status.measured_ms as f64 / 1e3,
            ways: status.ways().into_iter().map(|(way, counts)| LatencyWayView::new(way, counts)).collect(),
        }
    }
}

impl LatencyWayView {
    fn new(way: &str, counts: &LatencyCounts) -> Self {
        let packets = counts.packets();
        let quantile_us = |share| counts.quantile_ns(share).map(microseconds);
        LatencyWayView {
            way: way.to_owned(),
            packets,
            mean_us: (packets > 0).then(|| microseconds(counts.total_ns() / packets)),
            p50_us: quantile_us(0.5),
            p90_us: quantile_us(0.9),
            p99_us: quantile_us(0.99),
            p999_us: quantile_us(0.999),
            max_us: quantile_us(1.0),
            distribution: counts
                .0
                .iter()
                .map(|&(time_ns, packets)| LatencyStepView { up_to_us: microseconds(time_ns), packets })
                .collect(),
        }
    }
}

fn microseconds(time_ns: u64) -> f64 {
    time_ns as f64 / 1e3
}
