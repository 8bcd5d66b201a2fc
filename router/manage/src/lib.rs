//! The control plane as seen from outside: NFD management protocol, RIB, HTTP.
//!
//! * [`rib`]: the table of routes, and the FIB next hops that they give.
//! * [`readvertise`]: announces the prefixes of this router to routing daemons and gateways.
//! * [`authentication`]: authenticates and authorizes commands.
//! * [`server`]: answers the management protocol for a router.
//! * [`fib_file`]: FIB entries in files: text, and the snapshots that a router sends.
//! * [`metrics`]: the counters and sizes of a router, as text.
//! * [`http`]: the HTTP server and its endpoints.
//! * [`route_file`]: routes in text files.
//! * [`requests`]: requests of users and programs, as parameters of commands.
//! * [`views`]: the state of a router as JSON.
//! * [`testing`]: a router in memory, for tests of the server.
//!
//! ```
//! use namehop_manage::route_file::{FaceSelector, parse_route_file};
//!
//! // A route for `/example` to face 300 with cost 10.
//! let routes = parse_route_file("/example 300 10\n")?;
//! assert_eq!((&routes[0].next_hop, routes[0].cost), (&FaceSelector::Id(300), Some(10)));
//! # Ok::<(), namehop_manage::route_file::RouteFileError>(())
//! ```
#![forbid(unsafe_code)]

pub mod authentication;
pub mod fib_file;
pub mod http;
pub mod metrics;
pub mod readvertise;
pub mod requests;
pub mod rib;
pub mod route_file;
pub mod server;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod views;
