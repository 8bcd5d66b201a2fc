//! `namehop bench`: measurements, and the load generator for sockets.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use namehop_client::target::TransportUri;
use namehop_traffic::loadgen::{self, Load, LoadConfig, LoadReport, Role};
use namehop_wire::Name;
use serde::Serialize;

use super::bench_disk::DiskArgs;
use super::bench_engine::EngineArgs;
use super::bench_fib::FibBenchArgs;
use super::bench_idle::IdleArgs;
use super::bench_links::LinksArgs;
use super::bench_memory::MemoryArgs;
use super::bench_peers::PeersArgs;
use namehop_cli::connection::{ConnectionArgs, stop_when_interrupted};
use namehop_cli::failure::{Failure, FailureKind};
use namehop_cli::output::{self, properties};
use namehop_cli::progress::Progress;
use namehop_cli::signing::CommandSigningArgs;
use namehop_cli::units::{milliseconds, parse_duration};

/// Measure a forwarder, its tables or this host
#[derive(Args, Debug)]
pub struct BenchArgs {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Subcommand, Debug)]
enum BenchCommand {
    Sockets(Box<SocketsArgs>),
    Peers(PeersArgs),
    Memory(MemoryArgs),
    Engine(Box<EngineArgs>),
    Links(LinksArgs),
    Idle(IdleArgs),
    Fib(FibBenchArgs),
    Disk(DiskArgs),
}

/// Role of this process.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum RoleArg {
    /// Consumer and producer
    Both,
    /// Consumer only
    Consumer,
    /// Producer only
    Producer,
}

/// Saturate a forwarder with Interest-Data exchanges over its sockets
///
/// A consumer keeps a number of Interests in flight and a producer answers them, on two connections. Without --names,
/// every Interest has a new name, so that caches do not answer. With --pid, also reports the forwarder's CPU time per
/// exchange.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  namehop bench sockets --duration 10s --pid $(pidof namehop)
  namehop bench sockets --in-flight 256 --payload 1000 --json
  namehop bench sockets --transport udp4://127.0.0.1:6363 --control unix:///run/nfd/nfd.sock
  namehop bench sockets --signing-key operator.key --certificate operator.ndncert")]
struct SocketsArgs {
    /// Role of this process
    #[arg(long, value_enum, default_value = "both")]
    role: RoleArg,
    /// Connection of the producer [default: the forwarder of --transport]
    #[arg(long, value_name = "URI")]
    producer_transport: Option<TransportUri>,
    /// Local connection that registers the prefix if the producer is on UDP
    #[arg(long, value_name = "URI")]
    control: Option<TransportUri>,
    /// Prefix of the names
    #[arg(long, value_name = "NAME", default_value = "/namehop/bench")]
    prefix: Name,
    /// Number of Interests in flight
    #[arg(short = 'n', long, value_name = "N", default_value_t = 128)]
    in_flight: usize,
    /// Bytes of content per Data
    #[arg(short = 's', long, value_name = "BYTES", default_value_t = 100)]
    payload: usize,
    /// Cycle through this many names instead of using each once
    #[arg(long, value_name = "N", default_value_t = 0)]
    names: u64,
    /// Freshness period of the Data
    #[arg(long, value_name = "DURATION", default_value = "0", value_parser = parse_duration)]
    freshness: Duration,
    /// Time before measuring starts
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = parse_duration)]
    warm_up: Duration,
    /// Duration of the measurement
    #[arg(short = 'd', long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    duration: Duration,
    /// Time after which an Interest counts as lost
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = parse_duration)]
    lifetime: Duration,
    /// Process id of the forwarder: report the CPU time of it and its descendants
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    #[command(flatten)]
    signing: CommandSigningArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct BenchResult {
    elapsed_s: f64,
    exchanges: u64,
    exchanges_per_s: f64,
    interests: u64,
    timeouts: u64,
    nacks: u64,
    unexpected: u64,
    malformed: u64,
    served: u64,
    rtt_min_us: Option<f64>,
    rtt_avg_us: Option<f64>,
    rtt_p50_us: Option<f64>,
    rtt_p90_us: Option<f64>,
    rtt_p99_us: Option<f64>,
    rtt_p999_us: Option<f64>,
    rtt_max_us: Option<f64>,
    forwarder_user_s: Option<f64>,
    forwarder_system_s: Option<f64>,
    forwarder_cpu_us_per_exchange: Option<f64>,
    generator_cpu_us_per_exchange: Option<f64>,
}

impl BenchResult {
    fn of(report: &LoadReport) -> Self {
        let rtt = report.rtt_ns.as_ref().filter(|rtt| !rtt.is_empty());
        let percentile = |percent| rtt.map(|rtt| rtt.value_at_percentile(percent) as f64 / 1e3);
        Self {
            elapsed_s: report.elapsed_s,
            exchanges: report.exchanges,
            exchanges_per_s: report.exchanges_per_second(),
            interests: report.interests,
            timeouts: report.timeouts,
            nacks: report.nacks,
            unexpected: report.unexpected,
            malformed: report.malformed,
            served: report.served,
            rtt_min_us: rtt.map(|rtt| rtt.min() as f64 / 1e3),
            rtt_avg_us: rtt.map(|rtt| rtt.mean() / 1e3),
            rtt_p50_us: percentile(50.0),
            rtt_p90_us: percentile(90.0),
            rtt_p99_us: percentile(99.0),
            rtt_p999_us: percentile(99.9),
            rtt_max_us: rtt.map(|rtt| rtt.max() as f64 / 1e3),
            forwarder_user_s: report.observed_cpu.map(|used| used.total.user.as_secs_f64()),
            forwarder_system_s: report.observed_cpu.map(|used| used.total.system.as_secs_f64()),
            forwarder_cpu_us_per_exchange: report.observed_cpu.and_then(|used| report.cpu_us_per_exchange(used)),
            generator_cpu_us_per_exchange: report.cpu_us_per_exchange(report.own_cpu),
        }
    }

    fn describe(&self) -> String {
        let mut pairs = vec![
            (
                "Exchanges",
                format!("{:.0} per second ({} in {:.2} s)", self.exchanges_per_s, self.exchanges, self.elapsed_s),
            ),
            (
                "Errors",
                format!(
                    "{} time-outs, {} Nacks, {} unexpected, {} malformed",
                    self.timeouts, self.nacks, self.unexpected, self.malformed
                ),
            ),
        ];
        if let (Some(min), Some(p50), Some(p90), Some(p99), Some(p999), Some(max)) =
            (self.rtt_min_us, self.rtt_p50_us, self.rtt_p90_us, self.rtt_p99_us, self.rtt_p999_us, self.rtt_max_us)
        {
            let text =
                format!("min {min:.0}, 50% {p50:.0}, 90% {p90:.0}, 99% {p99:.0}, 99.9% {p999:.0}, max {max:.0} us");
            pairs.push(("RTT", text));
        }
        if let (Some(user), Some(system)) = (self.forwarder_user_s, self.forwarder_system_s) {
            let each =
                self.forwarder_cpu_us_per_exchange.map(|us| format!(", {us:.3} us per exchange")).unwrap_or_default();
            pairs.push(("Forwarder CPU", format!("{user:.2} s user, {system:.2} s system{each}")));
        }
        if let Some(us) = self.generator_cpu_us_per_exchange {
            pairs.push(("Generator CPU", format!("{us:.3} us per exchange")));
        }
        properties(&pairs)
    }
}

impl BenchArgs {
    pub fn run(self, connection: &ConnectionArgs) -> Result<(), Failure> {
        match self.command {
            BenchCommand::Sockets(args) => args.run(connection),
            BenchCommand::Peers(args) => args.run(),
            BenchCommand::Memory(args) => args.run(),
            BenchCommand::Engine(args) => args.run(),
            BenchCommand::Links(args) => args.run(),
            BenchCommand::Idle(args) => args.run(),
            BenchCommand::Fib(args) => args.run(),
            BenchCommand::Disk(args) => args.run(),
        }
    }
}

impl SocketsArgs {
    fn run(self, connection: &ConnectionArgs) -> Result<(), Failure> {
        let consumer = connection.first_candidate()?;
        let producer = self.producer_transport.clone().unwrap_or_else(|| consumer.clone());
        let role = match self.role {
            RoleArg::Both => Role::Both,
            RoleArg::Consumer => Role::Consumer,
            RoleArg::Producer => Role::Producer,
        };
        let config = LoadConfig {
            role,
            consumer,
            producer,
            control: self.control,
            signer: self.signing.signer()?,
            load: Load {
                prefix: self.prefix,
                in_flight: self.in_flight,
                payload_bytes: self.payload,
                names: self.names,
                freshness_ms: milliseconds(self.freshness),
                lifetime: self.lifetime,
            },
            warm_up: self.warm_up,
            duration: self.duration,
            pid: self.pid,
        };
        let stop = Arc::new(AtomicBool::new(false));
        stop_when_interrupted(&stop)?;
        let progress = Progress::of_steps();
        progress.set_message("exchanging packets with the forwarder");
        let report = loadgen::run(&config, &stop)?;
        drop(progress);
        let result = BenchResult::of(&report);
        if self.json {
            output::json(&result)?;
        } else if role == Role::Producer {
            output::line(format!("{} Interests answered", report.served))?;
        } else {
            output::print(&result.describe())?;
        }
        if role != Role::Producer && report.exchanges == 0 {
            return Err(Failure::new(FailureKind::Nothing, "no Data was received"));
        }
        Ok(())
    }
}
