//! The program `namehop-p4`, which `namehop p4` executes.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use namehop_switch::ports::PortSpec;
use serde_json::json;

use crate::common::{Common, print_json, report};
use crate::compile::{Build, Missing, Sanitize, Speed, Workshop};
use crate::compile_command::{self, Batch, CompileArgs, batch, compiled};
use crate::control::{client, profile_client};
use crate::emit::Options;
use crate::load;
use crate::{bench, run, serve, stf};

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
    Check {
        /// The program
        file: PathBuf,
        #[command(flatten)]
        common: Common,
    },
    /// Compile a P4 program to a loadable program, with the system's C compiler
    ///
    /// The result is a shared object. The C compiler is the one in the variable CC, or else cc, gcc or clang.
    Compile(CompileArgs),
    /// Send packets through a program and compare the output
    ///
    /// Tests are in the format of p4c's "simple test framework" (STF): they fill tables, send packets and list the
    /// packets that are expected. The program runs on the reference interpreter and compiled, in batches of 1, 8, 32
    /// and 64 packets, with and without prefetching. The exit code is 1 if any output differs.
    Test {
        /// The program
        file: PathBuf,
        /// The test
        test: PathBuf,
        /// Print the program's log_msg and digest output
        #[arg(long)]
        log: bool,
        /// Run the program only on the reference interpreter, which needs no C compiler
        #[arg(long)]
        interpreter: bool,
        /// Build the compiled program with checks of memory accesses and undefined behaviour
        #[arg(long, conflicts_with = "interpreter")]
        sanitize: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Run a compiled program on ports
    ///
    /// Ports have the program's numbers: --port 0=dev://eth0 --port 1=dev://eth1. Supported are dev:// (AF_PACKET) and
    /// xdp:// (AF_XDP) for network interfaces, pci:// for network cards that 'namehop setup --nic' has taken from the
    /// kernel, memif:///SOCKET?id=NUMBER for other processes, and pcap:///IN?out=/OUT for captures. Interfaces receive
    /// every frame, regardless of its address; give them no IP addresses, or the kernel answers too. The switch stops
    /// at SIGINT and SIGTERM, or when all ports are captures that were read to the end.
    Run {
        /// The output of 'namehop p4 compile'
        program: PathBuf,
        /// A port: its number and URI
        #[arg(long = "port", value_name = "NUMBER=URI", required = true)]
        ports: Vec<PortSpec>,
        /// Threads that process packets, 1 to 32; several threads share the flows of ports with several queues
        #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=32))]
        workers: u8,
        /// Maximum batch size in packets, 1 to 64, or auto for the setting that the program was compiled with; a batch
        /// never waits to fill
        #[arg(long, value_name = "N", default_value = "auto", value_parser = run_batch)]
        batch: u32,
        /// Report the counters at this interval, in seconds, and not only at the end
        #[arg(long, value_name = "SECONDS", default_value_t = 0)]
        report: u64,
        /// Write reports as JSON, one object per line
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        controllers: serve::Controllers,
        /// Accept 'namehop p4 table' and the other control commands on this socket, from this user only
        #[arg(long, value_name = "SOCKET")]
        control: Option<PathBuf>,
    },
    /// Change and show the tables of a running program
    #[command(subcommand)]
    Table(client::TableCommand),
    /// Change and show the members of action profiles and selectors of a running program
    #[command(subcommand)]
    Member(profile_client::MemberCommand),
    /// Change and show the groups of action selectors of a running program
    #[command(subcommand)]
    Group(profile_client::GroupCommand),
    /// Set and show the members of parser value sets of a running program
    #[command(subcommand)]
    ValueSet(profile_client::ValueSetCommand),
    /// Show and reset the counters of a running program
    #[command(subcommand)]
    Counter(client::CounterCommand),
    /// Show, write and reset the registers of a running program
    #[command(subcommand)]
    Register(client::RegisterCommand),
    /// Show and set the rates of the meters of a running program
    #[command(subcommand)]
    Meter(client::MeterCommand),
    /// Take the digests that a running program has reported, one per line
    ///
    /// Each digest is returned once. Up to 4096 digests wait; further ones are dropped and counted.
    Digest(client::DigestArgs),
    /// Set the members of a multicast group
    Multicast(client::MulticastArgs),
    /// Set the destination of the copies of a mirroring session
    Mirror(client::MirrorArgs),
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
    Bench {
        /// The programs; by default all programs for which everything is installed
        programs: Vec<String>,
        /// Number of table entries; 0 for the paper's number
        #[arg(long, value_name = "N", default_value_t = 0)]
        entries: u64,
        /// How often each variant is measured, with 4096 packets each time; at least twice the number of variants, so
        /// that no variant gets packets that another one has just used
        #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        rounds: u32,
        /// Skip DPDK's tables and its P4 engine
        #[arg(long)]
        no_dpdk: bool,
        /// Source folder of the installed DPDK, to measure the C code that its P4 engine generates
        #[arg(long, value_name = "FOLDER", conflicts_with = "no_dpdk")]
        dpdk_sources: Option<PathBuf>,
        /// Write JSON to the standard output
        #[arg(long)]
        json: bool,
    },
}

/// Parses the batch size for a compiled program: 0 stands for the setting that it was compiled with.
fn run_batch(text: &str) -> Result<u32, String> {
    batch(text).map(|batch| if let Batch::Fixed(batch) = batch { batch } else { 0 })
}

/// Runs the program with the arguments of the process.
pub fn run() -> ExitCode {
    let command = CommandLine::parse().command;
    // Signals arrive at the process's first thread, so the switch runs on it.
    if let Command::Run { program, ports, workers, batch, report, json, controllers, control } = command {
        let workers = usize::from(workers);
        let plan = serve::Plan { program, ports, workers, batch, report_seconds: report, json, controllers, control };
        return exit_code(serve::run(&plan));
    }
    let result = load::on_deep_stack(|| match command {
        Command::Run { .. } => Ok(true),
        Command::Table(command) => client::table(command),
        Command::Member(command) => profile_client::member(command),
        Command::Group(command) => profile_client::group(command),
        Command::ValueSet(command) => profile_client::value_set(command),
        Command::Counter(command) => client::counter(command),
        Command::Register(command) => client::register(command),
        Command::Meter(command) => client::meter(command),
        Command::Digest(args) => client::digest(args),
        Command::Multicast(args) => client::multicast(args),
        Command::Mirror(args) => client::mirror(args),
        Command::Check { file, common } => check(&file, &common),
        Command::Compile(args) => compile_command::run(&args),
        Command::Test { file, test, log, interpreter, sanitize, common } => {
            run_test(&file, &test, TestOptions { log, interpreter, sanitize }, &common)
        }
        Command::Bench { programs, entries, rounds, no_dpdk, dpdk_sources, json } => {
            measure(&programs, &bench::Plan { entries, rounds, dpdk: !no_dpdk, dpdk_sources }, json)
        }
    });
    exit_code(result.and_then(|result| result))
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

fn check(file: &Path, common: &Common) -> io::Result<bool> {
    let loaded = load::file(file, &common.include).map_err(io::Error::other)?;
    if common.json {
        print_json(&json!({
            "errors": loaded.diagnostics.errors(),
            "warnings": loaded.diagnostics.warnings(),
            "diagnostics": loaded.diagnostics.json(&loaded.sources),
        }))?;
    } else {
        report(&loaded)?;
    }
    Ok(loaded.program.is_some())
}

#[derive(Clone, Copy)]
struct TestOptions {
    log: bool,
    interpreter: bool,
    sanitize: bool,
}

fn run_test(file: &Path, test: &Path, options: TestOptions, common: &Common) -> io::Result<bool> {
    let mut loaded = load::file(file, &common.include).map_err(io::Error::other)?;
    let mut code = None;
    if !options.interpreter && loaded.program.is_some() {
        code = compiled(&mut loaded, file, &Options::default());
    }
    let (Some(program), true) = (&loaded.program, code.is_some() || options.interpreter) else {
        report(&loaded)?;
        return Ok(false);
    };
    let text = std::fs::read_to_string(test)
        .map_err(|error| io::Error::other(format!("cannot read {}: {error}", test.display())))?;
    let (mut outcome, switch) =
        stf::run(program, &text).map_err(|reason| io::Error::other(format!("{}: {reason}", test.display())))?;
    if let Some(code) = &code {
        outcome.notes.extend(code.emitted.notes.iter().cloned());
        let sanitize = if options.sanitize { Sanitize::Memory } else { Sanitize::Nothing };
        let workshop = Workshop::with_player(Build { sanitize, speed: Speed::Some, native: false })?;
        let played = run::Played { operations: &outcome.operations, switch: &switch, types: &program.types };
        let differences = run::compare(&workshop, "program", code, &played, &run::VARIANTS)?;
        outcome.failures.extend(differences);
    }
    let passed = outcome.failures.is_empty();
    if common.json {
        print_json(&json!({
            "passed": passed, "packets": outcome.packets, "expected": outcome.expected,
            "failures": outcome.failures, "log": outcome.notes, "compiled": code.is_some(),
        }))?;
        return Ok(passed);
    }
    let mut output = io::stdout().lock();
    for note in outcome.notes.iter().filter(|_| options.log || !passed) {
        writeln!(output, "log: {note}")?;
    }
    for failure in &outcome.failures {
        writeln!(output, "{failure}")?;
    }
    let word = if passed { "passed" } else { "FAILED" };
    writeln!(output, "{word}: {} packets sent, {} expected", outcome.packets, outcome.expected)?;
    Ok(passed)
}

fn measure(programs: &[String], plan: &bench::Plan, json: bool) -> io::Result<bool> {
    let all = bench::PROGRAMS.map(|(name, _)| name.to_owned());
    let (mut results, mut failed) = (Vec::new(), None);
    for name in if programs.is_empty() { &all } else { programs } {
        let result = match bench::measure(name, plan) {
            Ok(result) => result,
            Err(error) => {
                let Some(missing) = Missing::reason(&error) else { return Err(error) };
                let result = bench::left_out(name, missing);
                // A missing dependency is an error for a program that was named.
                failed = failed.or(Some(error).filter(|_| !programs.is_empty()));
                result
            }
        };
        if !json {
            io::stdout().lock().write_all(bench::table(&result).as_bytes())?;
        }
        results.push(result);
    }
    if json {
        print_json(&results.into())?;
    }
    failed.map_or(Ok(true), Err)
}
