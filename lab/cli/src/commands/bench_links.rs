//! `namehop bench links`: measures the cost of an exchange in a router, from frame to frame.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::{Args, ValueEnum};
use namehop_bench::links::sweep::{self, SweepParameters};
use namehop_bench::links::{self, LinkFigures, LinkKind, LinksFigures, LinksParameters, SHORTEST_TURN};
use namehop_bench::machine::Machine;
use namehop_bench::sweep::{ALL_SWEEPS, CaseFigures, NameMatch, Sweep, SweepFigures};
use namehop_client::nfd::LatencyCounts;
use namehop_reproduce::{Chart, link_charts};
use namehop_store::{PolicyChoice, PolicyKind};
use namehop_traffic::loadgen::Load;
use namehop_wire::Name;
use serde::Serialize;

use super::reproduce::write_charts;
use crate::steps::show;
use namehop_cli::connection::stop_when_interrupted;
use namehop_cli::failure::{Failure, FailureKind};
use namehop_cli::output::{self, Align, Table};
use namehop_cli::programs;
use namehop_cli::progress::Progress;
use namehop_cli::units::parse_seconds;

/// Measure the cost of an Interest and its Data in a router, from frame to frame, over links between processes
///
/// A Namehop router, as a separate process with one worker, forwards between two links: a consumer on one keeps
/// Interests in flight, and a producer on the other answers them. Both run in one thread on another CPU. Names never
/// repeat, so that the cache answers nothing and, with the policy lru, inserts all Data. Links are memif (shared
/// memory), or pairs of network interfaces over packet sockets (dev, AF_PACKET) or AF_XDP (xdp). The latter need root;
/// they are created in a separate network namespace and removed with it.
///
/// Sink and router alternate. The sink is a loop in place of the router that moves frames from one port to the other
/// without NDN: its cost is that of driver and kernel. BUSY is the time during which the router's worker, or the sink,
/// had work. NS/EXCHANGE is that time per exchange, with quartiles over turns. PROCESS is the CPU time of all threads
/// of the router, including idle polling. If GENERATOR is near 100 %, consumer and producer limit the rate. Several
/// strategies also alternate; object files of eBPF strategies are loaded first.
///
/// With --sweep, measures series of routers that differ in one parameter, as published for another router: workers and
/// components of names, payload, prefixes in the FIB, cache hits by exact name and by prefix, and latency inside the
/// router. Each run measures all of them, each with its own router. 'namehop reproduce' compares them with the
/// published values.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  namehop bench links
  namehop bench links --link memif,dev,xdp --runs 5
  namehop bench links --strategy best-route,best-route.o
  namehop bench links --payload 4000 --in-flight 64 --json
  namehop bench links --sweep payload,fib --svg charts
  namehop bench links --sweep all --runs 5")]
pub struct LinksArgs {
    /// Kinds of links
    #[arg(long, value_enum, value_name = "LIST", value_delimiter = ',', default_value = "memif")]
    link: Vec<LinkArg>,
    /// Strategies of the router to alternate: names, or object files of eBPF strategies (*.o)
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "best-route")]
    strategy: Vec<String>,
    #[command(flatten)]
    load: LinkLoadArgs,
    /// Policy of the router's Content Store, with its settings [default: lru; tinylfu-clock in sweeps with cache hits]
    #[arg(long, value_name = "POLICY")]
    cs_policy: Option<PolicyChoice>,
    /// Time before the first turn of each router, in which it fills its cache and allocates memory
    #[arg(long, value_name = "S", default_value = "3s", value_parser = parse_seconds)]
    warm_up: Duration,
    /// Time per turn, at least 1.2 s
    #[arg(long, value_name = "S", default_value = "2s", value_parser = parse_seconds)]
    seconds: Duration,
    /// Number of turns of the sink and of each strategy
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Measure series of routers that differ in one parameter: workers, payload, fib, cache, latency, or all
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = parse_sweep,
        conflicts_with_all = ["strategy", "payload", "prefix"]
    )]
    sweep: Vec<SweepArg>,
    /// Write charts of the series to this directory, as SVG
    #[arg(long, value_name = "DIR", requires = "sweep")]
    svg: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Load on the links.
#[derive(Args, Debug)]
pub(super) struct LinkLoadArgs {
    /// Number of Interests in flight; with a rate, the maximum
    #[arg(
        short = 'n',
        long,
        value_name = "N",
        default_value_t = 512,
        value_parser = clap::value_parser!(u32).range(1..=16_384)
    )]
    pub(super) in_flight: u32,
    /// Bytes of content per Data; frames are larger if it does not fit into 1500 bytes
    #[arg(
        short = 's',
        long,
        value_name = "BYTES",
        default_value_t = 1000,
        value_parser = clap::value_parser!(u32).range(..=8_000)
    )]
    pub(super) payload: u32,
    /// Prefix of the names
    #[arg(long, value_name = "NAME", default_value = "/namehop/bench")]
    prefix: Name,
}

impl LinkLoadArgs {
    /// Returns a load in which every Interest has a new name.
    pub(super) fn load(&self) -> Load {
        Load {
            prefix: self.prefix.clone(),
            in_flight: self.in_flight as usize,
            payload_bytes: self.payload as usize,
            names: 0,
            freshness_ms: 0,
            lifetime: Duration::from_secs(1),
        }
    }
}

/// Kinds of links on the command line.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum LinkArg {
    /// Shared memory
    Memif,
    /// Network interfaces over packet sockets (AF_PACKET)
    Dev,
    /// Network interfaces over AF_XDP
    Xdp,
}

impl From<LinkArg> for LinkKind {
    fn from(link: LinkArg) -> Self {
        match link {
            LinkArg::Memif => LinkKind::Memif,
            LinkArg::Dev => LinkKind::Dev,
            LinkArg::Xdp => LinkKind::Xdp,
        }
    }
}

#[derive(Serialize)]
struct Report {
    machine: Machine,
    in_flight: u32,
    payload_bytes: u32,
    turn_s: f64,
    #[serde(flatten)]
    figures: LinksFigures,
}

impl LinksArgs {
    pub fn run(self) -> Result<(), Failure> {
        if self.seconds < SHORTEST_TURN {
            return Err(Failure::usage(
                "a turn must last at least 1.2 s: routers update their worker statistics once per second",
            ));
        }
        if !self.sweep.is_empty() {
            return self.run_sweeps();
        }
        let load = self.load.load();
        let parameters = LinksParameters {
            links: self.link.into_iter().map(LinkKind::from).collect(),
            load,
            strategies: self.strategy,
            cs_policy: self.cs_policy.unwrap_or_else(|| PolicyKind::Lru.into()),
            warm_up: self.warm_up,
            turn: self.seconds,
            turns: self.runs as usize,
            program: programs::beside(programs::ROUTER),
        };
        let stop = Arc::new(AtomicBool::new(false));
        stop_when_interrupted(&stop)?;
        let progress = Progress::of_steps();
        let figures = links::measure(&parameters, &stop, &|step| show(&progress, step)).map_err(Failure::failed)?;
        drop(progress);
        let exchanges: u64 = figures.links.iter().map(|link| link.exchanges).sum();
        if self.json {
            let turn_s = self.seconds.as_secs_f64();
            let (in_flight, payload_bytes) = (self.load.in_flight, self.load.payload);
            output::json(&Report { machine: Machine::detect(), in_flight, payload_bytes, turn_s, figures })?;
        } else {
            output::print(&describe(&figures))?;
        }
        if exchanges == 0 { Err(Failure::new(FailureKind::Nothing, "no Data was received")) } else { Ok(()) }
    }
}

/// A value of `--sweep`.
#[derive(Debug, Clone, Copy)]
enum SweepArg {
    All,
    One(Sweep),
}

fn parse_sweep(text: &str) -> Result<SweepArg, String> {
    if text == "all" { Ok(SweepArg::All) } else { text.parse().map(SweepArg::One) }
}

impl LinksArgs {
    fn run_sweeps(self) -> Result<(), Failure> {
        let [link] = self.link[..] else {
            return Err(Failure::usage("--sweep measures one kind of link: give one with --link"));
        };
        let mut sweeps: Vec<Sweep> = Vec::new();
        for sweep in self.sweep {
            match sweep {
                SweepArg::All => sweeps.extend(ALL_SWEEPS),
                SweepArg::One(sweep) => sweeps.push(sweep),
            }
        }
        let stop = Arc::new(AtomicBool::new(false));
        stop_when_interrupted(&stop)?;
        let parameters = SweepParameters {
            link: link.into(),
            in_flight: self.load.in_flight as usize,
            warm_up: self.warm_up,
            turn: self.seconds,
            cs_policy: self.cs_policy,
            program: programs::beside(programs::ROUTER),
        };
        let mut measured = Vec::new();
        let progress = Progress::of_steps();
        for sweep in sweeps {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let on_progress = |step| show(&progress, step);
            let figures =
                sweep::measure(&parameters, sweep, self.runs as usize, &stop, &on_progress).map_err(Failure::failed)?;
            if let Some(directory) = &self.svg {
                let named = link_charts(&figures)
                    .into_iter()
                    .map(|chart| Chart { name: format!("links-{sweep}{}", chart.name), ..chart });
                write_charts(directory, &named.collect::<Vec<Chart>>())?;
            }
            if !self.json {
                progress.suspend(|| output::print(&describe_sweep(&figures)))?;
            }
            measured.push(figures);
        }
        drop(progress);
        if self.json {
            let (in_flight, turn_s) = (self.load.in_flight, self.seconds.as_secs_f64());
            output::json(&SweepReport {
                machine: Machine::detect(),
                link: parameters.link,
                in_flight,
                turn_s,
                sweeps: measured,
            })?;
        }
        Ok(())
    }
}

#[derive(Serialize)]
struct SweepReport {
    machine: Machine,
    link: LinkKind,
    in_flight: u32,
    turn_s: f64,
    sweeps: Vec<SweepFigures>,
}

fn describe_sweep(figures: &SweepFigures) -> String {
    let mut table = Table::new(&[
        ("WORKERS", Align::Right),
        ("COMPONENTS", Align::Right),
        ("PAYLOAD", Align::Right),
        ("FIB", Align::Right),
        ("CACHE", Align::Right),
        ("MATCH", Align::Left),
        ("HITS", Align::Right),
        ("DATA/S", Align::Right),
        ("RANGE", Align::Left),
        ("GBIT/S", Align::Right),
        ("NS/EXCHANGE", Align::Right),
        ("MISS 50%", Align::Right),
        ("95%", Align::Right),
        ("HIT 50%", Align::Right),
        ("DATA 50%", Align::Right),
        ("LOST", Align::Right),
        ("GENERATOR", Align::Right),
    ]);
    let mut shares = false;
    for case in &figures.cases {
        let CaseFigures { setting, data_per_s, latency, .. } = case;
        shares |= case.shares_processor;
        let middle = case.median_data_per_s();
        let least_and_most =
            data_per_s.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), &rate| (least.min(rate), most.max(rate)));
        let us = |times: &LatencyCounts, share| {
            times.quantile_ns(share).map_or_else(|| "-".to_owned(), |ns| format!("{:.1} us", ns as f64 / 1e3))
        };
        table.row([
            format!("{}{}", setting.workers, if case.shares_processor { "*" } else { "" }),
            setting.components.to_string(),
            setting.payload_bytes.to_string(),
            setting.fib_entries.to_string(),
            setting.cs_packets_per_worker.to_string(),
            if setting.matches == NameMatch::Exact { "exact" } else { "prefix" }.to_owned(),
            case.hit_share.map_or_else(|| "-".to_owned(), |share| format!("{:.0} %", 100.0 * share)),
            format!("{middle:.0}"),
            format!("{:.0} to {:.0}", least_and_most.0, least_and_most.1),
            format!("{:.2}", 8e-9 * middle * setting.payload_bytes as f64),
            format!("{:.0}", case.median_busy_ns()),
            us(&latency.cache_miss, 0.5),
            us(&latency.cache_miss, 0.95),
            us(&latency.cache_hit, 0.5),
            us(&latency.data, 0.5),
            case.lost.to_string(),
            format!("{:.0} %", 100.0 * case.generator_busy_share),
        ]);
    }
    let note = if shares { "* one worker shares its CPU with consumer and producer\n" } else { "" };
    format!("{}, policy {}:\n{}{note}\n", figures.sweep, figures.cs_policy, table.render())
}

fn describe(figures: &LinksFigures) -> String {
    let mut table = Table::new(&[
        ("LINK", Align::Left),
        ("THROUGH", Align::Left),
        ("EXCHANGES/S", Align::Right),
        ("BUSY", Align::Right),
        ("NS/EXCHANGE", Align::Right),
        ("QUARTILES", Align::Right),
        ("OVER SINK", Align::Right),
        ("RATIO", Align::Right),
        ("PROCESS", Align::Right),
        ("IN KERNEL", Align::Right),
        ("RTT 50%", Align::Right),
        ("99%", Align::Right),
        ("LOST", Align::Right),
        ("GENERATOR", Align::Right),
    ]);
    let ns = |ns: Option<f64>| ns.map_or_else(|| "-".to_owned(), |ns| format!("{ns:.0}"));
    for row in &figures.links {
        let of_link = || figures.links.iter().filter(|other| other.link == row.link && other.turns > 0);
        let sink = of_link().find(|other| other.strategy.is_none()).filter(|_| row.strategy.is_some());
        let first = of_link().find(|other| other.strategy.is_some()).filter(|_| row.strategy.is_some());
        let LinkFigures { busy_ns_quartiles: (lower, upper), .. } = row;
        table.row([
            row.link.to_string(),
            row.strategy.clone().unwrap_or_else(|| "sink".to_owned()),
            format!("{:.0}", row.exchanges_per_s),
            format!("{:.0} %", 100.0 * row.busy_share),
            format!("{:.0}", row.busy_ns),
            format!("{lower:.0} to {upper:.0}"),
            ns(sink.map(|sink| row.busy_ns - sink.busy_ns)),
            first.map_or_else(|| "-".to_owned(), |first| format!("{:.2}", row.busy_ns / first.busy_ns)),
            ns(row.process_ns),
            ns(row.process_kernel_ns),
            format!("{:.0} us", row.rtt_p50_us),
            format!("{:.0} us", row.rtt_p99_us),
            row.lost.to_string(),
            format!("{:.0} %", 100.0 * row.generator_busy_share),
        ]);
    }
    let placed = figures.processors;
    let places = format!(
        "Router and sink on CPU {}, consumer and producer on CPU {}; cache policy {}.\n",
        placed.forwarder, placed.generator, figures.cs_policy
    );
    table.render() + &places
}
