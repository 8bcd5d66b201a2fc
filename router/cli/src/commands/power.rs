//! `namehop power`: what a router takes of power, by a model of its computer.

mod fit;
mod model;
pub(super) mod rates;
mod server;

use clap::{Args, Subcommand};

use crate::failure::Failure;

/// Foretell what a router takes of power
#[derive(Args, Debug)]
pub struct PowerArgs {
    #[command(subcommand)]
    command: PowerCommand,
}

#[derive(Subcommand, Debug)]
enum PowerCommand {
    Model(Box<model::ModelArgs>),
    Fit(fit::FitArgs),
    Server(server::ServerArgs),
}

impl PowerArgs {
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            PowerCommand::Model(args) => args.run(),
            PowerCommand::Fit(args) => args.run(),
            PowerCommand::Server(args) => args.run(),
        }
    }
}
