//! `namehop traffic fileserver`: serves a directory.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use namehop_client::endpoint::Endpoint;
use namehop_traffic::fileserver::{FileServer, FileServerCounters, FileServerError, FileServerOptions};
use namehop_wire::Name;

use crate::commands::publishing::{PublishingArgs, SegmentArgs, Service};
use crate::commands::put::METADATA_FRESHNESS_MS;
use crate::connection::{ConnectionArgs, block_on};
use crate::failure::Failure;
use crate::output::{self, properties};
use crate::progress::Progress;
use crate::units::milliseconds;

/// Interval of progress updates.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);

/// Serve the files of a directory, and listings of its directories
///
/// Registers PREFIX and answers for PREFIX/path/of/file below DIRECTORY until interrupted. Every consumer that can
/// reach this producer can read all files there that this user can read; nothing outside DIRECTORY is served, and
/// symbolic links are not followed. 'namehop traffic fetch' and 'namehop cat' fetch files and listings (NAME/32=ls), as
/// do all clients of ndn6-file-server and NDN-DPDK's file server, such as NDNts. Files may change: each change is a new
/// version.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  namehop traffic fileserver /example/files /srv/files
  namehop traffic fileserver /example/files . --segment-size 4000 --freshness 1h --announce
  namehop cat /example/files/32=ls | tr '\\0' '\\n'")]
pub struct FileServerArgs {
    /// Prefix of the names
    prefix: Name,
    /// Directory to serve
    directory: PathBuf,
    #[command(flatten)]
    segments: SegmentArgs,
    /// Number of threads that read and sign
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: u16,
    #[command(flatten)]
    publishing: PublishingArgs,
    /// Print no progress
    #[arg(short = 'q', long)]
    quiet: bool,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

impl FileServerArgs {
    pub fn run(self, connection: &ConnectionArgs) -> Result<(), Failure> {
        let options = FileServerOptions {
            segment_bytes: self.segments.segment_size,
            freshness_ms: milliseconds(self.segments.freshness),
            metadata_freshness_ms: METADATA_FRESHNESS_MS,
            threads: usize::from(self.threads),
            signer: self.publishing.signing.signer()?,
        };
        block_on(async {
            let endpoint = self.publishing.connect(connection).await?;
            let server = FileServer::start(&self.prefix, &self.directory, options).map_err(|error| match error {
                FileServerError::TooLarge(_) | FileServerError::NoSegmentSize => Failure::usage(error),
                error => Failure::failed(error).context(self.directory.display()),
            })?;
            self.serve(connection, endpoint, server).await
        })
    }

    async fn serve(&self, connection: &ConnectionArgs, endpoint: Endpoint, server: FileServer) -> Result<(), Failure> {
        let answer = |endpoint: &Endpoint| server.answer(endpoint);
        let service = Service { publishing: &self.publishing, connection, prefix: &self.prefix, answer: &answer };
        service.begin(&endpoint).await?;
        if !self.quiet {
            eprintln!("serving {} as {}", self.directory.display(), self.prefix);
        }
        // Only on a terminal: a program that serves for days must not fill a log.
        let is_shown = !(self.quiet || self.json) && std::io::stderr().is_terminal();
        let shown = is_shown.then(|| Progress::new("{spinner} {msg} {elapsed}"));
        let (endpoint, lost) = service.run(endpoint, show_progress(&server, shown.as_ref())).await;
        drop(shown);
        let counters = server.stop(&endpoint).await;
        endpoint.close().await;
        if self.json {
            output::json(&counters)?;
        } else {
            output::print(&describe(&counters))?;
        }
        lost.map_or(Ok(()), Err)
    }
}

/// Updates the display forever.
async fn show_progress(server: &FileServer, shown: Option<&Progress>) {
    let Some(shown) = shown else { return std::future::pending().await };
    loop {
        let sent = server.counters();
        shown.set_message(format!(
            "{} segments ({:.1} MB) sent",
            sent.segments + sent.listings,
            sent.bytes as f64 / 1e6
        ));
        tokio::time::sleep(PROGRESS_INTERVAL).await;
    }
}

fn describe(counters: &FileServerCounters) -> String {
    properties(&[
        (
            "Answered",
            format!(
                "{} file segments, {} listing segments, {} bytes; {} metadata, {} of them for missing files",
                counters.segments,
                counters.listings,
                counters.bytes,
                counters.metadata + counters.nacks,
                counters.nacks
            ),
        ),
        (
            "Unanswered",
            format!(
                "{} of unknown form, {} for missing files, {} for another version, {} beyond the end",
                counters.unrecognized, counters.missing, counters.other_version, counters.behind_end
            ),
        ),
        (
            "Failed",
            format!(
                "{} overload, {} too large, {} read or signing errors",
                counters.overloaded, counters.too_large, counters.failed
            ),
        ),
    ])
}
