//! Measurements of the engine with cache policies: forwarding rate, and cycles of the blocks of packet flow.

use namehop_bench::measurements::EngineMeasurements;
use namehop_bench::policy::{BlockFigures, PolicyFigures, PolicyParameters};
use namehop_bench::progress::OnProgress;
use namehop_bench::schedule::EngineParameters;
use namehop_orders::{FlowBlock, ScheduleKind};
use namehop_store::PolicyKind;
use namehop_traffic::workload::{WorkloadKind, WorkloadShape};

use super::Measured;
use crate::{ReproduceError, Settings};

/// The published policies; rates are compared with the first one.
pub(crate) const POLICIES: [(&str, PolicyKind); 5] = [
    ("FIFO", PolicyKind::Fifo),
    ("Filter", PolicyKind::Filter),
    ("TinyLFU", PolicyKind::TinyLfuRandom),
    ("ARC", PolicyKind::Arc),
    ("Random", PolicyKind::Random),
];
/// Requests before measuring, per packet of cache capacity.
const WARM_UP_PER_PACKET: u64 = 60;

/// Figures of all runs.
#[derive(Debug, Clone)]
pub(crate) struct Policies {
    figures: Vec<Vec<PolicyFigures>>,
    blocks: Vec<Vec<BlockFigures>>,
}

/// Most requests before measuring with a small cache: policies that admit little need many to fill it.
const LONGEST_WARM_UP: u64 = 700_000;
/// Minimum cache capacity, in packets, for meaningful figures.
const FEWEST_PACKETS: usize = 500;

/// The load of the thesis, 5.4.1. If the simulated requests cannot fill its cache, cache and number of objects are
/// scaled down together, which keeps the hit rates nearly the same.
fn load(settings: &Settings) -> (EngineParameters, WorkloadShape) {
    let (published, shape) = (PolicyParameters::published_load(), WorkloadShape::published(WorkloadKind::Web));
    let filled = usize::try_from(settings.cache_requests / WARM_UP_PER_PACKET).unwrap_or(usize::MAX);
    let cs_capacity = filled.clamp(FEWEST_PACKETS, published.cs_capacity);
    let objects = shape.objects * cs_capacity as u64 / published.cs_capacity as u64;
    let in_flight = published.in_flight.min(cs_capacity);
    let parameters = EngineParameters { workload: settings.workload(), cs_capacity, in_flight, ..published };
    (parameters, WorkloadShape { objects, ..shape })
}

/// Cache capacity in packets and number of objects of this load.
pub(crate) fn sizes(settings: &Settings) -> (usize, u64) {
    let (parameters, shape) = load(settings);
    (parameters.cs_capacity, shape.objects)
}

impl Policies {
    /// Measures all policies over the same tables in all runs.
    pub(crate) fn measure(
        engine: &mut dyn EngineMeasurements,
        settings: &Settings,
        on_progress: &OnProgress<'_>,
    ) -> Result<Self, ReproduceError> {
        let (parameters, shape) = load(settings);
        let mut policies = POLICIES.map(|(_, policy)| policy).to_vec();
        if !policies.contains(&PolicyKind::default()) {
            policies.push(PolicyKind::default());
        }
        let warm_up = WARM_UP_PER_PACKET * parameters.cs_capacity as u64;
        let of = PolicyParameters {
            policies,
            shape,
            warm_up,
            longest_warm_up: LONGEST_WARM_UP.max(warm_up),
            time: settings.engine_time,
            runs: settings.runs.max(1),
        };
        let figures = engine.measure_policies(&parameters, &of, on_progress).map_err(ReproduceError::Engine)?;
        let blocks = engine.measure_blocks(&parameters, &of, on_progress).map_err(ReproduceError::Engine)?;
        Ok(Policies { figures, blocks })
    }

    /// A figure of the engine with a policy, by run.
    pub(crate) fn figure(&self, policy: PolicyKind, of: impl Fn(&PolicyFigures) -> f64) -> Option<Measured> {
        let run = |run: &Vec<PolicyFigures>| run.iter().find(|figures| figures.policy == policy).map(&of);
        Measured::of_runs(self.figures.iter().map(run).collect::<Option<Vec<_>>>()?)
    }

    /// Total ticks of the given blocks.
    pub(crate) fn blocks(&self, policy: PolicyKind, schedule: ScheduleKind, blocks: &[FlowBlock]) -> Option<Measured> {
        self.of_blocks(policy, schedule, |figures| blocks.iter().map(|&block| figures.of(block)).sum())
    }

    /// Ticks of history updates per Interest.
    pub(crate) fn history(&self, policy: PolicyKind, schedule: ScheduleKind) -> Option<Measured> {
        self.of_blocks(policy, schedule, |figures| figures.history_cycles)
    }

    fn of_blocks(
        &self,
        policy: PolicyKind,
        schedule: ScheduleKind,
        of: impl Fn(&BlockFigures) -> Option<f64>,
    ) -> Option<Measured> {
        let is_asked = |figures: &&BlockFigures| figures.policy == policy && figures.schedule == schedule;
        let run = |run: &Vec<BlockFigures>| run.iter().find(is_asked).and_then(&of);
        Measured::of_runs(self.blocks.iter().map(run).collect::<Option<Vec<_>>>()?)
    }
}
