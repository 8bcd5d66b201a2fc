//! Certificates (NDN packet specification, certificate.rst): Data named `/<identity>/KEY/<key id>/<issuer
//! id>/<version>` with a public key as Content.

mod file;
#[cfg(test)]
mod tests;

use ring::rand::{SecureRandom, SystemRandom};

use crate::builder::{BuildError, DataBuilder};
use crate::data::{Data, content_type};
use crate::name::{ComponentRef, Name, NameRef};
use crate::security::{KeySigner, PublicKey, SecurityError, Signer, Verifier, verify_data};
use crate::signature::{KeyLocator, ValidityPeriod};

pub use file::{load_certificate, save_certificate};

/// Issuer id of self-signed certificates.
pub const SELF_ISSUER: ComponentRef<'static> = ComponentRef::generic(b"self");

/// FreshnessPeriod of new certificates: one hour.
const CERTIFICATE_FRESHNESS_MS: u64 = 3_600_000;

/// A Data in the form of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Certificate<'a> {
    data: Data<'a>,
    validity_period: ValidityPeriod,
}

impl<'a> Certificate<'a> {
    /// Decodes a packet. Neither the signature nor the validity period is checked.
    ///
    /// # Errors
    /// `Decode`; `NotCertificate`.
    pub fn decode(packet: &'a [u8]) -> Result<Self, SecurityError> {
        Self::from_data(Data::decode(packet)?)
    }

    /// Interprets a Data as a certificate.
    ///
    /// # Errors
    /// `NotCertificate` when name or ContentType do not belong to a certificate, or the ValidityPeriod is missing.
    pub fn from_data(data: Data<'a>) -> Result<Self, SecurityError> {
        let has_marker = data.name.get_from_end(3) == Some(ComponentRef::generic(b"KEY"));
        match data.signature_info.validity_period {
            Some(validity_period) if has_marker && data.content_type == content_type::KEY => {
                Ok(Certificate { data, validity_period })
            }
            _ => Err(SecurityError::NotCertificate),
        }
    }

    /// The Data packet of the certificate.
    pub const fn data(&self) -> &Data<'a> {
        &self.data
    }

    /// Name of the certificate.
    pub const fn name(&self) -> NameRef<'a> {
        self.data.name
    }

    /// Name of the key: without issuer id and version.
    pub fn key_name(&self) -> NameRef<'a> {
        self.data.name.without_last(2)
    }

    /// Name of the owner of the key.
    pub fn identity(&self) -> NameRef<'a> {
        self.data.name.without_last(4)
    }

    /// Time for which the certificate is valid.
    pub const fn validity_period(&self) -> ValidityPeriod {
        self.validity_period
    }

    /// The public key.
    ///
    /// # Errors
    /// `BadKey`, `Unsupported`.
    pub fn public_key(&self) -> Result<PublicKey, SecurityError> {
        PublicKey::from_der(self.data.content)
    }

    /// Returns true if a key locator with a name refers to this certificate. It may name the key or the certificate,
    /// also as a prefix.
    pub fn is_located_by(&self, locator: &KeyLocator<'_>) -> bool {
        locator.name().is_some_and(|name| self.identity().len() < name.len() && name.is_prefix_of(self.name()))
    }

    /// Checks the time and the signature with the issuer's key.
    ///
    /// # Errors
    /// `NotValidNow`, `SignatureType`, `BadSignature`.
    pub fn verify(&self, issuer: &dyn Verifier, now_s: u64) -> Result<(), SecurityError> {
        if !self.validity_period.contains(now_s) {
            return Err(SecurityError::NotValidNow);
        }
        verify_data(&self.data, issuer)
    }
}

/// Returns a new name for a key of `identity`: `/<identity>/KEY/<8 random bytes>`.
///
/// # Errors
/// `Random`.
pub fn new_key_name(identity: NameRef<'_>) -> Result<Name, SecurityError> {
    let mut key_id = [0; 8];
    SystemRandom::new().fill(&mut key_id).map_err(|_| SecurityError::Random)?;
    Ok(identity.to_owned().append_generic("KEY").append_generic(key_id))
}

/// Contents of a new certificate.
#[derive(Debug, Clone, Copy)]
pub struct CertificateContents<'a> {
    /// Name of the key, `/<identity>/KEY/<key id>`.
    pub key_name: NameRef<'a>,
    /// The key.
    pub public_key: &'a PublicKey,
    /// Id of the issuer.
    pub issuer_id: ComponentRef<'a>,
    /// Version, usually the current time in milliseconds since the Unix epoch.
    pub version: u64,
    /// Time for which the certificate is valid.
    pub validity_period: ValidityPeriod,
}

/// Makes a certificate, signed by the issuer.
///
/// # Errors
/// `Sign`, with `NotCertificate` when the key name is not one; `TooLong`.
pub fn issue_certificate(contents: &CertificateContents<'_>, issuer: &dyn Signer) -> Result<Vec<u8>, BuildError> {
    if contents.key_name.get_from_end(1) != Some(ComponentRef::generic(b"KEY")) {
        return Err(SecurityError::NotCertificate.into());
    }
    DataBuilder::new(contents.key_name.to_owned().append(contents.issuer_id).append_version(contents.version))
        .content_type(content_type::KEY)
        .freshness_ms(CERTIFICATE_FRESHNESS_MS)
        .content(contents.public_key.to_der())
        .validity_period(contents.validity_period)
        .sign(issuer)
}

/// Makes a self-signed certificate. The locator of `signer` must be the key name.
///
/// # Errors
/// As for [`issue_certificate`].
pub fn self_signed_certificate(
    signer: &KeySigner,
    version: u64,
    validity_period: ValidityPeriod,
) -> Result<Vec<u8>, BuildError> {
    let contents = CertificateContents {
        key_name: signer.locator().as_ref(),
        public_key: &signer.key().public_key(),
        issuer_id: SELF_ISSUER,
        version,
        validity_period,
    };
    issue_certificate(&contents, signer)
}
