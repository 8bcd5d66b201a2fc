//! What happens to packets, one file per kind, one commented step per rule of the protocol.
//!
//! The rules are those of the NDN packet specification, NDNLPv2 and the NFD developer's guide ("Forwarding").

mod content_store;
pub(crate) mod expiry;
mod incoming_data;
mod incoming_interest;
mod incoming_nack;
pub(crate) mod outgoing;
mod stripped;
