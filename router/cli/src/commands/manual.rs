//! `namehop manual`: manual pages generated from the `--help` texts.

use std::fs;
use std::path::PathBuf;

use clap::{Args, CommandFactory};

use super::Cli;
use crate::failure::Failure;

/// Write manual pages, one for each command, into a folder
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  namehop manual /usr/local/share/man/man1")]
pub struct ManualArgs {
    /// Folder; created if it does not exist
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

impl ManualArgs {
    pub fn run(self) -> Result<(), Failure> {
        let written =
            fs::create_dir_all(&self.folder).and_then(|()| clap_mangen::generate_to(Cli::command(), &self.folder));
        written.map_err(|error| Failure::failed(error).context(self.folder.display()))
    }
}
