//! Making signatures.

use std::fmt;

use ring::{digest, hmac};

use super::{PrivateKey, SecurityError};
use crate::name::Name;
use crate::signature::{KeyLocator, signature_type};

/// Signs packets.
pub trait Signer: Send + Sync {
    /// SignatureType to put into the packet.
    fn signature_type(&self) -> u64;

    /// KeyLocator to put into the packet.
    fn key_locator(&self) -> Option<KeyLocator<'_>>;

    /// Signs the concatenated parts.
    ///
    /// # Errors
    /// When the signature cannot be made.
    fn sign(&self, parts: &[&[u8]]) -> Result<Vec<u8>, SecurityError>;
}

/// DigestSha256: integrity only.
#[derive(Debug, Clone, Copy, Default)]
pub struct DigestSigner;

impl Signer for DigestSigner {
    fn signature_type(&self) -> u64 {
        signature_type::DIGEST_SHA256
    }

    fn key_locator(&self) -> Option<KeyLocator<'_>> {
        None
    }

    fn sign(&self, parts: &[&[u8]]) -> Result<Vec<u8>, SecurityError> {
        Ok(sha256(parts).as_ref().to_vec())
    }
}

pub(super) fn sha256(parts: &[&[u8]]) -> digest::Digest {
    let mut context = digest::Context::new(&digest::SHA256);
    for part in parts {
        context.update(part);
    }
    context.finish()
}

/// NullSignature: no protection at all, for tests and measurements.
#[derive(Debug, Clone, Copy, Default)]
pub struct NullSigner;

impl Signer for NullSigner {
    fn signature_type(&self) -> u64 {
        signature_type::NULL
    }

    fn key_locator(&self) -> Option<KeyLocator<'_>> {
        None
    }

    fn sign(&self, _parts: &[&[u8]]) -> Result<Vec<u8>, SecurityError> {
        Ok(Vec::new())
    }
}

/// SignatureHmacWithSha256: a secret shared with the verifier.
pub struct HmacSigner {
    key: hmac::Key,
    locator: Name,
}

impl HmacSigner {
    /// Signs with the secret `key`, which verifiers know by the name `locator`.
    pub fn new(key: &[u8], locator: Name) -> Self {
        HmacSigner { key: hmac::Key::new(hmac::HMAC_SHA256, key), locator }
    }
}

impl fmt::Debug for HmacSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HmacSigner").field("locator", &self.locator).finish_non_exhaustive()
    }
}

impl Signer for HmacSigner {
    fn signature_type(&self) -> u64 {
        signature_type::HMAC_WITH_SHA256
    }

    fn key_locator(&self) -> Option<KeyLocator<'_>> {
        Some(KeyLocator::Name(self.locator.as_ref()))
    }

    fn sign(&self, parts: &[&[u8]]) -> Result<Vec<u8>, SecurityError> {
        let mut context = hmac::Context::with_key(&self.key);
        for part in parts {
            context.update(part);
        }
        Ok(context.sign().as_ref().to_vec())
    }
}

/// SignatureSha256WithEcdsa, SignatureEd25519 or SignatureSha256WithRsa, by the type of the private key.
#[derive(Debug)]
pub struct KeySigner {
    key: PrivateKey,
    locator: Name,
}

impl KeySigner {
    /// Signs with `key`. `locator` is the name by which verifiers find it: the name of the key or of its certificate.
    pub const fn new(key: PrivateKey, locator: Name) -> Self {
        KeySigner { key, locator }
    }

    /// The key.
    pub const fn key(&self) -> &PrivateKey {
        &self.key
    }

    /// Name in the key locator.
    pub const fn locator(&self) -> &Name {
        &self.locator
    }
}

impl Signer for KeySigner {
    fn signature_type(&self) -> u64 {
        self.key.signature_type()
    }

    fn key_locator(&self) -> Option<KeyLocator<'_>> {
        Some(KeyLocator::Name(self.locator.as_ref()))
    }

    fn sign(&self, parts: &[&[u8]]) -> Result<Vec<u8>, SecurityError> {
        self.key.sign(parts)
    }
}
