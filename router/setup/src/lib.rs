//! Prepares a host for fast forwarding: detection ([`detect`]), planning changes ([`plan`]), applying them ([`apply`])
//! and undoing them ([`undo`]).
//!
//! The crate reads and writes only files below `/proc`, `/sys` and `/etc`, and depends on neither the router nor DPDK.
//! Tests use a simulated tree of such files. Every change is a numbered step of a plan, and each step first records the
//! previous state in a file ([`StateFile`]).
//!
//! ```
//! use namehop_setup::System;
//! use namehop_setup::detect::Machine;
//!
//! // Reads this host, and lists what slows down a router here.
//! let machine = Machine::detect(&System::new("/"), None);
//! for finding in namehop_setup::findings(&machine) {
//!     println!("{finding:?}");
//! }
//! ```
#![forbid(unsafe_code)]

mod apply;
mod boot_files;
pub mod detect;
mod findings;
pub mod plan;
mod state;
mod step;
mod system;

pub use apply::{Outcome, apply, undo};
pub use findings::{Finding, findings};
pub use state::{Record, StateFile};
pub use step::{Before, HostChange, StepError};
pub use system::{ProgramError, System};

#[cfg(test)]
mod tests;
