//! Readvertising: announces the prefixes that can be reached through this router.
//!
//! There are two kinds of [`Destination`], both commanded with `rib/register` and `rib/unregister` of the NFD
//! management protocol:
//!
//! * a **routing daemon** on this host (NLSR, ndn-dv). It listens at `/localhost/nlsr` and takes every prefix
//!   unchanged, in commands signed with a digest;
//! * a **gateway**, reached by the route for `/localhop/nfd`. It requires commands signed by a key. The router
//!   registers one prefix there, the identity of that key, for all names under it.
//!
//! This module does not depend on the router around it: it reads no clock and sends no packet. The server reports
//! changes of a name's routes and the FIB next hops of the destination's commands. It sends the Interests that a
//! destination creates and passes on the answers.

mod announcer;
mod command;
mod destination;
mod entry;
mod signing;

#[cfg(test)]
mod tests;

pub use destination::{DaemonSettings, Destination, GatewaySettings, read_token};
pub use signing::{IdentityError, SigningIdentity};
