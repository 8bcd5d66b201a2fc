//! The subcommands.

mod bench;
mod bench_disk;
mod bench_engine;
mod bench_fib;
mod bench_idle;
mod bench_links;
mod bench_memory;
mod bench_peers;
mod cache;
mod p4_programs;
mod plan;
mod power;
mod reproduce;

use clap::{CommandFactory, Parser, Subcommand};
use namehop_cli::commands::completions::CompletionsArgs;
use namehop_cli::commands::manual::ManualArgs;
use namehop_cli::commands::{Cli, log_if_enabled};
use namehop_cli::connection::ConnectionArgs;
use namehop_cli::failure::{EXIT_CODES, Failure};

/// Measurements, models and simulations of Named Data Networking.
///
/// 'namehop' executes this program for its commands 'bench', 'cache', 'power', 'plan' and 'reproduce'.
#[derive(Parser, Debug)]
#[command(name = "namehop-lab", bin_name = "namehop", version, after_help = EXIT_CODES, max_term_width = 100)]
pub struct Lab {
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(subcommand)]
    command: LabCommand,
}

#[derive(Subcommand, Debug)]
enum LabCommand {
    Bench(bench::BenchArgs),
    Cache(cache::CacheArgs),
    Power(power::PowerArgs),
    Plan(Box<plan::PlanArgs>),
    Reproduce(reproduce::ReproduceArgs),
    #[command(hide = true)]
    Completions(CompletionsArgs),
    #[command(hide = true)]
    Manual(ManualArgs),
}

impl Lab {
    /// Runs the subcommand.
    pub fn run(self) -> Result<(), Failure> {
        log_if_enabled()?;
        match self.command {
            LabCommand::Bench(args) => args.run(&self.connection),
            LabCommand::Cache(args) => args.run(),
            LabCommand::Power(args) => args.run(),
            LabCommand::Plan(args) => args.run(),
            LabCommand::Reproduce(args) => args.run(),
            LabCommand::Completions(args) => args.print(whole_command()),
            LabCommand::Manual(args) => args.write(whole_command()),
        }
    }
}

/// Returns the command line of `namehop` with the commands of this program in it, for completion scripts and manual
/// pages.
fn whole_command() -> clap::Command {
    let lab = Lab::command();
    let own = |stub: clap::Command| {
        let shown = lab.get_subcommands().find(|own| own.get_name() == stub.get_name() && !own.is_hide_set());
        shown.cloned().unwrap_or(stub)
    };
    Cli::command().mut_subcommands(own)
}

#[cfg(test)]
mod tests {
    use namehop_cli::testing::check_examples;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Lab::command().debug_assert();
        whole_command().debug_assert();
    }

    #[test]
    fn the_whole_command_line_has_the_options_of_this_program() {
        let whole = whole_command();
        let bench = whole.find_subcommand("bench").expect("namehop has the command bench");
        let sockets = bench.find_subcommand("sockets").expect("bench has the command sockets");
        assert!(sockets.get_arguments().any(|argument| argument.get_id() == "in_flight"));
        assert!(whole.find_subcommand("run").is_some());
    }

    #[test]
    fn every_command_has_an_example() {
        for command in Lab::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            check_examples(command, "namehop");
        }
    }

    #[test]
    fn usual_command_lines_are_understood() {
        for line in [
            "namehop bench sockets --in-flight 128 --payload 1000 --duration 5s --pid 1 --json",
            "namehop bench memory --area 8GiB --time 1s --json",
            "namehop cache simulate --workload web --policy fifo,filter:threshold=3 --capacity 1%,1000 --json",
            "namehop cache simulate --trace a.txt --format lines --capacity 10 --optimum --requests 10",
            "namehop cache model --capacity 1000 -q 10 --alpha 1 -N 100 --compare",
            "namehop power model --server a.toml --rate 0..58Gbit/s,7Mpps --steps 4 --hit-rate 0.2,0.3 --svg a.svg \
             --json",
            "namehop plan --machine e5-2699v4 --rate 100Gbit/s --prefixes 10000000 --links 400Gbit/s --svg a.svg \
             --json",
            "namehop plan --engine a --memory b -r 1Mpps --hit-rate 30% --round-trip 10ms --load 0.5 --ram 1GiB",
            "namehop power fit a.csv --name a --devices 2 --json",
            "namehop power server e5620",
            "namehop reproduce all --prefixes 1000000 --svg figures --json",
            "namehop bench fib --fib 1000 --text a --snapshot b --grow --json",
            "namehop bench disk --path /tmp/x --size 1GiB --payload 100 --in-flight 2 --duration 1s --json",
        ] {
            Lab::try_parse_from(line.split(' ')).unwrap_or_else(|error| panic!("{line}: {error}"));
        }
        for line in [
            "namehop cache simulate --workload web",
            "namehop cache simulate --workload web --trace x --capacity 1",
            "namehop cache model --capacity 0",
            "namehop power model --rate 5",
            "namehop plan --machine a",
            "namehop plan --engine a --rate 1Mpps",
            "namehop plan --machine a --engine b --memory c --rate 1Mpps",
            "namehop power fit",
            "namehop power fit a.csv --devices 0",
            "namehop reproduce patricia --list",
        ] {
            assert!(Lab::try_parse_from(line.split(' ')).is_err(), "{line}");
        }
    }
}
