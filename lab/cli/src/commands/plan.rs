//! `namehop plan`: computes the router capacity that a kind of traffic needs.

mod machine;
mod report;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use namehop_engine::fib::fib_bytes;
use namehop_engine::{content_store_bytes, pit_bytes};
use namehop_model::cache::FilterModel;
use namehop_model::plan::{Bounds, Demand, Limit, Machine, Need, Tables, need};
use namehop_model::throughput::Cost;
use namehop_power::server::{Load, Power};
use serde::Serialize;

use super::power::rates::Rates;
use machine::MachineArgs;
use namehop_cli::failure::Failure;
use namehop_cli::output;
use namehop_cli::units::{parse_bytes, parse_duration, parse_share};
use report::{chart, describe};

/// Cache sizes to compare, in packets.
const CACHE_PACKETS: [u64; 7] = [0, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000];
/// Factor by which the number of hosts grows while tables do not fit, and its maximum.
const MORE_MACHINES: f64 = 1.01;
const MOST_MACHINES: f64 = 1e9;
/// Requests until a packet is admitted in the cache model: as with the policy `filter`.
const THRESHOLD: u32 = 2;
/// Maximum number of requests that the policy remembers.
const MOST_HISTORY: u64 = 1 << 26;

/// Compute the router capacity that a kind of traffic needs
///
/// For a rate of Interests with their Data and a kind of host, computes: the number of workers; the memory of FIB, PIT
/// and cache; what bounds the rate (cores, memory, links) and how much of it is used; the hit rates of several cache
/// sizes; the memory rate and the power; and the number of such hosts if one is not enough. Names, and thus prefixes
/// and cached Data, are then divided among the hosts.
///
/// The host is one measured by 'namehop bench engine --json' and 'namehop bench memory --json', one of a publication,
/// or one described in a file. 'namehop reproduce' uses the same equations: min(N·F/C, B/M) of Taniguchi et al. (2016),
/// and equations 5.3 to 5.7 (hit rates) and 6.1 to 6.10 (power) of Takemasa's thesis (2019). Table sizes follow from
/// the router's own types.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  namehop plan --machine e5-2699v4 --rate 100Gbit/s --prefixes 10000000 --links 400Gbit/s
  namehop bench memory --json > memory.json && namehop bench engine --hit-ratio 0.3 --json > engine.json
  namehop plan --engine engine.json --memory memory.json --rate 1Mpps --cache 1000000 --contents 50000000
  namehop plan --machine lab.toml --rate 2Mpps --hit-rate 0.3 --server e3-1220 --svg plan.svg --json")]
pub struct PlanArgs {
    #[command(flatten)]
    machine: MachineArgs,
    /// Rate of Data to the consumers (Gbit/s, Mbit/s, kbit/s, bit/s) or of Interests (Mpps, kpps, pps)
    #[arg(short, long, value_name = "RATE")]
    rate: Rates,
    /// Bytes of an Interest
    #[arg(long, value_name = "BYTES", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=8_800))]
    interest_bytes: u32,
    /// Bytes of a Data packet
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = 1_100,
        value_parser = clap::value_parser!(u32).range(1..=8_800)
    )]
    data_bytes: u32,
    /// Bytes of a name
    #[arg(long, value_name = "BYTES", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=8_000))]
    name_bytes: u32,
    /// Prefixes in the FIB
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    prefixes: u64,
    /// Bytes of a prefix
    #[arg(long, value_name = "BYTES", default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..=8_000))]
    prefix_bytes: u32,
    /// Total number of packets in the caches of all hosts
    #[arg(long, value_name = "N", default_value_t = 65_536)]
    cache: u64,
    /// Share of the Interests that the caches answer, 0 to 1 or per cent [default: computed from --cache, --contents
    /// and --alpha]
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    hit_rate: Option<f64>,
    /// Number of packets that can be requested
    #[arg(long, value_name = "N", default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    contents: u64,
    /// Exponent of their popularity (Zipf's law), from 0 to 5
    #[arg(long, value_name = "ALPHA", default_value_t = 0.8)]
    alpha: f64,
    /// Time from a forwarded Interest to its Data
    #[arg(long, value_name = "TIME", default_value = "50ms", value_parser = parse_duration)]
    round_trip: Duration,
    /// Share of the forwarded Interests without an answer, 0 to 1 or per cent
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = parse_share)]
    unanswered: f64,
    /// How long such an Interest is pending
    #[arg(long, value_name = "TIME", default_value = "4s", value_parser = parse_duration)]
    lifetime: Duration,
    /// Maximum load of cores, memory and links, above 0 to 1 or per cent
    #[arg(long, value_name = "SHARE", default_value = "80%", value_parser = parse_share)]
    load: f64,
    /// Memory besides the tables on each host
    #[arg(long, value_name = "SIZE", default_value = "1 GiB", value_parser = parse_bytes)]
    other_memory: u64,
    /// Write a chart of the load of cores, memory and links by rate to this file, as SVG
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Result of a plan.
#[derive(Debug, Serialize)]
struct Report {
    /// Source of the host's figures.
    machine_is: String,
    machine: Machine,
    demand: Demand,
    prefixes: u64,
    cache_packets: u64,
    contents: u64,
    most_load: f64,
    /// Average cost of an Interest and its Data.
    cost: Cost,
    /// Bounds of one host; `null` if its links are unknown.
    bounds: Bounds,
    need: Need,
    /// Figures of each host.
    each: Each,
    caches: Vec<Cache>,
}

/// One of the hosts; all have the same share of the load.
#[derive(Debug, Serialize)]
struct Each {
    interests_per_second: f64,
    packets_per_second: f64,
    data_bits_per_second: f64,
    received_bits_per_second: f64,
    sent_bits_per_second: f64,
    /// Shares used of the total: cores, memory rate, links, memory.
    cores_load: f64,
    memory_rate_load: f64,
    links_load: f64,
    memory_load: f64,
    pending_interests: f64,
    tables: Tables,
    other_bytes: u64,
    memory_bytes_per_second: f64,
    /// Absent if the host's power is not described.
    power: Option<Power>,
    total_watts: Option<f64>,
}

/// Results with a cache of some size.
#[derive(Debug, Serialize)]
struct Cache {
    packets: u64,
    bytes: f64,
    hit_rate: f64,
    /// Maximum rate of one host with this cache.
    most_interests_per_second: f64,
}

impl PlanArgs {
    pub fn run(self) -> Result<(), Failure> {
        let report = self.report()?;
        if let Some(path) = &self.svg {
            std::fs::write(path, chart(&report).to_svg())
                .map_err(|error| Failure::from(error).context(path.display()))?;
        }
        if self.json { output::json(&report) } else { output::print(&describe(&report)) }
    }

    fn report(&self) -> Result<Report, Failure> {
        let rates = self.rate.interests_per_second(1, f64::from(self.data_bytes));
        let [rate] = rates[..] else { return Err(Failure::usage("--rate must be one rate, not a range")) };
        if rate <= 0.0 || self.load <= 0.0 || !(0.0..=5.0).contains(&self.alpha) {
            return Err(Failure::usage("--rate and --load must be above 0, and --alpha must be from 0 to 5"));
        }
        let hit_rate = self.hit_rate.unwrap_or_else(|| self.hits(self.cache));
        let described = self.machine.read(hit_rate)?;
        let mut machine = described.machine;
        machine.memory_bytes -= self.other_memory as f64;
        if machine.memory_bytes <= 0.0 {
            return Err(Failure::usage("--other-memory leaves no memory of the host for tables"));
        }
        let demand = self.demand(rate, hit_rate);
        let all = self.tables(&demand, 1.0);
        let mut need = need(&demand, &machine, &all, self.load);
        let (bounds, cost) = (demand.bounds(&machine), demand.cost(&machine.costs));
        let part_of = |machines: f64| Demand { interests_per_second: rate / machines, ..demand };
        // Buckets come in powers of two, so a part of a table can take more than its share of the memory.
        while self.tables(&part_of(need.machines), need.machines).total() > machine.memory_bytes {
            need.machines = (need.machines * MORE_MACHINES).ceil();
            need.limit = Limit::MemorySize;
            if need.machines > MOST_MACHINES {
                return Err(Failure::usage("the host's memory is too small for any part of these tables"));
            }
        }
        let part = part_of(need.machines);
        let tables = self.tables(&part, need.machines);
        let (received, sent) = part.link_bits();
        let load = Load {
            cycles_per_second: part.interests_per_second * cost.cycles,
            memory_bytes_per_second: part.interests_per_second * cost.bytes,
            packets_per_second: part.packets_per_second(),
        };
        let power = described.server.and_then(|server| server.power(&load));
        let each = Each {
            interests_per_second: part.interests_per_second,
            packets_per_second: load.packets_per_second,
            data_bits_per_second: 8.0 * demand.data_bytes * part.interests_per_second,
            received_bits_per_second: received * part.interests_per_second,
            sent_bits_per_second: sent * part.interests_per_second,
            cores_load: part.interests_per_second / bounds.by_computation,
            memory_rate_load: part.interests_per_second / bounds.by_memory_rate,
            links_load: part.interests_per_second / bounds.by_links,
            memory_load: tables.total() / machine.memory_bytes,
            pending_interests: part.pending(),
            tables,
            other_bytes: self.other_memory,
            memory_bytes_per_second: load.memory_bytes_per_second,
            total_watts: power.as_ref().map(Power::total_watts),
            power,
        };
        let caches = CACHE_PACKETS.into_iter().filter(|&packets| packets <= self.contents);
        let caches = caches.map(|packets| self.cache(packets, &demand, &machine)).collect();
        Ok(Report {
            machine_is: described.is,
            machine,
            demand,
            prefixes: self.prefixes,
            cache_packets: self.cache,
            contents: self.contents,
            most_load: self.load,
            cost,
            bounds,
            need,
            each,
            caches,
        })
    }

    fn demand(&self, interests_per_second: f64, hit_rate: f64) -> Demand {
        Demand {
            interests_per_second,
            interest_bytes: f64::from(self.interest_bytes),
            data_bytes: f64::from(self.data_bytes),
            hit_rate,
            unanswered: self.unanswered,
            round_trip_seconds: self.round_trip.as_secs_f64(),
            lifetime_seconds: self.lifetime.as_secs_f64(),
        }
    }

    /// Returns the table sizes of one of `machines` hosts.
    fn tables(&self, demand: &Demand, machines: f64) -> Tables {
        let part = |count: f64| (count / machines).ceil() as usize;
        let name_bytes = self.name_bytes as usize;
        Tables {
            fib_bytes: fib_bytes(part(self.prefixes as f64), self.prefix_bytes as usize) as f64,
            pit_bytes: pit_bytes(demand.pending().ceil() as usize, name_bytes) as f64,
            cache_bytes: self.cache_bytes(part(self.cache as f64)),
        }
    }

    fn cache_bytes(&self, packets: usize) -> f64 {
        if packets == 0 {
            return 0.0;
        }
        content_store_bytes(packets, self.data_bytes as usize, self.name_bytes as usize) as f64
    }

    /// Returns the share of the Interests that a cache of this many packets answers.
    fn hits(&self, packets: u64) -> f64 {
        if packets == 0 {
            return 0.0;
        }
        let (alpha, history) = (self.alpha, packets.min(MOST_HISTORY) as f64);
        let (packets, capacity, threshold) = (self.contents, packets, THRESHOLD);
        FilterModel { packets, alpha, capacity, history, threshold, counters: None }.rates().hit
    }

    fn cache(&self, packets: u64, demand: &Demand, machine: &Machine) -> Cache {
        let hit_rate = self.hits(packets);
        let most_interests_per_second = Demand { hit_rate, ..*demand }.bounds(machine).rate();
        let bytes = self.cache_bytes(usize::try_from(packets).unwrap_or(usize::MAX));
        Cache { packets, bytes, hit_rate, most_interests_per_second }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: PlanArgs,
    }

    fn report(line: &str) -> Result<Report, Failure> {
        Line::try_parse_from(format!("plan {line}").split_whitespace()).expect("understood").args.report()
    }

    #[test]
    fn the_published_computer_is_bound_by_its_cores() {
        let report = report("--machine e5-2699v4 --rate 1Mpps --hit-rate 30% --unanswered 0").expect("a plan");
        assert_eq!((report.need.limit, report.need.machines, report.need.workers), (Limit::Computation, 1.0, 1.0));
        assert!((report.cost.cycles - 1_682.5).abs() < 1e-9);
        assert!((report.each.cores_load - 1e6 * 1_682.5 / 22.0 / 2.2e9).abs() < 1e-9);
        assert_eq!(report.each.links_load, 0.0, "no link rate is given");
        let text = describe(&report);
        assert!(text.contains("cores") && text.contains("1 of 22 workers"), "{text}");
        assert_eq!(chart(&report).to_svg().matches("<polyline").count(), 2, "the chart omits links without a rate");
        serde_json::to_string(&report).expect("JSON");
    }

    #[test]
    fn prefixes_and_rates_beyond_one_computer_take_several() {
        let many = report("--machine e5-2699v4 --rate 1Mpps --prefixes 10000000000").expect("a plan");
        assert!(many.need.limit == Limit::MemorySize && many.need.machines >= 3.0, "{:?}", many.need);
        assert!(many.each.memory_load <= 1.0);
        let fast = report("--machine e5-2699v4 --rate 1000Gbit/s --links 100Gbit/s").expect("a plan");
        assert!(fast.need.limit == Limit::Links && fast.need.machines >= 12.0, "{:?}", fast.need);
        assert!(fast.each.links_load <= 0.8 + 1e-9);
        assert_eq!(chart(&fast).to_svg().matches("<polyline").count(), 3);
    }

    #[test]
    fn larger_caches_answer_more() {
        let report = report("--machine e5-2699v4 --rate 1Mpps").expect("a plan");
        let rates: Vec<f64> = report.caches.iter().map(|cache| cache.hit_rate).collect();
        assert_eq!((rates[0], rates.len()), (0.0, 5), "no capacity above the number of contents");
        assert!(rates.is_sorted() && rates[4] > 0.99, "{rates:?}");
        assert!(report.caches.is_sorted_by_key(|cache| cache.bytes));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for line in [
            "--rate 1Mpps",
            "--machine e5-2699v4 --rate 0..1Mpps",
            "--machine e5-2699v4 --rate 0Mpps",
            "--machine e5-2699v4 --rate 1Mpps --load 0",
            "--machine e5-2699v4 --rate 1Mpps --alpha 9",
            "--machine e5-2699v4 --rate 1Mpps --other-memory 1000GiB",
            "--machine e5-2699v4 --rate 1Mpps --other-memory 0 --ram 1",
            "--machine /does/not/exist --rate 1Mpps",
            "--engine /does/not/exist --memory /does/not/exist --rate 1Mpps",
        ] {
            assert!(report(line).is_err(), "{line}");
        }
    }
}
