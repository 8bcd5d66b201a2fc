//! Puts a running router together from a configuration: worker, control thread, faces, saved state.
//!
//! | module | what |
//! |---|---|
//! | [`config`] | the configuration file |
//! | [`run`](mod@run) | the router as a process |
//! | `startup` | its parts, made from the configuration |
//! | [`worker`] | the engine between its rings |
//! | `ports` | links that the worker polls by itself, through DPDK |
//! | `control` | the control thread's hold on everything |
//! | `restore` | configured and saved settings, brought into effect |
//! | `fib_file` | FIB entries from a file |
//! | [`state`] | what outlives a restart |

#![forbid(unsafe_code)]

pub mod config;
mod control;
mod fib_file;
mod logging;
mod metrics;
mod paths;
#[cfg_attr(not(feature = "dpdk"), path = "ports_absent.rs")]
mod ports;
mod restore;
mod run;
mod startup;
pub mod state;
pub mod worker;

pub use run::{RunError, RunOptions, run};
