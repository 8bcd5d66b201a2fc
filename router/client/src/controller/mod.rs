//! The client side of the NFD management protocol: commands, status datasets, and the stream of face events.
//!
//! A [`Controller`] works with any forwarder that speaks the protocol. It sends Interests through an implementation of
//! [`Express`], usually a [`crate::endpoint::Endpoint`].

mod commands;
mod datasets;
mod events;
mod express;

use std::sync::Arc;

use namehop_wire::lp::NackReason;
use namehop_wire::security::{DigestSigner, Signer};
use namehop_wire::{BuildError, DecodeError};
use thiserror::Error;

pub use events::FaceEvents;
pub use express::Express;

use crate::nfd::{CodecError, ControlResponse};

/// Why a command or query failed.
#[derive(Debug, Error)]
pub enum ClientError {
    /// No answer arrived in time.
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
    /// The forwarder answered the command with a status code other than 200.
    #[error("the forwarder answered {}: {}", .0.code, .0.text)]
    Refused(ControlResponse),
    /// The Interest cannot be encoded.
    #[error("cannot encode the Interest: {0}")]
    Build(#[from] BuildError),
    /// The Interest cannot be sent.
    #[error("{0}")]
    NotSent(String),
    /// The answer is not a valid Data.
    #[error("malformed answer: {0}")]
    Decode(#[from] DecodeError),
    /// The content of the answer is malformed.
    #[error("malformed answer: {0}")]
    Codec(#[from] CodecError),
    /// The dataset exceeds the maximum size.
    #[error("the answer is longer than {max_bytes} bytes; reading stopped")]
    TooLong {
        /// Maximum size of a dataset, in bytes.
        max_bytes: usize,
    },
    /// The name of the answer is not that of a dataset segment or event.
    #[error("the answer has an unexpected name: {0}")]
    UnexpectedName(String),
}

/// Sends commands and queries to one forwarder.
#[derive(Clone)]
pub struct Controller<E> {
    express: E,
    signer: Arc<dyn Signer>,
}

impl<E: Express> Controller<E> {
    /// Creates a controller that signs commands with DigestSha256, which forwarders accept from local applications by
    /// default.
    pub fn new(express: E) -> Self {
        Self::with_signer(express, Arc::new(DigestSigner))
    }

    /// Creates a controller that signs commands with a key.
    pub fn with_signer(express: E, signer: Arc<dyn Signer>) -> Self {
        Controller { express, signer }
    }

    /// Returns the connection of the controller.
    pub fn express(&self) -> &E {
        &self.express
    }
}
