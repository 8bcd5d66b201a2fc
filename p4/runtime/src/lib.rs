//! The runtime of compiled P4 programs, in C (folder `c`), and what builds and runs programs with it.
//!
//! * [`workshop`]: the system's C compiler turns the code of a program and the runtime into a shared object.
//! * [`run`]: compiled programs in a process of their own, compared with the reference interpreter.
//! * [`files`]: the files that are built in, also for measurements.
//!
//! The folder `programs` has programs with their tests.
#![forbid(unsafe_code)]

pub mod files;
pub mod run;
#[cfg(test)]
mod tests;
pub mod workshop;
