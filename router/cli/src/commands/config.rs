//! `namehop config`: configuration files of the router.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use namehop_config::{Config, DEFAULT_TOML};
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

/// Check a configuration file, and show how much memory a router would use with it
///
/// Reports what 'namehop run' would refuse on this host for this user: unknown keys, wrong values, and missing
/// certificates, folders and network interfaces. It opens no listeners, so it does not detect ports in use. It then
/// shows how much memory the router would have on this host, how much each group of settings may use, and which
/// settings with "auto" would be smaller than usual.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  namehop config check /etc/namehop.toml\n  namehop config check")]
struct CheckArgs {
    /// Configuration file [default: the built-in defaults]
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
