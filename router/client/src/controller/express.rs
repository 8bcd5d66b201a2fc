//! The connection that a controller uses.

use std::future::Future;
use std::sync::Arc;

use crate::endpoint::{Endpoint, ExpressError};

use super::ClientError;

/// A connection that expresses Interests to a forwarder.
pub trait Express {
    /// Expresses a complete Interest and waits for the Data until the InterestLifetime ends.
    fn express(&self, interest: Vec<u8>) -> impl Future<Output = Result<Vec<u8>, ClientError>>;

    /// Returns true if the forwarder is on this host. If not, only its RIB accepts commands.
    fn is_local(&self) -> bool;

    /// Returns a SignatureTime in milliseconds since the Unix epoch, higher than all earlier ones.
    fn next_signature_time_ms(&self) -> u64;
}

impl Express for Endpoint {
    async fn express(&self, interest: Vec<u8>) -> Result<Vec<u8>, ClientError> {
        match Endpoint::express(self, interest).await {
            Ok(response) => Ok(response.packet),
            Err(ExpressError::Nack(reason)) => Err(ClientError::Nack(reason)),
            Err(ExpressError::Timeout { lifetime_ms }) => Err(ClientError::Timeout { lifetime_ms }),
            Err(ExpressError::Closed(reason)) => Err(ClientError::Closed(reason)),
            Err(error @ (ExpressError::BadInterest(_) | ExpressError::Unbuildable(_))) => {
                Err(ClientError::NotSent(error.to_string()))
            }
        }
    }

    fn is_local(&self) -> bool {
        Endpoint::is_local(self)
    }

    fn next_signature_time_ms(&self) -> u64 {
        Endpoint::next_signature_time_ms(self)
    }
}

impl<E: Express> Express for Arc<E> {
    fn express(&self, interest: Vec<u8>) -> impl Future<Output = Result<Vec<u8>, ClientError>> {
        E::express(self, interest)
    }

    fn is_local(&self) -> bool {
        E::is_local(self)
    }

    fn next_signature_time_ms(&self) -> u64 {
        E::next_signature_time_ms(self)
    }
}
