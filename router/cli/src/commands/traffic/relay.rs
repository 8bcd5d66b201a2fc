//! `namehop traffic relay`: simulates a link with delay, limits and losses between two UDP peers.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use namehop_traffic::relay::{DirectionCounts, Impairments, Relay, RelayConfig};
use serde::Serialize;

use crate::connection::{block_on, interrupted};
use crate::failure::Failure;
use crate::output::{self, Align, Table};
use crate::units::{parse_bit_rate, parse_bytes, parse_duration, parse_share};

/// Interval of checks whether the relay still works.
const INTERVAL: Duration = Duration::from_millis(200);

/// Carry UDP datagrams between two peers over a simulated slow, long or lossy link
///
/// Give one router a face to the relay (udp4://ADDRESS:PORT of --listen). The relay forwards its datagrams to the other
/// router, and the answers back. Both directions have the same impairments, unless an option ending in -back is given.
/// Runs until interrupted, then prints what happened to the datagrams.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  namehop traffic relay --listen 127.0.0.1:7000 --to 127.0.0.1:6363 --rate 100Mbit --delay 10ms
  namehop traffic relay --to 192.0.2.1:6363 --listen 0.0.0.0:7000 --loss 1% --loss-back 0 --seed 7 --json")]
pub struct RelayArgs {
    /// Address and port that the first peer sends to; port 0 selects a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Address and port of the second peer
    #[arg(long, value_name = "ADDRESS:PORT")]
    to: SocketAddr,
    /// Propagation delay
    #[arg(long, value_name = "DURATION", default_value = "0", value_parser = parse_duration)]
    delay: Duration,
    /// Bits per second, counting the bytes of the datagrams [default: unlimited]
    #[arg(long, value_name = "RATE", value_parser = parse_bit_rate)]
    rate: Option<u64>,
    /// Maximum bytes queued for the line; datagrams that do not fit are dropped
    #[arg(long, value_name = "BYTES", default_value = "256 KiB", value_parser = parse_bytes)]
    queue: u64,
    /// Share of the datagrams that are lost at random
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = parse_share)]
    loss: f64,
    /// Share of the datagrams that arrive twice
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = parse_share)]
    duplicate: f64,
    /// Share of the datagrams that are delayed, so that others overtake them
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = parse_share)]
    reorder: f64,
    /// Additional delay of these datagrams
    #[arg(long, value_name = "DURATION", default_value = "5ms", value_parser = parse_duration)]
    reorder_by: Duration,
    /// --delay of the opposite direction
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    delay_back: Option<Duration>,
    /// --rate of the opposite direction
    #[arg(long, value_name = "RATE", value_parser = parse_bit_rate)]
    rate_back: Option<u64>,
    /// --loss of the opposite direction
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    loss_back: Option<f64>,
    /// Seed of random choices; the same seed loses the same datagrams of a sequence
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// End after this time
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    exit_after: Option<Duration>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

/// Selects one of the counts.
type CountOf = fn(&DirectionCounts) -> u64;

#[derive(Serialize)]
struct RelayReport {
    forth: DirectionCounts,
    back: DirectionCounts,
}

impl RelayArgs {
    fn config(&self) -> RelayConfig {
        let forth = Impairments {
            delay: self.delay,
            bits_per_second: self.rate,
            queue_bytes: self.queue,
            loss: self.loss,
            duplication: self.duplicate,
            reordering: self.reorder,
            reordering_delay: self.reorder_by,
        };
        let back = Impairments {
            delay: self.delay_back.unwrap_or(forth.delay),
            bits_per_second: self.rate_back.or(forth.bits_per_second),
            loss: self.loss_back.unwrap_or(forth.loss),
            ..forth
        };
        RelayConfig { listen: self.listen, to: self.to, forth, back, seed: self.seed }
    }

    pub fn run(self) -> Result<(), Failure> {
        let relay = Relay::start(&self.config()).map_err(|error| {
            Failure::failed(error).context(format!("relay between {} and {}", self.listen, self.to))
        })?;
        eprintln!("relaying between {} and {}", relay.address(), self.to);
        block_on(async {
            let until = self.exit_after.map(|after| tokio::time::Instant::now() + after);
            let is_over = || until.is_some_and(|until| tokio::time::Instant::now() >= until);
            while !relay.has_failed() && !is_over() {
                tokio::select! {
                    () = interrupted() => break,
                    () = tokio::time::sleep(INTERVAL) => {}
                }
            }
            Ok(())
        })?;
        let [forth, back] = relay.end().map_err(|error| Failure::failed(error).context("the relay's sockets"))?;
        let report = RelayReport { forth, back };
        if self.json { output::json(&report) } else { report.print() }
    }
}

impl RelayReport {
    fn print(&self) -> Result<(), Failure> {
        let mut table = Table::new(&[("DATAGRAMS", Align::Left), ("FORTH", Align::Right), ("BACK", Align::Right)]);
        let lines: [(&str, CountOf); 11] = [
            ("received", |way| way.received),
            ("carried", |way| way.carried),
            ("carried, bytes", |way| way.carried_bytes),
            ("dropped at random", |way| way.lost),
            ("dropped, queue full", |way| way.queue_full),
            ("duplicated", |way| way.duplicated),
            ("reordered", |way| way.held_back),
            ("from other senders", |way| way.strangers),
            ("send failed", |way| way.refused),
            ("receive overflow", |way| way.overrun),
            ("in transit", |way| way.on_the_way),
        ];
        for (name, of) in lines {
            table.row([name.to_owned(), of(&self.forth).to_string(), of(&self.back).to_string()]);
        }
        table.print()
    }
}
