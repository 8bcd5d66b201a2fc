//! The control plane as seen from outside: NFD management protocol, RIB, HTTP.
//!
//! * [`nfd`]: the messages of the management protocol, for servers and clients.
//! * [`rib`]: the table of routes and what it means for the FIB.
//! * [`readvertise`]: telling routing daemons and gateways which prefixes are reached here.
//! * [`authentication`]: who may command.
//! * [`server`]: answers the management protocol for a router.
//! * [`client`]: sends commands to a router, fetches its datasets, and follows its events.
//! * [`fib_file`]: FIB entries in files: text, and the snapshots that a router hands out.
//! * [`metrics`]: what a router counts.
//! * [`http`]: the HTTP server and its endpoints.
//! * [`requests`]: what people and programs ask for in words, as parameters of commands.
//! * [`views`]: what all this tells people and programs, as JSON.
//! * [`testing`]: a router in memory, for tests of the server.
#![forbid(unsafe_code)]

pub mod authentication;
pub mod client;
pub mod fib_file;
pub mod http;
pub mod metrics;
pub mod nfd;
pub mod readvertise;
pub mod requests;
pub mod rib;
pub mod server;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod views;
