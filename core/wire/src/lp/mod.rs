//! NDNLPv2: the link protocol that carries network-layer packets between neighbours.
//!
//! `LpPacket(100) = header fields, [Fragment(80)]`; header fields are in increasing order of TYPE and the Fragment is
//! last.

mod header;
mod knows_tokens;
mod nack;
mod packet;
mod path_mtu_probe;
mod pit_token;
mod usual;

#[cfg(test)]
mod tests;

pub use header::{LpHeader, encode_header, encode_idle, encode_packet, header_len, idle_len};
pub use knows_tokens::KnowsPitTokens;
pub use nack::NackReason;
pub use packet::{Acks, LpPacket};
pub use path_mtu_probe::PathMtuProbe;
pub use pit_token::PitToken;
pub use usual::{UsualFrame, encode_token_header, token_header_len};

/// CachePolicyType NoCache: do not store this Data in a Content Store.
pub const CACHE_POLICY_NO_CACHE: u64 = 1;
