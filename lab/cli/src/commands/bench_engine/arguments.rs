//! Options of `namehop bench engine`.

use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use namehop_orders::ScheduleKind;
use namehop_traffic::workload::WorkloadKind;
use namehop_wire::MAX_NAME_COMPONENTS;

use super::policies;
use namehop_cli::units::parse_seconds;

/// Measure the cost of packets in the forwarding engine
///
/// Complete frames pass from one in-memory Ethernet port through a worker of the router to another port, with the full
/// protocol. The schedules differ in how far the engine prefetches: most are published techniques, 'burst' is the
/// router's own. EXCHANGE is the cost of an Interest and its Data together: the total time divided by the number of
/// Data. The other columns are the costs of an Interest that misses the cache, an Interest that hits it, and a Data, in
/// ticks of the time-stamp counter per packet.
///
/// The default load is that of a router on a fast link: a million pending Interests, a cache of four million packets,
/// Data in another order than the Interests, packets that are not in the core's caches, eight faces, bursts with both
/// kinds of packets, and one of a hundred Interests unanswered. '--load published' is the load of the publications, for
/// comparison with other routers. Both have prefixes of 2 to 6 components and names of 7, so that the search for a
/// prefix reads 4 buckets of the FIB on average (published: 3.87 and slightly more).
///
/// The 13,548,815 prefixes and the cache take 5 GiB of memory. Before each run, packets pass for the longest time that
/// an Interest is pending. In a run, the schedules alternate in turns of 25 ms over the same tables, so that changes in
/// the speed of the host affect all of them. Reserved huge pages are used. Other programs on the host disturb the
/// measurement. The ports need DPDK: the package namehop-ports, or 'make ports'.
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
    /// Load to measure [default: realistic; published with --flood and --workload]
    #[arg(long, value_enum, value_name = "LOAD")]
    pub(super) load: Option<LoadKind>,
    /// Schedules to measure [default: all published ones and burst]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = schedule_names(), ignore_case = true)]
    pub(super) schedule: Vec<Chosen>,
    /// Prefixes in the FIB
    #[arg(long, value_name = "N", default_value_t = 13_548_815, value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) fib: u64,
    /// Number of different names in Interests; 0 = every Interest has a new name
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) names: u64,
    /// Components per name
    #[arg(long, value_name = "N", default_value_t = 7)]
    pub(super) components: usize,
    /// Bytes per component
    #[arg(long, value_name = "N", default_value_t = 9)]
    pub(super) component_bytes: usize,
    /// Average number of components of the FIB's prefixes
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(super) prefix_components: usize,
    /// Maximum deviation from that number of components; 0 = all prefixes have the same number
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(super) prefix_spread: usize,
    /// Bytes of content per Data [default: 128, 1024 with --workload]
    #[arg(long, value_name = "N")]
    pub(super) payload_bytes: Option<usize>,
    /// Data returns without the Interest's PIT token
    #[arg(long)]
    pub(super) data_without_token: bool,
    /// Number of pending Interests [default: 1000000, published 4096]
    #[arg(long, value_name = "N")]
    pub(super) in_flight: Option<usize>,
    /// Capacity of the Content Store in packets; 0 = no cache [default: 4194304, or as many as take 2 GiB if they have
    /// more than 512 bytes of content; published 65536, 100000 with --workload]
    #[arg(long, value_name = "N")]
    pub(super) cs: Option<usize>,
    /// Share of Interests that the Content Store answers, from 0 to below 1
    #[arg(long, value_name = "X", default_value_t = 0.0)]
    pub(super) hit_ratio: f64,
    /// Share of Interests without an answer, from 0 to below 1 [default: 0.01, published 0]
    #[arg(long, value_name = "X")]
    pub(super) unanswered: Option<f64>,
    /// Packets per burst of a worker, at most 64
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub(super) burst: usize,
    /// Packets of a group that are prefetched together; the router measures at start which number suits the host
    /// [default: 32]
    #[arg(long, value_name = "N")]
    pub(super) lookahead: Option<usize>,
    /// Number of workers, each on its own core
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) workers: usize,
    /// Dispatch names among the workers, as the router does, and measure the transfers between workers. Each SHARE,
    /// from 0 to 1, is the share of packets received by another worker than their owner. One worker is measured for
    /// comparison. Peers and faces are simplified: they use rings as socket faces do, and the workers' threads act as
    /// peers in untimed sections
    #[arg(
        long,
        value_name = "SHARES",
        value_delimiter = ',',
        conflicts_with_all = ["flood", "stripped", "computing", "schedule"]
    )]
    pub(super) misplaced: Vec<f64>,
    /// Time per schedule in each run
    #[arg(long, value_name = "S", default_value = "2s", value_parser = parse_seconds)]
    pub(super) seconds: Duration,
    /// Number of runs through all schedules; several runs show the spread
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) runs: usize,
    /// Also measure each schedule on the stripped path that publications measured, and print the relative cost of the
    /// full protocol
    ///
    /// The stripped path looks up Content Store, PIT and FIB by name, and sends Interests to the first next hop and
    /// Data to the downstream faces. It omits NDNLPv2 headers and PIT tokens, strategies, timers, nonces and the dead
    /// nonce list, CanBePrefix, MustBeFresh, forwarding hints, HopLimits and scopes. It exists only in this
    /// measurement; the router has no such mode.
    #[arg(long, conflicts_with = "flood")]
    pub(super) stripped: bool,
    /// Also measure each schedule with tables that fit into the core's caches, and print which part of its cost is
    /// computing and which is waiting for memory
    #[arg(long, conflicts_with = "flood")]
    pub(super) computing: bool,
    /// Measure a flood instead: this share of every burst, above 0 and below 1, are unanswered Interests with random
    /// names from a face of their own [default schedule: burst]
    #[arg(long, value_name = "SHARE")]
    pub(super) flood: Option<f64>,
    /// Components per name of the flood
    #[arg(long, value_name = "N", default_value_t = MAX_NAME_COMPONENTS, requires = "flood")]
    pub(super) flood_components: usize,
    /// Bytes per component of the flood's names
    #[arg(long, value_name = "N", default_value_t = 9, requires = "flood")]
    pub(super) flood_component_bytes: usize,
    /// The flood's Interests have CanBePrefix and names of any length up to --flood-components
    #[arg(long, requires = "flood")]
    pub(super) flood_can_be_prefix: bool,
    /// Measure cache policies instead: Interests follow this workload (web, video, mixed, lossy or flash). The Content
    /// Store answers from what its policy has kept; a producer answers the rest. Each policy has its own tables. After
    /// the caches have filled, the policies alternate in turns of 25 ms
    #[arg(long, value_name = "NAME", conflicts_with_all = [
        "flood", "stripped", "computing", "schedule", "misplaced", "workers", "names", "hit_ratio", "unanswered",
        "data_without_token", "load",
    ])]
    pub(super) workload: Option<WorkloadKind>,
    /// Policies, or 'all'; the first one is the reference [default: fifo, the router's default policy, and the
    /// published ones]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = policies::parse, requires = "workload")]
    pub(super) policy: Vec<policies::Chosen>,
    /// Number of objects of the web workload
    #[arg(long, value_name = "N", requires = "workload", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) objects: Option<u64>,
    /// Requests with each policy before measuring, enough to fill its cache [default: 60 per packet of the Content
    /// Store's capacity]
    #[arg(long, value_name = "N", requires = "workload")]
    pub(super) warm_up: Option<u64>,
    /// Also time the blocks of the published packet flow with each policy, on the stripped path
    #[arg(long, requires = "workload")]
    pub(super) blocks: bool,
    /// Do not measure the rate of memory, from which the floor is computed
    #[arg(long)]
    pub(super) no_floor: bool,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// A load by name.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoadKind {
    /// Load of a router on a fast link
    Realistic,
    /// Load of the publications: few pending Interests, a small cache, bursts of one kind, packets in the core's caches
    Published,
}

/// One schedule or all.
#[derive(Debug, Clone, Copy)]
pub(super) enum Chosen {
    All,
    One(ScheduleKind),
}

/// Parses the name of a schedule, or `all`. Help texts and error messages list the names.
fn schedule_names() -> impl TypedValueParser<Value = Chosen> {
    let names = ScheduleKind::ALL.iter().map(|schedule| PossibleValue::new(schedule.name()).help(schedule.about()));
    let all = PossibleValue::new("all").help("All of them");
    PossibleValuesParser::new(names.chain([all]))
        .try_map(|name| if name.eq_ignore_ascii_case("all") { Ok(Chosen::All) } else { name.parse().map(Chosen::One) })
}
