//! Tests of the whole crate.

mod chains;
mod compiled;
mod contract;
mod entries;
mod entry_changes;
mod entry_forms;
mod entry_model;
mod entry_profile;
mod front_end;
mod fuzz;
mod generate;
mod generate_table;
mod in_place;
mod p4info;
mod quoting;
mod rules;
mod tables;
