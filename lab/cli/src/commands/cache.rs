//! `namehop cache`: predicts the performance of a cache, without a router.

mod model;
mod simulate;

use clap::{Args, Subcommand};

use namehop_cli::failure::Failure;

/// Predict the performance of a cache
#[derive(Args, Debug)]
pub struct CacheArgs {
    #[command(subcommand)]
    command: CacheCommand,
}

#[derive(Subcommand, Debug)]
enum CacheCommand {
    Simulate(Box<simulate::SimulateArgs>),
    Model(model::ModelArgs),
}

impl CacheArgs {
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            CacheCommand::Simulate(args) => args.run(),
            CacheCommand::Model(args) => args.run(),
        }
    }
}
