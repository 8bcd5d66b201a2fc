//! Consumers, producers, congestion control and load generation over a connection to a forwarder.
//!
//! The crate is the client side of NDN: it knows packets (`namehop-wire`), the sockets on which forwarders listen,
//! and, for the load generator, the ports over which they have links, and nothing of any forwarder's insides. Everything here works against any
//! forwarder that speaks the NDN packet format v0.3, NDNLPv2 and the NFD management protocol.
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
