//! Options and service loop shared by commands that answer Interests: registration, signatures, segments, duration, and
//! reconnection after a restart of the forwarder.

use std::future::Future;
use std::time::Duration;

use clap::Args;
use namehop_client::endpoint::Endpoint;
use namehop_wire::Name;

use super::announce::AnnounceArgs;
use crate::connection::{ConnectionArgs, interrupted};
use crate::failure::{Failure, FailureKind};
use crate::signing::SigningArgs;
use crate::units::parse_duration;

/// Pauses between attempts to reconnect: the first one, which doubles, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Options of a publication.
#[derive(Args, Debug)]
pub struct PublishingArgs {
    #[command(flatten)]
    pub announce: AnnounceArgs,
    #[command(flatten)]
    pub signing: SigningArgs,
    /// Stop after this time
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub exit_after: Option<Duration>,
    /// End when the connection to the forwarder is lost, instead of reconnecting and registering again
    #[arg(long)]
    pub no_reconnect: bool,
}

/// A prefix to answer for, and its connection.
pub struct Service<'a> {
    pub publishing: &'a PublishingArgs,
    pub connection: &'a ConnectionArgs,
    pub prefix: &'a Name,
    /// Answers the Interests of a connection.
    pub answer: &'a dyn Fn(&Endpoint),
}

impl Service<'_> {
    /// Registers the prefix for the first time, and fails if it is refused.
    pub async fn begin(&self, endpoint: &Endpoint) -> Result<(), Failure> {
        (self.answer)(endpoint);
        Ok(self.publishing.announce.register(endpoint, self.prefix).await?)
    }

    /// Serves until the command is interrupted, its time is over, or `ends` completes; then unregisters the prefix. If
    /// the connection is lost, reconnects and registers again, with growing pauses between attempts. Returns the last
    /// connection. With `--no-reconnect`, also returns the reason of a lost connection.
    pub async fn run(&self, mut endpoint: Endpoint, ends: impl Future<Output = ()>) -> (Endpoint, Option<Failure>) {
        tokio::pin! {
            let over = async {
                tokio::select! {
                    () = interrupted() => {}
                    () = time_limit(self.publishing.exit_after) => {}
                    () = ends => {}
                }
            };
        }
        loop {
            let reason = tokio::select! {
                () = &mut over => break,
                reason = endpoint.closed() => reason,
            };
            if self.publishing.no_reconnect {
                return (
                    endpoint,
                    Some(Failure::new(
                        FailureKind::NoForwarder,
                        format!("lost the connection to the forwarder: {reason}"),
                    )),
                );
            }
            eprintln!("lost the connection to the forwarder: {reason}; reconnecting");
            tokio::select! {
                () = &mut over => return (endpoint, None),
                again = self.again() => endpoint = again,
            }
            eprintln!("registered {} again", self.prefix);
        }
        self.publishing.announce.unregister(&endpoint, self.prefix).await;
        (endpoint, None)
    }

    /// Reconnects and registers the prefix; retries after errors.
    async fn again(&self) -> Endpoint {
        let mut pause = FIRST_PAUSE;
        let mut reported = None;
        loop {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
            let Ok(endpoint) = self.publishing.connect(self.connection).await else { continue };
            match self.begin(&endpoint).await {
                Ok(()) => return endpoint,
                Err(error) => {
                    let text = error.to_string();
                    if reported.as_ref() != Some(&text) {
                        eprintln!(
                            "cannot register {} again: {text}; retrying every {} s",
                            self.prefix,
                            LONGEST_PAUSE.as_secs()
                        );
                        reported = Some(text);
                    }
                }
            }
        }
    }
}

impl PublishingArgs {
    /// Connects, and sets the signer of commands by the options.
    pub async fn connect(&self, connection: &ConnectionArgs) -> Result<Endpoint, Failure> {
        let endpoint = connection.connect().await?;
        endpoint.sign_commands_with(self.signing.command_signer()?);
        Ok(endpoint)
    }
}

/// Completes after the time limit, or never.
async fn time_limit(limit: Option<Duration>) {
    match limit {
        Some(limit) => tokio::time::sleep(limit).await,
        None => std::future::pending().await,
    }
}

/// Options of the segments of an object.
#[derive(Args, Debug)]
pub struct SegmentArgs {
    /// Bytes of content per segment
    #[arg(short = 's', long, value_name = "BYTES", default_value_t = 8000)]
    pub segment_size: usize,
    /// Freshness period of segments
    #[arg(short = 'f', long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    pub freshness: Duration,
}
