//! Puts a running router together from a configuration: worker, control thread, faces, saved state.
//!
//! | module | what |
//! |---|---|
//! | [`config`] | the configuration file |
//! | [`run`](mod@run) | the router as a process |
//! | [`memory_budget`] | settings that bound memory, fitted to the memory that there is |
//! | `startup` | its parts, made from the configuration |
//! | [`worker`] | the engine between its rings |
//! | `ports` | links that the worker polls by itself, through DPDK |
//! | `api_token` | the token of the HTTP API, read or made |
//! | `balancing` | names, moved from worker to worker |
//! | `control` | the control thread's hold on everything |
//! | `saving` | changes by command, put on file |
//! | `command_times` | times of signed commands, for the next start |
//! | `faulty_strategies` | loaded strategies that ended the router, for the next start |
//! | `neighbours` | other computers' commands, waiting for their turn |
//! | [`power`] | power of the computer, measured or estimated |
//! | `port_policy` | which ports commands may open |
//! | `restore` | configured and saved settings, brought into effect |
//! | `supervise` | signals, and the end of everything when a part fails |
//! | `fib_file` | FIB entries from a file |
//! | [`state`] | what outlives a restart |

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
mod latency;
mod log_writer;
mod logging;
pub mod memory_budget;
mod metrics;
mod neighbours;
mod paths;
mod port_policy;
#[cfg_attr(not(feature = "dpdk"), path = "ports_absent.rs")]
mod ports;
pub mod power;
mod restore;
mod run;
mod saving;
mod startup;
pub mod state;
mod supervise;
pub mod worker;

pub use run::{RunError, RunOptions, run};
