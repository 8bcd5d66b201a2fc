//! The subcommands.

use clap::{Parser, Subcommand};
use namehop_config::log_filter::{LOG_VARIABLE, parse_filter};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::connection::ConnectionArgs;
use crate::failure::{EXIT_CODES, Failure};

mod announce;
mod capture;
mod cat;
pub mod completions;
mod config;
mod cs;
mod face;
mod fetching;
mod fib;
mod key;
mod latency;
pub mod manual;
mod ndt;
mod other_programs;
mod ping;
mod prefixes;
mod publishing;
mod put;
mod route;
mod route_file;
mod run;
mod serve;
mod setup;
mod status;
mod strategy;
mod trace;
mod traffic;

/// Named Data Networking router and tools.
///
/// 'namehop run' is the router. The other commands talk to a running router: Namehop, NFD or any other that speaks the
/// NFD management protocol.
#[derive(Parser, Debug)]
#[command(name = "namehop", version, after_help = EXIT_CODES, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(subcommand)]
    command: CliCommand,
}

#[derive(Subcommand, Debug)]
enum CliCommand {
    Run(run::RunArgs),
    Setup(setup::SetupArgs),
    Config(config::ConfigArgs),
    Status(status::StatusArgs),
    Face(face::FaceArgs),
    Route(route::RouteArgs),
    Fib(fib::FibArgs),
    Strategy(strategy::StrategyArgs),
    Cs(cs::CsArgs),
    Ndt(ndt::NdtArgs),
    Trace(trace::TraceArgs),
    Capture(capture::CaptureArgs),
    Latency(latency::LatencyArgs),
    Ping(ping::PingArgs),
    Serve(serve::ServeArgs),
    Put(put::PutArgs),
    Cat(cat::CatArgs),
    Traffic(traffic::TrafficArgs),
    Key(key::KeyArgs),
    Bench(other_programs::BenchArgs),
    Cache(other_programs::CacheArgs),
    Power(other_programs::PowerArgs),
    Plan(other_programs::PlanArgs),
    Reproduce(other_programs::ReproduceArgs),
    P4(other_programs::P4Args),
    Completions(completions::CompletionsArgs),
    Manual(manual::ManualArgs),
}

impl Cli {
    /// Runs the subcommand.
    pub fn run(self) -> Result<(), Failure> {
        if !matches!(self.command, CliCommand::Run(_)) {
            log_if_enabled()?;
        }
        let connection = &self.connection;
        match self.command {
            CliCommand::Run(args) => args.run(),
            CliCommand::Setup(args) => args.run(),
            CliCommand::Config(args) => args.run(),
            CliCommand::Status(args) => args.run(connection),
            CliCommand::Face(args) => args.run(connection),
            CliCommand::Route(args) => args.run(connection),
            CliCommand::Fib(args) => args.run(connection),
            CliCommand::Strategy(args) => args.run(connection),
            CliCommand::Cs(args) => args.run(connection),
            CliCommand::Ndt(args) => args.run(connection),
            CliCommand::Trace(args) => args.run(connection),
            CliCommand::Capture(args) => args.run(connection),
            CliCommand::Latency(args) => args.run(connection),
            CliCommand::Ping(args) => args.run(connection),
            CliCommand::Serve(args) => args.run(connection),
            CliCommand::Put(args) => args.run(connection),
            CliCommand::Cat(args) => args.run(connection),
            CliCommand::Traffic(args) => args.run(connection),
            CliCommand::Key(args) => args.run(),
            CliCommand::Bench(args) => args.run(),
            CliCommand::Cache(args) => args.run(),
            CliCommand::Power(args) => args.run(),
            CliCommand::Plan(args) => args.run(),
            CliCommand::Reproduce(args) => args.run(),
            CliCommand::P4(args) => args.run(),
            CliCommand::Completions(args) => args.run(),
            CliCommand::Manual(args) => args.run(),
        }
    }
}

/// Enables logging to standard error if [`LOG_VARIABLE`] is set. The router sets up its own log.
///
/// # Errors
/// The text of the variable is not a log filter.
pub fn log_if_enabled() -> Result<(), Failure> {
    let Some(text) = std::env::var_os(LOG_VARIABLE).filter(|text| !text.is_empty()) else { return Ok(()) };
    let filter = parse_filter(&text.to_string_lossy());
    let filter = filter.map_err(|reason| Failure::usage(format!("{LOG_VARIABLE}: {reason}")))?;
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_filter(filter);
    // Fails only if a subscriber is already set.
    let _ = tracing_subscriber::registry().with(lines).try_init();
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::testing::check_examples;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_an_example() {
        check_examples(&Cli::command(), "");
    }

    #[test]
    fn usual_command_lines_are_understood() {
        for line in [
            "namehop run --config /etc/namehop.toml",
            "namehop route add /a udp4://192.0.2.1:6363 --cost 10 --origin static --expires 1h",
            "namehop --transport tcp://h:6363 face create udp://router.example --persistency permanent",
            "namehop face update 300 --local-fields on --mtu 1400",
            "namehop route add --file routes.txt",
            "namehop fib save /tmp/fib.snapshot",
            "namehop strategy set / multicast",
            "namehop cs config --capacity 1000 --serve off",
            "namehop ndt move /a/b 1 --json",
            "namehop ping /a --count 4 --interval 100ms",
            "namehop put /a/b --file x --freshness 10s --segment-size 4000 --exit-after 1m",
            "namehop cat /a/b --output y --congestion aimd",
            "namehop capture --face 300 --name /a --sample 0.5 --count 9 --snaplen 100 --duration 1s -w -",
            "namehop latency --sample 1024 --watch --interval 5s --json",
            "namehop route add /a 300 --signing-key a.key --certificate a.ndncert",
            "namehop face --signing-key a.key --certificate a.ndncert destroy 300",
            "namehop serve /a --signing-key a.key --key-name /a --command-key b.key --command-certificate b.ndncert",
            "namehop setup --huge-pages 2GiB --page-size 2MiB --nic 0000:00:03.0 --nic eth1 --until-restart --apply \
             --yes --json",
            "namehop setup --undo --root /tmp/x",
            "namehop traffic run plan.toml --duration 10s --json",
            "namehop traffic consumer /a --rate 1000 --poisson --names 100 --zipf 0.8 --must-be-fresh --duration 1s",
            "namehop traffic producer /a --payload 100 --freshness 1s --delay 5ms --no-register",
            "namehop traffic fetch /a/b /a/c --into /tmp --parallel 2 --congestion cubic --json",
            "namehop traffic fetch /a/b -q --discard",
            "namehop traffic fileserver /a /tmp --segment-size 4000 --freshness 1h --threads 3 --announce --json",
            "namehop p4 check switch.p4 --json",
            "namehop completions bash",
            "namehop manual /tmp/man",
        ] {
            Cli::try_parse_from(line.split(' ')).unwrap_or_else(|error| panic!("{line}: {error}"));
        }
        for line in [
            "namehop",
            "namehop route add /a",
            "namehop face create nonsense",
            "namehop ping a/b --interval 5",
            "namehop ping /a --count 0",
            "namehop cs erase / --count 0",
            "namehop put /a --signing-key a.key",
            "namehop traffic consumer /a --rate 1 --window 1",
            "namehop traffic producer /a --silent --payload 1",
            "namehop traffic fetch",
            "namehop traffic fileserver /a",
            "namehop traffic fileserver /a . --threads 0",
            "namehop traffic fetch /a --discard --into b",
            "namehop capture --face 300",
            "namehop capture --sample 0 -w a",
            "namehop capture --sample 1.5 -w a",
            "namehop capture --snaplen 0 -w a",
            "namehop latency --sample -1",
            "namehop latency --interval 2s",
            "namehop setup --apply --undo",
            "namehop setup --huge-pages much",
        ] {
            assert!(Cli::try_parse_from(line.split(' ')).is_err(), "{line}");
        }
    }
}
