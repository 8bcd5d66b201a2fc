//! The key that signs commands to a gateway.

use std::path::{Path, PathBuf};

use namehop_wire::Name;
use namehop_wire::security::{Certificate, KeySigner, SecurityError, load_certificate, load_private_key};
use thiserror::Error;

/// Why a key cannot sign for a gateway.
#[derive(Debug, Error)]
pub enum IdentityError {
    /// The private key cannot be used.
    #[error("cannot use the key {}: {source}", path.display())]
    Key {
        /// Its file.
        path: PathBuf,
        /// What is wrong.
        source: SecurityError,
    },
    /// The certificate cannot be used.
    #[error("cannot use the certificate {}: {source}", path.display())]
    Certificate {
        /// Its file.
        path: PathBuf,
        /// What is wrong.
        source: SecurityError,
    },
    /// The two do not belong together.
    #[error("{} is the certificate of another key than {}", certificate.display(), key.display())]
    OtherKey {
        /// File of the key.
        key: PathBuf,
        /// File of the certificate.
        certificate: PathBuf,
    },
}

/// A private key with the identity that its certificate gives it.
#[derive(Debug)]
pub struct SigningIdentity {
    pub(super) identity: Name,
    pub(super) signer: KeySigner,
}

impl SigningIdentity {
    /// Reads a key file and the file of its certificate.
    ///
    /// # Errors
    /// When one of them cannot be used, or they do not belong together.
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
            // The name of the certificate, not of the key alone: validators look for a certificate under it.
            signer: KeySigner::new(private_key, decoded.name().to_owned()),
        })
    }

    /// The prefix that is announced for everything under it.
    pub fn identity(&self) -> &Name {
        &self.identity
    }
}
