//! `namehop completions`: completion scripts for shells.

use std::env;

use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;

use super::Cli;
use crate::failure::Failure;
use crate::{output, programs};

/// Print a completion script for a shell
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  namehop completions bash > /etc/bash_completion.d/namehop")]
pub struct CompletionsArgs {
    /// Shell to complete for
    shell: Shell,
}

impl CompletionsArgs {
    /// Prints the script for the commands of all programs; without `namehop-lab`, its commands have no options.
    pub(super) fn run(self) -> Result<(), Failure> {
        let _not_found = programs::execute(programs::LAB, env::args_os().skip(1));
        self.print(Cli::command())
    }

    /// Prints the script for `command`, as the program `namehop`.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn print(self, mut command: Command) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, "namehop", &mut script);
        output::print(&String::from_utf8_lossy(&script))
    }
}
