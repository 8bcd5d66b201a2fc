//! Tests of the whole crate.

mod chains;
mod contract;
mod fuzz;
mod in_place;
mod p4info;
