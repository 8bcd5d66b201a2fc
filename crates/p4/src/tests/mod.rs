//! Tests of the whole crate.

mod compiled;
mod front_end;
mod fuzz;
mod rules;
