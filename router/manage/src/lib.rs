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
//!
//! ```
//! use namehop_manage::nfd::ControlParameters;
//!
//! // The parameters of the command that adds a route with cost 10 to face 300.
//! let name = "/example".parse().ok();
//! let route = ControlParameters { name, face_id: Some(300), cost: Some(10), ..ControlParameters::default() };
//! assert_eq!(ControlParameters::decode(&route.to_vec())?, route);
//! # Ok::<(), namehop_manage::nfd::CodecError>(())
//! ```
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
