//! `namehop put`: publishes a segmented, versioned object.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use namehop_client::endpoint::Endpoint;
use namehop_traffic::segmented::{Content, PublishError, PublishOptions, PublishedObject};
use namehop_wire::{MAX_PACKET_SIZE, Name};
use tokio::io::AsyncReadExt;

use super::publishing::{PublishingArgs, SegmentArgs, Service};
use crate::connection::{ConnectionArgs, block_on, interrupted};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::units::{milliseconds, parse_duration};

/// FreshnessPeriod of metadata in milliseconds: long enough to serve many consumers from caches, short enough for them
/// to find a new version at once.
pub const METADATA_FRESHNESS_MS: u64 = 10;

/// Interval of progress updates.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);

/// Publish standard input or a file under a name
///
/// Splits the content into segments NAME/v=VERSION/seg=NUMBER, registers NAME, prints the versioned name on standard
/// error, and serves until interrupted. 'namehop cat', ndncatchunks, NDNts and 'ndnd cat' fetch it.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  namehop put /example/readme < README.md
  namehop put /example/film --file film.mp4 --segment-size 8000 --freshness 1h --idle 10m
  namehop put /example/signed --file data --signing-key my.key --certificate my.ndncert
  namehop put /example/data --file data --command-key operator.key --command-certificate operator.ndncert")]
pub struct PutArgs {
    /// Name of the object, without version
    name: Name,
    /// File to publish, which must not change while it is served [default: standard input]
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    segments: SegmentArgs,
    /// Version number [default: the time in microseconds]
    #[arg(long = "object-version", value_name = "NUMBER")]
    version: Option<u64>,
    #[command(flatten)]
    publishing: PublishingArgs,
    /// Stop after this time without Interests
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    idle: Option<Duration>,
    /// Print only the versioned name
    #[arg(short = 'q', long)]
    quiet: bool,
}

impl PutArgs {
    pub fn run(self, connection: &ConnectionArgs) -> Result<(), Failure> {
        if !(1..=MAX_PACKET_SIZE).contains(&self.segments.segment_size) {
            let range =
                format!("--segment-size must be at least 1 and below the packet size of {MAX_PACKET_SIZE} bytes");
            return Err(Failure::usage(range));
        }
        let options = PublishOptions {
            segment_bytes: self.segments.segment_size,
            freshness_ms: milliseconds(self.segments.freshness),
            metadata_freshness_ms: METADATA_FRESHNESS_MS,
            version: self.version,
            signer: self.publishing.signing.signer()?,
        };
        block_on(async {
            // Connect before reading the content, which is useless without a forwarder.
            let endpoint = self.publishing.connect(connection).await?;
            let content = tokio::select! {
                content = self.content() => content?,
                () = interrupted() => return Err(Failure::failed("interrupted")),
            };
            let object = PublishedObject::new(&self.name, content, options).map_err(|error| match error {
                PublishError::TooLarge { .. } => Failure::usage(error),
                error => Failure::failed(error),
            })?;
            self.serve(connection, endpoint, &Arc::new(object)).await
        })
    }

    async fn content(&self) -> Result<Content, Failure> {
        match &self.file {
            Some(path) => Content::open(path).map_err(|error| Failure::failed(error).context(path.display())),
            None => {
                if !self.quiet && std::io::stdin().is_terminal() {
                    eprintln!("reading from the terminal: end the content with Ctrl-D on an empty line");
                }
                let mut bytes = Vec::new();
                tokio::io::stdin().read_to_end(&mut bytes).await?;
                Ok(Content::Memory(bytes))
            }
        }
    }

    async fn serve(
        &self,
        connection: &ConnectionArgs,
        endpoint: Endpoint,
        object: &Arc<PublishedObject>,
    ) -> Result<(), Failure> {
        let answer = |endpoint: &Endpoint| object.publish(endpoint);
        let service = Service { publishing: &self.publishing, connection, prefix: &self.name, answer: &answer };
        service.begin(&endpoint).await?;
        eprintln!("{}", object.versioned_name());
        if !self.quiet {
            eprintln!("{} bytes in {} segments", object.size_bytes(), object.segment_count());
        }
        let shown = self.progress();
        let ends = async {
            tokio::select! {
                () = idle(object, self.idle) => {}
                () = show_progress(object, shown.as_ref()) => {}
            }
        };
        let (endpoint, lost) = service.run(endpoint, ends).await;
        drop(shown);
        if !self.quiet {
            let counters = object.counters();
            eprintln!(
                "{} segments ({} bytes) and {} metadata sent, {} Interests unanswered",
                counters.segments, counters.bytes, counters.metadata, counters.unanswered
            );
        }
        endpoint.close().await;
        lost.map_or(Ok(()), Err)
    }

    /// Returns a display of what was sent, only on a terminal: a program that serves for days must not fill a log.
    /// There is no end to show, because the amount depends on the consumers.
    fn progress(&self) -> Option<Progress> {
        let is_shown = !self.quiet && std::io::stderr().is_terminal();
        is_shown.then(|| Progress::new("{spinner} {msg} {elapsed}"))
    }
}

/// Updates the display forever.
async fn show_progress(object: &PublishedObject, shown: Option<&Progress>) {
    let Some(shown) = shown else { return std::future::pending().await };
    loop {
        let sent = object.counters();
        shown.set_message(format!("{} segments ({:.1} MB) sent", sent.segments, sent.bytes as f64 / 1e6));
        tokio::time::sleep(PROGRESS_INTERVAL).await;
    }
}

/// Completes after a time of `limit` without Interests, or never.
async fn idle(object: &PublishedObject, limit: Option<Duration>) {
    let Some(limit) = limit else { return std::future::pending().await };
    while let Some(rest) = limit.checked_sub(object.idle_time()) {
        tokio::time::sleep(rest + Duration::from_millis(1)).await;
    }
}
