//! `namehop ping`: probes a prefix.

use std::time::Duration;

use clap::Args;
use namehop_client::endpoint::nack_text;
use namehop_traffic::ping::{PingConfig, PingEvent, PingReport, ping};
use namehop_wire::Name;
use serde::Serialize;

use crate::connection::{ConnectionArgs, block_on, interrupted};
use crate::failure::{Failure, FailureKind};
use crate::output;
use crate::units::{milliseconds, parse_duration};

/// Measure round-trip times to a prefix
///
/// Sends Interests PREFIX/ping/NUMBER, which 'namehop serve', ndnpingserver and 'ndnd pingserver' answer. Ends with
/// exit code 4 if nothing was received, and with 1 if only Nacks were received.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  namehop ping /example\n  namehop ping /example --count 5 --interval 200ms --json")]
pub struct PingArgs {
    /// Prefix of the server
    prefix: Name,
    /// Number of probes to send [default: until interrupted]
    #[arg(short = 'c', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Time between two probes
    #[arg(short = 'i', long, value_name = "DURATION", default_value = "1s", value_parser = parse_duration)]
    interval: Duration,
    /// Time to wait for each answer
    #[arg(short = 'o', long, value_name = "DURATION", default_value = "4s", value_parser = parse_duration)]
    timeout: Duration,
    /// First sequence number [default: random]
    #[arg(short = 'n', long, value_name = "NUMBER")]
    start: Option<u64>,
    /// Component before the sequence number, which distinguishes clients
    #[arg(short = 'p', long, value_name = "TEXT")]
    identifier: Option<String>,
    /// Accept stale Data from caches
    #[arg(short = 'a', long)]
    allow_stale: bool,
    /// Print only the result
    #[arg(short = 'q', long)]
    quiet: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct PingResult {
    prefix: String,
    sent: u64,
    received: u64,
    nacks: u64,
    timeouts: u64,
    duplicates: u64,
    loss_percent: f64,
    rtt_min_ms: Option<f64>,
    rtt_avg_ms: Option<f64>,
    rtt_max_ms: Option<f64>,
    rtt_mdev_ms: Option<f64>,
}

impl PingArgs {
    pub fn run(self, connection: &ConnectionArgs) -> Result<(), Failure> {
        let config = PingConfig {
            prefix: self.prefix.clone(),
            interval: self.interval,
            lifetime: self.timeout,
            count: self.count,
            start: self.start,
            identifier: self.identifier.clone(),
            allow_stale: self.allow_stale,
        };
        if milliseconds(self.timeout) == 0 {
            return Err(Failure::usage("--timeout must be at least 1ms"));
        }
        let verbose = !self.quiet && !self.json;
        let report = block_on(async {
            let endpoint = connection.connect().await?;
            if verbose {
                output::line(format!("PING {}", self.prefix))?;
            }
            let mut printed = Ok(());
            let show = |event: &PingEvent| {
                if verbose && printed.is_ok() {
                    printed = output::line(describe(event, &self.prefix));
                }
            };
            let report = ping(&endpoint, &config, interrupted(), show).await;
            printed.map(|()| report)
        })?;
        self.show(&report)?;
        if let Some(error) = report.broken {
            return Err(error.into());
        }
        if report.received > 0 {
            return Ok(());
        }
        // A Nack is an answer: only silence counts as a time-out.
        Err(Failure::silent(if report.nacks > 0 { FailureKind::Failed } else { FailureKind::Nothing }))
    }

    fn show(&self, report: &PingReport) -> Result<(), Failure> {
        if self.json {
            let rtt = report.rtt.as_ref();
            return output::json(&PingResult {
                prefix: self.prefix.to_string(),
                sent: report.sent,
                received: report.received,
                nacks: report.nacks,
                timeouts: report.timeouts,
                duplicates: report.duplicates,
                loss_percent: report.loss_percent(),
                rtt_min_ms: rtt.map(|rtt| rtt.min_ms),
                rtt_avg_ms: rtt.map(|rtt| rtt.mean_ms),
                rtt_max_ms: rtt.map(|rtt| rtt.max_ms),
                rtt_mdev_ms: rtt.map(|rtt| rtt.deviation_ms),
            });
        }
        output::line(format!(
            "\n--- {} ping statistics ---\n{} sent, {} received, {} nacks, {} duplicates, {:.1}% loss",
            self.prefix,
            report.sent,
            report.received,
            report.nacks,
            report.duplicates,
            report.loss_percent()
        ))?;
        match &report.rtt {
            Some(rtt) => output::line(format!(
                "rtt min/avg/max/mdev = {:.3}/{:.3}/{:.3}/{:.3} ms",
                rtt.min_ms, rtt.mean_ms, rtt.max_ms, rtt.deviation_ms
            )),
            None => Ok(()),
        }
    }
}

fn describe(event: &PingEvent, prefix: &Name) -> String {
    match event {
        PingEvent::Data { sequence, rtt, content_bytes } => {
            format!("{content_bytes} bytes from {prefix}: seq={sequence} time={:.3} ms", rtt.as_secs_f64() * 1e3)
        }
        PingEvent::Nack { sequence, reason } => {
            format!("nack from {prefix}: seq={sequence} reason={}", nack_text(*reason))
        }
        PingEvent::Timeout { sequence } => format!("timeout from {prefix}: seq={sequence}"),
    }
}
