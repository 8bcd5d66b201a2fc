//! Consumers, producers, congestion control and load generation over a connection to a forwarder.
//!
//! This crate is the client side of NDN. It depends on packets (`namehop-wire`), on the sockets of forwarders and, for
//! the load generator, on ports with links to them, but not on the internals of any forwarder. It works with any
//! forwarder that speaks NDN packet format v0.3, NDNLPv2 and the NFD management protocol.
#![forbid(unsafe_code)]

pub mod client_conf;
pub mod endpoint;
pub mod fileserver;
pub mod loadgen;
pub mod ping;
pub mod relay;
mod rtt_histogram;
pub mod segmented;
pub mod target;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod transport;
pub mod workload;
