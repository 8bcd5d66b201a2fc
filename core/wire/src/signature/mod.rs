//! SignatureInfo and KeyLocator (NDN packet specification, signature.rst, signed-interest.rst, certificate.rst).

mod validity;

pub use validity::ValidityPeriod;

use crate::DecodeError;
use crate::name::NameRef;
use crate::tlv::{OrderedReader, Writer, decode_nni, types};

/// SignatureType numbers.
pub mod signature_type {
    /// SHA-256 of the signed bytes: integrity only.
    pub const DIGEST_SHA256: u64 = 0;
    /// RSA PKCS#1 v1.5 over SHA-256.
    pub const SHA256_WITH_RSA: u64 = 1;
    /// ECDSA over SHA-256, signature in DER.
    pub const SHA256_WITH_ECDSA: u64 = 3;
    /// HMAC with SHA-256.
    pub const HMAC_WITH_SHA256: u64 = 4;
    /// Ed25519.
    pub const ED25519: u64 = 5;
    /// No protection at all.
    pub const NULL: u64 = 200;
}

/// Identifies the key that verifies a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyLocator<'a> {
    /// Name of the key or of its certificate, or a prefix of it.
    Name(NameRef<'a>),
    /// Digest of the key.
    KeyDigest(&'a [u8]),
}

impl<'a> KeyLocator<'a> {
    /// Decodes the VALUE. An empty KeyLocator is `None`.
    fn decode(value: &'a [u8]) -> Result<Option<Self>, DecodeError> {
        // Name or KeyDigest: a second one counts as repeated.
        let rank = |typ| match typ {
            types::NAME | types::KEY_DIGEST => 1,
            _ => 0,
        };
        let mut elements = OrderedReader::new(value, rank);
        let mut locator = None;
        while let Some(element) = elements.next_element()? {
            locator = Some(match element.typ {
                types::NAME => KeyLocator::Name(NameRef::from_value(element.value)?),
                _ => KeyLocator::KeyDigest(element.value),
            });
        }
        Ok(locator)
    }

    /// Returns the name, if the locator is one.
    pub const fn name(&self) -> Option<NameRef<'a>> {
        match self {
            KeyLocator::Name(name) => Some(*name),
            KeyLocator::KeyDigest(_) => None,
        }
    }

    fn encode(&self, writer: &mut Writer) {
        writer.nested(types::KEY_LOCATOR, |writer| {
            match self {
                KeyLocator::Name(name) => writer.element(types::NAME, name.value()),
                KeyLocator::KeyDigest(digest) => writer.element(types::KEY_DIGEST, digest),
            };
        });
    }
}

/// SignatureInfo of a Data or InterestSignatureInfo of an Interest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SignatureInfo<'a> {
    /// SignatureType, one of [`signature_type`] or another number.
    pub signature_type: u64,
    /// Identifies the key.
    pub key_locator: Option<KeyLocator<'a>>,
    /// SignatureNonce: at least 1 byte. Interests only.
    pub nonce: Option<&'a [u8]>,
    /// SignatureTime: milliseconds since the Unix epoch. Interests only.
    pub time_ms: Option<u64>,
    /// SignatureSeqNum. Interests only.
    pub sequence: Option<u64>,
    /// Time for which a certificate is valid. Certificates only.
    pub validity_period: Option<ValidityPeriod>,
}

impl<'a> SignatureInfo<'a> {
    /// Decodes the VALUE of a SignatureInfo or InterestSignatureInfo.
    ///
    /// # Errors
    /// When it does not follow the grammar or the evolvability rules.
    pub fn decode(value: &'a [u8]) -> Result<Self, DecodeError> {
        let rank = |typ| match typ {
            types::SIGNATURE_TYPE => 1,
            types::KEY_LOCATOR => 2,
            types::SIGNATURE_NONCE => 3,
            types::SIGNATURE_TIME => 4,
            types::SIGNATURE_SEQ_NUM => 5,
            types::VALIDITY_PERIOD => 6,
            _ => 0,
        };
        let mut elements = OrderedReader::new(value, rank);
        let mut info = SignatureInfo::default();
        match elements.next_element()? {
            Some(element) if element.typ == types::SIGNATURE_TYPE => info.signature_type = decode_nni(element.value)?,
            _ => return Err(DecodeError::MissingElement),
        }
        while let Some(element) = elements.next_element()? {
            match element.typ {
                types::KEY_LOCATOR => info.key_locator = KeyLocator::decode(element.value)?,
                types::SIGNATURE_NONCE if element.value.is_empty() => return Err(DecodeError::BadLength),
                types::SIGNATURE_NONCE => info.nonce = Some(element.value),
                types::SIGNATURE_TIME => info.time_ms = Some(decode_nni(element.value)?),
                types::SIGNATURE_SEQ_NUM => info.sequence = Some(decode_nni(element.value)?),
                _ => info.validity_period = Some(ValidityPeriod::decode(element.value)?),
            }
        }
        Ok(info)
    }

    /// Appends the element with TYPE `typ`: SignatureInfo or InterestSignatureInfo.
    pub fn encode(&self, typ: u32, writer: &mut Writer) {
        writer.nested(typ, |writer| {
            writer.nni(types::SIGNATURE_TYPE, self.signature_type);
            if let Some(locator) = &self.key_locator {
                locator.encode(writer);
            }
            if let Some(nonce) = self.nonce {
                writer.element(types::SIGNATURE_NONCE, nonce);
            }
            if let Some(time_ms) = self.time_ms {
                writer.nni(types::SIGNATURE_TIME, time_ms);
            }
            if let Some(sequence) = self.sequence {
                writer.nni(types::SIGNATURE_SEQ_NUM, sequence);
            }
            if let Some(validity) = &self.validity_period {
                validity.encode(writer);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Name;

    #[test]
    fn all_fields_round_trip() {
        let key: Name = "/k/KEY/1".parse().expect("name");
        let info = SignatureInfo {
            signature_type: signature_type::SHA256_WITH_ECDSA,
            key_locator: Some(KeyLocator::Name(key.as_ref())),
            nonce: Some(&[1, 2]),
            time_ms: Some(1_700_000_000_000),
            sequence: Some(3),
            validity_period: Some(ValidityPeriod { not_before_s: 0, not_after_s: 4_000_000_000 }),
        };
        let digest = SignatureInfo { key_locator: Some(KeyLocator::KeyDigest(&[9; 32])), ..info };
        for info in [info, digest, SignatureInfo::default()] {
            let mut writer = Writer::new();
            info.encode(types::SIGNATURE_INFO, &mut writer);
            assert_eq!(SignatureInfo::decode(&writer.as_slice()[2..]), Ok(info));
        }
    }

    #[test]
    fn grammar() {
        let decode = |bytes: &[u8]| SignatureInfo::decode(bytes).map(|_| ());
        assert_eq!(decode(&[]), Err(DecodeError::MissingElement));
        assert_eq!(decode(&[28, 0]), Err(DecodeError::MissingElement));
        assert_eq!(decode(&[27, 1, 0, 28, 0]), Ok(()));
        assert_eq!(decode(&[27, 1, 0, 28, 2, 9, 0]), Err(DecodeError::CriticalElement), "unknown kind of key locator");
        assert_eq!(
            decode(&[27, 1, 0, 28, 4, 7, 0, 29, 0]),
            Err(DecodeError::CriticalElement),
            "two kinds of key locator"
        );
        assert_eq!(decode(&[27, 1, 0, 28, 4, 7, 0, 60, 9]), Err(DecodeError::Truncated));
        assert_eq!(decode(&[27, 1, 0, 27, 1, 0]), Err(DecodeError::CriticalElement));
        assert_eq!(decode(&[27, 1, 0, 38, 0]), Err(DecodeError::BadLength));
        assert_eq!(decode(&[27, 1, 0, 40, 3, 0, 0, 0]), Err(DecodeError::BadNumberLength));
        assert_eq!(decode(&[27, 1, 0, 253, 1, 2, 0]), Ok(()), "AdditionalDescription is ignored");
        assert_eq!(decode(&[27, 1, 0, 253, 1, 3, 0]), Err(DecodeError::CriticalElement));
    }
}
