//! What measurements of the forwarding engine say, schedule by schedule, and the trait through which they are asked for.
//!
//! The crate that reproduces published figures needs measurements of the engine and not the engine itself: this is the
//! interface between them.

use std::error::Error;
use std::time::Duration;

use namehop_engine::schedule::ScheduleKind;
use namehop_store::PolicyKind;
use serde::{Serialize, Serializer};

use crate::counters::CounterFigures;
use crate::policy::{BlockFigures, PolicyFigures, PolicyParameters};
use crate::progress::OnProgress;
use crate::workload::WorkloadParameters;

/// What to measure: [`published`](Self::published) or [`realistic`](Self::realistic), or changed from one of these.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineParameters {
    /// Schedules, each on the same packets.
    pub schedules: Vec<ScheduleKind>,
    /// Names in the FIB and in packets.
    pub workload: WorkloadParameters,
    /// Different names that Interests ask for, one after another and again from the start; 0 = never the same.
    pub names: u64,
    /// Bytes of content in each Data.
    pub payload_bytes: usize,
    /// Pending Interests.
    pub in_flight: usize,
    /// Share of Interests that the Content Store answers, 0 to below 1.
    pub hit_ratio: f64,
    /// Share of Interests that are never answered, 0 to below 1.
    pub unanswered: f64,
    /// Packets that the Content Store may hold.
    pub cs_capacity: usize,
    /// What leaves the Content Store when it is full.
    pub cs_policy: PolicyKind,
    /// Nonces that the dead nonce list has room for.
    pub dead_nonce_capacity: usize,
    /// Packets that the worker gets at a time, at most 64.
    pub burst: usize,
    /// Which packets come together, and in which order they come back.
    pub traffic: Traffic,
    /// Peers on each of the two links, each a face of its own.
    pub peers: usize,
    /// Does Data come back with its PIT token?
    pub data_has_token: bool,
    /// Where packets lie when the worker gets them, and who takes and gives back their buffers.
    pub buffers: Buffers,
    /// Time on the worker's clock that has to pass before measuring begins, so that timers are due as often as they are set.
    pub warm_up: Duration,
    /// Packets of a group in the burst schedule; `None` as the engine has it.
    pub lookahead: Option<usize>,
    /// Workers, each on a core of its own.
    pub workers: usize,
    /// Time to measure each schedule in each run.
    pub time: Duration,
    /// Runs, each through all schedules.
    pub runs: usize,
    /// Measure each schedule on the stripped path, too (see [`ScheduleFigures::stripped`]).
    pub stripped: bool,
    /// Measure each schedule with small tables, too (see [`ScheduleFigures::computing`]).
    pub computing: bool,
    /// Cache that one core has for itself, in bytes: what is used again soon enough is not counted as a line from beyond.
    pub private_cache_bytes: usize,
}

/// Which packets come together, and in which order Data comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Traffic {
    /// Bursts of one kind of packet from one link: Interests from the first, Data from the second, in the order of the
    /// Interests.
    Sorted,
    /// Bursts of Interests and Data from both links, as they happen to come. Data comes back in any order. A tenth of the
    /// bursts each is of Interests and of Data alone, to tell what these cost.
    Mixed,
}

/// Where packets lie when the worker gets them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Buffers {
    /// In the core's first caches, just written; buffers are taken and given back outside the measured time.
    Near,
    /// In the last-level cache, where network cards put them: each packet is written long before its turn. In the measured
    /// time one buffer is taken for each packet received, and one given back for each packet sent, as drivers of network cards
    /// do.
    Far,
}

impl EngineParameters {
    /// The published load (Takemasa et al., 2017, 6.2), with the whole protocol on.
    pub fn published() -> Self {
        EngineParameters {
            schedules: ScheduleKind::TECHNIQUES.to_vec(),
            workload: WorkloadParameters::default(),
            names: 0,
            payload_bytes: 128,
            in_flight: 4_096,
            hit_ratio: 0.0,
            unanswered: 0.0,
            cs_capacity: 65_536,
            // With names that never come again, a policy that chooses would let nothing in and leave the cache out.
            cs_policy: PolicyKind::Lru,
            dead_nonce_capacity: 1 << 20,
            burst: 64,
            traffic: Traffic::Sorted,
            peers: 1,
            data_has_token: true,
            buffers: Buffers::Near,
            warm_up: Duration::ZERO,
            lookahead: None,
            workers: 1,
            time: Duration::from_secs(2),
            runs: 1,
            stripped: false,
            computing: false,
            private_cache_bytes: 2 << 20,
        }
    }

    /// What a router on a fast link meets: prefixes of 2 to 6 components, a million Interests pending, a cache far larger than
    /// the processor's, Data in another order than Interests, packets in the last-level cache, several faces, both kinds of
    /// packets in each burst, and one Interest in a hundred without answer.
    pub fn realistic() -> Self {
        EngineParameters {
            workload: WorkloadParameters { prefix_spread: 2, ..WorkloadParameters::default() },
            in_flight: 1_000_000,
            unanswered: 0.01,
            cs_capacity: 1 << 22,
            traffic: Traffic::Mixed,
            peers: 4,
            buffers: Buffers::Far,
            // Longer than the lifetime of an Interest, and than the 4.3 s after which its timer is gone at last.
            warm_up: Duration::from_millis(6_500),
            ..EngineParameters::published()
        }
    }
}

/// A flood: Interests with random names below prefixes of the FIB, which nobody answers, from a face of their own.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FloodParameters {
    /// Share of the packets of every burst that are the flood's, above 0 and below 1.
    pub share: f64,
    /// Components of each name.
    pub components: usize,
    /// Bytes of each component.
    pub component_bytes: usize,
    /// Ask with CanBePrefix?
    pub can_be_prefix: bool,
}

/// What a flood does to others.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FloodFigures {
    /// Its shape.
    pub flood: FloodParameters,
    /// Ticks of the time-stamp counter per ordinary Interest, without the flood and while it lasts, in bursts without it.
    pub imiss_cycles: Compared,
    /// Ticks per ordinary Data, likewise.
    pub data_cycles: Compared,
    /// Ticks per packet of the flood.
    pub flood_cycles: f64,
    /// The same by the mean of an ordinary Interest and its Data without flood.
    pub flood_vs_ordinary: f64,
    /// Million ordinary packets per second, Interests and Data.
    pub ordinary_mpps: Compared,
    /// Throughput of ordinary packets in the flood, by that without.
    pub throughput_ratio: f64,
    /// Part of its throughput that ordinary traffic loses, by the flood's share of packets: at most 1 when every packet of
    /// the flood costs at most as much as others do.
    pub slowdown_vs_share: f64,
    /// Packets of the flood that the router sent on, of all.
    pub flood_forwarded: f64,
}

/// A figure without a flood and with it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Compared {
    /// Before it.
    pub without: f64,
    /// While it lasts.
    pub with: f64,
}

/// Least and most of several runs.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Spread {
    /// Least.
    pub least: f64,
    /// Most.
    pub most: f64,
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
    #[serde(serialize_with = "by_name")]
    pub schedule: ScheduleKind,
    /// Time-stamp counter ticks per Interest that the Content Store does not answer: the median of bursts.
    pub imiss_cycles: f64,
    /// Ticks per Interest that the Content Store answers: the median of bursts.
    pub ihit_cycles: f64,
    /// Ticks per Data: the median of bursts.
    pub data_cycles: f64,
    /// Nanoseconds of one core per Interest and its Data, cache misses only, by the medians of bursts.
    pub pair_ns: f64,
    /// Of the runs.
    pub pair_ns_spread: Spread,
    /// Ticks per packet, all ticks by all packets of bursts of one kind: work that is not done in every burst is in it, and so
    /// are interruptions.
    pub total_cycles: ByPacket<f64>,
    /// Nanoseconds of one core per exchange, an Interest and its Data, cache misses only: all ticks by all Data, of mixed bursts
    /// where there are some. What unanswered Interests cost is in it.
    pub exchange_ns: f64,
    /// Of the runs.
    pub exchange_ns_spread: Spread,
    /// Million packets per second, Interests and Data, of all workers, by `exchange_ns`.
    pub mpps: f64,
    /// Cache lines of tables that a packet needs from beyond the core's own cache, counted.
    pub lines: ByPacket<f64>,
    /// Do these lines not depend on a trifle? They do when what is pending just about fits into that cache.
    pub lines_are_clear: bool,
    /// Hardware counters per packet, where the machine has them; 0 for a kind of packet that there was none of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counters: Option<ByPacket<CounterFigures>>,
    /// The same schedule on the path that publications measured, where that was measured here, too: Content Store, PIT and
    /// FIB by name, without PIT tokens, NDNLPv2 headers, strategy, timers and dead nonce list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stripped: Option<PacketCosts>,
    /// `exchange_ns` by that of the stripped path: the median of the runs' ratios.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whole_vs_stripped: Option<f64>,
    /// The same with tables so small that they stay in the core's caches, where that was measured: what is left is computing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub computing: Option<PacketCosts>,
    /// `exchange_ns` above that with small tables: what large tables cost that was not hidden. The median of the runs'
    /// differences.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_ns: Option<f64>,
}

/// What the packets of one schedule cost under other conditions than its [`ScheduleFigures`]. Units as there.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PacketCosts {
    /// Ticks per Interest that the Content Store does not answer.
    pub imiss_cycles: f64,
    /// Ticks per Interest that the Content Store answers.
    pub ihit_cycles: f64,
    /// Ticks per Data.
    pub data_cycles: f64,
    /// Nanoseconds per Interest and its Data, cache misses only.
    pub pair_ns: f64,
    /// Of the runs.
    pub pair_ns_spread: Spread,
    /// All time by all Data.
    pub exchange_ns: f64,
    /// Of the runs.
    pub exchange_ns_spread: Spread,
    /// Hardware counters per packet, where the machine has them; 0 for a kind of packet that there was none of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counters: Option<ByPacket<CounterFigures>>,
}

/// One of the three ways that packets take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketKind {
    /// An Interest that the Content Store does not answer.
    InterestMiss,
    /// An Interest that the Content Store answers.
    InterestHit,
    /// A Data.
    Data,
}

impl PacketKind {
    /// All of them.
    pub const ALL: [PacketKind; 3] = [PacketKind::InterestMiss, PacketKind::InterestHit, PacketKind::Data];
}

impl<T> ByPacket<T> {
    /// That of one kind.
    pub fn get(&self, kind: PacketKind) -> &T {
        match kind {
            PacketKind::InterestMiss => &self.interest_miss,
            PacketKind::InterestHit => &self.interest_hit,
            PacketKind::Data => &self.data,
        }
    }

    /// That of one kind.
    pub fn get_mut(&mut self, kind: PacketKind) -> &mut T {
        match kind {
            PacketKind::InterestMiss => &mut self.interest_miss,
            PacketKind::InterestHit => &mut self.interest_hit,
            PacketKind::Data => &mut self.data,
        }
    }

    /// Something made of each.
    pub fn map<U>(&self, mut of: impl FnMut(&T) -> U) -> ByPacket<U> {
        ByPacket { interest_miss: of(&self.interest_miss), interest_hit: of(&self.interest_hit), data: of(&self.data) }
    }
}

fn by_name<S: Serializer>(schedule: &ScheduleKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(schedule.name())
}

/// Measures the forwarding engine.
pub trait EngineMeasurements {
    /// Figures for each schedule asked for, in that order.
    fn measure(
        &mut self,
        parameters: &EngineParameters,
        on_progress: &OnProgress<'_>,
    ) -> Result<Vec<ScheduleFigures>, Box<dyn Error + Send + Sync>>;

    /// Figures for each cache policy asked for, in that order: a list for each run.
    fn measure_policies(
        &mut self,
        parameters: &EngineParameters,
        of: &PolicyParameters,
        on_progress: &OnProgress<'_>,
    ) -> Result<Vec<Vec<PolicyFigures>>, Box<dyn Error + Send + Sync>>;

    /// What the blocks of the flow of packets take with each cache policy, in that order, first with the schedule `Naive`, then with
    /// `Burst`: a list for each run.
    fn measure_blocks(
        &mut self,
        parameters: &EngineParameters,
        of: &PolicyParameters,
        on_progress: &OnProgress<'_>,
    ) -> Result<Vec<Vec<BlockFigures>>, Box<dyn Error + Send + Sync>>;
}
