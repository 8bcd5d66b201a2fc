//! Simulations of the Content Store: the router's own policies over requests of a workload or a trace, without packets.
//!
//! | module | what |
//! |---|---|
//! | [`zipf`] | ranks that are the rarer the higher they are |
//! | [`workload`] | requests as the thesis makes them: web, video, both |
//! | [`trace`] | requests from a file |
//! | [`store`] | a store of names under one policy, and what it counts |
//! | [`run`] | many stores over the same requests, on several cores |
//! | [`optimum`] | what no policy can exceed |
//!
//! A name is its 64-bit hash here. Source of the workloads: Takemasa, thesis, Osaka University 2019, 5.4.1.
#![forbid(unsafe_code)]

pub mod optimum;
pub mod run;
pub mod store;
pub mod trace;
pub mod workload;
pub mod zipf;
