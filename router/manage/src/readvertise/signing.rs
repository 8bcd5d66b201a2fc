//! The key that signs commands to a gateway.

use std::path::{Path, PathBuf};

use namehop_wire::Name;
use namehop_wire::certificate::{Certificate, load_certificate};
use namehop_wire::security::{KeySigner, SecurityError, load_private_key};
use thiserror::Error;

/// Why a key cannot sign for a gateway.
#[derive(Debug, Error)]
pub enum IdentityError {
    /// The private key cannot be used.
    #[error("cannot use the key {}: {source}", path.display())]
    Key {
        /// Path of its file.
        path: PathBuf,
        /// The error.
        source: SecurityError,
    },
    /// The certificate cannot be used.
    #[error("cannot use the certificate {}: {source}", path.display())]
    Certificate {
        /// Path of its file.
        path: PathBuf,
        /// The error.
        source: SecurityError,
    },
    /// Key and certificate do not match.
    #[error("{} is the certificate of another key than {}", certificate.display(), key.display())]
    OtherKey {
        /// Path of the key file.
        key: PathBuf,
        /// Path of the certificate file.
        certificate: PathBuf,
    },
}

/// A private key with the identity in its certificate.
#[derive(Debug)]
pub struct SigningIdentity {
    pub(super) identity: Name,
    pub(super) signer: KeySigner,
}

impl SigningIdentity {
    /// Reads a key file and the file of its certificate.
    ///
    /// # Errors
    /// When one of them cannot be used, or they do not match.
    pub fn load(key: &Path, certificate: &Path) -> Result<Self, IdentityError> {
        let private_key =
            load_private_key(key).map_err(|source| IdentityError::Key { path: key.to_owned(), source })?;
        let failed = |source| IdentityError::Certificate { path: certificate.to_owned(), source };
        let packet = load_certificate(certificate).map_err(failed)?;
        let decoded = Certificate::decode(&packet).map_err(failed)?;
        if decoded.public_key().map_err(failed)?.to_der() != private_key.public_key().to_der() {
            return Err(IdentityError::OtherKey { key: key.to_owned(), certificate: certificate.to_owned() });
        }
        Ok(SigningIdentity {
            identity: decoded.identity().to_owned(),
            // KeyLocator is the name of the certificate, not only of the key, because validators look for a certificate
            // under it.
            signer: KeySigner::new(private_key, decoded.name().to_owned()),
        })
    }

    /// Returns the identity, which is announced for all prefixes under it.
    pub fn identity(&self) -> &Name {
        &self.identity
    }
}
