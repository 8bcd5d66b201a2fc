//! Simulations of the Content Store: the router's policies and others to compare them with, run over the requests of a
//! workload or a trace, without packets.
//!
//! | module | what |
//! |---|---|
//! | [`trace`] | requests from a file |
//! | [`policy`] | the policies that can be simulated |
//! | [`exact_tinylfu`] | choices for TinyLFU that its descriptions leave open |
//! | [`store`] | a store of names under one policy, and its counters |
//! | [`run`] | many stores over the same requests, on several cores |
//! | [`optimum`] | the upper bound of all policies |
//!
//! Names are represented by 64-bit hashes. The load generator defines the workloads (`namehop_traffic::workload`).
//!
//! ```
//! use namehop_simulate::store::store;
//! use namehop_store::PolicyKind;
//!
//! // Two names fit; the least recently used one is evicted.
//! let mut lru = store(PolicyKind::Lru.into(), 2)?;
//! let mut hits = Vec::new();
//! lru.request(&[1, 2, 1, 3, 1, 2], &mut |hit| hits.push(hit));
//! assert_eq!(hits, [false, false, true, false, true, false]);
//! assert_eq!(lru.counts().evictions, 2);
//! # Ok::<(), namehop_table::TableError>(())
//! ```
#![forbid(unsafe_code)]

pub mod exact_tinylfu;
pub mod optimum;
mod perfect_lfu;
pub mod policy;
pub mod run;
pub mod store;
pub mod trace;
