//! Measurements of this machine and of lookup structures.
//!
//! | module | what |
//! |---|---|
//! | [`memory`] | DRAM latency, and random cache lines per second: the floor of every packet's cost |
//! | [`counters`] | where cycles go, by the processor's performance counters, where it has them |
//! | [`workload`] | names for a FIB and for packets, computed from their number |
//! | `engine` | the cost of packets in the forwarding engine |
//! | `links` | the cost of exchanges from frame to frame, over links between processes |
//! | `peers` | the same load for several forwarders, over sockets |
//! | [`lpm`] | longest prefix match in three structures over the same prefixes |
//! | [`fib`] | a FIB of many prefixes: loading, saving, memory, lookups, growth |
//! | [`disk`] | the second tier of the Content Store: packets stored and found on a disk |
//! | [`schedule`] | what measurements of the forwarding engine say, and the trait through which they are asked for |
//! | [`sweep`] | what measurements over links say of workers, payload, FIB and Content Store, and the trait through which they are asked for |
//! | [`policy`] | the same of the engine with cache policies |
//! | [`machine`] | what the machine is, and its clock |
//! | [`progress`] | what a long measurement says of itself while it runs |
//!
//! Everything runs on the calling thread unless it says otherwise. Numbers are only as good as the machine is quiet.
#![forbid(unsafe_code)]

#[cfg(feature = "dpdk")]
mod child;
pub mod counters;
pub mod disk;
#[cfg(feature = "dpdk")]
pub mod engine;
pub mod fib;
#[cfg(feature = "dpdk")]
pub mod links;
pub mod lpm;
pub mod machine;
mod median;
pub mod memory;
#[cfg(feature = "dpdk")]
pub mod peers;
pub mod policy;
pub mod progress;
pub mod schedule;
pub mod sweep;
pub mod workload;

use namehop_table::permutation;
pub use permutation::Permutation;
