//! `namehop bench peers`: compares several forwarders under the same load.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::{Args, ValueEnum};
use namehop_bench::machine::Machine;
use namehop_bench::peers::{
    self, Axes, CacheCase, ForwarderSpec, Limit, PeerFigures, PeersFigures, PeersParameters, SocketKind,
};
use serde::Serialize;

use crate::steps::show;
use namehop_cli::connection::stop_when_interrupted;
use namehop_cli::failure::{Failure, FailureKind};
use namehop_cli::output::{self, Align, Table};
use namehop_cli::programs;
use namehop_cli::progress::Progress;
use namehop_cli::units::parse_seconds;

/// Compare forwarders under the same load
///
/// Each --forwarder is started by its command, with placeholders for where it is to listen, or is reached at its
/// socket. A consumer keeps Interests in flight and a producer answers them, over sockets of one kind. In each case,
/// all forwarders take turns. A forwarder need only speak the NFD management protocol, as NFD, ndnd and Namehop do;
/// 'namehop' is the program beside this one. The first one is the reference for the others.
///
/// Each case differs from the first one, which has the first value of each list, in one value; --all combines all
/// values. CPU is the CPU time of the forwarder and its descendants per exchange. LIMIT is what limits the exchanges:
/// the forwarder, with threads or CPUs fully used; the generator (consumer and producer); both; or neither, if few
/// Interests are in flight and the time of a round trip decides. Forwarders and generator run on separate CPUs.
#[derive(Args, Debug)]
#[command(after_help = "Placeholders in commands, and in files given as {copy:FILE}:
  {socket}     path at which the forwarder must open its Unix socket
  {port}       port of 127.0.0.1 on which it must listen with TCP and UDP
  {folder}     a temporary folder
  {copy:FILE}  a copy of this file in that folder, with placeholders replaced

Examples:
  namehop bench peers
  namehop bench peers --forwarder namehop --forwarder 'ndnd fw run {copy:ndnd.yml}' --routes 0,100000
  namehop bench peers --forwarder new=namehop --forwarder 'old=/usr/bin/namehop run --config {copy:old.toml}' \
  --cache hit-few
  namehop bench peers --forwarder namehop --forwarder 'nfd=unix:///run/nfd/nfd.sock?port=6363'
  namehop bench peers --all --socket unix --window 1,256 --payload 100 --routes 0 --json")]
pub struct PeersArgs {
    /// A forwarder: 'namehop', a command with placeholders, or unix:///PATH[?port=N&pid=N] of a running one. NAME=…
    /// names it
    #[arg(long, value_name = "[NAME=]COMMAND", default_value = "namehop")]
    forwarder: Vec<ForwarderSpec>,
    /// Kinds of sockets of consumer and producer
    #[arg(long, value_enum, value_name = "LIST", value_delimiter = ',', default_value = "unix,tcp,udp")]
    socket: Vec<SocketArg>,
    /// Number of Interests in flight, each 1 to 16384
    #[arg(
        short = 'n',
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "64,1,4,16,256",
        value_parser = clap::value_parser!(u32).range(1..=16_384)
    )]
    window: Vec<u32>,
    /// Bytes of content per Data, each at most 8000
    #[arg(
        short = 's',
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "1000,100,8000",
        value_parser = clap::value_parser!(u32).range(..=8_000)
    )]
    payload: Vec<u32>,
    /// State of the cache
    #[arg(
        long,
        value_enum,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "miss-empty,miss-full,hit-few,hit-full"
    )]
    cache: Vec<CacheArg>,
    /// Routes besides that of the producer, each at most 10 million; they lead nowhere and are removed at the end
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "0,100000,1000000",
        value_parser = clap::value_parser!(u64).range(..=10_000_000)
    )]
    routes: Vec<u64>,
    /// Combine all values
    #[arg(long)]
    all: bool,
    /// Capacity of the caches in packets
    #[arg(
        long,
        value_name = "PACKETS",
        default_value_t = 32_768,
        value_parser = clap::value_parser!(u64).range(1024..=100_000_000)
    )]
    cache_packets: u64,
    /// CPUs of the started forwarders [default: all but the first one or two]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    processors: Option<Vec<usize>>,
    /// Time before each turn
    #[arg(long, value_name = "S", default_value = "0.3s", value_parser = parse_seconds)]
    warm_up: Duration,
    /// Time per turn, at least 0.2 s; the system counts CPU time in hundredths of a second
    #[arg(long, value_name = "S", default_value = "1s", value_parser = parse_seconds)]
    seconds: Duration,
    /// Turns per forwarder and case
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Minimum duration of a turn: its CPU time is accurate to a tenth.
const SHORTEST_TURN: Duration = Duration::from_millis(200);

/// Kinds of sockets on the command line.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum SocketArg {
    /// Unix stream sockets
    Unix,
    /// TCP over the loopback interface
    Tcp,
    /// UDP over the loopback interface
    Udp,
}

/// States of the cache on the command line.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum CacheArg {
    /// Names never repeat, and the cache admits nothing
    MissEmpty,
    /// Names never repeat, and the cache is full
    MissFull,
    /// The cache answers, and holds little else
    HitFew,
    /// The cache answers and is full; half of its Data is requested
    HitFull,
}

impl From<SocketArg> for SocketKind {
    fn from(socket: SocketArg) -> Self {
        match socket {
            SocketArg::Unix => SocketKind::Unix,
            SocketArg::Tcp => SocketKind::Tcp,
            SocketArg::Udp => SocketKind::Udp,
        }
    }
}

impl From<CacheArg> for CacheCase {
    fn from(cache: CacheArg) -> Self {
        match cache {
            CacheArg::MissEmpty => CacheCase::MissEmpty,
            CacheArg::MissFull => CacheCase::MissFull,
            CacheArg::HitFew => CacheCase::HitFew,
            CacheArg::HitFull => CacheCase::HitFull,
        }
    }
}

#[derive(Serialize)]
struct Report {
    machine: Machine,
    cache_packets: u64,
    turn_s: f64,
    #[serde(flatten)]
    figures: PeersFigures,
}

impl PeersArgs {
    pub fn run(self) -> Result<(), Failure> {
        if self.seconds < SHORTEST_TURN {
            return Err(Failure::usage(
                "a turn must last at least 0.2 s: the kernel counts CPU time in steps of 10 ms",
            ));
        }
        let parameters = PeersParameters {
            program: programs::beside(programs::ROUTER),
            forwarders: self.forwarder,
            axes: Axes {
                sockets: self.socket.into_iter().map(SocketKind::from).collect(),
                windows: self.window.into_iter().map(|window| window as usize).collect(),
                payloads: self.payload.into_iter().map(|bytes| bytes as usize).collect(),
                caches: self.cache.into_iter().map(CacheCase::from).collect(),
                routes: self.routes,
                all_combinations: self.all,
            },
            cache_packets: self.cache_packets,
            warm_up: self.warm_up,
            turn: self.seconds,
            turns: self.runs as usize,
            processors: self.processors,
        };
        let stop = Arc::new(AtomicBool::new(false));
        stop_when_interrupted(&stop)?;
        let progress = Progress::of_steps();
        let figures = peers::measure(&parameters, &stop, &|step| show(&progress, step)).map_err(Failure::failed)?;
        drop(progress);
        let failures = failures(&figures);
        let is_empty = figures.cases.iter().flat_map(|case| &case.forwarders).all(|one| one.turns == 0);
        if self.json {
            let turn_s = self.seconds.as_secs_f64();
            let machine = Machine::detect();
            output::json(&Report { machine, cache_packets: self.cache_packets, turn_s, figures })?;
        } else {
            output::print(&describe(&figures))?;
        }
        match failures {
            None if is_empty => Err(Failure::new(FailureKind::Nothing, "nothing was measured")),
            None => Ok(()),
            Some(failures) => Err(Failure::failed(failures)),
        }
    }
}

/// Returns every failure with the cases in which it occurred, and the logs of the forwarders.
fn failures(figures: &PeersFigures) -> Option<String> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for case in &figures.cases {
        for one in &case.forwarders {
            let Some(failure) = &one.failure else { continue };
            let text = format!("{} {failure}", one.name);
            match found.iter_mut().find(|(other, _)| *other == text) {
                Some((_, cases)) => cases.push(case.case.to_string()),
                None => found.push((text, vec![case.case.to_string()])),
            }
        }
    }
    let mut lines: Vec<String> = found.iter().map(|(text, cases)| format!("{text} ({})", cases.join("; "))).collect();
    let logs = figures.logs.iter().filter(|(_, log)| !log.is_empty());
    lines.extend(logs.map(|(name, log)| format!("{name} said:\n{log}")));
    (!found.is_empty()).then(|| lines.join("\n"))
}

fn describe(figures: &PeersFigures) -> String {
    let mut table = Table::new(&[
        ("SOCKET", Align::Left),
        ("WINDOW", Align::Right),
        ("BYTES", Align::Right),
        ("CACHE", Align::Left),
        ("ROUTES", Align::Right),
        ("FORWARDER", Align::Left),
        ("EXCHANGES/S", Align::Right),
        ("RATIO", Align::Right),
        ("CPU US", Align::Right),
        ("QUARTILES", Align::Right),
        ("RATIO", Align::Right),
        ("RTT 50%", Align::Right),
        ("99%", Align::Right),
        ("99.9%", Align::Right),
        ("HITS", Align::Right),
        ("LOST", Align::Right),
        ("MEMORY", Align::Right),
        ("LIMIT", Align::Left),
    ]);
    for case in &figures.cases {
        for (index, one) in case.forwarders.iter().enumerate() {
            let of_case = [
                case.case.socket.to_string(),
                case.case.window.to_string(),
                case.case.payload_bytes.to_string(),
                case.case.cache.to_string(),
                case.case.routes.to_string(),
            ];
            // Each case is shown once, in the row of its first forwarder.
            let of_case = of_case.map(|text| if index == 0 { text } else { String::new() });
            table.row([of_case.to_vec(), of_forwarder(one)].concat());
        }
    }
    let all = || figures.cases.iter().flat_map(|case| &case.forwarders).filter(|one| one.turns > 0);
    let held_back = all().filter(|one| matches!(one.limit, Limit::Generator | Limit::Both)).count();
    let (placed, of) = (&figures.processors, all().count());
    let places =
        format!("Forwarders on CPUs {:?}, consumer and producer on CPUs {:?}.\n", placed.forwarders, placed.generator);
    let check = match held_back {
        0 => "The generator never limited the rate.\n".to_owned(),
        _ => format!(
            "In {held_back} of {of} rows the generator limited the rate: the forwarder can do more, and CPU per \
             exchange is valid.\n"
        ),
    };
    table.render() + &places + &check
}

fn of_forwarder(one: &PeerFigures) -> Vec<String> {
    if one.turns == 0 {
        let mut row = vec![one.name.clone()];
        row.extend(std::iter::repeat_n("-".to_owned(), 11));
        row.push("failed".to_owned());
        return row;
    }
    let ratio = |ratio: Option<f64>| ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"));
    let (lower, upper) = one.cpu_us_quartiles;
    let limit = match one.limit {
        Limit::Forwarder => "forwarder",
        Limit::Generator => "generator",
        Limit::Both => "both",
        Limit::RoundTrip => "round trip",
    };
    vec![
        one.name.clone(),
        format!("{:.0}", one.exchanges_per_s),
        ratio(one.rate_ratio),
        format!("{:.2}", one.cpu_us),
        format!("{lower:.2} to {upper:.2}"),
        ratio(one.cpu_ratio),
        format!("{:.0} us", one.rtt_p50_us),
        format!("{:.0} us", one.rtt_p99_us),
        format!("{:.0} us", one.rtt_p999_us),
        format!("{:.0} %", 100.0 * one.hit_share),
        one.lost.to_string(),
        format!("{} MiB", one.resident_bytes >> 20),
        limit.to_owned(),
    ]
}
