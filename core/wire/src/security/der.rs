//! Algorithm identifiers of public and private keys: SubjectPublicKeyInfo (RFC 5280, RFC 5480, RFC 8410) and the head
//! of PKCS#8 (RFC 5958). The library reads strict DER: definite lengths in their shortest form, no trailing bytes.

use spki::der::asn1::{AnyRef, BitStringRef, Int, SequenceRef};
use spki::der::{Decode, Encode, SliceReader};
use spki::{AlgorithmIdentifierRef, ObjectIdentifier, SubjectPublicKeyInfoRef};

use super::SecurityError;

const RSA_ENCRYPTION: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const EC_PUBLIC_KEY: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const PRIME256V1: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
const SECP384R1: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.34");
const ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");

/// Kind of key that an AlgorithmIdentifier names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Algorithm {
    Rsa,
    P256,
    P384,
    Ed25519,
}

impl Algorithm {
    fn of(identifier: &AlgorithmIdentifierRef<'_>) -> Result<Algorithm, SecurityError> {
        match (identifier.oid, identifier.parameters) {
            (RSA_ENCRYPTION, Some(parameters)) if parameters == AnyRef::NULL => Ok(Algorithm::Rsa),
            (EC_PUBLIC_KEY, Some(curve)) => match curve.decode_as() {
                Ok(PRIME256V1) => Ok(Algorithm::P256),
                Ok(SECP384R1) => Ok(Algorithm::P384),
                // Another curve, or one specified by its parameters.
                _ => Err(SecurityError::Unsupported),
            },
            (ED25519, None) => Ok(Algorithm::Ed25519),
            (RSA_ENCRYPTION | EC_PUBLIC_KEY | ED25519, _) => Err(SecurityError::BadKey),
            _ => Err(SecurityError::Unsupported),
        }
    }

    fn identifier(self) -> AlgorithmIdentifierRef<'static> {
        let (oid, parameters) = match self {
            Algorithm::Rsa => (RSA_ENCRYPTION, Some(AnyRef::NULL)),
            Algorithm::P256 => (EC_PUBLIC_KEY, Some(AnyRef::from(&PRIME256V1))),
            Algorithm::P384 => (EC_PUBLIC_KEY, Some(AnyRef::from(&SECP384R1))),
            Algorithm::Ed25519 => (ED25519, None),
        };
        AlgorithmIdentifierRef { oid, parameters }
    }
}

/// Reads a SubjectPublicKeyInfo: algorithm and the bytes of the key.
pub(super) fn read_public_key(der: &[u8]) -> Result<(Algorithm, &[u8]), SecurityError> {
    let info = SubjectPublicKeyInfoRef::from_der(der).map_err(|_| SecurityError::BadKey)?;
    let algorithm = Algorithm::of(&info.algorithm)?;
    // Keys are whole bytes.
    let key = info.subject_public_key.as_bytes().ok_or(SecurityError::BadKey)?;
    Ok((algorithm, key))
}

/// Returns the algorithm of a PKCS#8 private key. The cryptographic library reads the rest.
pub(super) fn private_key_algorithm(pkcs8: &[u8]) -> Result<Algorithm, SecurityError> {
    let identifier = || -> spki::der::Result<AlgorithmIdentifierRef<'_>> {
        let mut info = SliceReader::new(<&SequenceRef>::from_der(pkcs8)?.as_bytes())?;
        let _version = Int::decode(&mut info)?;
        AlgorithmIdentifierRef::decode(&mut info)
    };
    Algorithm::of(&identifier().map_err(|_| SecurityError::BadKey)?)
}

/// Makes a SubjectPublicKeyInfo from an algorithm and the bytes of a key. Fails if the key is longer than the library
/// can encode.
pub(super) fn write_public_key(algorithm: Algorithm, key: &[u8]) -> Result<Vec<u8>, SecurityError> {
    let subject_public_key = BitStringRef::from_bytes(key).map_err(|_| SecurityError::BadKey)?;
    let info = SubjectPublicKeyInfoRef { algorithm: algorithm.identifier(), subject_public_key };
    info.to_der().map_err(|_| SecurityError::BadKey)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_keys_of_every_algorithm_round_trip() {
        for (algorithm, length) in [
            (Algorithm::Rsa, 270),
            (Algorithm::Rsa, 140),
            (Algorithm::P256, 65),
            (Algorithm::P384, 97),
            (Algorithm::Ed25519, 32),
        ] {
            let key = vec![4; length];
            let der = write_public_key(algorithm, &key).expect("encoded");
            assert_eq!(read_public_key(&der).expect("the encoding of this module"), (algorithm, &key[..]));
            for cut in 0..der.len() {
                assert!(read_public_key(&der[..cut]).is_err());
            }
            assert!(read_public_key(&[&der[..], &[0]].concat()).is_err(), "trailing bytes");
        }
    }

    #[test]
    fn known_encoding() {
        // RFC 8410, section 10.1.
        let head = [0x30, 0x2A, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x03, 0x21, 0x00, 0x19, 0xBF];
        let der = write_public_key(Algorithm::Ed25519, &[&[0x19, 0xBF][..], &[7; 30]].concat()).expect("encoded");
        assert_eq!(der[..head.len()], head);
    }

    #[test]
    fn what_is_refused() {
        let der = write_public_key(Algorithm::P256, &[4; 65]).expect("encoded");
        let changed = |index: usize, byte: u8| {
            let mut der = der.clone();
            der[index] = byte;
            read_public_key(&der)
                .map(|(algorithm, _)| algorithm)
                .map_err(|error| matches!(error, SecurityError::Unsupported))
        };
        assert_eq!(changed(0, 0x31), Err(false), "not a sequence");
        assert_eq!(changed(6, 0x2B), Err(true), "unknown algorithm");
        assert_eq!(changed(22, 0x08), Err(true), "unknown curve");
        assert_eq!(changed(25, 0x01), Err(false), "unused bits");
        assert!(read_public_key(&[0x30, 0x81, 0x01, 0x00]).is_err(), "length not in its shortest form");
        assert!(read_public_key(&[0x30, 0x80, 0x00, 0x00]).is_err(), "indefinite length");
    }
}
