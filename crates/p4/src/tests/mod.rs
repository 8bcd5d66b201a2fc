//! Tests of the whole crate.

mod compiled;
mod front_end;
mod fuzz;
mod generate;
mod rules;
