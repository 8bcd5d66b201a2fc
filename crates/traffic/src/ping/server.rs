//! The answering side: a producer that gives the same content to every Interest under its prefix.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use namehop_wire::builder::DataBuilder;
use namehop_wire::security::Signer;
use namehop_wire::{BuildError, Name, NameRef};
use tracing::debug;

use crate::endpoint::{Answer, Endpoint};

/// What to answer.
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
    /// The Data of this name.
    ///
    /// # Errors
    /// It would be too large, or the key does not sign.
    pub fn answer(&self, name: NameRef<'_>) -> Result<Vec<u8>, BuildError> {
        DataBuilder::new(name)
            .freshness_ms(self.freshness_ms)
            .content(self.content.as_slice())
            .sign(self.signer.as_ref())
    }
}

/// What a server did so far.
#[derive(Debug, Default)]
pub struct ServeCounters {
    answered: AtomicU64,
    refused: AtomicU64,
}

impl ServeCounters {
    /// Interests answered with Data.
    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Interests that could not be answered: they ask for a particular digest, or the name leaves
    /// no room for the content.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

/// Answers every Interest under `prefix` until [`Endpoint::withdraw`]. Registering the prefix is
/// left to the caller.
pub fn serve(endpoint: &Endpoint, prefix: &Name, options: ServeOptions) -> Arc<ServeCounters> {
    let counters = Arc::new(ServeCounters::default());
    let counting = Arc::clone(&counters);
    endpoint.produce(prefix, move |request| {
        let name = request.interest.name;
        if name.last().is_some_and(|component| component.is_implicit_digest()) {
            counting.refused.fetch_add(1, Ordering::Relaxed);
            return Answer::None;
        }
        match options.answer(name) {
            Ok(packet) => {
                counting.answered.fetch_add(1, Ordering::Relaxed);
                Answer::Data(packet)
            }
            Err(error) => {
                counting.refused.fetch_add(1, Ordering::Relaxed);
                debug!(%error, %name, "cannot answer");
                Answer::None
            }
        }
    });
    counters
}
