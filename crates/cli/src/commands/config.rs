//! `namehop config`: configuration files of the router.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use namehop_router::config::{Config, DEFAULT_TOML};

use crate::failure::Failure;
use crate::output;

/// Show and check configuration files
#[derive(Args, Debug)]
pub struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Subcommand, Debug)]
enum ConfigCommand {
    Show(ShowArgs),
    Check(CheckArgs),
}

/// Print the documented defaults, or a file with all defaults filled in
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  namehop config show > namehop.toml\n  namehop config show /etc/namehop.toml")]
struct ShowArgs {
    /// Configuration file
    file: Option<PathBuf>,
}

/// Say whether a configuration file is right
///
/// Finds what 'namehop run' would refuse, for this computer and this user: unknown keys, wrong values, and certificates,
/// folders and network interfaces that are not there. Opens no listeners; a port in use is not found.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  namehop config check /etc/namehop.toml")]
struct CheckArgs {
    /// Configuration file
    file: PathBuf,
}

impl ConfigArgs {
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            ConfigCommand::Show(ShowArgs { file: None }) => output::print(DEFAULT_TOML),
            ConfigCommand::Show(ShowArgs { file: Some(file) }) => {
                let config = Config::read(&file).map_err(Failure::failed)?;
                output::print(&config.to_toml())
            }
            ConfigCommand::Check(CheckArgs { file }) => {
                Config::load(&file).map_err(Failure::failed)?;
                output::line(format!("{}: ok", file.display()))
            }
        }
    }
}
