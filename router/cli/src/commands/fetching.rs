//! Options and statistics shared by commands that fetch objects, for people and as JSON.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use hdrhistogram::Histogram;
use namehop_traffic::segmented::{
    Discovery, FetchCounts, FetchOptions, FetchProgress, FetchReport, Verification, WindowKind,
};
use serde::Serialize;

use crate::failure::Failure;
use crate::units::{milliseconds, parse_duration, show_bit_rate, show_duration};

/// Options of a fetch.
#[derive(Args, Debug)]
pub struct FetchingArgs {
    /// Method of version discovery: auto, metadata, prefix, none
    #[arg(long, value_name = "HOW", default_value = "auto")]
    discovery: Discovery,
    /// Congestion control: adaptive (keeps queues short, paces Interests, tells random losses from queue losses),
    /// cubic, aimd, fixed
    #[arg(long, value_name = "LAW", default_value = "adaptive")]
    congestion: WindowKind,
    /// Initial number of Interests in flight; with --congestion fixed, the number throughout; with adaptive, the
    /// maximum of the first flight [default: 32 with adaptive, otherwise 10]
    #[arg(long, value_name = "N")]
    window: Option<u32>,
    /// Maximum number of Interests in flight
    #[arg(long, value_name = "N", default_value_t = 4096)]
    max_window: u32,
    /// InterestLifetime
    #[arg(short = 'l', long, value_name = "DURATION", default_value = "4s", value_parser = parse_duration)]
    lifetime: Duration,
    /// Maximum number of attempts per segment
    #[arg(short = 'r', long, value_name = "N", default_value_t = 16)]
    attempts: u32,
    /// Accept only Data signed with the key of this certificate
    #[arg(long, value_name = "FILE", group = "key")]
    certificate: Option<PathBuf>,
    /// Accept only Data with an HMAC of the secret in this file
    #[arg(long, value_name = "FILE", group = "key")]
    hmac_key: Option<PathBuf>,
    /// Do not verify signatures, not even digests
    #[arg(long, group = "key")]
    no_verify: bool,
}

impl FetchingArgs {
    /// Returns the fetch options.
    pub fn options(&self) -> Result<FetchOptions, Failure> {
        let verification = if let Some(path) = &self.certificate {
            Verification::by_certificate(path).map_err(|error| Failure::failed(error).context(path.display()))?
        } else if let Some(path) = &self.hmac_key {
            let secret = std::fs::read(path).map_err(|error| Failure::failed(error).context(path.display()))?;
            Verification::by_secret(&secret)
        } else if self.no_verify {
            Verification::None
        } else {
            Verification::Digest
        };
        Ok(FetchOptions {
            discovery: self.discovery,
            window: self.congestion,
            initial_window: self.window.map(f64::from),
            max_window: f64::from(self.max_window.max(self.window.unwrap_or(1))),
            lifetime_ms: milliseconds(self.lifetime).max(1),
            max_attempts: self.attempts.max(1),
            verification,
            ..FetchOptions::default()
        })
    }
}

/// Round-trip times in milliseconds.
#[derive(Clone, Copy, Serialize)]
pub struct RoundTripTimes {
    rtt_min_ms: f64,
    rtt_avg_ms: f64,
    rtt_p50_ms: f64,
    rtt_p90_ms: f64,
    rtt_p99_ms: f64,
    rtt_p999_ms: f64,
    rtt_max_ms: f64,
}

impl RoundTripTimes {
    /// Computes the statistics of times in nanoseconds; `None` if there are none.
    pub fn of(rtt_ns: &Histogram<u64>) -> Option<Self> {
        let percentile = |percent| rtt_ns.value_at_percentile(percent) as f64 / 1e6;
        (!rtt_ns.is_empty()).then(|| Self {
            rtt_min_ms: rtt_ns.min() as f64 / 1e6,
            rtt_avg_ms: rtt_ns.mean() / 1e6,
            rtt_p50_ms: percentile(50.0),
            rtt_p90_ms: percentile(90.0),
            rtt_p99_ms: percentile(99.0),
            rtt_p999_ms: percentile(99.9),
            rtt_max_ms: rtt_ns.max() as f64 / 1e6,
        })
    }

    fn describe(&self) -> String {
        format!(
            "min {:.3}, 50% {:.3}, 90% {:.3}, 99% {:.3}, 99.9% {:.3}, max {:.3} ms",
            self.rtt_min_ms, self.rtt_p50_ms, self.rtt_p90_ms, self.rtt_p99_ms, self.rtt_p999_ms, self.rtt_max_ms
        )
    }
}

/// Amount, time and losses of a transfer.
#[derive(Clone, Serialize)]
pub struct Transferred {
    bytes: u64,
    segments: u64,
    elapsed_s: f64,
    goodput_bit_per_s: f64,
    #[serde(flatten)]
    counts: FetchCounts,
    /// Interests without an answer that were not needed.
    unneeded: u64,
    #[serde(flatten)]
    rtt: Option<RoundTripTimes>,
}

impl Transferred {
    /// Creates the record of `progress`, made in the time `elapsed`.
    pub fn of(progress: &FetchProgress, elapsed: Duration, rtt: Option<RoundTripTimes>) -> Self {
        let elapsed_s = elapsed.as_secs_f64();
        Self {
            bytes: progress.bytes,
            segments: progress.segments,
            elapsed_s,
            goodput_bit_per_s: if elapsed_s > 0.0 { progress.bytes as f64 * 8.0 / elapsed_s } else { 0.0 },
            counts: progress.counts,
            unneeded: progress.counts.unneeded(),
            rtt,
        }
    }

    /// Formats the record for [`properties`](crate::output::properties).
    pub fn describe(&self) -> Vec<(&'static str, String)> {
        let elapsed = Duration::try_from_secs_f64(self.elapsed_s).unwrap_or_default();
        let counts = &self.counts;
        let mut pairs = vec![
            ("Content", format!("{} bytes in {} segments", self.bytes, self.segments)),
            ("Time", format!("{}, {}", show_duration(elapsed), show_bit_rate(self.goodput_bit_per_s))),
            (
                "Interests",
                format!(
                    "{} for segments, {} of them retransmissions; {} answered by Data, {} not needed",
                    counts.interests, counts.retransmissions, counts.data, self.unneeded
                ),
            ),
            (
                "Losses",
                format!(
                    "{} overtaken, {} timed out, {} Nacks ({} congestion, {} duplicate, {} no route)",
                    counts.overtaken,
                    counts.timeouts,
                    counts.nacks,
                    counts.nacks_congestion,
                    counts.nacks_duplicate,
                    counts.nacks_no_route
                ),
            ),
        ];
        if let Some(rtt) = &self.rtt {
            pairs.push(("RTT", rtt.describe()));
        }
        pairs
    }
}

/// Statistics of a fetch.
#[derive(Serialize)]
pub struct Statistics {
    name: String,
    discovery: &'static str,
    #[serde(flatten)]
    transferred: Transferred,
    window_decreases: u64,
    largest_window: usize,
    unverified: u64,
}

impl Statistics {
    pub fn of(report: &FetchReport) -> Self {
        let all = FetchProgress {
            bytes: report.bytes,
            segments: report.segments,
            total_segments: Some(report.segments),
            counts: report.counts,
        };
        Self {
            name: report.name.to_string(),
            discovery: report.discovery.name(),
            transferred: Transferred::of(&all, report.elapsed, RoundTripTimes::of(&report.rtt_ns)),
            window_decreases: report.window_decreases,
            largest_window: report.largest_window,
            unverified: report.unverified,
        }
    }

    /// Formats the statistics for [`properties`](crate::output::properties).
    pub fn describe(&self) -> Vec<(&'static str, String)> {
        let mut pairs = vec![("Name", self.name.clone())];
        pairs.extend(self.transferred.describe());
        pairs.push((
            "Window",
            format!(
                "at most {}, reduced {} times, {} congestion marks",
                self.largest_window, self.window_decreases, self.transferred.counts.congestion_marks
            ),
        ));
        if self.unverified > 0 {
            pairs.push(("Signatures", format!("{} not verified: no key given", self.unverified)));
        }
        pairs
    }
}
