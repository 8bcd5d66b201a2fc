//! Parameters and results of measurements of the engine with cache policies.

use std::time::Duration;

use namehop_orders::{BlockTicks, FlowBlock, ScheduleKind};
use namehop_store::PolicyKind;
use namehop_traffic::workload::WorkloadShape;
use serde::{Serialize, Serializer};

use crate::schedule::EngineParameters;

/// Parameters besides the [load](crate::schedule::EngineParameters).
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyParameters {
    /// Policies, each with its own tables. The first is the baseline of comparisons.
    pub policies: Vec<PolicyKind>,
    /// Requested names.
    pub shape: WorkloadShape,
    /// Requests with each policy before measuring, if they fill its cache.
    pub warm_up: u64,
    /// Most requests before measuring, if the cache is not full by then. They must fill it.
    pub longest_warm_up: u64,
    /// Measuring time per policy and run.
    pub time: Duration,
    /// Number of runs, one after the other, over the same warm tables.
    pub runs: usize,
}

impl PolicyParameters {
    /// The load of the publication (Takemasa, thesis, 2019, 5.4.1): Data of 1,024 bytes of content, and a cache of
    /// 100,000 packets.
    pub fn published_load() -> EngineParameters {
        EngineParameters { payload_bytes: 1_024, cs_capacity: 100_000, ..EngineParameters::published() }
    }
}

/// Figures of the engine with one policy.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PolicyFigures {
    /// The policy.
    #[serde(serialize_with = "by_name")]
    pub policy: PolicyKind,
    /// Share of Interests that the Content Store answers, 0 to 1.
    pub hit_rate: f64,
    /// Share of arriving Data that the Content Store admits, 0 to 1.
    pub insertion_rate: f64,
    /// Nanoseconds of one core per request, its Data included: median over pieces of 25 ms.
    pub request_ns: f64,
    /// Lower and upper quartile of `request_ns` over the pieces.
    pub request_ns_quartiles: (f64, f64),
    /// Request rate relative to the first policy: median over pieces adjacent in time.
    pub speed: f64,
    /// Lower and upper quartile of `speed`.
    pub speed_quartiles: (f64, f64),
    /// 10^9 bits per second of all frames sent by the worker, Interests and Data.
    pub gigabits_per_s: f64,
    /// Number of measured requests.
    pub requests: u64,
}

/// Cost of the blocks of packet flow under one policy, on the published path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BlockFigures {
    /// The policy.
    pub policy: PolicyKind,
    /// The schedule.
    pub schedule: ScheduleKind,
    /// Time-stamp counter ticks per pass of a packet through a block, without the clock's own ticks, in the order of
    /// [`FlowBlock::ALL`]; `None` for a block without passes.
    pub cycles: [Option<f64>; FlowBlock::ALL.len()],
    /// Ticks of [`FlowBlock::HistoryUpdate`] per Interest. Interests that the store answers pass this block twice.
    pub history_cycles: Option<f64>,
    /// Ticks of reading the clock per lap, which have been subtracted.
    pub clock_cycles: u64,
    /// Number of laps ignored because the system interrupted them.
    pub interruptions: u64,
}

impl BlockFigures {
    /// Computes the figures from the ticks of a clock that takes `clock_cycles` ticks per lap.
    pub fn new(policy: PolicyKind, schedule: ScheduleKind, ticks: &BlockTicks, clock_cycles: u64) -> Self {
        // Values below zero are noise.
        let own = |block| {
            let (ticks, laps) = ticks.of(block);
            ticks.saturating_sub(laps * clock_cycles) as f64
        };
        let laps = |block| ticks.of(block).1;
        let by = |block, of: u64| (of > 0).then(|| own(block) / of as f64);
        BlockFigures {
            policy,
            schedule,
            cycles: FlowBlock::ALL.map(|block| by(block, laps(block))),
            history_cycles: by(FlowBlock::HistoryUpdate, laps(FlowBlock::StoreLookup)),
            clock_cycles,
            interruptions: ticks.interruptions(),
        }
    }

    /// Ticks per pass of one block; `None` if there were no passes.
    pub fn of(&self, block: FlowBlock) -> Option<f64> {
        self.cycles[block as usize]
    }
}

fn by_name<S: Serializer>(policy: &PolicyKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(policy.name())
}
