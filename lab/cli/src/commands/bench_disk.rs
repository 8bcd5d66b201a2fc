//! `namehop bench disk`: measures the second tier of the Content Store on a disk.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use namehop_bench::disk::{DiskBenchReport, DiskOptions, Rate, measure};

use namehop_cli::failure::Failure;
use namehop_cli::output::{self, properties};
use namehop_cli::progress::Progress;
use namehop_cli::units::{parse_bytes, parse_duration};

/// Measure the second tier of the Content Store on a disk
///
/// Measures how many packets per second can be stored and looked up, compared with direct reads at the same file
/// offsets and the same number of concurrent reads. Lookups and direct reads alternate. Lookups read from the disk, not
/// from the page cache. Storing, looking up and reading each take --duration.
///
/// With --freeze, measures instead the cost of a worker's packets without a second tier, with a working disk, and while
/// the file system of --path is frozen, so that the disk does not answer. This needs root, fsfreeze, and a separate
/// file system with no other writers.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  namehop bench disk --path /var/tmp/namehop-bench
  namehop bench disk --path /var/tmp/namehop-bench --size '10 GiB' --in-flight 128 --json
  namehop bench disk --path /mnt/spare/cache --freeze
  namehop bench disk --path /mnt/spare/cache --freeze 10s --rounds 5 --payload 1000 --json")]
pub struct DiskArgs {
    /// File on the disk, which is created; or a block device or a second tier's file, which is erased
    #[arg(long, value_name = "FILE")]
    path: PathBuf,
    /// Size of the file
    #[arg(long, value_name = "BYTES", default_value = "1 GiB", value_parser = parse_bytes)]
    size: u64,
    /// Bytes of content per packet
    #[arg(short = 's', long, value_name = "BYTES", default_value_t = 4_000)]
    payload: usize,
    /// Number of concurrent reads, at most 256
    #[arg(short = 'n', long, value_name = "N", default_value_t = 64)]
    in_flight: usize,
    /// Time for each of storing, looking up and reading; with --freeze, time with the working disk in each round
    #[arg(short = 'd', long, value_name = "DURATION", default_value = "5s", value_parser = parse_duration)]
    duration: Duration,
    /// Measure the cost of packets while the file system is frozen for this time
    #[arg(long, value_name = "DURATION", num_args = 0..=1, default_missing_value = "5s", value_parser = parse_duration)]
    freeze: Option<Duration>,
    /// Number of rounds with a working and a stalled disk
    #[arg(
        long,
        value_name = "N",
        default_value_t = 3,
        requires = "freeze",
        value_parser = clap::value_parser!(u16).range(1..)
    )]
    rounds: u16,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl DiskArgs {
    pub fn run(self) -> Result<(), Failure> {
        if let Some(frozen) = self.freeze {
            return freeze::run(&self, frozen);
        }
        let options = DiskOptions {
            path: self.path,
            capacity_bytes: self.size,
            content_bytes: self.payload,
            in_flight: self.in_flight,
            duration: self.duration,
        };
        let progress = Progress::of_steps();
        let report = measure(&options, &|step| progress.set_message(step.to_owned())).map_err(Failure::failed)?;
        drop(progress);
        if self.json { output::json(&report) } else { output::print(&describe(&report)) }
    }
}

/// Formats the median of a rate or ratio, with its quartiles.
fn spread(rate: &Rate, digits: usize) -> String {
    let (low, high) = rate.quartiles;
    format!("{:.digits$} ({low:.digits$} to {high:.digits$})", rate.median)
}

fn describe(report: &DiskBenchReport) -> String {
    let megabytes = |per_s: f64| per_s * report.packet_bytes as f64 / 1e6;
    let none = || "this file system does not support direct reads".to_owned();
    let direct = report.direct_reads_per_s.as_ref();
    properties(&[
        ("Packets", format!("{} of {} bytes", report.packets, report.packet_bytes)),
        ("Stored", format!("{:.0} per second, {:.0} MB/s", report.stored_per_s, megabytes(report.stored_per_s))),
        (
            "Found",
            format!(
                "{} per second, {:.0} MB/s, {} reads without a hit",
                spread(&report.found_per_s, 0),
                megabytes(report.found_per_s.median),
                report.not_found
            ),
        ),
        (
            "Direct reads",
            direct.map_or_else(none, |rate| format!("{} per second, {} in flight", spread(rate, 0), report.in_flight)),
        ),
        (
            "Share",
            report
                .found_share
                .as_ref()
                .map_or_else(none, |share| format!("{} packets found per direct read", spread(share, 2))),
        ),
    ])
}

mod freeze {
    //! Costs of packets while the disk stalls.

    use std::time::Duration;

    use namehop_bench::engine::{EngineBench, StallFigures, StallParameters};
    use namehop_bench::policy::PolicyParameters;
    use namehop_bench::schedule::EngineParameters;
    use namehop_bench::workload::WorkloadParameters;

    use super::{DiskArgs, spread};
    use namehop_cli::failure::Failure;
    use namehop_cli::output::{self, properties};
    use namehop_cli::progress::Progress;

    /// Prefixes in the FIB: as many as in a router of a large network, and few enough to fill in quickly.
    const PREFIXES: u64 = 100_000;

    pub(super) fn run(args: &DiskArgs, frozen: Duration) -> Result<(), Failure> {
        let load = PolicyParameters::published_load();
        let parameters = EngineParameters {
            payload_bytes: args.payload,
            workload: WorkloadParameters { prefixes: PREFIXES, ..load.workload },
            ..load
        };
        let stalls = StallParameters {
            path: args.path.clone(),
            capacity_bytes: args.size,
            working: args.duration,
            frozen,
            rounds: args.rounds.into(),
        };
        let progress = Progress::of_steps();
        let bench = EngineBench::new(&parameters, &|_| ()).map_err(Failure::failed)?;
        let told = |step: namehop_bench::progress::Progress| progress.set_message(step.what);
        let figures = bench.run_stalls(&parameters, &stalls, &told).map_err(Failure::failed)?;
        drop(progress);
        if args.json { output::json(&figures) } else { output::print(&describe(&figures)) }
    }

    fn describe(figures: &StallFigures) -> String {
        let cost =
            |rate, ratio| format!("{} ticks, {} times the cost without a disk", spread(rate, 0), spread(ratio, 3));
        properties(&[
            ("Stalls", format!("{} of {} s", figures.stalls, figures.frozen_s)),
            ("Without a disk", format!("{} ticks per Interest and Data", spread(&figures.without_cycles, 0))),
            ("Working disk", cost(&figures.working_cycles, &figures.working_ratio)),
            ("Stalled disk", cost(&figures.stalled_cycles, &figures.stalled_ratio)),
            ("First second", format!("{} times the cost without a disk", spread(&figures.first_second_ratio, 3))),
            (
                "Stored",
                format!(
                    "{:.0} % of the packets evicted from memory, while the disk worked",
                    figures.stored_share * 100.0
                ),
            ),
        ])
    }
}
