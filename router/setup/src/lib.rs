//! Preparing a computer for fast forwarding: what is there ([`detect`]), what would be changed ([`plan`]), doing it
//! ([`apply`]) and taking it back ([`undo`]).
//!
//! Everything is read from and written to files below `/proc`, `/sys` and `/etc`, so the crate knows neither router nor
//! DPDK: a made-up tree of such files stands in for a computer in tests. Nothing is changed that is not a numbered step
//! of a plan, and each step first records in a file what was before ([`StateFile`]).
#![forbid(unsafe_code)]

mod apply;
pub mod detect;
mod findings;
pub mod plan;
mod state;
mod step;
mod system;

pub use apply::{Outcome, apply, undo};
pub use findings::{Finding, findings};
pub use state::{Record, StateFile};
pub use step::{Before, Change, StepError};
pub use system::System;

#[cfg(test)]
mod tests;
