//! `namehop traffic`: experiments with traffic.

mod consumer;
mod fetch;
mod fileserver;
mod plan;
mod producer;
mod relay;
mod report;
mod run;

use clap::{Args, Subcommand};

use crate::connection::ConnectionArgs;
use crate::failure::Failure;

/// Tools for traffic experiments: consumers, producers, file transfer, impaired links
#[derive(Args, Debug)]
pub struct TrafficArgs {
    #[command(subcommand)]
    command: TrafficCommand,
}

#[derive(Subcommand, Debug)]
enum TrafficCommand {
    Run(run::RunArgs),
    Consumer(Box<consumer::ConsumerArgs>),
    Producer(Box<producer::ProducerArgs>),
    Fetch(fetch::FetchArgs),
    Fileserver(Box<fileserver::FileServerArgs>),
    Relay(relay::RelayArgs),
}

impl TrafficArgs {
    pub fn run(self, connection: &ConnectionArgs) -> Result<(), Failure> {
        match self.command {
            TrafficCommand::Run(args) => args.run(connection),
            TrafficCommand::Consumer(args) => args.run(connection),
            TrafficCommand::Producer(args) => args.run(connection),
            TrafficCommand::Fetch(args) => args.run(connection),
            TrafficCommand::Fileserver(args) => args.run(connection),
            TrafficCommand::Relay(args) => args.run(),
        }
    }
}
