//! `namehop traffic producer`: runs one producer.

use clap::Args;
use namehop_client::target::TransportUri;
use namehop_wire::Name;

use super::plan::{LinkArgs, Plan, PlanEntry, ProducerEntry, ReplyEntry, ReplyPatternEntry};
use super::run::HowArgs;
use crate::connection::ConnectionArgs;
use crate::failure::Failure;

/// Answer Interests under a prefix, fast and always with the same content
///
/// Registers the prefix and answers until interrupted or until the time is over. Over a port (--link) nothing is
/// registered: the router needs a route to its face. Data have no verifiable signature (SignatureType Null). For
/// weighted replies and several prefixes, use 'namehop traffic run'.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  namehop traffic producer /example
  namehop traffic producer /example --payload 8000 --freshness 10s --delay 20ms --duration 1m
  namehop traffic producer /example --nack congestion
  namehop --transport udp4://127.0.0.1:6363 traffic producer /example --control unix:///run/nfd/nfd.sock
  namehop traffic producer /example --link 'memif:///run/ndn/producer.sock?id=0&role=client'
  namehop traffic producer /example --link 'ether://[02:00:00:00:00:01]' --local xdp://eth1")]
pub struct ProducerArgs {
    /// Prefix of the Interests to answer
    prefix: Name,
    #[command(flatten)]
    link: LinkArgs,
    #[command(flatten)]
    reply: ReplyEntry,
    /// Local connection that registers the prefix if this producer is on UDP
    #[arg(long, value_name = "URI")]
    control: Option<TransportUri>,
    /// Do not register the prefix, because the forwarder already has a route
    #[arg(long, conflicts_with = "control")]
    no_register: bool,
    #[command(flatten)]
    how: HowArgs,
}

impl ProducerArgs {
    pub fn run(self, connection: &ConnectionArgs) -> Result<(), Failure> {
        let LinkArgs { link, local, mtu } = self.link;
        let producer = ProducerEntry {
            link,
            local,
            mtu,
            control: self.control,
            register: self.no_register.then_some(false),
            pattern: vec![ReplyPatternEntry { prefix: self.prefix, reply: vec![self.reply] }],
            ..ProducerEntry::default()
        };
        producer.check().map_err(Failure::usage)?;
        self.how.run(Plan { duration: None, consumer: Vec::new(), producer: vec![producer] }, connection)
    }
}
