//! `namehop cat`: fetches a segmented object.

use std::io::{ErrorKind, IsTerminal};
use std::path::PathBuf;

use clap::Args;
use namehop_traffic::segmented::{FetchError, FetchProgress, InOrder, OutputError, fetch};
use namehop_wire::Name;
use tokio::io::{AsyncWrite, BufWriter};

use super::fetching::{FetchingArgs, Statistics};
use crate::connection::{ConnectionArgs, block_on, interrupted};
use crate::failure::Failure;
use crate::output::properties;
use crate::output_file::OutputFile;
use crate::progress::Progress;

/// Bytes buffered before a write, because each write switches to another thread.
const WRITE_BUFFER_BYTES: usize = 1 << 20;

/// Fetch an object and write it to standard output or a file
///
/// Without a version in NAME, the newest version is discovered through metadata (RDR), or by prefix. Fetches objects of
/// 'namehop put', ndnputchunks, NDNts and 'ndnd put', and objects with the marker components used before 2022.
/// Statistics go to standard error.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  namehop cat /example/readme
  namehop cat /example/film --output film.mp4
  namehop cat /example/signed --certificate producer.ndncert > data")]
pub struct CatArgs {
    /// Name of the object, with or without version
    name: Name,
    /// File to write [default: standard output]
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    fetching: FetchingArgs,
    /// Print no progress and no statistics
    #[arg(short = 'q', long)]
    quiet: bool,
    /// Print the statistics (on standard error) as JSON
    #[arg(long)]
    json: bool,
}

impl CatArgs {
    pub fn run(self, connection: &ConnectionArgs) -> Result<(), Failure> {
        let options = self.fetching.options()?;
        let shown = self.progress();
        let result = block_on(async {
            let endpoint = connection.connect().await?;
            let mut output: Box<dyn AsyncWrite + Unpin> = match &self.output {
                Some(path) => {
                    Box::new(OutputFile::open(path).map_err(|error| Failure::failed(error).context(path.display()))?)
                }
                None => Box::new(tokio::io::stdout()),
            };
            let mut output = InOrder::new(BufWriter::with_capacity(WRITE_BUFFER_BYTES, &mut output));
            let fetching = fetch(&endpoint, &self.name, &mut output, &options, |progress| advance(&shown, progress));
            tokio::select! {
                report = fetching => match report {
                    // The reader closed the output, as `head` does.
                    Err(FetchError::Output(OutputError::Write(error)))
                        if error.kind() == ErrorKind::BrokenPipe =>
                    {
                        Ok(None)
                    }
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
            eprint!("{}", properties(&statistics.describe()));
        }
        Ok(())
    }

    /// Returns a progress bar, unless the content itself goes to the terminal.
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
