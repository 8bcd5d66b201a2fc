//! Tests of the whole crate.

mod compiled;
mod front_end;
mod fuzz;
mod generate;
mod generate_table;
mod in_place;
mod p4info;
mod rules;
mod tables;
