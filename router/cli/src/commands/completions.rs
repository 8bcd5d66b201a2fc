//! `namehop completions`: completion scripts for shells.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::Cli;
use crate::failure::Failure;
use crate::output;

/// Print a completion script for a shell
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  namehop completions bash > /etc/bash_completion.d/namehop")]
pub struct CompletionsArgs {
    /// Shell to complete for
    shell: Shell,
}

impl CompletionsArgs {
    pub fn run(self) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "namehop", &mut script);
        output::print(&String::from_utf8_lossy(&script))
    }
}
