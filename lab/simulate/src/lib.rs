//! Simulations of the Content Store: the router's policies, run over the requests of a workload or a trace, without
//! packets.
//!
//! | module | what |
//! |---|---|
//! | [`trace`] | requests from a file |
//! | [`store`] | a store of names under one policy, and its counters |
//! | [`run`] | many stores over the same requests, on several cores |
//! | [`optimum`] | the upper bound of all policies |
//!
//! Names are represented by 64-bit hashes. The load generator defines the workloads (`namehop_traffic::workload`).
#![forbid(unsafe_code)]

pub mod optimum;
pub mod run;
pub mod store;
pub mod trace;
