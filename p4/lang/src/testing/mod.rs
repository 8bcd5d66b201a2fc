//! Programs for the tests of the crates of P4: those in `p4/runtime/programs`, and random ones.

pub mod chains;
pub mod generate;
mod generate_table;
pub mod rules;
pub mod words;
