//! The ping server: a producer that returns the same content for every Interest under its prefix.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use namehop_client::endpoint::{Answer, Endpoint};
use namehop_wire::builder::DataBuilder;
use namehop_wire::security::Signer;
use namehop_wire::{BuildError, Name, NameRef};
use tracing::debug;

/// Options of the answers.
#[derive(Clone)]
pub struct ServeOptions {
    /// Content of every Data.
    pub content: Vec<u8>,
    /// Freshness period, in milliseconds.
    pub freshness_ms: u64,
    /// Signs every Data.
    pub signer: Arc<dyn Signer>,
}

impl ServeOptions {
    /// Builds the Data with this name.
    ///
    /// # Errors
    /// Fails if the Data would be too large or the key fails to sign.
    pub fn answer(&self, name: NameRef<'_>) -> Result<Vec<u8>, BuildError> {
        DataBuilder::new(name)
            .freshness_ms(self.freshness_ms)
            .content(self.content.as_slice())
            .sign(self.signer.as_ref())
    }
}

/// Answers every Interest under a prefix, over one connection or several.
pub struct PingServer {
    options: ServeOptions,
    answered: AtomicU64,
    refused: AtomicU64,
}

impl PingServer {
    /// Creates a server; [`answer`](Self::answer) attaches it to connections.
    pub fn new(options: ServeOptions) -> Self {
        Self { options, answered: AtomicU64::new(0), refused: AtomicU64::new(0) }
    }

    /// Returns the number of Interests answered with Data.
    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Returns the number of Interests that could not be answered: they ask for an implicit digest, or the name leaves
    /// no room for the content.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Answers every Interest under `prefix` from `endpoint`, until [`Endpoint::withdraw`]. The caller registers the
    /// prefix.
    pub fn answer(self: &Arc<Self>, endpoint: &Endpoint, prefix: &Name) {
        let server = Arc::clone(self);
        endpoint.produce(prefix, move |request| server.answer_to(request.interest.name));
    }

    fn answer_to(&self, name: NameRef<'_>) -> Answer {
        if name.last().is_some_and(|component| component.is_implicit_digest()) {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Answer::None;
        }
        match self.options.answer(name) {
            Ok(packet) => {
                self.answered.fetch_add(1, Ordering::Relaxed);
                Answer::Data(packet)
            }
            Err(error) => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                debug!(%error, %name, "cannot answer");
                Answer::None
            }
        }
    }
}
