//! Data packets: byte example, grammar, header view, round trips.

use proptest::prelude::*;

use super::*;
use crate::builder::DataBuilder;
use crate::security::DigestSigner;
use crate::signature::signature_type;
use crate::test_util::{any_data, hex, packet};

const NAME_A: &[u8] = &[7, 3, 8, 1, b'A'];
const INFO: &[u8] = &[22, 3, 27, 1, 0];
const VALUE: &[u8] = &[23, 0];

fn name(uri: &str) -> Name {
    uri.parse().expect("name")
}

#[test]
fn minimal_data() {
    let signed = hex("07 03 08 01 41 16 03 1B 01 00");
    let hash = digest::digest(&digest::SHA256, &signed);
    let bytes = [&hex("06 2C")[..], &signed, &hex("17 20"), hash.as_ref()].concat();
    assert_eq!(DataBuilder::new(name("/A")).sign(&DigestSigner).expect("signed"), bytes);
    let data = Data::decode(&bytes).expect("valid");
    assert_eq!((data.name, data.content_type, data.content), (name("/A").as_ref(), content_type::BLOB, &[][..]));
    assert_eq!((data.freshness_ms, data.final_block_id), (None, None));
    assert_eq!(data.signature_info.signature_type, signature_type::DIGEST_SHA256);
    assert_eq!((data.signature_value, data.signed_portion(), data.wire()), (hash.as_ref(), &signed[..], &bytes[..]));
    let full_name = data.full_name();
    assert_eq!(full_name.prefix(1), name("/A"));
    assert_eq!(full_name.last().map(|c| c.value), Some(digest::digest(&digest::SHA256, &bytes).as_ref()));
}

/// Parts of the VALUE, the expected result, and a description.
type Case<'a> = (&'a [&'a [u8]], Result<(), DecodeError>, &'a str);

#[test]
fn grammar() {
    let cases: &[Case<'_>] = &[
        (&[], Err(DecodeError::MissingName), "nothing"),
        (&[INFO, VALUE], Err(DecodeError::MissingName), "no name"),
        (&[&[200, 0], NAME_A, INFO, VALUE], Err(DecodeError::MissingName), "ignorable element before the name"),
        (&[&[7, 0], INFO, VALUE], Ok(()), "empty name"),
        (&[NAME_A, VALUE], Err(DecodeError::MissingElement), "no signature info"),
        (&[NAME_A, INFO], Err(DecodeError::MissingElement), "no signature value"),
        (&[NAME_A, &[20, 0], &[21, 0], INFO, VALUE], Ok(()), "empty MetaInfo and Content"),
        (&[NAME_A, &[21, 0], &[20, 0], INFO, VALUE], Err(DecodeError::CriticalElement), "MetaInfo out of order"),
        (&[NAME_A, INFO, &[21, 0], VALUE], Err(DecodeError::CriticalElement), "Content out of order"),
        (&[NAME_A, VALUE, INFO], Err(DecodeError::CriticalElement), "signature out of order"),
        (&[NAME_A, INFO, VALUE, VALUE], Err(DecodeError::CriticalElement), "two signatures"),
        (&[NAME_A, &[200, 0], INFO, &[60, 0], VALUE, &[62, 0]], Ok(()), "unknown, not critical"),
        (&[NAME_A, INFO, VALUE, &[201, 0]], Err(DecodeError::CriticalElement), "unknown, critical"),
        (&[NAME_A, &[20, 3, 24, 1, 2], INFO, VALUE], Ok(()), "ContentType"),
        (&[NAME_A, &[20, 2, 24, 0], INFO, VALUE], Err(DecodeError::BadNumberLength), "empty ContentType"),
        (&[NAME_A, &[20, 5, 25, 3, 0, 0, 1], INFO, VALUE], Err(DecodeError::BadNumberLength), "bad FreshnessPeriod"),
        (&[NAME_A, &[20, 6, 25, 1, 1, 24, 1, 1], INFO, VALUE], Err(DecodeError::CriticalElement), "MetaInfo order"),
        (&[NAME_A, &[20, 5, 26, 3, 50, 1, 9], INFO, VALUE], Ok(()), "FinalBlockId"),
        (&[NAME_A, &[20, 2, 26, 0], INFO, VALUE], Err(DecodeError::Truncated), "empty FinalBlockId"),
        (&[NAME_A, &[20, 6, 26, 4, 8, 0, 8, 0], INFO, VALUE], Err(DecodeError::TrailingBytes), "long FinalBlockId"),
        (&[NAME_A, &[20, 4, 129, 0, 128, 0], INFO, VALUE], Ok(()), "application elements in MetaInfo"),
        (&[NAME_A, &[20, 2, 27, 0], INFO, VALUE], Err(DecodeError::CriticalElement), "unknown in MetaInfo"),
        (&[NAME_A, &[22, 0], VALUE], Err(DecodeError::MissingElement), "no SignatureType"),
    ];
    for (parts, expected, what) in cases {
        assert_eq!(Data::decode(&packet(6, parts)).map(|_| ()), *expected, "{what}");
    }
    assert_eq!(Data::decode(&packet(5, &[NAME_A, INFO, VALUE])), Err(DecodeError::UnexpectedType));
    let mut bytes = packet(6, &[NAME_A, INFO, VALUE]);
    bytes.push(0);
    assert_eq!(Data::decode(&bytes), Err(DecodeError::TrailingBytes));
}

#[test]
fn ignored_elements_are_signed_too() {
    let bytes = packet(6, &[NAME_A, &[200, 1, 5], INFO, &[60, 0], VALUE]);
    let data = Data::decode(&bytes).expect("valid");
    assert_eq!(data.signed_portion(), [NAME_A, &[200, 1, 5], INFO].concat());
}

#[test]
fn the_header_view_stops_before_content() {
    let meta_info = [20, 11, 24, 1, 2, 25, 1, 9, 26, 3, 50, 1, 7];
    // The bytes after the Content are not valid and not examined.
    let bytes = packet(6, &[NAME_A, &meta_info, &[21, 1, 0], &[9, 200]]);
    let header = DataHeader::decode(&bytes).expect("the header is valid");
    assert_eq!((header.name, header.content_type, header.freshness_ms), (name("/A").as_ref(), 2, Some(9)));
    assert_eq!(header.final_block_id.and_then(|component| component.as_segment()), Some(7));
    assert_eq!(Data::decode(&bytes), Err(DecodeError::Truncated));

    let decode = |parts: &[&[u8]]| DataHeader::decode(&packet(6, parts)).map(|header| header.freshness_ms);
    assert_eq!(decode(&[NAME_A]), Ok(None));
    assert_eq!(decode(&[NAME_A, &[21, 0], &[20, 3, 25, 1, 9]]), Ok(None));
    assert_eq!(decode(&[NAME_A, &[200, 0], &[20, 3, 25, 1, 9]]), Ok(Some(9)));
    assert_eq!(decode(&[NAME_A, &[201, 0]]), Err(DecodeError::CriticalElement));
    assert_eq!(decode(&[&[20, 0], NAME_A]), Err(DecodeError::MissingName));
    let whole = packet(6, &[NAME_A, &[21, 2, 0, 0]]);
    assert_eq!(DataHeader::decode(&whole[..whole.len() - 1]), Err(DecodeError::Truncated));
    assert_eq!(DataHeader::decode(&[&whole[..], &[0]].concat()), Err(DecodeError::TrailingBytes));
    assert_eq!(DataHeader::decode(&packet(5, &[NAME_A])), Err(DecodeError::UnexpectedType));
}

#[test]
fn a_data_may_not_be_too_long() {
    let sign = |length| DataBuilder::new(name("/A")).content(vec![0; length]).sign(&DigestSigner);
    // Outer header 4, name 5, content header 4, signature 5 + 34.
    let largest = sign(MAX_PACKET_SIZE - 52).expect("fits");
    assert_eq!(largest.len(), MAX_PACKET_SIZE);
    assert!(Data::decode(&largest).is_ok());
    assert!(matches!(sign(MAX_PACKET_SIZE - 51), Err(crate::BuildError::TooLong)));
    let too_long = packet(6, &[NAME_A, &packet(21, &[&[0; MAX_PACKET_SIZE]]), INFO, VALUE]);
    assert_eq!(Data::decode(&too_long), Err(DecodeError::TooLong));
    assert_eq!(DataHeader::decode(&too_long), Err(DecodeError::TooLong));
}

proptest! {
    #[test]
    fn round_trip(parts in any_data()) {
        let packet = parts.builder().sign(&DigestSigner).expect("signed");
        let data = Data::decode(&packet).expect("valid");
        prop_assert_eq!(data.name, parts.name.as_ref());
        prop_assert_eq!(data.content_type, parts.content_type);
        prop_assert_eq!(data.freshness_ms, parts.freshness_ms);
        prop_assert_eq!(data.final_block_id, parts.final_block_id.as_ref().and_then(Name::last));
        prop_assert_eq!(data.content, parts.content.as_deref().unwrap_or_default());
        let header = DataHeader {
            name: data.name,
            content_type: data.content_type,
            freshness_ms: data.freshness_ms,
            final_block_id: data.final_block_id,
        };
        prop_assert_eq!(DataHeader::decode(&packet), Ok(header));
    }
}
