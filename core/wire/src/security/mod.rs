//! Signing, verifying and keys (NDN packet specification, signature.rst, signed-interest.rst).

pub mod base64;
mod der;
mod file;
mod key;
mod signer;
mod verifier;

#[cfg(test)]
mod tests;

use std::time::{SystemTime, UNIX_EPOCH};

pub use file::{load_private_key, save_private_key};
pub use key::{KeyType, PrivateKey, PublicKey};
pub use signer::{DigestSigner, HmacSigner, KeySigner, NullSigner, Signer};
pub use verifier::{DigestVerifier, HmacVerifier, Verifier, verify_data, verify_interest};

use crate::DecodeError;

/// Errors of keys, signatures and certificates.
#[derive(Debug, thiserror::Error)]
pub enum SecurityError {
    /// The bytes are not a valid packet.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// A key is malformed or too weak.
    #[error("the key is malformed or too weak")]
    BadKey,
    /// A key or signature algorithm is not supported.
    #[error("the key or signature algorithm is not supported")]
    Unsupported,
    /// The signature does not match these bytes and this key.
    #[error("the signature is wrong")]
    BadSignature,
    /// The signature type does not match the key.
    #[error("the signature type does not match the key")]
    SignatureType,
    /// The Interest is not signed.
    #[error("the Interest is not signed")]
    NotSigned,
    /// The parameters digest in the name does not match the parameters.
    #[error("the parameters digest is wrong")]
    ParametersDigest,
    /// The Data is not a certificate.
    #[error("the Data is not a certificate")]
    NotCertificate,
    /// The certificate is not yet or no longer valid.
    #[error("the certificate is not valid at this time")]
    NotValidNow,
    /// The operating system has no random numbers.
    #[error("the operating system provides no random numbers")]
    Random,
    /// A text is not base64 or not PEM.
    #[error("the text is not valid base64 or PEM")]
    BadText,
    /// A file cannot be read or written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Returns the SignatureTime for a signer's next signed Interest, given its last one: the current time, but later
/// than `last_ms`. If the clock was set back by more than a minute, it is the current time nevertheless, because
/// verifiers reject times far in the future.
pub fn next_signature_time_ms(last_ms: u64, now_ms: u64) -> u64 {
    const MAX_AHEAD_MS: u64 = 60_000;
    if last_ms > now_ms.saturating_add(MAX_AHEAD_MS) { now_ms } else { now_ms.max(last_ms.saturating_add(1)) }
}

/// Returns the current time in milliseconds since the Unix epoch; 0 if the clock is before it.
pub fn unix_time_ms() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}
