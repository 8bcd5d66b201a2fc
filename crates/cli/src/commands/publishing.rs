//! What commands that answer Interests have in common: options for registration, signatures, segments, and when they end.

use std::time::Duration;

use clap::Args;

use super::announce::AnnounceArgs;
use super::signing::SigningArgs;
use crate::units::parse_duration;

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
