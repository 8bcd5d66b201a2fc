//! The `namehop` command: one file per subcommand under `commands/`, and what the commands of other programs share with
//! them: output, failures, progress, units and connections.
//!
//! ```
//! use std::time::Duration;
//!
//! use namehop_cli::output::{Align, Table};
//! use namehop_cli::units::parse_duration;
//!
//! let mut table = Table::new(&[("NAME", Align::Left), ("COST", Align::Right)]);
//! table.row(["/a".to_owned(), "10".to_owned()]);
//! assert_eq!(table.render(), "NAME  COST\n/a      10\n");
//! assert_eq!(parse_duration("1.5s"), Ok(Duration::from_millis(1500)));
//! ```
#![forbid(unsafe_code)]

mod api;
pub mod commands;
pub mod connection;
pub mod failure;
mod manager;
pub mod output;
mod output_file;
mod pcapng;
mod printable;
pub mod programs;
pub mod progress;
pub mod signing;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod units;
