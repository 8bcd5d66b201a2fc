//! Simulations of the Content Store: the router's policies, run over the requests of a workload or a trace, without
//! packets.
//!
//! | module | what |
//! |---|---|
//! | [`zipf`] | Zipf-distributed ranks |
//! | [`workload`] | the thesis's workloads: web, video, mixed |
//! | [`trace`] | requests from a file |
//! | [`store`] | a store of names under one policy, and its counters |
//! | [`run`] | many stores over the same requests, on several cores |
//! | [`optimum`] | the upper bound of all policies |
//!
//! Names are represented by 64-bit hashes. Source of the workloads: Takemasa, thesis, Osaka University 2019, 5.4.1.
#![forbid(unsafe_code)]

pub mod optimum;
pub mod run;
pub mod store;
pub mod trace;
pub mod workload;
pub mod zipf;
