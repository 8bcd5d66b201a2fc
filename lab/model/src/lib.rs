//! Analytic models of packet forwarding on one host: arithmetic only, no measurement.
//!
//! | module | what it computes | source |
//! |---|---|---|
//! | [`throughput`] | bound of packets per second by cores and memory | Taniguchi et al. (2016), Takemasa (2019) 3.2 |
//! | [`patricia`] | memory accesses of a Patricia trie lookup | Takemasa et al. (2017) 6.3, Takemasa (2019) 4.1.3 |
//! | [`hash_table`] | memory accesses of a longest prefix match in a hash table | the same, and 4.1.2 |
//! | [`pipeline`] | CPU cycles by pipeline stage, from hardware counters | Yasin (2014), Takemasa (2019) 3.2 |
//! | [`prefetch`] | what prefetching saves, and what useless prefetches cost | Takemasa et al. (2017) 6.5, 6.7 |
//! | [`cache`] | hit and insertion rate of Filter, cycles per packet by cache policy | Takemasa (2019) 5.1 and 5.3 |
//! | [`plan`] | the limiting resource for a given traffic, and the hosts needed | equations of throughput, Little |
//! | [`router`] | load that a rate of Interests causes on a server | Takemasa (2019) 6.4 |
//! | [`theil_sen`] | slope of a line through points, robust against outliers | Shi et al. (2020) 7.4 |
//!
//! All functions are total: input without meaning gives 0, infinity or NaN, as floating-point division does, never a
//! panic.
//!
//! ```
//! use namehop_model::throughput::{Bottleneck, Cost, Host};
//!
//! // Two cores of 3 GHz and 20 GB/s; a packet takes 1,500 cycles and 1,000 bytes.
//! let host = Host { cores: 2, hz: 3e9, memory_bytes_per_second: 20e9 };
//! let bound = host.bound(&Cost { cycles: 1500.0, bytes: 1000.0 });
//! assert_eq!((bound.rate(), bound.bottleneck()), (4e6, Bottleneck::Computation));
//! ```
#![forbid(unsafe_code)]

pub mod cache;
pub mod hash_table;
pub mod patricia;
pub mod pipeline;
pub mod plan;
pub mod prefetch;
pub mod router;
pub mod theil_sen;
pub mod throughput;
