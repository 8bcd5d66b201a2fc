//! Measurements of this host, of the forwarding engine and of lookup structures.
//!
//! | module | what |
//! |---|---|
//! | [`memory`] | DRAM latency, and random cache lines per second: the lower bound of every packet's cost |
//! | [`counters`] | CPU cycles by pipeline stage, from hardware performance counters where available |
//! | [`workload`] | names for a FIB and for packets, computed from their number |
//! | [`engine`] | cost of packets in the forwarding engine |
//! | [`links`] | cost of exchanges from frame to frame, over links between processes |
//! | [`peers`] | several forwarders under the same load, over sockets |
//! | [`lpm`] | longest prefix match in three structures over the same prefixes |
//! | [`fib`] | a FIB with many prefixes: loading, saving, memory, lookups, growth |
//! | [`fault`] | what is wrong with a forwarder that a measurement uses |
//! | [`disk`] | second tier of the Content Store: storing packets on a disk and reading them |
//! | [`schedule`] | parameters and results of measurements of the forwarding engine |
//! | [`sweep`] | parameters and results of measurements over links, and their trait |
//! | [`policy`] | parameters and results of measurements of the engine with cache policies |
//! | [`measurements`] | the measurements of the engine, as a trait |
//! | [`machine`] | properties of the host, and its clock |
//! | [`progress`] | progress reports of long measurements |
//!
//! Measurements run on the calling thread unless stated otherwise. Other load on the host distorts the figures.
//!
//! ```
//! use namehop_bench::workload::{Workload, WorkloadParameters};
//!
//! // Names of seven components for a FIB of 1,000 prefixes.
//! let workload = Workload::new(WorkloadParameters { prefixes: 1000, ..WorkloadParameters::default() })?;
//! let (mut name, mut prefix) = (vec![0; workload.name_bytes()], vec![0; workload.prefix_bytes()]);
//! let name_bytes = workload.write_name(42, &mut name);
//! let prefix_bytes = workload.write_prefix(workload.prefix_of(42), &mut prefix);
//! assert!(name[..name_bytes].starts_with(&prefix[..prefix_bytes]));
//! # Ok::<(), namehop_bench::workload::WorkloadError>(())
//! ```
#![forbid(unsafe_code)]

mod child;
pub mod counters;
pub mod disk;
pub mod engine;
pub mod fault;
pub mod fib;
pub mod links;
pub mod lpm;
pub mod machine;
pub mod measurements;
mod median;
pub mod memory;
pub mod peers;
pub mod policy;
pub mod progress;
pub mod schedule;
pub mod sweep;
pub mod workload;

use namehop_table::permutation;
pub use permutation::Permutation;
