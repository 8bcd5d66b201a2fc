//! `namehop traffic consumer`: runs one consumer.

use clap::Args;

use super::plan::{ConsumerEntry, LinkArgs, PatternEntry, Plan, PlanEntry};
use super::run::HowArgs;
use crate::connection::ConnectionArgs;
use crate::failure::Failure;

/// Send Interests and account for every one of them
///
/// Keeps a number of Interests in flight, fixed or by congestion control, or sends them at a rate. Runs until
/// interrupted, or until a given number or time is reached; then waits for pending Interests and prints a report. For
/// several consumers at once, use 'namehop traffic run'.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  namehop traffic consumer /example --rate 1000 --duration 10s
  namehop traffic consumer /example --window 16 --congestion cubic --lifetime 1s --count 100000
  namehop traffic consumer /example --rate 5000 --poisson --names 100000 --zipf 0.8 --json
  namehop --transport udp4://192.0.2.1:6363 traffic consumer /example --duration 1m
  namehop traffic consumer /example --link 'memif:///run/ndn/consumer.sock?id=0&role=client' --rate 1000000
  namehop traffic consumer /example --link 'ether://[02:00:00:00:00:01]' --local dev://eth1")]
pub struct ConsumerArgs {
    #[command(flatten)]
    pattern: PatternEntry,
    #[command(flatten)]
    link: LinkArgs,
    #[command(flatten)]
    consumer: ConsumerEntry,
    #[command(flatten)]
    how: HowArgs,
}

impl ConsumerArgs {
    pub fn run(self, connection: &ConnectionArgs) -> Result<(), Failure> {
        let LinkArgs { link, local, mtu } = self.link;
        let consumer = ConsumerEntry { pattern: vec![self.pattern], link, local, mtu, ..self.consumer };
        consumer.check().map_err(Failure::usage)?;
        self.how.run(Plan { duration: None, consumer: vec![consumer], producer: Vec::new() }, connection)
    }
}
