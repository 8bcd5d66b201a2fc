//! `namehop power`: predicts the power of a router by a model of its host.

mod fit;
mod model;
pub(super) mod rates;
mod server;

use clap::{Args, Subcommand};

use namehop_cli::failure::Failure;

/// Predict the power of a router
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
