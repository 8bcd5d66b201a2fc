//! Who may command the router: signed command Interests in both forms, protection against replay, and the policy.
//!
//! * By default local applications may do everything and nobody else may do anything. A local command may then carry any
//!   well-formed signature; a digest must be right, so that damaged commands are refused.
//! * With configured [`Rule`]s a command must be signed by the key of a rule that lists its module, near the present, and is
//!   accepted once.
//! * `/localhop/nfd/rib` exists only with trust anchors: a command must be signed by a key that a chain of certificates ties
//!   to one of them.
//! * Prefix announcements are taken only when signed by such a key of their own anchors.
//! * Both give routes only for names that the key may have routes for: its [`Namespace`].

mod command;
mod policy;
mod replay;
mod trust;

#[cfg(test)]
mod tests;

pub use command::{CommandSignature, SignedCommand};
pub use policy::{Anchor, Authenticator, Authority, Rejection, Rule, SecurityConfig, Signer, TrustConfig, Zone};
pub use replay::{Moment, ReplayError, ReplayGuard, TimeRecord};
pub use trust::{Namespace, TrustError, TrustStore, UntrustedError};
