//! `namehop bench idle`: CPU time and latency of idle workers, sleeping against busy polling.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::Args;
use namehop_bench::links::idle::{self, IdleFigures, IdleLoad, IdleParameters, IdleTurn};
use namehop_bench::links::{LinkKind, SHORTEST_TURN};
use namehop_bench::machine::Machine;
use serde::Serialize;

use super::bench_links::{LinkArg, LinkLoadArgs};
use crate::steps::show;
use namehop_cli::connection::stop_when_interrupted;
use namehop_cli::failure::{Failure, FailureKind};
use namehop_cli::output::{self, Align, Table};
use namehop_cli::programs;
use namehop_cli::progress::Progress;
use namehop_cli::units::parse_seconds;

/// Measure CPU time and latency of workers that sleep when idle
///
/// A Namehop router, as a separate process with one worker, forwards between a consumer and a producer. A
/// thread on another CPU, which never sleeps, sends Interests at random times (a Poisson process) and answers them.
/// Every rate is measured twice: with a worker that sleeps when idle, the default of routers, and with one that always
/// polls its ports (always_poll). CPU is the CPU time of all threads of the router, as a share of one CPU. ADDED is the
/// increase of round-trip times due to sleeping; both the Interest and its Data may find the worker asleep. Links are
/// as in 'namehop bench links'.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  namehop bench idle
  namehop bench idle --link dev --rates 0,10,1000 --seconds 10s
  namehop bench idle --json")]
pub struct IdleArgs {
    /// Kind of links
    #[arg(long, value_enum, value_name = "KIND", default_value = "memif")]
    link: LinkArg,
    /// Interests per second, each 0 to 10^7; saturation is always measured last
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "0,10,100,1000,10000,100000",
        value_parser = parse_rate
    )]
    rates: Vec<f64>,
    #[command(flatten)]
    load: LinkLoadArgs,
    /// Time per rate, at least 1.2 s
    #[arg(long, value_name = "S", default_value = "5s", value_parser = parse_seconds)]
    seconds: Duration,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn parse_rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate| *rate == 0.0 || (0.001..=1e7).contains(rate));
    rate.ok_or_else(|| "a rate must be 0, or from 0.001 to 10000000".to_owned())
}

#[derive(Serialize)]
struct Report {
    machine: Machine,
    link: LinkKind,
    in_flight: u32,
    payload_bytes: u32,
    turn_s: f64,
    #[serde(flatten)]
    figures: IdleFigures,
}

impl IdleArgs {
    pub fn run(self) -> Result<(), Failure> {
        if self.seconds < SHORTEST_TURN {
            return Err(Failure::usage(
                "--seconds must be at least 1.2s: routers update their statistics once per second",
            ));
        }
        let parameters = IdleParameters {
            link: self.link.into(),
            load: self.load.load(),
            rates: self.rates,
            turn: self.seconds,
            program: programs::beside(programs::ROUTER),
        };
        let stop = Arc::new(AtomicBool::new(false));
        stop_when_interrupted(&stop)?;
        let progress = Progress::of_steps();
        let figures = idle::measure(&parameters, &stop, &|step| show(&progress, step)).map_err(Failure::failed)?;
        drop(progress);
        let is_empty = figures.loads.is_empty();
        if self.json {
            let (in_flight, payload_bytes, turn_s) =
                (self.load.in_flight, self.load.payload, self.seconds.as_secs_f64());
            let (machine, link) = (Machine::detect(), parameters.link);
            output::json(&Report { machine, link, in_flight, payload_bytes, turn_s, figures })?;
        } else {
            output::print(&describe(&figures))?;
        }
        if is_empty { Err(Failure::new(FailureKind::Nothing, "nothing was measured")) } else { Ok(()) }
    }
}

fn describe(figures: &IdleFigures) -> String {
    let mut table = Table::new(&[
        ("INTERESTS/S", Align::Right),
        ("WORKER", Align::Left),
        ("DATA/S", Align::Right),
        ("LOST", Align::Right),
        ("CPU", Align::Right),
        ("RTT 50%", Align::Right),
        ("99%", Align::Right),
        ("MAX", Align::Right),
        ("ADDED 50%", Align::Right),
        ("99%", Align::Right),
    ]);
    let us = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), |us| format!("{us:.1} us"));
    for load in &figures.loads {
        let IdleLoad { offered_per_s, sleeping, polling } = load;
        let offered = offered_per_s.map_or_else(|| "saturation".to_owned(), |rate| rate.to_string());
        let (added_p50, added_p99) = load.added_us();
        let rows =
            [("sleeps", sleeping, us(added_p50), us(added_p99)), ("polls", polling, String::new(), String::new())];
        for (worker, turn, added_p50, added_p99) in rows {
            let IdleTurn { exchanges_per_s, lost, processor_share, rtt_p50_us, rtt_p99_us, rtt_max_us } = turn;
            table.row([
                offered.clone(),
                worker.to_owned(),
                format!("{exchanges_per_s:.0}"),
                lost.to_string(),
                format!("{:.1} %", 100.0 * processor_share),
                us(*rtt_p50_us),
                us(*rtt_p99_us),
                us(*rtt_max_us),
                added_p50,
                added_p99,
            ]);
        }
    }
    let placed = figures.processors;
    let places = format!("Router on CPU {}, consumer and producer on CPU {}.\n", placed.forwarder, placed.generator);
    table.render() + &places
}
