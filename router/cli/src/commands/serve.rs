//! `namehop serve`: answers every Interest under a prefix.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use namehop_client::endpoint::Endpoint;
use namehop_traffic::ping::{PingServer, ServeOptions};
use namehop_wire::{BuildError, MAX_PACKET_SIZE, Name};

use super::publishing::{PublishingArgs, Service};
use crate::connection::{ConnectionArgs, block_on};
use crate::failure::Failure;
use crate::units::{milliseconds, parse_duration};

/// Answer every Interest under a prefix with the same content
///
/// Registers PREFIX and answers until interrupted, also after a restart of the forwarder. 'namehop ping', ndnping and
/// 'ndnd ping' can probe it.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  namehop serve /example
  namehop serve /example --size 1000 --freshness 0
  namehop serve /example --announce
  namehop serve /example --command-key operator.key --command-certificate operator.ndncert")]
pub struct ServeArgs {
    /// Prefix to answer for
    prefix: Name,
    /// Bytes of content per Data
    #[arg(short = 's', long, value_name = "BYTES", default_value_t = 0, conflicts_with = "content")]
    size: usize,
    /// Text content of each Data
    #[arg(long, value_name = "TEXT")]
    content: Option<String>,
    /// Freshness period of the Data; with 0, caches return it only for Interests that accept stale Data
    #[arg(short = 'f', long, value_name = "DURATION", default_value = "1s", value_parser = parse_duration)]
    freshness: Duration,
    #[command(flatten)]
    publishing: PublishingArgs,
    /// Print nothing
    #[arg(short = 'q', long)]
    quiet: bool,
}

impl ServeArgs {
    pub fn run(self, connection: &ConnectionArgs) -> Result<(), Failure> {
        let content = match &self.content {
            Some(text) => text.clone().into_bytes(),
            None => vec![0; self.size.min(MAX_PACKET_SIZE)],
        };
        let signer = self.publishing.signing.signer()?;
        let options = ServeOptions { content, freshness_ms: milliseconds(self.freshness), signer };
        // The shortest possible name: longer ones leave less room.
        options.answer(self.prefix.as_ref()).map_err(|error| match error {
            BuildError::TooLong => Failure::usage(format!(
                "this content, its name and its signature exceed the packet size of {MAX_PACKET_SIZE} bytes: reduce \
                 the content, or publish it in segments with 'namehop put'"
            )),
            error => Failure::failed(error),
        })?;
        let server = Arc::new(PingServer::new(options));
        block_on(async {
            let answer = |endpoint: &Endpoint| server.answer(endpoint, &self.prefix);
            let service = Service { publishing: &self.publishing, connection, prefix: &self.prefix, answer: &answer };
            let endpoint = self.publishing.connect(connection).await?;
            service.begin(&endpoint).await?;
            if !self.quiet {
                eprintln!("serving {}", self.prefix);
            }
            let (endpoint, lost) = service.run(endpoint, std::future::pending()).await;
            if !self.quiet {
                eprintln!("{} Interests answered, {} not answered", server.answered(), server.refused());
            }
            endpoint.close().await;
            lost.map_or(Ok(()), Err)
        })
    }
}
