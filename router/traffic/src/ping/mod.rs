//! Reachability probes: a client that measures round trips to a prefix, and a server that answers.
//!
//! Names are the same as in ndnping: `<prefix>/ping/[<identifier>/]<decimal sequence number>`, so either side works
//! with the tools of other implementations.

mod client;
mod server;
#[cfg(test)]
mod tests;

pub use client::{PingConfig, PingEvent, PingReport, RttSummary, ping};
pub use server::{PingServer, ServeOptions};
