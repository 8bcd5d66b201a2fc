//! What measurements of the forwarding engine say, schedule by schedule, and the trait through which they are asked for.
//!
//! Whoever reproduces published figures needs measurements of the engine and not the engine; so this is all there is
//! between them.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::counters::CounterFigures;
use crate::workload::WorkloadParameters;

/// How far the engine's hints run ahead of its work. The first four are published, see Takemasa et al. (2017), 6.5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub enum Schedule {
    /// No hints.
    Naive,
    /// Buckets of the packet at hand are prefetched.
    BucketPrefetch,
    /// Hashes of the next packet are computed ahead, and its buckets prefetched.
    PreHash,
    /// As `PreHash`, and entries are prefetched by what the buckets say ("SHTL").
    Speculative,
    /// A whole burst in stages, hashed in lanes.
    Burst,
}

impl Schedule {
    /// All, in the order in which they build on each other.
    pub const ALL: [Schedule; 5] =
        [Schedule::Naive, Schedule::BucketPrefetch, Schedule::PreHash, Schedule::Speculative, Schedule::Burst];
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Schedule::Naive => "Naive",
            Schedule::BucketPrefetch => "BucketPrefetch",
            Schedule::PreHash => "PreHash",
            Schedule::Speculative => "Speculative",
            Schedule::Burst => "Burst",
        })
    }
}

/// What to measure.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineParameters {
    /// Schedules, each on the same packets.
    pub schedules: Vec<Schedule>,
    /// Names in the FIB and in packets.
    pub workload: WorkloadParameters,
    /// Bytes of content in each Data.
    pub payload_bytes: usize,
    /// Pending Interests.
    pub in_flight: usize,
    /// Share of Interests that the Content Store answers, 0 to 1.
    pub hit_ratio: f64,
    /// Workers, each on a core of its own.
    pub workers: usize,
    /// Only what the papers' prototypes did: no PIT tokens, NDNLPv2 headers, strategy, timers, dead nonce list.
    pub stripped: bool,
    /// Time to measure each schedule.
    pub time: Duration,
}

/// A figure for each of the three ways that packets take.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct ByPacket<T> {
    /// Interests that the Content Store does not answer: "I-miss".
    pub interest_miss: T,
    /// Interests that the Content Store answers: "I-hit".
    pub interest_hit: T,
    /// Data.
    pub data: T,
}

/// What one schedule costs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScheduleFigures {
    /// Which.
    pub schedule: Schedule,
    /// Time-stamp counter ticks per Interest that the Content Store does not answer.
    pub imiss_cycles: f64,
    /// Ticks per Interest that the Content Store answers.
    pub ihit_cycles: f64,
    /// Ticks per Data.
    pub data_cycles: f64,
    /// Nanoseconds of one core per Interest and its Data, cache misses only.
    pub pair_ns: f64,
    /// Million packets per second, Interests and Data, of all workers.
    pub mpps: f64,
    /// Cache lines of tables that a packet touches, counted.
    pub lines: ByPacket<f64>,
    /// Hardware counters per packet, where the machine has them.
    pub counters: Option<ByPacket<CounterFigures>>,
}

/// Somebody who can measure the forwarding engine.
pub trait EngineMeasurements {
    /// Figures for each schedule asked for, in that order.
    fn measure(&mut self, parameters: &EngineParameters) -> Result<Vec<ScheduleFigures>, Box<dyn Error + Send + Sync>>;
}
