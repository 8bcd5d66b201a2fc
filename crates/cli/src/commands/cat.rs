//! `namehop cat`: fetches a segmented object.

use std::io::{ErrorKind, IsTerminal};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use namehop_traffic::segmented::{
    Discovery, FetchError, FetchOptions, FetchProgress, FetchReport, Verification, WindowKind, fetch,
};
use namehop_wire::Name;
use serde::Serialize;
use tokio::io::{AsyncWrite, BufWriter};

use crate::connection::{ConnectionArgs, block_on, interrupted};
use crate::failure::Failure;
use crate::output::properties;
use crate::output_file::OutputFile;
use crate::progress::Progress;
use crate::units::{milliseconds, parse_duration, show_bit_rate, show_duration};

/// Bytes collected before they are written: writing is a switch to another thread.
const WRITE_BUFFER_BYTES: usize = 1 << 20;

/// Fetch an object and write it to standard output or a file
///
/// Without a version in NAME the newest is found through metadata (RDR), or by prefix. Fetches what
/// 'namehop put', ndnputchunks, NDNts and 'ndnd put' publish. Statistics go to standard error.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  namehop cat /example/readme
  namehop cat /example/film --output film.mp4
  namehop cat /example/signed --certificate producer.ndncert > data")]
pub struct CatArgs {
    /// Name of the object, with or without version
    name: Name,
    /// File to write; standard output when absent
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// How to find the version: auto, metadata, prefix, none
    #[arg(long, value_name = "HOW", default_value = "auto")]
    discovery: Discovery,
    /// Congestion control: adaptive (keeps queues short, tells losses of a bad line from those of full queues), cubic, aimd, fixed
    #[arg(long, value_name = "LAW", default_value = "adaptive")]
    congestion: WindowKind,
    /// Interests in flight at the start; always, with --congestion fixed
    #[arg(long, value_name = "N", default_value_t = 10)]
    window: u32,
    /// Most Interests in flight
    #[arg(long, value_name = "N", default_value_t = 1024)]
    max_window: u32,
    /// InterestLifetime
    #[arg(short = 'l', long, value_name = "DURATION", default_value = "4s", value_parser = parse_duration)]
    lifetime: Duration,
    /// Attempts per segment
    #[arg(short = 'r', long, value_name = "N", default_value_t = 16)]
    attempts: u32,
    /// Accept only Data signed with the key of this certificate
    #[arg(long, value_name = "FILE", group = "key")]
    certificate: Option<PathBuf>,
    /// Accept only Data with an HMAC of the secret in this file
    #[arg(long, value_name = "FILE", group = "key")]
    hmac_key: Option<PathBuf>,
    /// Do not even check digests
    #[arg(long, group = "key")]
    no_verify: bool,
    /// Print no progress and no statistics
    #[arg(short = 'q', long)]
    quiet: bool,
    /// Print the statistics (on standard error) as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Statistics {
    name: String,
    discovery: &'static str,
    bytes: u64,
    segments: u64,
    elapsed_s: f64,
    goodput_bit_per_s: f64,
    retransmissions: u64,
    timeouts: u64,
    nacks: u64,
    congestion_marks: u64,
    duplicates: u64,
    window_decreases: u64,
    largest_window: usize,
    rtt_min_ms: Option<f64>,
    rtt_avg_ms: Option<f64>,
    rtt_max_ms: Option<f64>,
    unverified: u64,
}

impl Statistics {
    fn of(report: &FetchReport) -> Self {
        let ms = |time: Option<Duration>| time.map(|time| time.as_secs_f64() * 1e3);
        Self {
            name: report.name.to_string(),
            discovery: report.discovery.name(),
            bytes: report.bytes,
            segments: report.segments,
            elapsed_s: report.elapsed.as_secs_f64(),
            goodput_bit_per_s: report.goodput_bits_per_second(),
            retransmissions: report.retransmissions,
            timeouts: report.timeouts,
            nacks: report.nacks,
            congestion_marks: report.congestion_marks,
            duplicates: report.duplicates,
            window_decreases: report.window_decreases,
            largest_window: report.largest_window,
            rtt_min_ms: ms(report.rtt.min()),
            rtt_avg_ms: ms(report.rtt.mean()),
            rtt_max_ms: ms(report.rtt.max()),
            unverified: report.unverified,
        }
    }

    fn describe(&self) -> String {
        let elapsed = Duration::try_from_secs_f64(self.elapsed_s).unwrap_or_default();
        let mut pairs = vec![
            ("Name", self.name.clone()),
            ("Content", format!("{} bytes in {} segments", self.bytes, self.segments)),
            ("Time", format!("{}, {}", show_duration(elapsed), show_bit_rate(self.goodput_bit_per_s))),
            (
                "Losses",
                format!("{} retransmissions, {} time-outs, {} Nacks", self.retransmissions, self.timeouts, self.nacks),
            ),
            (
                "Window",
                format!(
                    "at most {}, reduced {} times, {} congestion marks",
                    self.largest_window, self.window_decreases, self.congestion_marks
                ),
            ),
        ];
        if let (Some(min), Some(avg), Some(max)) = (self.rtt_min_ms, self.rtt_avg_ms, self.rtt_max_ms) {
            pairs.push(("RTT", format!("min {min:.3} / avg {avg:.3} / max {max:.3} ms")));
        }
        if self.unverified > 0 {
            pairs.push(("Signatures", format!("{} not verified: no key was given", self.unverified)));
        }
        properties(&pairs)
    }
}

impl CatArgs {
    fn options(&self) -> Result<FetchOptions, Failure> {
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
            initial_window: f64::from(self.window),
            max_window: f64::from(self.max_window.max(self.window)),
            lifetime_ms: milliseconds(self.lifetime).max(1),
            max_attempts: self.attempts.max(1),
            verification,
            ..FetchOptions::default()
        })
    }

    pub fn run(self, connection: &ConnectionArgs) -> Result<(), Failure> {
        let options = self.options()?;
        let shown = self.progress();
        let result = block_on(async {
            let endpoint = connection.connect().await?;
            let mut output: Box<dyn AsyncWrite + Unpin> = match &self.output {
                Some(path) => {
                    Box::new(OutputFile::open(path).map_err(|error| Failure::failed(error).context(path.display()))?)
                }
                None => Box::new(tokio::io::stdout()),
            };
            let mut output = BufWriter::with_capacity(WRITE_BUFFER_BYTES, &mut output);
            let fetching = fetch(&endpoint, &self.name, &mut output, &options, |progress| advance(&shown, progress));
            tokio::select! {
                report = fetching => match report {
                    // The reader of the output has closed it, as `head` does.
                    Err(FetchError::Output(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(None),
                    report => Ok(Some(report?)),
                },
                () = interrupted() => Err(Failure::failed("interrupted")),
            }
        });
        drop(shown);
        let Some(report) = result? else { return Ok(()) };
        let statistics = Statistics::of(&report);
        if self.json {
            eprintln!("{}", serde_json::to_string_pretty(&statistics).map_err(Failure::failed)?);
        } else if !self.quiet {
            eprint!("{}", statistics.describe());
        }
        Ok(())
    }

    /// Shown only to people who are not looking at the content itself.
    fn progress(&self) -> Option<Progress> {
        let content_on_terminal = self.output.is_none() && std::io::stdout().is_terminal();
        let is_shown = !(self.quiet || self.json || content_on_terminal);
        is_shown.then(|| Progress::new("{wide_bar} {percent:>3}% {msg} {elapsed}"))
    }
}

fn advance(shown: &Option<Progress>, progress: FetchProgress) {
    let Some(shown) = shown else { return };
    if let Some(total) = progress.total_segments {
        shown.set_length(total);
    }
    shown.set_message(format!("{:.1} MB", progress.bytes as f64 / 1e6));
    shown.set_position(progress.segments);
}
