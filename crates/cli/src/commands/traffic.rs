//! `namehop traffic`: experiments with traffic.

mod relay;

use clap::{Args, Subcommand};

use crate::failure::Failure;

/// Tools for experiments with traffic
#[derive(Args, Debug)]
pub struct TrafficArgs {
    #[command(subcommand)]
    command: TrafficCommand,
}

#[derive(Subcommand, Debug)]
enum TrafficCommand {
    Relay(relay::RelayArgs),
}

impl TrafficArgs {
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            TrafficCommand::Relay(args) => args.run(),
        }
    }
}
