//! Builds and runs a router from a configuration: starts workers, control thread and faces, and saves state.
//!
//! | module | what |
//! |---|---|
//! | [`config`] | the configuration file |
//! | [`run`](mod@run) | the router as a process |
//! | [`memory_budget`] | settings that bound memory, fitted to the available memory |
//! | `placement` | the number of workers and their CPUs |
//! | `startup` | creates the parts from the configuration, step by step |
//! | `ports` | links that workers poll themselves, through DPDK |
//! | `api_token` | the token of the HTTP API, read or created |
//! | `balancing` | moves names between workers |
//! | `control` | the control thread's access to everything |
//! | `saving` | saves changes by command |
//! | `command_times` | timestamps of signed commands, for the next start |
//! | `faulty_strategies` | loaded strategies that ended the router, for the next start |
//! | `neighbours` | the queue of other hosts' commands |
//! | [`power`] | power of the host, measured or estimated |
//! | `port_policy` | the ports that commands may open |
//! | `restore` | applies configured and saved settings |
//! | `token_file` | files that hold the token of the HTTP API |
//! | `file_access` | whether this user can read and create files |
//! | `log_filter` | levels of log lines per module, as text |
//! | `supervise` | signals, and ending the router when a part fails |
//! | `fib_file` | FIB entries from a file |
//! | [`state`] | the state that survives a restart |
//!
//! ```
//! use std::path::Path;
//!
//! use namehop_daemon::config::Config;
//!
//! let text = "[content_store]\ncapacity_packets = 1000\n";
//! let config = Config::parse(text, Path::new("namehop.toml"))?;
//! assert!(config.to_toml().contains("capacity_packets = 1000"));
//! let error = Config::parse("[content_store]\ncapacity_packets = \"many\"\n", Path::new("namehop.toml")).unwrap_err();
//! assert!(error.to_string().contains("namehop.toml"));
//! # Ok::<(), namehop_daemon::config::ConfigError>(())
//! ```

#![forbid(unsafe_code)]

mod api_token;
mod balancing;
mod capture;
mod command_times;
pub mod config;
mod control;
mod descriptors;
mod faulty_strategies;
mod fib_file;
mod file_access;
mod latency;
mod log_filter;
mod log_writer;
mod logging;
pub mod memory_budget;
mod metrics;
mod neighbours;
mod paths;
mod placement;
mod port_policy;
mod ports;
pub mod power;
mod restore;
mod run;
mod saving;
mod startup;
pub mod state;
mod supervise;
mod token_file;

pub use log_filter::parse_filter;
pub use logging::LOG_VARIABLE;
pub use run::{RunError, RunOptions, run};
