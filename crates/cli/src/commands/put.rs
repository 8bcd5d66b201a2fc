//! `namehop put`: publishes a segmented, versioned object.

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use namehop_traffic::segmented::{Content, PublishOptions, PublishedObject};
use namehop_wire::Name;
use namehop_wire::security::Signer;

use super::serve::time_limit;
use super::signing::SigningArgs;
use crate::connection::{ConnectionArgs, block_on, interrupted};
use crate::failure::{Failure, Kind};
use crate::units::{milliseconds, parse_duration};

/// Time that metadata stays fresh: long enough to serve a crowd from caches, short enough for a new
/// version to be found at once.
const METADATA_FRESHNESS_MS: u64 = 10;

/// Publish standard input or a file under a name
///
/// Cuts the content into segments NAME/v=VERSION/seg=NUMBER, registers NAME, prints the versioned name
/// on standard error, and serves until interrupted. 'namehop cat', ndncatchunks, NDNts and
/// 'ndnd cat' fetch it.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  namehop put /example/readme < README.md
  namehop put /example/film --file film.mp4 --segment-size 8000 --freshness 1h --idle 10m
  namehop put /example/signed --file data --signing-key my.key --certificate my.ndncert
  namehop put /example/data --file data --command-key operator.key --command-certificate operator.ndncert")]
pub struct PutArgs {
    /// Name of the object, without version
    name: Name,
    /// File to publish; it must not change while it is served. Standard input when absent
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Bytes of content per segment
    #[arg(short = 's', long, value_name = "BYTES", default_value_t = 8000)]
    segment_size: usize,
    /// How long segments stay fresh
    #[arg(short = 'f', long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    freshness: Duration,
    /// Version number; the time in microseconds when absent
    #[arg(long = "object-version", value_name = "NUMBER")]
    version: Option<u64>,
    #[command(flatten)]
    signing: SigningArgs,
    /// Stop after this time
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    exit_after: Option<Duration>,
    /// Stop when nobody has asked for this long
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    idle: Option<Duration>,
    /// Print only the versioned name
    #[arg(short = 'q', long)]
    quiet: bool,
}

impl PutArgs {
    pub fn run(self, connection: &ConnectionArgs) -> Result<(), Failure> {
        let options = PublishOptions {
            segment_bytes: self.segment_size,
            freshness_ms: milliseconds(self.freshness),
            metadata_freshness_ms: METADATA_FRESHNESS_MS,
            version: self.version,
            signer: self.signing.signer()?,
        };
        let command_signer = self.signing.command_signer()?;
        let content = match &self.file {
            Some(path) => Content::open(path).map_err(|error| Failure::failed(error).context(path.display()))?,
            None => {
                let mut bytes = Vec::new();
                std::io::stdin().lock().read_to_end(&mut bytes)?;
                Content::Memory(bytes)
            }
        };
        let object = Arc::new(PublishedObject::new(&self.name, content, options).map_err(Failure::failed)?);
        block_on(self.serve(connection, &object, command_signer))
    }

    async fn serve(
        &self,
        connection: &ConnectionArgs,
        object: &Arc<PublishedObject>,
        command_signer: Arc<dyn Signer>,
    ) -> Result<(), Failure> {
        let endpoint = connection.connect().await?;
        endpoint.sign_commands_with(command_signer);
        object.publish(&endpoint);
        endpoint.register_prefix(&self.name).await?;
        eprintln!("{}", object.versioned_name());
        if !self.quiet {
            eprintln!("{} bytes in {} segments", object.size_bytes(), object.segment_count());
        }
        let lost = tokio::select! {
            () = interrupted() => None,
            () = time_limit(self.exit_after) => None,
            () = idle(object, self.idle) => None,
            reason = endpoint.closed() => Some(reason),
        };
        if !self.quiet {
            let counters = object.counters();
            eprintln!(
                "{} segments ({} bytes) and {} metadata sent, {} Interests unanswered",
                counters.segments, counters.bytes, counters.metadata, counters.unanswered
            );
        }
        endpoint.close().await;
        match lost {
            Some(reason) => Err(Failure::new(Kind::NoForwarder, format!("lost the forwarder: {reason}"))),
            None => Ok(()),
        }
    }
}

/// Completes when nobody has asked for `limit`, or never.
async fn idle(object: &PublishedObject, limit: Option<Duration>) {
    let Some(limit) = limit else { return std::future::pending().await };
    while let Some(rest) = limit.checked_sub(object.idle_time()) {
        tokio::time::sleep(rest + Duration::from_millis(1)).await;
    }
}
