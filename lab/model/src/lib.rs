//! Analytic models of packet forwarding on one computer: arithmetic only, no measurement.
//!
//! | module | what it computes | source |
//! |---|---|---|
//! | [`throughput`] | most packets per second that cores and memory allow | Taniguchi et al. (2016), Takemasa (2019) 3.2 |
//! | [`patricia`] | memory accesses of a lookup in a binary Patricia trie | Takemasa et al. (2017) 6.3, Takemasa (2019) 4.1.3 |
//! | [`hash_table`] | memory accesses of a longest prefix match in a hash table | the same, and 4.1.2 |
//! | [`pipeline`] | where a processor's cycles go, from hardware counters | Yasin (2014), Takemasa (2019) 3.2 |
//! | [`prefetch`] | what prefetching saves and what useless prefetches cost | Takemasa et al. (2017) 6.5, 6.7 |
//! | [`cache`] | hit and insertion rate of Filter admission, cycles of packets with a cache policy | Takemasa (2019) 5.1 and 5.3 |
//! | [`plan`] | what bounds a kind of traffic on a computer, and how many computers it takes | the equations of throughput, and Little |
//! | [`batch`] | what a packet costs by the size of its batch, and the best size | "Compiler Based Optimization For Software Packet Processing" (2017), 3 |
//! | [`power`] | watts of a router on a server computer, by device, and parameters of other servers | Takemasa (2019) 6 |
//!
//! All functions are total: what has no meaning gives 0, infinity or NaN as floating-point division does, never a panic.
#![forbid(unsafe_code)]

pub mod batch;
pub mod cache;
pub mod hash_table;
pub mod patricia;
pub mod pipeline;
pub mod plan;
pub mod power;
pub mod prefetch;
pub mod theil_sen;
pub mod throughput;
