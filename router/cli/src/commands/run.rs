//! `namehop run`: the router.

use std::path::PathBuf;

use clap::Args;
use namehop_daemon::RunOptions;

use crate::failure::Failure;

/// Run the router in the foreground
///
/// Listens as configured; without a configuration, on a Unix socket and on TCP, UDP and WebSocket at the default ports
/// of NDN. Ends cleanly on SIGINT, SIGTERM and SIGHUP, and immediately on a second SIGINT or SIGTERM.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  namehop run\n  namehop run --config /etc/namehop.toml")]
pub struct RunArgs {
    /// Configuration file (TOML); see 'namehop config show'
    #[arg(short = 'c', long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl RunArgs {
    pub fn run(self) -> Result<(), Failure> {
        namehop_daemon::run(&RunOptions { config: self.config }).map_err(Failure::failed)
    }
}
