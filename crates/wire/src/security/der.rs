//! The little of ASN.1 DER that public and private keys need: SubjectPublicKeyInfo (RFC 5280, RFC 5480, RFC 8410) and the
//! head of PKCS#8 (RFC 5958). Strict: definite lengths in their shortest form, nothing left over.

use super::SecurityError;

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const NULL: u8 = 0x05;
const OBJECT_IDENTIFIER: u8 = 0x06;
const SEQUENCE: u8 = 0x30;

/// 1.2.840.113549.1.1.1 rsaEncryption.
const OID_RSA: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01];
/// 1.2.840.10045.2.1 id-ecPublicKey.
const OID_EC: &[u8] = &[0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01];
/// 1.2.840.10045.3.1.7 prime256v1.
const OID_P256: &[u8] = &[0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07];
/// 1.3.132.0.34 secp384r1.
const OID_P384: &[u8] = &[0x2B, 0x81, 0x04, 0x00, 0x22];
/// 1.3.101.112 Ed25519.
const OID_ED25519: &[u8] = &[0x2B, 0x65, 0x70];

/// Kind of key named by an AlgorithmIdentifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Algorithm {
    Rsa,
    P256,
    P384,
    Ed25519,
}

/// Reads DER elements one after another.
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn read(&mut self, tag: u8) -> Result<&'a [u8], SecurityError> {
        let [found, length, rest @ ..] = self.rest else { return Err(SecurityError::BadKey) };
        let (length, rest) = match (*length, rest) {
            (length @ 0..=0x7F, rest) => (usize::from(length), rest),
            (0x81, [length @ 0x80..=0xFF, rest @ ..]) => (usize::from(*length), rest),
            (0x82, [high @ 1..=0xFF, low, rest @ ..]) => (usize::from(u16::from_be_bytes([*high, *low])), rest),
            _ => return Err(SecurityError::BadKey),
        };
        let (value, rest) = rest.split_at_checked(length).ok_or(SecurityError::BadKey)?;
        if *found != tag {
            return Err(SecurityError::BadKey);
        }
        self.rest = rest;
        Ok(value)
    }

    fn end(&self) -> Result<(), SecurityError> {
        if self.rest.is_empty() { Ok(()) } else { Err(SecurityError::BadKey) }
    }
}

/// Reads an AlgorithmIdentifier.
fn read_algorithm(reader: &mut Reader<'_>) -> Result<Algorithm, SecurityError> {
    let mut identifier = Reader { rest: reader.read(SEQUENCE)? };
    let algorithm = match identifier.read(OBJECT_IDENTIFIER)? {
        OID_RSA => {
            if !identifier.read(NULL)?.is_empty() {
                return Err(SecurityError::BadKey);
            }
            Algorithm::Rsa
        }
        OID_EC => match identifier.read(OBJECT_IDENTIFIER) {
            Ok(OID_P256) => Algorithm::P256,
            Ok(OID_P384) => Algorithm::P384,
            // Another curve, or one spelled out by its parameters.
            _ => return Err(SecurityError::Unsupported),
        },
        OID_ED25519 => Algorithm::Ed25519,
        _ => return Err(SecurityError::Unsupported),
    };
    identifier.end()?;
    Ok(algorithm)
}

/// Reads a SubjectPublicKeyInfo: algorithm and the bytes of the key.
pub(super) fn read_public_key(der: &[u8]) -> Result<(Algorithm, &[u8]), SecurityError> {
    let mut outer = Reader { rest: der };
    let mut info = Reader { rest: outer.read(SEQUENCE)? };
    outer.end()?;
    let algorithm = read_algorithm(&mut info)?;
    let bits = info.read(BIT_STRING)?;
    info.end()?;
    // The first byte counts unused bits at the end; keys are whole bytes.
    match bits {
        [0, key @ ..] => Ok((algorithm, key)),
        _ => Err(SecurityError::BadKey),
    }
}

/// The algorithm of a PKCS#8 private key. The rest is left to the cryptographic library.
pub(super) fn private_key_algorithm(pkcs8: &[u8]) -> Result<Algorithm, SecurityError> {
    let mut outer = Reader { rest: pkcs8 };
    let mut info = Reader { rest: outer.read(SEQUENCE)? };
    outer.end()?;
    info.read(INTEGER)?;
    read_algorithm(&mut info)
}

/// Makes a SubjectPublicKeyInfo from an algorithm and the bytes of a key.
pub(super) fn write_public_key(algorithm: Algorithm, key: &[u8]) -> Vec<u8> {
    let parameters = match algorithm {
        Algorithm::Rsa => element(NULL, &[]),
        Algorithm::P256 => element(OBJECT_IDENTIFIER, OID_P256),
        Algorithm::P384 => element(OBJECT_IDENTIFIER, OID_P384),
        Algorithm::Ed25519 => Vec::new(),
    };
    let algorithm = match algorithm {
        Algorithm::Rsa => OID_RSA,
        Algorithm::P256 | Algorithm::P384 => OID_EC,
        Algorithm::Ed25519 => OID_ED25519,
    };
    let identifier = element(SEQUENCE, &[element(OBJECT_IDENTIFIER, algorithm), parameters].concat());
    let bits = element(BIT_STRING, &[&[0], key].concat());
    element(SEQUENCE, &[identifier, bits].concat())
}

/// One DER element. Keys are far shorter than the 65,535 bytes that two length bytes can say.
fn element(tag: u8, value: &[u8]) -> Vec<u8> {
    let [high, low] = (value.len() as u16).to_be_bytes();
    let header: &[u8] = match value.len() {
        0..=0x7F => &[tag, low],
        0x80..=0xFF => &[tag, 0x81, low],
        _ => &[tag, 0x82, high, low],
    };
    [header, value].concat()
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
            let der = write_public_key(algorithm, &key);
            assert_eq!(read_public_key(&der).expect("own encoding"), (algorithm, &key[..]));
            for cut in 0..der.len() {
                assert!(read_public_key(&der[..cut]).is_err());
            }
            assert!(read_public_key(&[&der[..], &[0]].concat()).is_err(), "bytes left over");
        }
    }

    #[test]
    fn known_encoding() {
        // RFC 8410, section 10.1.
        let head = [0x30, 0x2A, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x03, 0x21, 0x00, 0x19, 0xBF];
        let der = write_public_key(Algorithm::Ed25519, &[&[0x19, 0xBF][..], &[7; 30]].concat());
        assert_eq!(der[..head.len()], head);
    }

    #[test]
    fn what_is_refused() {
        let der = write_public_key(Algorithm::P256, &[4; 65]);
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
