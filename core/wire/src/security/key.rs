//! Asymmetric keys: private keys in PKCS#8, public keys in SubjectPublicKeyInfo.

use std::borrow::Cow;
use std::fmt;

use ring::rand::SystemRandom;
use ring::signature::{self, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RsaKeyPair, UnparsedPublicKey};

use super::der::{self, Algorithm};
use super::{SecurityError, Verifier};
use crate::signature::signature_type;

/// Kind of a private key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyType {
    /// ECDSA on the curve P-256.
    Ecdsa,
    /// Ed25519.
    Ed25519,
    /// RSA, 2048 to 4096 bits.
    Rsa,
}

enum Pair {
    Ecdsa(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
    Rsa(RsaKeyPair),
}

/// A private key, with its public key.
pub struct PrivateKey {
    pair: Pair,
    public: PublicKey,
    pkcs8: Vec<u8>,
    random: SystemRandom,
}

impl PrivateKey {
    /// Generates a new key.
    ///
    /// # Errors
    /// `Unsupported` for RSA, which can be read but not generated; `Random`.
    pub fn generate(key_type: KeyType) -> Result<Self, SecurityError> {
        let random = SystemRandom::new();
        let pkcs8 = match key_type {
            KeyType::Ecdsa => EcdsaKeyPair::generate_pkcs8(&signature::ECDSA_P256_SHA256_ASN1_SIGNING, &random),
            KeyType::Ed25519 => Ed25519KeyPair::generate_pkcs8(&random),
            KeyType::Rsa => return Err(SecurityError::Unsupported),
        };
        Self::from_pkcs8(pkcs8.map_err(|_| SecurityError::Random)?.as_ref())
    }

    /// Reads a PKCS#8 key (RFC 5958). An elliptic curve key must hold its public key.
    ///
    /// # Errors
    /// `BadKey`, `Unsupported`.
    pub fn from_pkcs8(pkcs8: &[u8]) -> Result<Self, SecurityError> {
        let random = SystemRandom::new();
        let pair = match der::private_key_algorithm(pkcs8)? {
            Algorithm::P256 => {
                EcdsaKeyPair::from_pkcs8(&signature::ECDSA_P256_SHA256_ASN1_SIGNING, pkcs8, &random).map(Pair::Ecdsa)
            }
            // Keys in PKCS#8 version 1 lack the public key, which is then computed.
            Algorithm::Ed25519 => Ed25519KeyPair::from_pkcs8_maybe_unchecked(pkcs8).map(Pair::Ed25519),
            Algorithm::Rsa => RsaKeyPair::from_pkcs8(pkcs8).map(Pair::Rsa),
            Algorithm::P384 => return Err(SecurityError::Unsupported),
        };
        let pair = pair.map_err(|_| SecurityError::BadKey)?;
        let public = match &pair {
            Pair::Ecdsa(pair) => PublicKey::new(Algorithm::P256, pair.public_key().as_ref()),
            Pair::Ed25519(pair) => PublicKey::new(Algorithm::Ed25519, pair.public_key().as_ref()),
            Pair::Rsa(pair) => PublicKey::new(Algorithm::Rsa, pair.public_key().as_ref()),
        };
        Ok(PrivateKey { pair, public: public?, pkcs8: pkcs8.to_vec(), random })
    }

    /// The key in PKCS#8. Secret.
    pub fn pkcs8(&self) -> &[u8] {
        &self.pkcs8
    }

    /// Kind of key.
    pub const fn key_type(&self) -> KeyType {
        match self.pair {
            Pair::Ecdsa(_) => KeyType::Ecdsa,
            Pair::Ed25519(_) => KeyType::Ed25519,
            Pair::Rsa(_) => KeyType::Rsa,
        }
    }

    /// SignatureType of the key's signatures.
    pub const fn signature_type(&self) -> u64 {
        match self.pair {
            Pair::Ecdsa(_) => signature_type::SHA256_WITH_ECDSA,
            Pair::Ed25519(_) => signature_type::ED25519,
            Pair::Rsa(_) => signature_type::SHA256_WITH_RSA,
        }
    }

    /// The public key.
    pub fn public_key(&self) -> PublicKey {
        self.public.clone()
    }

    /// Signs the concatenated parts.
    ///
    /// # Errors
    /// `Random`.
    pub fn sign(&self, parts: &[&[u8]]) -> Result<Vec<u8>, SecurityError> {
        let message = &*concatenated(parts);
        match &self.pair {
            Pair::Ecdsa(pair) => pair.sign(&self.random, message).map(|signature| signature.as_ref().to_vec()),
            Pair::Ed25519(pair) => Ok(pair.sign(message).as_ref().to_vec()),
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&signature::RSA_PKCS1_SHA256, &self.random, message, &mut signature).map(|()| signature)
            }
        }
        .map_err(|_| SecurityError::Random)
    }
}

impl fmt::Debug for PrivateKey {
    /// Shows the public part only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrivateKey").field("key_type", &self.key_type()).finish_non_exhaustive()
    }
}

/// A public key that verifies signatures. RSA keys must have 2048 to 8192 bits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PublicKey {
    algorithm: Algorithm,
    key: Vec<u8>,
    /// Algorithm and key as a SubjectPublicKeyInfo.
    der: Vec<u8>,
}

impl PublicKey {
    fn new(algorithm: Algorithm, key: &[u8]) -> Result<Self, SecurityError> {
        Ok(PublicKey { algorithm, key: key.to_vec(), der: der::write_public_key(algorithm, key)? })
    }

    /// Reads a SubjectPublicKeyInfo. The key itself is checked only when it is used.
    ///
    /// # Errors
    /// `BadKey`, `Unsupported`.
    pub fn from_der(der: &[u8]) -> Result<Self, SecurityError> {
        let (algorithm, key) = der::read_public_key(der)?;
        PublicKey::new(algorithm, key)
    }

    /// Returns the key as a SubjectPublicKeyInfo.
    pub fn to_der(&self) -> Vec<u8> {
        self.der.clone()
    }
}

impl Verifier for PublicKey {
    fn verify(&self, signature_type: u64, parts: &[&[u8]], signature: &[u8]) -> Result<(), SecurityError> {
        let algorithm: &dyn signature::VerificationAlgorithm = match (signature_type, self.algorithm) {
            (signature_type::SHA256_WITH_RSA, Algorithm::Rsa) => &signature::RSA_PKCS1_2048_8192_SHA256,
            (signature_type::SHA256_WITH_ECDSA, Algorithm::P256) => &signature::ECDSA_P256_SHA256_ASN1,
            (signature_type::SHA256_WITH_ECDSA, Algorithm::P384) => &signature::ECDSA_P384_SHA256_ASN1,
            (signature_type::ED25519, Algorithm::Ed25519) => &signature::ED25519,
            _ => return Err(SecurityError::SignatureType),
        };
        let message = &*concatenated(parts);
        let key = UnparsedPublicKey::new(algorithm, &self.key);
        key.verify(message, signature).map_err(|_| SecurityError::BadSignature)
    }
}

/// Concatenates the parts; a single part is not copied.
fn concatenated<'a>(parts: &[&'a [u8]]) -> Cow<'a, [u8]> {
    match *parts {
        [message] => Cow::Borrowed(message),
        _ => Cow::Owned(parts.concat()),
    }
}
