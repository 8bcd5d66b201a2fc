//! Prefix announcements: signed Data in which a producer states that it serves a prefix (NFD self-learning).
//!
//! Named `/<prefix>/32=PA/<version>/<segment 0>`; the Content holds the announcement's lifetime.

use crate::DecodeError;
use crate::builder::{BuildError, DataBuilder};
use crate::data::{Data, content_type};
use crate::name::NameRef;
use crate::security::Signer;
use crate::signature::ValidityPeriod;
use crate::tlv::{OrderedReader, Writer, decode_nni, types};

/// The contents of a prefix announcement. The signature belongs to the Data and must be verified separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrefixAnnouncement<'a> {
    /// The announced prefix.
    pub prefix: NameRef<'a>,
    /// Version of the announcement.
    pub version: u64,
    /// ExpirationPeriod: maximum lifetime of a route made from it, in milliseconds.
    pub expiration_ms: u64,
    /// When the announcement may be used; absent means always.
    pub validity_period: Option<ValidityPeriod>,
}

impl<'a> PrefixAnnouncement<'a> {
    /// Reads the announcement in a Data.
    ///
    /// # Errors
    /// `BadValue` when name or ContentType do not belong to an announcement; `MissingElement` without
    /// ExpirationPeriod; otherwise when the Content breaks the rules of TLV.
    pub fn decode(data: &Data<'a>) -> Result<Self, DecodeError> {
        let name = data.name;
        let has_marker = name.get_from_end(2).is_some_and(|component| component.is_keyword(b"PA"));
        let has_segment = name.last().and_then(|component| component.as_segment()) == Some(0);
        let version = name.get_from_end(1).and_then(|component| component.as_version());
        let Some(version) = version.filter(|_| has_marker && has_segment) else {
            return Err(DecodeError::BadValue);
        };
        if data.content_type != content_type::PREFIX_ANNOUNCEMENT {
            return Err(DecodeError::BadValue);
        }
        let rank = |typ| match typ {
            types::nfd::EXPIRATION_PERIOD => 1,
            types::VALIDITY_PERIOD => 2,
            _ => 0,
        };
        let mut elements = OrderedReader::new(data.content, rank);
        let (mut expiration_ms, mut validity_period) = (None, None);
        while let Some(element) = elements.next_element()? {
            if element.typ == types::VALIDITY_PERIOD {
                validity_period = Some(ValidityPeriod::decode(element.value)?);
            } else {
                expiration_ms = Some(decode_nni(element.value)?);
            }
        }
        Ok(PrefixAnnouncement {
            prefix: name.without_last(3),
            version,
            expiration_ms: expiration_ms.ok_or(DecodeError::MissingElement)?,
            validity_period,
        })
    }

    /// Builds the Data.
    ///
    /// # Errors
    /// When signing fails or the packet is too long.
    pub fn encode(&self, signer: &dyn Signer) -> Result<Vec<u8>, BuildError> {
        let mut content = Writer::new();
        content.nni(types::nfd::EXPIRATION_PERIOD, self.expiration_ms);
        if let Some(validity) = &self.validity_period {
            validity.encode(&mut content);
        }
        DataBuilder::new(self.prefix.to_owned().append_keyword("PA").append_version(self.version).append_segment(0))
            .content_type(content_type::PREFIX_ANNOUNCEMENT)
            .content(content.into_vec())
            .sign(signer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Name;
    use crate::security::DigestSigner;

    fn announced(name: &str, content_type: u64, content: &[u8]) -> Result<u64, DecodeError> {
        let name: Name = name.parse().expect("name");
        let builder = DataBuilder::new(name).content_type(content_type).content(content);
        let packet = builder.sign(&DigestSigner).expect("signed");
        let data = Data::decode(&packet).expect("data");
        PrefixAnnouncement::decode(&data).map(|announcement| announcement.expiration_ms)
    }

    #[test]
    fn round_trip() {
        let prefix: Name = "/net/example".parse().expect("name");
        let always =
            PrefixAnnouncement { prefix: prefix.as_ref(), version: 7, expiration_ms: 600_000, validity_period: None };
        let validity_period = Some(ValidityPeriod { not_before_s: 10, not_after_s: 20 });
        for announcement in [always, PrefixAnnouncement { validity_period, ..always }] {
            let packet = announcement.encode(&DigestSigner).expect("signed");
            let data = Data::decode(&packet).expect("data");
            assert_eq!(data.name.to_string(), "/net/example/32=PA/v=7/seg=0");
            assert_eq!(PrefixAnnouncement::decode(&data), Ok(announcement));
        }
    }

    #[test]
    fn what_is_not_an_announcement() {
        let good = [109, 1, 5];
        assert_eq!(announced("/a/32=PA/v=1/seg=0", 5, &good), Ok(5));
        assert_eq!(announced("/32=PA/v=1/seg=0", 5, &good), Ok(5), "the empty prefix");
        assert_eq!(announced("/a/32=PA/v=1/seg=0", 0, &good), Err(DecodeError::BadValue));
        assert_eq!(announced("/a/32=PA/v=1/seg=1", 5, &good), Err(DecodeError::BadValue));
        assert_eq!(announced("/a/32=PA/v=1", 5, &good), Err(DecodeError::BadValue));
        assert_eq!(announced("/a/PA/v=1/seg=0", 5, &good), Err(DecodeError::BadValue));
        assert_eq!(announced("/v=1/seg=0", 5, &good), Err(DecodeError::BadValue));
        assert_eq!(announced("/a/32=PA/v=1/seg=0", 5, &[]), Err(DecodeError::MissingElement));
        assert_eq!(announced("/a/32=PA/v=1/seg=0", 5, &[109, 1, 5, 112, 0]), Ok(5));
        assert_eq!(announced("/a/32=PA/v=1/seg=0", 5, &[109, 1, 5, 111, 0]), Err(DecodeError::CriticalElement));
        assert_eq!(announced("/a/32=PA/v=1/seg=0", 5, &[109, 3, 0, 0, 5]), Err(DecodeError::BadNumberLength));
    }
}
