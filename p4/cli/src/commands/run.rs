//! `namehop p4 run`: runs a compiled program on ports until it is told to stop.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use namehop_p4runtime::server::{Listeners, Server};
use namehop_port::drivers;
use namehop_switch::Running;
use namehop_switch::ports::PortSpec;
use namehop_switch::program::Program;
use namehop_switch::{BatchReport, ControlSocket, Report, Switch};
use nix::sys::signal::{SigSet, Signal};

use super::compile::{Batch, batch};

/// Polling interval for ports and signals.
const PAUSE: Duration = Duration::from_millis(20);
/// Number of consecutive polls that must find the captures read and written before the switch stops.
const DONE_LOOKS: u32 = 5;
/// Polling interval for ports that are gone.
const PORTS_PAUSE: Duration = Duration::from_secs(1);

fn ports_help() -> String {
    format!("A port: its number and URI, {}", drivers::usage())
}

/// Arguments of the command.
#[derive(Args)]
pub(crate) struct RunArgs {
    /// The output of 'namehop p4 compile'
    program: PathBuf,
    #[arg(long = "port", value_name = "NUMBER=URI", required = true, help = ports_help())]
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
    controllers: Controllers,
    /// Accept 'namehop p4 table' and the other control commands, and P4Runtime, on this socket, from this user only
    #[arg(long, value_name = "SOCKET")]
    control: Option<PathBuf>,
}

/// Parses the batch size for a compiled program: 0 stands for the setting that it was compiled with.
fn run_batch(text: &str) -> Result<u32, String> {
    batch(text).map(|batch| if let Batch::Fixed(batch) = batch { batch } else { 0 })
}

/// How controllers can reach the program.
#[derive(Args)]
struct Controllers {
    /// Serve P4Runtime at this address, such as 127.0.0.1:9559
    ///
    /// Anyone who can connect can control the program: there is no encryption and no password. Addresses that other
    /// hosts can reach therefore need --p4runtime-remote.
    #[arg(long, value_name = "ADDRESS:PORT")]
    p4runtime: Option<SocketAddr>,
    /// Allow other hosts to control the program through P4Runtime
    #[arg(long, requires = "p4runtime")]
    p4runtime_remote: bool,
    /// The P4Runtime device id
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    device_id: u64,
    /// The port number for packets to and from the controller
    #[arg(long, value_name = "NUMBER", requires = "p4runtime", value_parser = clap::value_parser!(u32).range(0..511))]
    cpu_port: Option<u32>,
}

impl Controllers {
    /// Refuses to listen beyond this host without an explicit option.
    fn check(&self) -> io::Result<()> {
        match self.p4runtime {
            Some(address) if !address.ip().is_loopback() && !self.p4runtime_remote => Err(io::Error::other(format!(
                "at {address}, other hosts could control the program without a password: allow that with \
                 --p4runtime-remote, or listen at 127.0.0.1:{}",
                address.port()
            ))),
            _ => Ok(()),
        }
    }
}

/// Runs until SIGINT or SIGTERM, or until all ports are captures that were read to the end. Returns false if a port is
/// gone.
///
/// # Errors
/// Returns what is wrong with the program or a port, and what to do.
pub(crate) fn run(args: &RunArgs) -> io::Result<bool> {
    let is_told = Arc::new(AtomicBool::new(false));
    wait_for_signals(&is_told)?;
    args.controllers.check()?;
    let program = Program::load(&args.program, usize::from(args.workers)).map_err(io::Error::other)?;
    let cpu_port = args.controllers.cpu_port.map(PortSpec::controller);
    let ports: Vec<PortSpec> = args.ports.iter().cloned().chain(cpu_port).collect();
    let mut switch = Switch::start(program, &ports, usize::from(args.workers), args.batch).map_err(io::Error::other)?;
    let servers = serve(args, &switch)?;
    // The caller may wait for this line.
    writeln!(io::stderr(), "running {} on {} ports with {} workers", switch.program.name, ports.len(), args.workers)?;
    if let Some(address) = servers.as_ref().and_then(|(_, server)| server.address) {
        writeln!(io::stderr(), "serving P4Runtime at {address}")?;
    }
    let (mut looks, mut well) = (0, true);
    let (mut reported, mut looked) = (Instant::now(), Instant::now());
    while !is_told.load(Ordering::Relaxed) && looks < DONE_LOOKS && well {
        thread::sleep(PAUSE);
        looks = if switch.is_done() { looks + 1 } else { 0 };
        if looked.elapsed() >= PORTS_PAUSE {
            looked = Instant::now();
            if let Some(port) = switch.gone() {
                writeln!(io::stderr(), "namehop p4: port {}={} is down", port.number, port.uri)?;
                well = false;
            }
        }
        if switch.has_failed() {
            return Err(io::Error::other("a worker panicked; please report this program"));
        }
        if args.report > 0 && reported.elapsed() >= Duration::from_secs(args.report) {
            reported = Instant::now();
            write_report(&switch.report(), args.json)?;
        }
    }
    drop(servers);
    switch.stop();
    write_report(&switch.report(), args.json)?;
    Ok(well)
}

/// Serves P4Runtime at the control socket and at an address, if requested. The socket's file exists as long as the
/// first result.
fn serve(args: &RunArgs, switch: &Switch) -> io::Result<Option<(Option<ControlSocket>, Server)>> {
    let RunArgs { control, controllers, .. } = args;
    if control.is_none() && controllers.p4runtime.is_none() {
        return Ok(None);
    }
    let running = Running::new(controllers.device_id, switch, std::fs::read(&args.program)?);
    let running = running.map_err(io::Error::other)?;
    let (socket, operator) = control.as_deref().map(ControlSocket::open).transpose()?.unzip();
    let listeners = Listeners { controllers: controllers.p4runtime, operator };
    Ok(Some((socket, Server::start(listeners, running)?)))
}

/// Sets a flag at SIGINT and SIGTERM. Threads started later inherit the blocked signals.
fn wait_for_signals(is_told: &Arc<AtomicBool>) -> io::Result<()> {
    let mut set = SigSet::empty();
    set.add(Signal::SIGINT);
    set.add(Signal::SIGTERM);
    set.thread_block()?;
    let is_told = Arc::clone(is_told);
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        // Fails only for invalid sets.
        let _ = set.wait();
        is_told.store(true, Ordering::Relaxed);
    })?;
    Ok(())
}

fn write_report(report: &Report, json: bool) -> io::Result<()> {
    let mut output = io::stdout().lock();
    if json {
        // One object per line.
        serde_json::to_writer(&mut output, report)?;
        return writeln!(output);
    }
    for port in &report.ports {
        writeln!(
            output,
            "port {} {} {}: received {} packets, {} bytes; sent {} packets, {} bytes; dropped: output full {}, receive \
             ring full {}, no buffer {}, malformed {}, send failed {}",
            port.port,
            port.uri,
            if port.up { "up" } else { "down" },
            port.received_packets,
            port.received_bytes,
            port.sent_packets,
            port.sent_bytes,
            port.output_full,
            port.receive_ring_full,
            port.no_buffer,
            port.malformed,
            port.send_failed,
        )?;
    }
    writeln!(
        output,
        "{}: {} bursts; dropped: by the program {}, not terminated {}, no buffer {}, oversized {}, no such port {}",
        report.program, report.bursts, report.dropped, report.lost, report.no_buffer, report.oversized, report.no_port
    )?;
    for (worker, report) in report.batches.iter().enumerate() {
        writeln!(output, "worker {worker}: {}", batches(report))?;
    }
    Ok(())
}

/// Describes how a worker chose its batch size.
fn batches(report: &BatchReport) -> String {
    if report.choices == 0 {
        return format!("batches of up to {}; not measured, because no burst had 32 packets", report.batch);
    }
    let measured: Vec<String> =
        report.measured.iter().map(|size| format!("{}: {:.0}", size.batch, size.cycles)).collect();
    let mut text = format!(
        "batches of up to {}, measured {} times; cycles per packet by size: {}",
        report.batch,
        report.choices,
        measured.join(", ")
    );
    if let (Some(batch), Some(loss)) = (report.model_batch, report.model_loss_percent) {
        text += &format!("; the model predicts {batch}, {loss:.0} % slower than the best");
    }
    text
}
