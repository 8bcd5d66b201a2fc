//! Readvertising: telling others which prefixes can be reached through this router.
//!
//! There are two kinds of [`Destination`], both commanded with `rib/register` and `rib/unregister` of the NFD management
//! protocol:
//!
//! * a **routing daemon** on this computer (NLSR, ndn-dv), which listens at `/localhost/nlsr` and takes each prefix as it
//!   is, in commands signed with a digest;
//! * a **gateway**, reached by the route for `/localhop/nfd`, which wants commands signed by a key. One prefix is
//!   registered there for everything that lies under it: the identity of that key.
//!
//! Here is what does not depend on the router around it: nothing in this module reads a clock or sends a packet. The server
//! tells a destination how the routes of a name change and which next hops the FIB has for its commands, sends the Interests
//! that it makes, and hands it the answers.

mod announcer;
mod command;
mod destination;
mod entry;
mod signing;

#[cfg(test)]
mod tests;

pub use destination::{DaemonSettings, Destination, GatewaySettings, read_token};
pub use signing::{IdentityError, SigningIdentity};

/// Destinations that there can be: a routing daemon and a gateway.
pub const MAX_DESTINATIONS: usize = 2;
