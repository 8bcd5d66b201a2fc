//! The client side of the NFD management protocol: commands, status datasets, the stream of face events, and files of
//! routes.
//!
//! A [`Controller`] works over anything that expresses Interests ([`Express`]), usually a
//! [`namehop_traffic::endpoint::Endpoint`], and with any forwarder that speaks the protocol.

mod commands;
mod datasets;
mod events;
mod express;
mod route_file;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use namehop_wire::lp::NackReason;
use namehop_wire::security::{DigestSigner, Signer};
use namehop_wire::{BuildError, DecodeError};
use thiserror::Error;

pub use events::FaceEvents;
pub use express::Express;
pub use route_file::{FaceSelector, RouteFileError, RouteLine, parse_route_file};

use crate::nfd::{CodecError, ControlResponse};

/// Why a command or query failed.
#[derive(Debug, Error)]
pub enum ClientError {
    /// Nothing came back in time.
    #[error("no answer from the forwarder within {lifetime_ms} ms")]
    Timeout {
        /// InterestLifetime, in milliseconds.
        lifetime_ms: u64,
    },
    /// The forwarder refused the Interest, usually because it has no management.
    #[error("the forwarder refused the Interest: Nack {0}")]
    Nack(NackReason),
    /// The connection to the forwarder ended.
    #[error("the connection to the forwarder is closed: {0}")]
    Closed(String),
    /// The forwarder answered the command with another status code than 200.
    #[error("the forwarder answered {}: {}", .0.code, .0.text)]
    Refused(ControlResponse),
    /// The Interest cannot be made.
    #[error("cannot make the Interest: {0}")]
    Build(#[from] BuildError),
    /// The Interest was made and cannot be sent.
    #[error("{0}")]
    NotSent(String),
    /// The answer is not a valid Data.
    #[error("malformed answer: {0}")]
    Decode(#[from] DecodeError),
    /// The answer does not hold what it should.
    #[error("malformed answer: {0}")]
    Codec(#[from] CodecError),
    /// The forwarder sends a dataset without end.
    #[error("the answer is longer than {max_bytes} bytes and was not read any further")]
    TooLong {
        /// Longest dataset that is taken.
        max_bytes: usize,
    },
    /// The answer's name is not that of a dataset segment or event.
    #[error("the answer has an unexpected name: {0}")]
    UnexpectedName(String),
}

/// Commands and queries to one forwarder.
#[derive(Clone)]
pub struct Controller<E> {
    express: E,
    signer: Arc<dyn Signer>,
}

impl<E: Express> Controller<E> {
    /// Signs commands with DigestSha256, which forwarders accept from local applications by default.
    pub fn new(express: E) -> Self {
        Self::with_signer(express, Arc::new(DigestSigner))
    }

    /// Signs commands with a key.
    pub fn with_signer(express: E, signer: Arc<dyn Signer>) -> Self {
        Controller { express, signer }
    }

    /// What it was made with.
    pub fn express(&self) -> &E {
        &self.express
    }
}
