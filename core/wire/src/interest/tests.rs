//! Interest packets: byte examples, grammar, offsets, matching, signatures, round trips.

use proptest::prelude::*;

use super::*;
use crate::builder::{BuildError, DataBuilder, InterestBuilder, InterestSignatureOptions};
use crate::name::Name;
use crate::security::DigestSigner;
use crate::test_util::{any_interest, any_name, hex, packet};
use crate::tlv::Writer;

const NAME_A: &[u8] = &[7, 3, 8, 1, b'A'];
const NONCE: &[u8] = &[10, 4, 1, 2, 3, 4];

fn name(uri: &str) -> Name {
    uri.parse().expect("name")
}

fn decode_parts(parts: &[&[u8]]) -> Result<(), DecodeError> {
    Interest::decode(&packet(types::INTEREST, parts)).map(|_| ())
}

#[test]
fn smallest_usual_interest() {
    let bytes = hex("05 0B 07 03 08 01 41 0A 04 01 02 03 04");
    let interest = Interest::decode(&bytes).expect("valid");
    assert_eq!(interest.name, name("/A"));
    assert_eq!((interest.nonce, interest.lifetime_ms, interest.hop_limit), (Some(0x0102_0304), None, None));
    assert!(!interest.can_be_prefix && !interest.must_be_fresh && interest.forwarding_hint.is_none());
    assert_eq!(interest.lifetime_or_default_ms(), 4000);
    assert_eq!(interest.offsets.name.range(), 2..7);
    assert_eq!(interest.offsets.nonce, Some(9));
    assert_eq!(interest.wire(), bytes);
    assert!(interest.check_parameters_digest());
    assert_eq!(InterestBuilder::new(name("/A")).nonce(0x0102_0304).build().expect("built"), bytes);
}

#[test]
fn interest_with_all_selectors() {
    let bytes = hex("05 16 07 03 08 01 41 21 00 12 00 0A 04 01 02 03 04 0C 02 03 E8 22 01 03");
    let interest = Interest::decode(&bytes).expect("valid");
    assert!(interest.can_be_prefix && interest.must_be_fresh);
    assert_eq!((interest.lifetime_ms, interest.hop_limit), (Some(1000), Some(3)));
    assert_eq!(interest.offsets.hop_limit, Some(bytes.len() as u16 - 1));
    let builder = InterestBuilder::new(name("/A")).can_be_prefix(true).must_be_fresh(true);
    assert_eq!(builder.nonce(0x0102_0304).lifetime_ms(1000).hop_limit(3).build().expect("built"), bytes);
}

#[test]
fn outer_element() {
    assert_eq!(Interest::decode(&[]), Err(DecodeError::Truncated));
    assert_eq!(Interest::decode(&packet(6, &[NAME_A])), Err(DecodeError::UnexpectedType));
    let mut bytes = packet(5, &[NAME_A, NONCE]);
    bytes.push(0);
    assert_eq!(Interest::decode(&bytes), Err(DecodeError::TrailingBytes));
    let filler = |length| Writer::new().element(200, &vec![0; length]).as_slice().to_vec();
    assert_eq!(decode_parts(&[NAME_A, &filler(8787)]), Ok(()), "exactly 8800 bytes");
    assert_eq!(decode_parts(&[NAME_A, &filler(8788)]), Err(DecodeError::TooLong));
}

/// Parts of the VALUE, the expected result, and a description.
type Case<'a> = (&'a [&'a [u8]], Result<(), DecodeError>, &'a str);

#[test]
fn grammar() {
    let cases: &[Case<'_>] = &[
        (&[], Err(DecodeError::MissingName), "nothing"),
        (&[NONCE], Err(DecodeError::MissingName), "no name"),
        (&[NONCE, NAME_A], Err(DecodeError::MissingName), "name not first"),
        (&[&[200, 0], NAME_A], Err(DecodeError::MissingName), "ignorable element before the name"),
        (&[&[7, 0]], Err(DecodeError::EmptyName), "empty name"),
        (&[&[7, 2, 0, 0]], Err(DecodeError::BadType), "component of type 0"),
        (&[NAME_A], Ok(()), "no nonce"),
        (&[NAME_A, &[33, 1, 0]], Err(DecodeError::BadLength), "CanBePrefix with a value"),
        (&[NAME_A, &[18, 1, 0]], Err(DecodeError::BadLength), "MustBeFresh with a value"),
        (&[NAME_A, &[10, 3, 1, 2, 3]], Err(DecodeError::BadLength), "short nonce"),
        (&[NAME_A, &[10, 5, 1, 2, 3, 4, 5]], Err(DecodeError::BadLength), "long nonce"),
        (&[NAME_A, &[12, 3, 0, 0, 1]], Err(DecodeError::BadNumberLength), "lifetime of 3 bytes"),
        (&[NAME_A, &[34, 0]], Err(DecodeError::BadLength), "empty hop limit"),
        (&[NAME_A, &[34, 2, 0, 1]], Err(DecodeError::BadLength), "long hop limit"),
        (&[NAME_A, NONCE, NONCE], Err(DecodeError::CriticalElement), "two nonces"),
        (&[NAME_A, NAME_A], Err(DecodeError::CriticalElement), "two names"),
        (&[NAME_A, NONCE, &[33, 0]], Err(DecodeError::CriticalElement), "CanBePrefix out of order"),
        (&[NAME_A, NONCE, &[18, 0]], Err(DecodeError::CriticalElement), "MustBeFresh out of order"),
        (&[NAME_A, NONCE, &[30, 0]], Err(DecodeError::CriticalElement), "ForwardingHint out of order"),
        (&[NAME_A, &[12, 1, 1], NONCE], Err(DecodeError::CriticalElement), "nonce out of order"),
        (&[NAME_A, &[34, 1, 1], &[34, 1, 2]], Ok(()), "second hop limit is ignored"),
        (&[NAME_A, &[34, 1, 1], &[12, 1, 1]], Err(DecodeError::CriticalElement), "lifetime out of order"),
        (&[NAME_A, &[200, 0], NONCE, &[60, 0]], Ok(()), "unknown, not critical"),
        (&[NAME_A, &[201, 0]], Err(DecodeError::CriticalElement), "unknown, critical by its low bit"),
        (&[NAME_A, &[9, 0]], Err(DecodeError::CriticalElement), "old Selectors"),
        (&[NAME_A, &[36, 0]], Err(DecodeError::ParametersDigest), "parameters without digest"),
        (&[NAME_A, &[44, 0], &[46, 0]], Ok(()), "signature without parameters is ignored"),
        (&[NAME_A, &[10, 4, 1]], Err(DecodeError::Truncated), "cut off"),
        (&[NAME_A, &[10, 253, 0, 4, 1, 2, 3, 4]], Err(DecodeError::NonMinimalNumber), "length in a longer form"),
    ];
    for (parts, expected, what) in cases {
        assert_eq!(decode_parts(parts), *expected, "{what}");
    }
    let bytes = packet(5, &[NAME_A, &[34, 1, 1], &[34, 1, 2]]);
    assert_eq!(
        Interest::decode(&bytes).map(|interest| interest.hop_limit),
        Ok(Some(1)),
        "the first HopLimit must count"
    );
}

#[test]
fn parameters_and_their_digest_go_together() {
    let digest = [&[2, 32][..], &[9; 32]].concat();
    let one = [&[7, 37, 8, 1, b'A'][..], &digest].concat();
    let two = [&[7, 71, 8, 1, b'A'][..], &digest, &digest].concat();
    assert_eq!(decode_parts(&[&one, &[36, 0]]), Ok(()));
    assert_eq!(decode_parts(&[&one]), Err(DecodeError::ParametersDigest));
    assert_eq!(decode_parts(&[&two, &[36, 0]]), Err(DecodeError::ParametersDigest));
    let bytes = packet(5, &[&one, &[36, 0]]);
    let interest = Interest::decode(&bytes).expect("decoders do not compute the digest");
    assert_eq!(interest.application_parameters, Some(&[][..]));
    assert!(!interest.check_parameters_digest());
}

#[test]
fn forwarding_hints() {
    let decode = |value: &[u8]| {
        ForwardingHint::decode(value)
            .map(|hint| hint.map(|hint| hint.iter().map(|n| n.to_string()).collect::<Vec<_>>()))
    };
    assert_eq!(decode(&hex("07 03 08 01 41 07 03 08 01 42")), Ok(Some(vec!["/A".into(), "/B".into()])));
    assert_eq!(decode(&hex("1F 08 1E 01 05 07 03 08 01 41")), Ok(Some(vec!["/A".into()])), "older format");
    assert_eq!(decode(&hex("C8 00 07 00 C8 00")), Ok(Some(vec!["/".into()])), "unknown elements are skipped");
    assert_eq!(decode(&[]), Ok(None));
    assert_eq!(decode(&hex("1F 03 1E 01 05")), Err(DecodeError::MissingElement));
    assert_eq!(decode(&hex("1F 07 07 03 08 01 41 C8 09")), Err(DecodeError::Truncated));
    assert_eq!(decode(&hex("1F 07 07 03 08 01 41 C9 00")), Err(DecodeError::CriticalElement));
    assert_eq!(decode(&hex("C9 00")), Err(DecodeError::CriticalElement));
    assert_eq!(decode(&hex("07 02 00 00")), Err(DecodeError::BadType));
    let bytes = packet(5, &[NAME_A, &hex("1E 05 07 03 08 01 42"), NONCE]);
    let interest = Interest::decode(&bytes).expect("valid");
    assert_eq!(interest.offsets.forwarding_hint, Some(Span { start: 7, end: 14 }));
    assert_eq!(interest.forwarding_hint.and_then(|hint| hint.iter().next()), Some(name("/B").as_ref()));
}

#[test]
fn matching_data() {
    let packet = DataBuilder::new(name("/A/B")).content(*b"x").sign(&DigestSigner).expect("signed");
    let data = Data::decode(&packet).expect("valid");
    let matches = |name: &Name, can_be_prefix| {
        let packet = InterestBuilder::new(name).can_be_prefix(can_be_prefix).build().expect("built");
        Interest::decode(&packet).expect("valid").matches_data(&data)
    };
    assert!(matches(&name("/A/B"), false) && matches(&name("/A/B"), true));
    assert!(!matches(&name("/A"), false) && matches(&name("/A"), true));
    assert!(!matches(&name("/A/B/C"), true) && !matches(&name("/A/B/C/D"), true) && !matches(&name("/A/C"), true));
    assert!(matches(&data.full_name(), false) && matches(&data.full_name(), true));
    let other_digest = name("/A/B").append(crate::ComponentRef::implicit_digest(&[0; 32]));
    assert!(!matches(&other_digest, false) && !matches(&other_digest, true));
    let full_name_of_other = name("/A/C").append(crate::ComponentRef::implicit_digest(&data.implicit_digest()));
    assert!(!matches(&full_name_of_other, true));
    let longer_by_two = name("/A/B/C").append(crate::ComponentRef::implicit_digest(&data.implicit_digest()));
    assert!(!matches(&longer_by_two, false) && !matches(&longer_by_two, true));
    // The digest is computed only when nothing else decides.
    assert!(!matches_name(name("/A/B/C").as_ref(), true, data.name, || unreachable!("not a digest component")));
    assert!(!matches_name(other_digest.as_ref(), true, name("/A/C").as_ref(), || unreachable!("another name")));
}

#[test]
fn what_cannot_be_built() {
    assert!(matches!(InterestBuilder::new(Name::new()).build(), Err(BuildError::EmptyName)));
    let digest = crate::ComponentRef::parameters_digest(&[0; 32]);
    let once = name("/A").append(digest);
    assert!(matches!(InterestBuilder::new(&once).build(), Err(BuildError::ParametersDigest)));
    let twice = InterestBuilder::new(once.append(digest)).application_parameters(*b"x");
    assert!(matches!(twice.build(), Err(BuildError::ParametersDigest)));
    let long = InterestBuilder::new(name("/A")).application_parameters(vec![0; 9000]);
    assert!(matches!(long.build(), Err(BuildError::TooLong)));
}

#[test]
fn the_parameters_digest_fills_its_reserved_component() {
    let digest = crate::ComponentRef::parameters_digest(&[0; 32]);
    let misplaced = name("/A").append(digest).append_generic("B");
    let builder = InterestBuilder::new(misplaced).application_parameters(*b"p");
    let packet = builder.sign(&DigestSigner, &InterestSignatureOptions::default()).expect("signed");
    let interest = Interest::decode(&packet).expect("valid");
    assert!(interest.check_parameters_digest());
    assert!(interest.name.get(1).is_some_and(|component| component.is_parameters_digest()));
    let [before, behind, parameters] = interest.signed_portions().expect("signed");
    assert_eq!((before, behind), (&[8, 1, b'A'][..], &[8, 1, b'B'][..]));
    assert_eq!(parameters, [&[36, 1, b'p'][..], &[44, 3, 27, 1, 0]].concat());
}

proptest! {
    #[test]
    fn round_trip(parts in any_interest()) {
        let packet = parts.builder().build().expect("built");
        let interest = Interest::decode(&packet).expect("valid");
        prop_assert_eq!(interest.can_be_prefix, parts.can_be_prefix);
        prop_assert_eq!(interest.must_be_fresh, parts.must_be_fresh);
        prop_assert_eq!(interest.nonce, parts.nonce);
        prop_assert_eq!(interest.lifetime_ms, parts.lifetime_ms);
        prop_assert_eq!(interest.hop_limit, parts.hop_limit);
        prop_assert_eq!(interest.application_parameters, parts.application_parameters.as_deref());
        let hint: Vec<Name> = interest.forwarding_hint.iter().flat_map(|hint| hint.iter()).map(Name::from).collect();
        prop_assert_eq!(hint, parts.forwarding_hint);
        let digests = usize::from(parts.application_parameters.is_some());
        prop_assert_eq!(interest.name.without_last(digests), parts.name.as_ref());
        prop_assert!(interest.check_parameters_digest());
        let offsets = interest.offsets;
        prop_assert_eq!(NameRef::from_element(&packet[offsets.name.range()]), Ok(interest.name));
        let nonce = offsets.nonce.map(usize::from);
        prop_assert_eq!(nonce.map(|at| packet[at..at + 4].to_vec()), parts.nonce.map(|n| n.to_be_bytes().to_vec()));
        prop_assert_eq!(offsets.hop_limit.map(|at| packet[usize::from(at)]), parts.hop_limit);
        if let Some(span) = offsets.forwarding_hint {
            prop_assert_eq!(packet[usize::from(span.start)], 30);
            prop_assert_eq!(tlv::frame_length(&packet[span.range()]), Ok(Some(span.range().len())));
        }
    }

    #[test]
    fn prefix_matching_agrees_with_names(interest in any_name(1..4), data in any_name(0..4), can_be_prefix: bool) {
        let expected = interest == data || (can_be_prefix && interest.is_prefix_of(data.as_ref()));
        // Random names contain no matching digest component.
        prop_assert_eq!(matches_name(interest.as_ref(), can_be_prefix, data.as_ref(), || [0; 32]), expected);
    }
}
