//! What commands that answer Interests have in common: options for registration, signatures, segments, when they end, and that they
//! go on when the forwarder was restarted.

use std::future::Future;
use std::time::Duration;

use clap::Args;
use namehop_traffic::endpoint::Endpoint;
use namehop_wire::Name;

use super::announce::AnnounceArgs;
use super::signing::SigningArgs;
use crate::connection::{ConnectionArgs, interrupted};
use crate::failure::{Failure, Kind};
use crate::units::parse_duration;

/// Pause before the first attempt to reach a forwarder again; it doubles up to the other one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How to publish, and for how long.
#[derive(Args, Debug)]
pub struct PublishingArgs {
    #[command(flatten)]
    pub announce: AnnounceArgs,
    #[command(flatten)]
    pub signing: SigningArgs,
    /// Stop after this time
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub exit_after: Option<Duration>,
    /// End when the connection to the forwarder is lost, instead of connecting and registering again
    #[arg(long)]
    pub no_reconnect: bool,
}

/// A prefix that is answered for, and the connection for that.
pub struct Service<'a> {
    pub publishing: &'a PublishingArgs,
    pub connection: &'a ConnectionArgs,
    pub prefix: &'a Name,
    /// Answers Interests that come over a connection.
    pub answer: &'a dyn Fn(&Endpoint),
}

impl Service<'_> {
    /// Registers the prefix, for the first time: a refusal is an error.
    pub async fn begin(&self, endpoint: &Endpoint) -> Result<(), Failure> {
        (self.answer)(endpoint);
        Ok(self.publishing.announce.register(endpoint, self.prefix).await?)
    }

    /// Goes on until the command is interrupted, its time is over, or `ends` completes; then takes the registration back. When the connection is
    /// lost, connects and registers again, with growing pauses between attempts. Returns the last connection, and why it was lost if the
    /// command is to end then.
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
                return (endpoint, Some(Failure::new(Kind::NoForwarder, format!("lost the forwarder: {reason}"))));
            }
            eprintln!("lost the forwarder: {reason}; connecting again until it is back");
            tokio::select! {
                () = &mut over => return (endpoint, None),
                again = self.again() => endpoint = again,
            }
            eprintln!("registered {} again", self.prefix);
        }
        self.publishing.announce.unregister(&endpoint, self.prefix).await;
        (endpoint, None)
    }

    /// A new connection, over which the prefix is registered. What goes wrong is tried again.
    async fn again(&self) -> Endpoint {
        let mut pause = FIRST_PAUSE;
        let mut told = None;
        loop {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
            let Ok(endpoint) = self.publishing.connect(self.connection).await else { continue };
            match self.begin(&endpoint).await {
                Ok(()) => return endpoint,
                Err(error) => {
                    let text = error.to_string();
                    if told.as_ref() != Some(&text) {
                        eprintln!(
                            "cannot register {} again: {text}; trying every {} s",
                            self.prefix,
                            LONGEST_PAUSE.as_secs()
                        );
                        told = Some(text);
                    }
                }
            }
        }
    }
}

impl PublishingArgs {
    /// Connects; commands over the connection are signed as the options say.
    pub async fn connect(&self, connection: &ConnectionArgs) -> Result<Endpoint, Failure> {
        let endpoint = connection.connect().await?;
        endpoint.sign_commands_with(self.signing.command_signer()?);
        Ok(endpoint)
    }
}

/// Completes after a time, or never.
async fn time_limit(limit: Option<Duration>) {
    match limit {
        Some(limit) => tokio::time::sleep(limit).await,
        None => std::future::pending().await,
    }
}

/// The segments that content is cut into.
#[derive(Args, Debug)]
pub struct SegmentArgs {
    /// Bytes of content per segment
    #[arg(short = 's', long, value_name = "BYTES", default_value_t = 8000)]
    pub segment_size: usize,
    /// How long segments stay fresh
    #[arg(short = 'f', long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    pub freshness: Duration,
}
