//! Tests of the whole crate.

mod compiled;
mod front_end;
mod fuzz;
mod generate;
mod generate_table;
mod rules;
mod tables;
