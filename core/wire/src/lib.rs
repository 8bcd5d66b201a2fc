//! NDN packet format v0.3 and NDNLPv2: borrowed, checked views and builders.
//!
//! Decoding borrows from the input, never allocates, never panics and takes time linear in the input. A decoded view
//! is completely valid: its accessors cannot fail. Building allocates and is meant for applications, tools and
//! management; the packet path uses [`rewrite_interest`] and [`lp::encode_header`], which write into the caller's
//! memory.
//!
//! ```
//! use namehop_wire::security::DigestSigner;
//! use namehop_wire::{Data, DataBuilder, Interest, InterestBuilder, Name};
//!
//! let name: Name = "/example/hello".parse()?;
//! let wire = InterestBuilder::new(name.clone()).must_be_fresh(true).lifetime_ms(4000).build()?;
//! let interest = Interest::decode(&wire)?;
//! assert_eq!((interest.name, interest.must_be_fresh), (name.as_ref(), true));
//!
//! let wire = DataBuilder::new(name.clone()).content("Hello").freshness_ms(1000).sign(&DigestSigner)?;
//! assert_eq!(Data::decode(&wire)?.content, b"Hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

pub mod announcement;
pub mod builder;
pub mod certificate;
pub mod data;
mod error;
pub mod interest;
mod layout;
pub mod lp;
pub mod name;
pub mod peek;
pub mod rewrite;
pub mod security;
pub mod signature;
pub mod tlv;

#[cfg(test)]
mod test_util;

pub use announcement::PrefixAnnouncement;
pub use builder::{BuildError, DataBuilder, InterestBuilder};
pub use data::{Data, DataHeader};
pub use error::DecodeError;
pub use interest::{ForwardingHint, Interest};
pub use layout::{DataLayout, InterestLayout, NameLayout, long_name_bytes};
pub use name::{ComponentRef, Name, NameRef};
pub use rewrite::{InterestRewrite, rewrite_interest};
pub use signature::{KeyLocator, SignatureInfo, ValidityPeriod};

/// Largest network-layer packet or LpPacket in bytes, including the outer TYPE and LENGTH.
pub const MAX_PACKET_SIZE: usize = 8800;

/// Maximum number of components of a name that is forwarded. Longer names decode, but the forwarding engine drops
/// them.
pub const MAX_NAME_COMPONENTS: usize = 64;
