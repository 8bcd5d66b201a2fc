//! Signature requirements for fetched Data.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use namehop_wire::Data;
use namehop_wire::certificate::{Certificate, load_certificate};
use namehop_wire::security::{DigestVerifier, HmacVerifier, SecurityError, Verifier, verify_data};
use namehop_wire::signature::signature_type;

/// Signature verification policy.
#[derive(Clone, Default)]
pub enum Verification {
    /// No verification.
    None,
    /// DigestSha256 must be correct; other signatures are not checked, because no key is known.
    #[default]
    Digest,
    /// Every Data must be signed with the key of this verifier.
    Key(Arc<dyn Verifier>),
}

impl fmt::Debug for Verification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Digest => "Digest",
            Self::Key(_) => "Key",
        })
    }
}

/// The signature check of a Data failed.
#[derive(Debug, thiserror::Error)]
#[error("signature: {0}")]
pub struct VerificationError(#[from] SecurityError);

impl Verification {
    /// Requires signatures by the key in a certificate file (ECDSA, Ed25519 or RSA). The certificate itself is trusted
    /// because the user named it.
    ///
    /// # Errors
    /// Fails if the file cannot be read or its key is not supported.
    pub fn by_certificate(path: &Path) -> Result<Self, SecurityError> {
        let packet = load_certificate(path)?;
        let key = Certificate::decode(&packet)?.public_key()?;
        Ok(Self::Key(Arc::new(key)))
    }

    /// Requires HMAC-SHA256 signatures with a shared secret.
    pub fn by_secret(secret: &[u8]) -> Self {
        Self::Key(Arc::new(HmacVerifier::new(secret)))
    }

    /// Checks a Data. Returns true if its signature was verified.
    ///
    /// # Errors
    /// Fails if the signature was checked and is wrong.
    pub fn check(&self, data: &Data<'_>) -> Result<bool, VerificationError> {
        match self {
            Self::Digest if data.signature_info.signature_type == signature_type::DIGEST_SHA256 => {
                verify_data(data, &DigestVerifier)?;
                Ok(true)
            }
            Self::Key(verifier) => {
                verify_data(data, verifier.as_ref())?;
                Ok(true)
            }
            Self::None | Self::Digest => Ok(false),
        }
    }
}
