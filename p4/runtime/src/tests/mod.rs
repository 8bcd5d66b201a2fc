//! Tests of the whole crate.

mod compiled;
mod quoting;
mod tables;
