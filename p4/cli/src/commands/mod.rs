//! The command line, with one file per subcommand.

mod bench;
mod check;
mod compile;
mod counter;
mod digest;
mod group;
mod member;
mod meter;
mod mirror;
mod multicast;
mod register;
mod run;
mod table;
mod test;
mod value_set;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use namehop_p4_lang::load;

use crate::control::Outcome;

/// P4 programs: check, compile, test, run and control them
///
/// Programs are written in P4_16 for the architecture v1model. The files core.p4, v1model.p4 and namehop.p4 (encryption
/// functions) are built in.
#[derive(Parser)]
#[command(name = "namehop p4", bin_name = "namehop p4", version)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Check a program for errors
    ///
    /// Errors and warnings are shown with the source text that they refer to and, if possible, a remedy. The exit code
    /// is 1 if there are errors.
    Check(check::CheckArgs),
    /// Compile a P4 program to a loadable program, with the system's C compiler
    ///
    /// The result is a shared object. The C compiler is the one in the variable CC, or else cc, gcc or clang.
    Compile(compile::CompileArgs),
    /// Send packets through a program and compare the output
    ///
    /// Tests are in the format of p4c's "simple test framework" (STF): they fill tables, send packets and list the
    /// packets that are expected. The program runs on the reference interpreter and compiled, in batches of 1, 8, 32
    /// and 64 packets, with and without prefetching. The exit code is 1 if any output differs.
    Test(test::TestArgs),
    /// Run a compiled program on ports
    ///
    /// Ports have the program's numbers: --port 0=dev://eth0 --port 1=dev://eth1. Interfaces receive every frame,
    /// regardless of its address; give them no IP addresses, or the kernel answers too. The switch stops at SIGINT and
    /// SIGTERM, or when all ports are captures that were read to the end.
    Run(run::RunArgs),
    /// Change and show the tables of a running program
    #[command(subcommand)]
    Table(table::TableCommand),
    /// Change and show the members of action profiles and selectors of a running program
    #[command(subcommand)]
    Member(member::MemberCommand),
    /// Change and show the groups of action selectors of a running program
    #[command(subcommand)]
    Group(group::GroupCommand),
    /// Set and show the members of parser value sets of a running program
    #[command(subcommand)]
    ValueSet(value_set::ValueSetCommand),
    /// Show and reset the counters of a running program
    #[command(subcommand)]
    Counter(counter::CounterCommand),
    /// Show, write and reset the registers of a running program
    #[command(subcommand)]
    Register(register::RegisterCommand),
    /// Show and set the rates of the meters of a running program
    #[command(subcommand)]
    Meter(meter::MeterCommand),
    /// Take the digests that a running program has reported, one per line
    ///
    /// Each digest is returned once. Up to 4096 digests wait; further ones are dropped and counted.
    Digest(digest::DigestArgs),
    /// Set the members of a multicast group
    Multicast(multicast::MulticastArgs),
    /// Set the destination of the copies of a mirroring session
    Mirror(mirror::MirrorArgs),
    /// Measure programs between two DPDK rings, in cycles per packet
    ///
    /// The programs are l2 (two exact lookups), ipv4 and ipv6 (one longest-prefix lookup), ndn (names), and the
    /// functions of DPDK's examples: l2fwd (ports and their partners), flows (IPv4 by addresses, protocol and ports),
    /// and crypto, crypto-256 and crypto-1024 (encryption, with packets of three lengths).
    ///
    /// Each program is measured packet by packet and in batches of several sizes, with and without prefetching, on
    /// Namehop's tables, and for comparison on DPDK's tables and in G-Opt's order. All variants take turns and must
    /// output the same packets. A batch model is fitted, and its best batch size is shown.
    ///
    /// DPDK's headers are needed (apt install libdpdk-dev), and for crypto the headers of intel-ipsec-mb (apt install
    /// libipsec-mb-dev). Without the latter, crypto is skipped with a message, or fails if it was named. Packets and
    /// DPDK's tables use huge pages if there are any. The large tables need 8 GiB of memory.
    Bench(bench::BenchArgs),
}

/// Runs the program with the arguments of the process.
pub(crate) fn run() -> ExitCode {
    let command = CommandLine::parse().command;
    // Signals arrive at the process's first thread, so the switch runs on it.
    if let Command::Run(args) = command {
        return exit_code(run::run(&args));
    }
    let result = load::on_deep_stack(|| match command {
        Command::Run(_) => Ok(true),
        Command::Table(command) => done(table::run(&command)),
        Command::Member(command) => done(member::run(&command)),
        Command::Group(command) => done(group::run(&command)),
        Command::ValueSet(command) => done(value_set::run(&command)),
        Command::Counter(command) => done(counter::run(&command)),
        Command::Register(command) => done(register::run(&command)),
        Command::Meter(command) => done(meter::run(&command)),
        Command::Digest(args) => done(digest::run(&args)),
        Command::Multicast(args) => done(multicast::run(&args)),
        Command::Mirror(args) => done(mirror::run(&args)),
        Command::Check(args) => check::run(&args),
        Command::Compile(args) => compile::run(&args),
        Command::Test(args) => test::run(&args),
        Command::Bench(args) => bench::run(&args),
    });
    exit_code(result.and_then(|result| result))
}

/// The result of a control command.
fn done(outcome: Outcome<()>) -> io::Result<bool> {
    outcome.map(|()| true).map_err(io::Error::from)
}

fn exit_code(result: io::Result<bool>) -> ExitCode {
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // If the error output is closed, there is no way to report it.
            let _ = writeln!(io::stderr(), "namehop p4: {error}");
            ExitCode::FAILURE
        }
    }
}
