//! `namehop bench disk`: the second tier of the Content Store on a disk.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use namehop_bench::disk::{DiskBenchReport, DiskOptions, measure};

use crate::failure::Failure;
use crate::output::{self, properties};
use crate::progress::Progress;
use crate::units::{parse_bytes, parse_duration};

/// Store packets on a disk and find them again
///
/// Measures the second tier of the Content Store: packets stored per second, packets found per second, and beside that
/// plain reads of the same size by threads. Each takes as long as --duration says. Reads come from the disk, as far as
/// the system can be asked to forget what it has in memory.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  namehop bench disk --path /var/tmp/namehop-bench
  namehop bench disk --path /var/tmp/namehop-bench --size '10 GiB' --in-flight 128 --json")]
pub struct DiskArgs {
    /// File on the disk, made for this; or a block device, or the file of a second tier, which is empty afterwards
    #[arg(long, value_name = "FILE")]
    path: PathBuf,
    /// Size of the file
    #[arg(long, value_name = "BYTES", default_value = "1 GiB", value_parser = parse_bytes)]
    size: u64,
    /// Bytes of content per packet
    #[arg(short = 's', long, value_name = "BYTES", default_value_t = 4_000)]
    payload: usize,
    /// Reads under way at a time, at most 256
    #[arg(short = 'n', long, value_name = "N", default_value_t = 64)]
    in_flight: usize,
    /// Time for each of storing, finding and reading
    #[arg(short = 'd', long, value_name = "DURATION", default_value = "5s", value_parser = parse_duration)]
    duration: Duration,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl DiskArgs {
    pub fn run(self) -> Result<(), Failure> {
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

fn describe(report: &DiskBenchReport) -> String {
    let megabytes = |per_s: f64| per_s * report.packet_bytes as f64 / 1e6;
    let rate = |per_s: f64| format!("{per_s:.0} packets per second, {:.0} MB/s", megabytes(per_s));
    properties(&[
        ("Packets", format!("{} of {} bytes", report.packets, report.packet_bytes)),
        ("Stored", rate(report.stored_per_s)),
        ("Found", format!("{}, {} reads in vain", rate(report.found_per_s), report.not_found)),
        ("Plain reads", format!("{:.0} per second by {} threads", report.plain_reads_per_s, report.in_flight)),
        ("Share", format!("{:.2} packets found for each plain read", report.found_share)),
    ])
}
