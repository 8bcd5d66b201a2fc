//! Authentication and authorization of commands: signed command Interests in both formats, replay protection, and the
//! policy.
//!
//! * By default, local applications may use all commands, and other peers none. A local command may then carry any
//!   well-formed signature; a digest must be correct, so that damaged commands are refused.
//! * With configured [`Rule`]s, a module accepts commands only from the signers of its rules: every local application,
//!   or the holders of certain keys. A command signed by such a key needs a signature time near the present, and is
//!   accepted once.
//! * `/localhop/nfd/rib` exists only with trust anchors. A command must be signed by a key that a certificate chain
//!   links to one of them.
//! * Prefix announcements are accepted only if signed by a key linked to one of their own anchors.
//! * `/localhop` commands and prefix announcements add routes only for the [`Namespace`] of their key.

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
