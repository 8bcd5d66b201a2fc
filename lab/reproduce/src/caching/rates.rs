//! Simulations of policies with the published workloads: sizes, conditions and charts that figures share.

use namehop_simulate::run::Outcome;
use namehop_store::Tuning;
use namehop_traffic::workload::{WorkloadKind, WorkloadShape};

use crate::ReproduceError;
use crate::compared_policies::{Compared, WINDOW};
use crate::context::Context;
use crate::report::{Chart, ChartKind, Row, Series};

/// Segments per simulated video, a tenth of the published number.
const VIDEO_SEGMENTS: u64 = 1_000;
/// Simulated capacities, in per cent of the workload's packets.
pub(super) const PERCENTAGES: [u64; 4] = [1, 2, 5, 10];

/// Outcomes of policies with a workload, one list per capacity, which are in per cent of the workload's packets.
pub(super) fn outcomes(
    context: &mut Context<'_>,
    kind: WorkloadKind,
    percentages: &[u64],
    policies: &[Compared],
) -> Result<Vec<Vec<Outcome>>, ReproduceError> {
    let shape = shape_of(kind, 1);
    let at = |percent: u64| policies.iter().map(move |of| (of.policy, capacity_of(&shape, percent)));
    let stores: Vec<_> = percentages.iter().copied().flat_map(at).collect();
    let outcomes = context.simulated(shape, &stores)?;
    Ok(outcomes.chunks(policies.len().max(1)).map(<[Outcome]>::to_vec).collect())
}

/// The published workload with shorter videos, and all its packets divided by `divisor`.
pub(super) fn shape_of(kind: WorkloadKind, divisor: u64) -> WorkloadShape {
    let published = WorkloadShape::published(kind);
    let segments = VIDEO_SEGMENTS / divisor;
    let part = segments as f64 / published.segments as f64;
    let shorter = WorkloadShape { segments, segments_per_s: published.segments_per_s * part, ..published };
    match kind {
        WorkloadKind::Web | WorkloadKind::Lossy | WorkloadKind::Flash => {
            WorkloadShape { objects: published.objects / divisor, ..published }
        }
        WorkloadKind::Video => shorter,
        // Objects are scaled as video segments are.
        WorkloadKind::Mixed => WorkloadShape { objects: (published.objects as f64 * part) as u64, ..shorter },
    }
}

pub(super) fn capacity_of(shape: &WorkloadShape, percent: u64) -> usize {
    (shape.packets() / 100 * percent) as usize
}

/// Conditions of the simulated rates.
pub(super) fn conditions(context: &Context<'_>) -> [String; 3] {
    let requests = context.settings.cache_requests;
    let seed = WorkloadShape::published(WorkloadKind::Web).seed;
    [
        format!(
            "{requests} requests with seed {seed}, of which the first half is not counted; caches start empty; \
             random victims with seed {}",
            Tuning::default().seed
        ),
        format!(
            "TinyLFU evicts at random and counts in a window of {WINDOW} C, as published (C is the cache's capacity); \
             it rejects Data that was requested as often as the victim"
        ),
        format!(
            "videos of {VIDEO_SEGMENTS} segments instead of {}, with the same share of the rate, and the same number \
             of objects and cached packets per segment: the same number of requests covers ten times as many videos",
            WorkloadShape::published(WorkloadKind::Video).segments
        ),
    ]
}

/// One chart for each workload: a line for each policy over the capacity.
pub(super) fn charts(of: &str, policies: &[Compared], rows: &[Row], column: usize) -> Vec<Chart> {
    let chart = |kind: WorkloadKind| {
        let points = |name: &str| -> Vec<&Row> {
            rows.iter().filter(|row| is_of(row, kind) && row.label.ends_with(name)).collect()
        };
        Chart {
            name: format!("-{kind}"),
            title: format!("{of}, {kind} workload, simulated"),
            y_label: of.to_lowercase(),
            kind: ChartKind::Lines {
                x_label: "capacity, % of all distinct packets".to_owned(),
                x: PERCENTAGES.map(|percent| percent as f64).to_vec(),
            },
            series: policies
                .iter()
                .map(|policy| Series::of_column(policy.name, points(&format!(", {}", policy.name)), column))
                .collect(),
        }
    };
    WorkloadKind::PUBLISHED.map(chart).into()
}

pub(super) fn is_of(row: &Row, kind: WorkloadKind) -> bool {
    row.label.starts_with(&format!("{kind}, "))
}
