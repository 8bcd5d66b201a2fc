//! What the measurement of the forwarding engine is told.

use std::time::Duration;

use clap::{Args, ValueEnum};
use namehop_engine::schedule::{ScheduleKind, UnknownSchedule};
use namehop_simulate::workload::WorkloadKind;
use namehop_wire::MAX_NAME_COMPONENTS;

use super::policies;
use crate::units::parse_seconds;

/// Measure what packets cost in the forwarding engine
///
/// Complete frames go from one Ethernet port in memory through a worker of the router to another, with the whole protocol
/// on. The schedules differ in how far the engine fetches memory ahead: most are published techniques, 'burst' is what the
/// router uses. EXCHANGE is what an Interest and its Data cost together, all time by all Data; beside it stands what Interests
/// that the cache does not answer, those that it answers, and Data cost, in ticks of the time-stamp counter per packet.
///
/// The load is what a router on a fast link meets: prefixes of 2 to 6 components, a million pending Interests, a cache of four
/// million packets, Data that comes back in another order, packets that are not in the core's own caches, eight faces, both
/// kinds of packets in each burst, and one Interest in a hundred without answer. '--load published' is the load of the
/// publications that other routers are compared with.
///
/// The 13,548,815 prefixes and the cache take 5 GiB of memory; before each run, packets pass for as long as an Interest is pending
/// at most. In a run, the schedules take turns of 25 ms over the same tables, so that a machine that is faster at one time than at
/// another is so for all of them. Huge pages, when they are reserved, are used; other programs on the machine disturb.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  namehop bench engine
  namehop bench engine --schedule all
  namehop bench engine --schedule naive,burst --runs 5
  namehop bench engine --burst 4 --payload-bytes 1000
  namehop bench engine --load published --runs 5
  namehop bench engine --load published --cs 0 --computing
  namehop bench engine --workers 2 --schedule burst
  namehop bench engine --workers 2 --misplaced 0,0.5 --load published
  namehop bench engine --stripped --runs 5
  namehop bench engine --fib 1000000 --flood 0.5
  namehop bench engine --workload web
  namehop bench engine --workload web --policy fifo,filter,arc --blocks --fib 1000000")]
pub struct EngineArgs {
    /// Load to measure with [default: realistic; published with --flood and --workload]
    #[arg(long, value_enum, value_name = "LOAD")]
    pub(super) load: Option<LoadKind>,
    /// Schedules to measure, or 'all' with all variants [default: naive, bucket-prefetch,
    /// pre-hash, speculative, speculative-pairs, burst]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_schedule)]
    pub(super) schedule: Vec<Chosen>,
    /// Prefixes in the FIB
    #[arg(long, value_name = "N", default_value_t = 13_548_815, value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) fib: u64,
    /// Different names that Interests ask for; 0 = never the same again
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) names: u64,
    /// Components of each name
    #[arg(long, value_name = "N", default_value_t = 7)]
    pub(super) components: usize,
    /// Bytes of each component
    #[arg(long, value_name = "N", default_value_t = 9)]
    pub(super) component_bytes: usize,
    /// Components of prefixes in the FIB, on average
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(super) prefix_components: usize,
    /// Prefixes have up to so many components less or more than that [default: 2, published 0]
    #[arg(long, value_name = "N")]
    pub(super) prefix_spread: Option<usize>,
    /// Bytes of content in each Data [default: 128, 1024 with --workload]
    #[arg(long, value_name = "N")]
    pub(super) payload_bytes: Option<usize>,
    /// Data comes back without the PIT token that the Interest had
    #[arg(long)]
    pub(super) data_without_token: bool,
    /// Pending Interests [default: 1000000, published 4096]
    #[arg(long, value_name = "N")]
    pub(super) in_flight: Option<usize>,
    /// Packets that the Content Store may hold; 0 = no cache [default: 4194304, fewer of those
    /// with more than 512 bytes of content: as many as take 2 GiB; published 65536, 100000 with --workload]
    #[arg(long, value_name = "N")]
    pub(super) cs: Option<usize>,
    /// Share of Interests that the Content Store answers, from 0 to below 1
    #[arg(long, value_name = "X", default_value_t = 0.0)]
    pub(super) hit_ratio: f64,
    /// Share of Interests that nobody answers, from 0 to below 1 [default: 0.01, published 0]
    #[arg(long, value_name = "X")]
    pub(super) unanswered: Option<f64>,
    /// Packets that a worker gets at a time, at most 64
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub(super) burst: usize,
    /// Packets of a group that are looked at together ahead of their turn; the router measures at start how many suit the
    /// machine [default: 32]
    #[arg(long, value_name = "N")]
    pub(super) lookahead: Option<usize>,
    /// Workers, each on a core of its own
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) workers: usize,
    /// Divide names among the workers, as the router does, and measure what they hand to each other: with these shares of packets
    /// coming in at another worker than the one they belong to, each from 0 to 1. One worker is measured for comparison. Peers and
    /// faces are simpler than otherwise: over rings as those of sockets, and played by the threads of the workers, untimed
    #[arg(long, value_name = "SHARES", value_delimiter = ',', conflicts_with_all = ["flood", "stripped", "computing", "schedule"])]
    pub(super) misplaced: Vec<f64>,
    /// Time for each schedule in each run
    #[arg(long, value_name = "S", default_value = "2s", value_parser = parse_seconds)]
    pub(super) seconds: Duration,
    /// Runs through all schedules; more than one shows the spread
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) runs: usize,
    /// Measure each schedule also on the path that publications have measured, and print what the whole protocol costs in
    /// comparison
    ///
    /// That path looks up Content Store, PIT and FIB by name, sends Interests to the first next hop and Data to the faces
    /// that asked. Left out are NDNLPv2 headers and PIT tokens, strategies, timers, nonces and the dead nonce list,
    /// CanBePrefix, MustBeFresh, forwarding hints, HopLimits and scopes. It is no mode of the router: only this measurement
    /// has it.
    #[arg(long, conflicts_with = "flood")]
    pub(super) stripped: bool,
    /// Measure each schedule also with tables so small that they stay in the core's caches, and print how much of its cost is
    /// computing, and how much is waiting for memory
    #[arg(long, conflicts_with = "flood")]
    pub(super) computing: bool,
    /// Measure a flood instead: this share of the packets of every burst, above 0 and below 1, are Interests with random
    /// names that nobody answers, from a face of their own [default schedule: burst]
    #[arg(long, value_name = "SHARE")]
    pub(super) flood: Option<f64>,
    /// Components of the flood's names
    #[arg(long, value_name = "N", default_value_t = MAX_NAME_COMPONENTS, requires = "flood")]
    pub(super) flood_components: usize,
    /// Bytes of each component of the flood's names
    #[arg(long, value_name = "N", default_value_t = 9, requires = "flood")]
    pub(super) flood_component_bytes: usize,
    /// The flood's Interests carry CanBePrefix and have names of any length up to that
    #[arg(long, requires = "flood")]
    pub(super) flood_can_be_prefix: bool,
    /// Measure cache policies instead: requests for what this workload asks for (web, video or mixed), of which the Content Store
    /// answers what its policy has kept. What it cannot answer is fetched from a producer. Each policy has tables of its own; after
    /// their caches have filled up, policies take turns of 25 ms
    #[arg(long, value_name = "NAME", conflicts_with_all = [
        "flood", "stripped", "computing", "schedule", "misplaced", "workers", "names", "hit_ratio", "unanswered",
        "data_without_token", "load",
    ])]
    pub(super) workload: Option<WorkloadKind>,
    /// Policies, or 'all'; others are compared with the first [default: fifo, the router's default, and those of the publications]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = policies::parse, requires = "workload")]
    pub(super) policy: Vec<policies::Chosen>,
    /// Objects of the web workload
    #[arg(long, value_name = "N", requires = "workload", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) objects: Option<u64>,
    /// Requests with each policy before anything is measured; they have to fill its cache [default: 60 for each packet that the
    /// Content Store may hold]
    #[arg(long, value_name = "N", requires = "workload")]
    pub(super) warm_up: Option<u64>,
    /// Also time the blocks of the published flow of packets with each policy, on the path of the publications
    #[arg(long, requires = "workload")]
    pub(super) blocks: bool,
    /// Do not measure the memory's rate, which the floor follows from
    #[arg(long)]
    pub(super) no_floor: bool,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// A load by name.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoadKind {
    /// What a router on a fast link meets
    Realistic,
    /// That of the publications: prefixes of 4 components, few Interests pending and a small cache, bursts of one kind, packets
    /// in the core's own caches
    Published,
}

/// One schedule or all.
#[derive(Debug, Clone, Copy)]
pub(super) enum Chosen {
    All,
    One(ScheduleKind),
}

fn parse_schedule(text: &str) -> Result<Chosen, UnknownSchedule> {
    if text.eq_ignore_ascii_case("all") { Ok(Chosen::All) } else { text.parse().map(Chosen::One) }
}
