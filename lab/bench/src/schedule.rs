//! Parameters and results of measurements of the forwarding engine, by schedule.
//!
//! The crate that reproduces published figures depends on these types and not on the engine.

use std::time::Duration;

use namehop_orders::ScheduleKind;
use namehop_store::PolicyKind;
use serde::{Serialize, Serializer};

use crate::counters::CounterFigures;
use crate::workload::WorkloadParameters;

/// Parameters of a measurement. Start from [`published`](Self::published) or [`realistic`](Self::realistic).
#[derive(Debug, Clone, PartialEq)]
pub struct EngineParameters {
    /// Schedules, each measured with the same packets.
    pub schedules: Vec<ScheduleKind>,
    /// Names in the FIB and in packets.
    pub workload: WorkloadParameters,
    /// Number of different names that Interests request, in order and repeatedly; 0 if names never repeat.
    pub names: u64,
    /// Bytes of content in each Data packet.
    pub payload_bytes: usize,
    /// Number of pending Interests.
    pub in_flight: usize,
    /// Share of Interests that the Content Store answers, 0 to below 1.
    pub hit_ratio: f64,
    /// Share of Interests that are never answered, 0 to below 1.
    pub unanswered: f64,
    /// Capacity of the Content Store, in packets.
    pub cs_capacity: usize,
    /// Eviction policy of the Content Store.
    pub cs_policy: PolicyKind,
    /// Capacity of the dead nonce list, in nonces.
    pub dead_nonce_capacity: usize,
    /// Packets per burst of the worker, at most 64.
    pub burst: usize,
    /// Composition of bursts, and order of returning Data.
    pub traffic: Traffic,
    /// Peers on each of the two links; each peer is a face.
    pub peers: usize,
    /// True if Data returns with its PIT token.
    pub data_has_token: bool,
    /// Location of packets when the worker receives them, and buffer handling.
    pub buffers: Buffers,
    /// Time on the worker's clock that must pass before measuring, so that as many timers expire as are set.
    pub warm_up: Duration,
    /// Packets per group in the burst schedule; `None` for the engine's default.
    pub lookahead: Option<usize>,
    /// Number of workers, each on its own core.
    pub workers: usize,
    /// Measuring time per schedule and run.
    pub time: Duration,
    /// Number of runs, each through all schedules.
    pub runs: usize,
    /// If true, each schedule is also measured on the stripped path (see [`ScheduleFigures::stripped`]).
    pub stripped: bool,
    /// If true, each schedule is also measured with small tables (see [`ScheduleFigures::computing`]).
    pub computing: bool,
    /// Size of a core's private cache in bytes. Lines used again while they fit into it are not counted as fetched from
    /// beyond it.
    pub private_cache_bytes: usize,
}

/// Composition of bursts, and order of returning Data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Traffic {
    /// Each burst has one kind of packet from one link: Interests from the first link, Data from the second. Data
    /// returns in the order of the Interests.
    Sorted,
    /// Each burst has Interests and Data from both links, in random composition. Data returns in any order. A tenth of
    /// the bursts has only Interests and another tenth only Data, to measure the cost of each kind.
    Mixed,
}

/// Location of packets when the worker receives them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Buffers {
    /// In the core's private caches, just written. Buffers are allocated and freed outside the measured time.
    Near,
    /// In the last-level cache, as with network cards: packets are written long before they are received. The measured
    /// time includes one buffer allocation per received packet and one release per sent packet, as in drivers of
    /// network cards.
    Far,
}

impl EngineParameters {
    /// The published load (Takemasa et al., 2017, 6.2), with the whole protocol enabled.
    ///
    /// Prefixes have 2 to 6 components, all lengths being equally frequent, and names have 7. So a longest-first search
    /// reads 4 FIB buckets on average. The publications state the averages, 4 components of a prefix and 7 of a name,
    /// and that a search takes slightly more than the 3.87 lookups of So et al. (2013). They do not state how lengths
    /// are distributed.
    pub fn published() -> Self {
        EngineParameters {
            schedules: ScheduleKind::compared(),
            workload: WorkloadParameters { prefix_spread: 2, ..WorkloadParameters::default() },
            names: 0,
            payload_bytes: 128,
            in_flight: 4_096,
            hit_ratio: 0.0,
            unanswered: 0.0,
            cs_capacity: 65_536,
            // Names never repeat, so a policy with admission control would admit nothing, and the cache would not be
            // measured.
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

    /// The load of a router on a fast link, with the prefixes and names of the [published](Self::published) one. A
    /// million Interests are pending, and the Content Store is far larger than the CPU's cache. Data returns in another
    /// order than Interests, packets are in the last-level cache, there are several faces, bursts have both kinds of
    /// packets, and one Interest in a hundred is unanswered.
    pub fn realistic() -> Self {
        EngineParameters {
            in_flight: 1_000_000,
            unanswered: 0.01,
            cs_capacity: 1 << 22,
            traffic: Traffic::Mixed,
            peers: 4,
            buffers: Buffers::Far,
            // Longer than the lifetime of an Interest, and than the 4.3 s after which its timer is finally removed.
            warm_up: Duration::from_millis(6_500),
            ..EngineParameters::published()
        }
    }
}

/// An Interest flood: Interests with random names below prefixes of the FIB, without answers, from a separate face.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FloodParameters {
    /// Share of flood packets in every burst, above 0 and below 1.
    pub share: f64,
    /// Components of each name.
    pub components: usize,
    /// Bytes of each component.
    pub component_bytes: usize,
    /// True if flood Interests have CanBePrefix set.
    pub can_be_prefix: bool,
}

/// Effect of a flood on ordinary traffic.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FloodFigures {
    /// Parameters of the flood.
    pub flood: FloodParameters,
    /// Time-stamp counter ticks per ordinary Interest, in bursts without flood packets: without the flood and during
    /// it.
    pub imiss_cycles: Compared,
    /// As `imiss_cycles`, per ordinary Data packet.
    pub data_cycles: Compared,
    /// Ticks per flood packet.
    pub flood_cycles: f64,
    /// Ratio of `flood_cycles` to the mean of an ordinary Interest and its Data without flood.
    pub flood_vs_ordinary: f64,
    /// Million ordinary packets per second, Interests and Data.
    pub ordinary_mpps: Compared,
    /// Ratio of ordinary throughput during the flood to that without.
    pub throughput_ratio: f64,
    /// Lost share of ordinary throughput, divided by the flood's share of packets. At most 1 if a flood packet costs no
    /// more than other packets.
    pub slowdown_vs_share: f64,
    /// Share of flood packets that the router forwarded.
    pub flood_forwarded: f64,
}

/// A figure without the flood and during it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Compared {
    /// Without the flood.
    pub without: f64,
    /// During the flood.
    pub with: f64,
}

/// Least and most of several runs.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Spread {
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
}

/// A value for each of the three packet paths.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct ByPacket<T> {
    /// Interests that the Content Store does not answer: "I-miss".
    pub interest_miss: T,
    /// Interests that the Content Store answers: "I-hit".
    pub interest_hit: T,
    /// Data.
    pub data: T,
}

/// Cost of packets with one schedule.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScheduleFigures {
    /// The schedule.
    #[serde(serialize_with = "by_name")]
    pub schedule: ScheduleKind,
    /// Time-stamp counter ticks per Interest that the Content Store does not answer: median over bursts.
    pub imiss_cycles: f64,
    /// Ticks per Interest that the Content Store answers: median over bursts.
    pub ihit_cycles: f64,
    /// Ticks per Data packet: median over bursts.
    pub data_cycles: f64,
    /// Nanoseconds of one core per Interest and its Data, cache misses only, from the medians over bursts.
    pub pair_ns: f64,
    /// Spread of `pair_ns` over the runs.
    pub pair_ns_spread: Spread,
    /// Ticks per packet: total ticks over total packets, from bursts of one kind. Includes work that not every burst
    /// has, and interruptions.
    pub total_cycles: ByPacket<f64>,
    /// Nanoseconds of one core per exchange, an Interest and its Data, cache misses only: total ticks over total Data,
    /// from mixed bursts if there are any. Includes the cost of unanswered Interests.
    pub exchange_ns: f64,
    /// Spread of `exchange_ns` over the runs.
    pub exchange_ns_spread: Spread,
    /// Million packets per second, Interests and Data, of all workers, from `exchange_ns`.
    pub mpps: f64,
    /// Cache lines of tables that a packet fetches from beyond the core's private cache, counted.
    pub lines: ByPacket<f64>,
    /// True if the count of lines is robust. It is not if the pending state just about fits into that cache.
    pub lines_are_clear: bool,
    /// Hardware counters per packet, if available; 0 for a kind of packet that did not occur.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counters: Option<ByPacket<CounterFigures>>,
    /// Costs of the same schedule on the published path, if measured: Content Store, PIT and FIB by name, without PIT
    /// tokens, NDNLPv2 headers, strategy, timers and dead nonce list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stripped: Option<PacketCosts>,
    /// Ratio of `exchange_ns` to that of the stripped path: median over the runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whole_vs_stripped: Option<f64>,
    /// Costs with tables small enough for the core's caches, if measured: computation only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub computing: Option<PacketCosts>,
    /// `exchange_ns` minus that with small tables: the exposed memory latency of large tables. Median over the runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_ns: Option<f64>,
}

/// Costs of packets with one schedule under other conditions than its [`ScheduleFigures`], in the same units.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PacketCosts {
    /// Ticks per Interest that the Content Store does not answer.
    pub imiss_cycles: f64,
    /// Ticks per Interest that the Content Store answers.
    pub ihit_cycles: f64,
    /// Ticks per Data packet.
    pub data_cycles: f64,
    /// Nanoseconds per Interest and its Data, cache misses only.
    pub pair_ns: f64,
    /// Spread of `pair_ns` over the runs.
    pub pair_ns_spread: Spread,
    /// Nanoseconds per exchange: total time over total Data.
    pub exchange_ns: f64,
    /// Spread of `exchange_ns` over the runs.
    pub exchange_ns_spread: Spread,
    /// Hardware counters per packet, if available; 0 for a kind of packet that did not occur.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counters: Option<ByPacket<CounterFigures>>,
}

/// A packet path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketKind {
    /// An Interest that the Content Store does not answer.
    InterestMiss,
    /// An Interest that the Content Store answers.
    InterestHit,
    /// A Data packet.
    Data,
}

impl PacketKind {
    /// All packet paths.
    pub const ALL: [PacketKind; 3] = [PacketKind::InterestMiss, PacketKind::InterestHit, PacketKind::Data];
}

impl<T> ByPacket<T> {
    /// The value of one kind.
    pub fn get(&self, kind: PacketKind) -> &T {
        match kind {
            PacketKind::InterestMiss => &self.interest_miss,
            PacketKind::InterestHit => &self.interest_hit,
            PacketKind::Data => &self.data,
        }
    }

    /// The value of one kind.
    pub fn get_mut(&mut self, kind: PacketKind) -> &mut T {
        match kind {
            PacketKind::InterestMiss => &mut self.interest_miss,
            PacketKind::InterestHit => &mut self.interest_hit,
            PacketKind::Data => &mut self.data,
        }
    }

    /// Applies a function to each value.
    pub fn map<U>(&self, mut of: impl FnMut(&T) -> U) -> ByPacket<U> {
        ByPacket { interest_miss: of(&self.interest_miss), interest_hit: of(&self.interest_hit), data: of(&self.data) }
    }
}

fn by_name<S: Serializer>(schedule: &ScheduleKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(schedule.name())
}
