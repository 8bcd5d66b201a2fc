//! Consumers, producers, congestion control and load generation over a connection to a forwarder.
//!
//! This crate works with any forwarder. It depends on packets (`namehop-wire`), on connections (`namehop-client`) and,
//! for the load generator, on ports, but not on the internals of a forwarder.
//!
//! ```
//! use namehop_traffic::workload::{Workload, WorkloadKind, WorkloadShape};
//!
//! // Requests for ten web objects; their popularity follows Zipf's law.
//! let shape = WorkloadShape { objects: 10, ..WorkloadShape::published(WorkloadKind::Web) };
//! let mut workload = Workload::new(shape);
//! assert!((0..1_000).all(|_| (1..=10).contains(&workload.next_number())));
//! ```
#![forbid(unsafe_code)]

pub mod fileserver;
pub mod loadgen;
pub mod ping;
pub mod relay;
mod rtt_histogram;
pub mod segmented;
pub mod workload;
