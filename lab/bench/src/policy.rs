//! What measurements of the engine with cache policies say, policy by policy.

use std::time::Duration;

use namehop_engine::flow::{BlockTicks, FlowBlock};
use namehop_engine::schedule::ScheduleKind;
use namehop_simulate::workload::WorkloadShape;
use namehop_store::PolicyKind;
use serde::{Serialize, Serializer};

use crate::schedule::EngineParameters;

/// What to measure besides the [load](crate::schedule::EngineParameters).
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyParameters {
    /// Policies, each with tables of its own. The first is the one that others are compared with.
    pub policies: Vec<PolicyKind>,
    /// What is asked for.
    pub shape: WorkloadShape,
    /// Requests with each policy before anything is measured. They have to fill its cache.
    pub warm_up: u64,
    /// Time to measure each policy in each run.
    pub time: Duration,
    /// Runs, one after the other, over the same warm tables.
    pub runs: usize,
}

impl PolicyParameters {
    /// The load of the publication (Takemasa, thesis, 2019, 5.4.1): Data of 1,024 bytes of content, and a cache of 100,000 packets.
    pub fn published_load() -> EngineParameters {
        EngineParameters { payload_bytes: 1_024, cs_capacity: 100_000, ..EngineParameters::published() }
    }
}

/// The engine with one policy.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PolicyFigures {
    /// Which.
    #[serde(serialize_with = "by_name")]
    pub policy: PolicyKind,
    /// Share of Interests that the Content Store answers.
    pub hit_rate: f64,
    /// Share of arriving Data that enters it.
    pub insertion_rate: f64,
    /// Nanoseconds of one core for a request, its Data included: median of pieces of 25 ms.
    pub request_ns: f64,
    /// A quarter of the pieces is below the first, another above the second.
    pub request_ns_quartiles: (f64, f64),
    /// Requests per second by those with the first policy: median over pieces next to each other in time.
    pub speed: f64,
    /// Of that, as of `request_ns`.
    pub speed_quartiles: (f64, f64),
    /// 10^9 bits per second of all frames that the worker sends, Interests and Data.
    pub gigabits_per_s: f64,
    /// Requests that were measured.
    pub requests: u64,
}

/// What blocks of the flow of packets take under one policy, on the path of the publications.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BlockFigures {
    /// Which policy.
    pub policy: PolicyKind,
    /// Which schedule.
    pub schedule: ScheduleKind,
    /// Ticks of the time-stamp counter for each time that a packet went through a block, without those of the clock, in the order of
    /// [`FlowBlock::ALL`]; `None` where none did.
    pub cycles: [Option<f64>; FlowBlock::ALL.len()],
    /// Ticks of [`FlowBlock::HistoryUpdate`] by all Interests: those that the store answers go through it twice.
    pub history_cycles: Option<f64>,
    /// Ticks that the clock takes in each lap, which have been subtracted.
    pub clock_cycles: u64,
    /// Laps that were left out because the system had interrupted them.
    pub interruptions: u64,
}

impl BlockFigures {
    /// Of what a clock says that takes `clock_cycles` ticks itself.
    pub fn new(policy: PolicyKind, schedule: ScheduleKind, ticks: &BlockTicks, clock_cycles: u64) -> Self {
        // What is below zero is noise.
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

    /// Ticks of one block.
    pub fn of(&self, block: FlowBlock) -> Option<f64> {
        self.cycles[block as usize]
    }
}

fn by_name<S: Serializer>(policy: &PolicyKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(policy.name())
}
