//! `namehop config`: configuration files of the router.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use namehop_daemon::config::{Config, DEFAULT_TOML};
use namehop_daemon::memory_budget::Budget;

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

/// Say whether a configuration file is right, and what a router with it takes of memory
///
/// Finds what 'namehop run' would refuse, for this computer and this user: unknown keys, wrong values, and certificates,
/// folders and network interfaces that are not there. Opens no listeners; a port in use is not found. Then says how much memory the router
/// would have here, what each group of settings may take of it, and which settings that are "auto" would be smaller than usual.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  namehop config check /etc/namehop.toml\n  namehop config check")]
struct CheckArgs {
    /// Configuration file; the defaults without one
    file: Option<PathBuf>,
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
                let (name, config) = match file {
                    Some(file) => (file.display().to_string(), Config::load(&file).map_err(Failure::failed)?),
                    None => ("defaults".to_owned(), Config::default()),
                };
                output::line(format!("{name}: ok"))?;
                output::print(&Budget::of_host(&config).describe())
            }
        }
    }
}
