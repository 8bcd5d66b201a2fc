//! Builds and runs a router from a configuration: starts workers, control thread and faces, and saves state.
//!
//! | module | what |
//! |---|---|
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
//! | `supervise` | signals, and ending the router when a part fails |
//! | `fib_file` | FIB entries from a file |
//! | [`state`] | the state that survives a restart |
//!
//! ```
//! use std::path::Path;
//!
//! use namehop_config::Config;
//! use namehop_daemon::memory_budget::Budget;
//!
//! let config = Config::parse("[memory]\nlimit = \"200 MiB\"\n", Path::new("namehop.toml"))?;
//! let budget = Budget::fit(&config, 2, None);
//! assert!(budget.needed_bytes <= 200 << 20);
//! assert!(!budget.shrunk.is_empty());
//! # Ok::<(), namehop_config::ConfigError>(())
//! ```

#![forbid(unsafe_code)]

mod api_token;
mod balancing;
mod capture;
mod command_times;
mod control;
mod descriptors;
mod faulty_strategies;
mod fib_file;
mod latency;
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

pub use run::{RunError, RunOptions, run};
