//! `namehop manual`: manual pages generated from the `--help` texts.

use std::path::PathBuf;
use std::{env, fs};

use clap::{Args, Command, CommandFactory};

use super::Cli;
use crate::failure::Failure;
use crate::programs;

/// Write manual pages, one for each command, into a folder
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  namehop manual /usr/local/share/man/man1")]
pub struct ManualArgs {
    /// Folder; created if it does not exist
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

impl ManualArgs {
    /// Writes the pages for the commands of all programs; without `namehop-lab`, its commands have no options.
    pub(super) fn run(self) -> Result<(), Failure> {
        let _not_found = programs::execute(programs::LAB, env::args_os().skip(1));
        self.write(Cli::command())
    }

    /// Writes the pages for `command`.
    ///
    /// # Errors
    /// The folder or a file cannot be written.
    pub fn write(self, command: Command) -> Result<(), Failure> {
        let written = fs::create_dir_all(&self.folder).and_then(|()| clap_mangen::generate_to(command, &self.folder));
        written.map_err(|error| Failure::failed(error).context(self.folder.display()))
    }
}
