//! Verifying signatures.

use std::fmt;

use ring::hmac;

use super::SecurityError;
use super::signer::sha256;
use crate::data::Data;
use crate::interest::Interest;
use crate::signature::signature_type;

/// Verifies signatures of one key.
pub trait Verifier: Send + Sync {
    /// Checks that `signature` is the signature of the concatenated parts.
    ///
    /// # Errors
    /// `SignatureType` when this kind of key cannot make such signatures; `BadSignature`.
    fn verify(&self, signature_type: u64, parts: &[&[u8]], signature: &[u8]) -> Result<(), SecurityError>;
}

/// Verifies DigestSha256, which does not identify the signer.
#[derive(Debug, Clone, Copy, Default)]
pub struct DigestVerifier;

impl Verifier for DigestVerifier {
    fn verify(&self, signature_type: u64, parts: &[&[u8]], signature: &[u8]) -> Result<(), SecurityError> {
        if signature_type != signature_type::DIGEST_SHA256 {
            return Err(SecurityError::SignatureType);
        }
        if sha256(parts).as_ref() == signature { Ok(()) } else { Err(SecurityError::BadSignature) }
    }
}

/// Verifies SignatureHmacWithSha256.
pub struct HmacVerifier {
    key: hmac::Key,
}

impl HmacVerifier {
    /// Verifies with the secret `key`.
    pub fn new(key: &[u8]) -> Self {
        HmacVerifier { key: hmac::Key::new(hmac::HMAC_SHA256, key) }
    }
}

impl fmt::Debug for HmacVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HmacVerifier")
    }
}

impl Verifier for HmacVerifier {
    fn verify(&self, signature_type: u64, parts: &[&[u8]], signature: &[u8]) -> Result<(), SecurityError> {
        if signature_type != signature_type::HMAC_WITH_SHA256 {
            return Err(SecurityError::SignatureType);
        }
        // In constant time, so that the time does not reveal the tag byte by byte.
        hmac::verify(&self.key, &parts.concat(), signature).map_err(|_| SecurityError::BadSignature)
    }
}

/// Verifies the signature of a Data.
///
/// # Errors
/// `SignatureType`, `BadSignature`.
pub fn verify_data(data: &Data<'_>, verifier: &dyn Verifier) -> Result<(), SecurityError> {
    verifier.verify(data.signature_info.signature_type, &[data.signed_portion()], data.signature_value)
}

/// Verifies the parameters digest and signature of an Interest. To prevent replay, the caller compares
/// SignatureNonce, SignatureTime and SignatureSeqNum with the values it has seen.
///
/// # Errors
/// `NotSigned`, `ParametersDigest`, `SignatureType`, `BadSignature`.
pub fn verify_interest(interest: &Interest<'_>, verifier: &dyn Verifier) -> Result<(), SecurityError> {
    let (Some(info), Some(signature), Some(parts)) =
        (&interest.signature_info, interest.signature_value, interest.signed_portions())
    else {
        return Err(SecurityError::NotSigned);
    };
    if !interest.check_parameters_digest() {
        return Err(SecurityError::ParametersDigest);
    }
    verifier.verify(info.signature_type, &parts, signature)
}
