//! Building Interest and Data packets in newly allocated memory, for applications, tools and management.

mod data;
mod interest;

pub use data::DataBuilder;
pub use interest::{InterestBuilder, InterestSignatureOptions};

use crate::MAX_PACKET_SIZE;
use crate::security::SecurityError;

/// Reason why a packet cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// An Interest needs at least one name component.
    #[error("the name of an Interest must not be empty")]
    EmptyName,
    /// The name has a parameters digest without parameters, or several parameters digests.
    #[error("the name has an unexpected parameters digest component")]
    ParametersDigest,
    /// The packet would be larger than [`MAX_PACKET_SIZE`].
    #[error("the packet is larger than 8800 bytes")]
    TooLong,
    /// Signing failed.
    #[error("cannot sign: {0}")]
    Sign(#[from] SecurityError),
}

fn check_length(packet: Vec<u8>) -> Result<Vec<u8>, BuildError> {
    if packet.len() > MAX_PACKET_SIZE { Err(BuildError::TooLong) } else { Ok(packet) }
}
