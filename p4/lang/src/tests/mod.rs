//! Tests of the whole crate.

mod front_end;
mod fuzz;
mod rules;
