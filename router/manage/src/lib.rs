//! The control plane as seen from outside: NFD management protocol, RIB, HTTP.
//!
//! * [`nfd`]: the messages of the management protocol, for servers and clients.
//! * [`rib`]: the table of routes, and the FIB next hops that they give.
//! * [`readvertise`]: announces the prefixes of this router to routing daemons and gateways.
//! * [`authentication`]: authenticates and authorizes commands.
//! * [`server`]: answers the management protocol for a router.
//! * [`client`]: sends commands to a router, fetches its datasets, and follows its events.
//! * [`fib_file`]: FIB entries in files: text, and the snapshots that a router sends.
//! * [`metrics`]: the counters and sizes of a router, as text.
//! * [`http`]: the HTTP server and its endpoints.
//! * [`requests`]: requests of users and programs, as parameters of commands.
//! * [`views`]: the state of a router as JSON.
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
