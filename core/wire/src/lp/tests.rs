//! Link-layer packets: byte examples, rules for order and unknown fields, round trips.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;
use crate::builder::DataBuilder;
use crate::security::DigestSigner;
use crate::test_util::{hex, packet};
use crate::tlv::{read_single_element, types};
use crate::{DecodeError, MAX_PACKET_SIZE, Name};

const INTEREST: &str = "05 0B 07 03 08 01 41 0A 04 01 02 03 04";

fn decode_fields(fields: &[&[u8]]) -> Result<(), DecodeError> {
    LpPacket::decode(&packet(types::LP_PACKET, fields)).map(|_| ())
}

#[test]
fn byte_examples() {
    let interest = hex(INTEREST);
    let fields =
        LpHeader { pit_token: PitToken::from_slice(&hex("AA BB CC DD")).expect("short"), ..Default::default() };
    let frame = hex("64 15 62 04 AA BB CC DD 50 0D 05 0B 07 03 08 01 41 0A 04 01 02 03 04");
    assert_eq!(encode_packet(&fields, Some(&interest)), frame);
    let decoded = LpPacket::decode(&frame).expect("valid");
    assert_eq!((decoded.pit_token, decoded.fragment), (fields.pit_token, Some(&interest[..])));

    let fields = LpHeader { nack: Some(NackReason::NO_ROUTE), ..Default::default() };
    let frame = hex("64 18 FD 03 20 05 FD 03 21 01 96 50 0D 05 0B 07 03 08 01 41 0A 04 01 02 03 04");
    assert_eq!(encode_packet(&fields, Some(&interest)), frame);
    let decoded = LpPacket::decode(&frame).expect("valid");
    assert_eq!((decoded.nack, decoded.fragment), (Some(NackReason::NO_ROUTE), Some(&interest[..])));

    let idle = |fields: LpHeader<'_>, bytes: &str| {
        let field = hex(bytes);
        let frame = encode_packet(&fields, None);
        assert_eq!(frame[2..], field);
        assert_eq!(LpPacket::decode(&frame).map(|packet| packet.fragment), Ok(None));
    };
    idle(LpHeader { congestion_mark: Some(1), ..Default::default() }, "FD 03 40 01 01");
    idle(LpHeader { non_discovery: true, ..Default::default() }, "FD 03 4C 00");
    idle(LpHeader { cache_policy: Some(CACHE_POLICY_NO_CACHE), ..Default::default() }, "FD 03 34 05 FD 03 35 01 01");
    idle(LpHeader { tx_sequence: Some(5), ..Default::default() }, "FD 03 48 08 00 00 00 00 00 00 00 05");
    idle(LpHeader { nack: Some(NackReason::NONE), ..Default::default() }, "FD 03 20 00");
    idle(
        LpHeader { acks: &[1, 2], ..Default::default() },
        "FD 03 44 08 00 00 00 00 00 00 00 01 FD 03 44 08 00 00 00 00 00 00 00 02",
    );
}

#[test]
fn peers_announce_pit_token_support_in_an_ignorable_field() {
    let table = [(KnowsPitTokens::Tells, "64 05 FD 03 B8 01 00"), (KnowsPitTokens::Asks, "64 05 FD 03 B8 01 01")];
    for (field, bytes) in table {
        let frame = field.frame();
        assert_eq!(frame[..], hex(bytes));
        let packet = LpPacket::decode(&frame).expect("valid");
        assert_eq!((packet.knows_pit_tokens, packet.fragment), (Some(field), None));
    }
    for value in ["", "02", "01 01"] {
        let frame = packet(types::LP_PACKET, &[&packet(types::LP_KNOWS_PIT_TOKENS, &[&hex(value)])]);
        let packet = LpPacket::decode(&frame).expect("valid");
        assert_eq!(packet.knows_pit_tokens, Some(KnowsPitTokens::Tells), "{value}");
    }
    assert!((800..=959).contains(&types::LP_KNOWS_PIT_TOKENS) && types::LP_KNOWS_PIT_TOKENS & 0b11 == 0, "ignorable");
}

#[test]
fn probes_of_the_path_mtu() {
    let answer = PathMtuProbe::answer(0x0102_0304);
    assert_eq!(answer[..], hex("64 09 FD 03 BC 05 00 01 02 03 04"));
    assert!(PathMtuProbe::is_answer(&answer) && !PathMtuProbe::is_answer(&answer[..10]));
    for length in [PathMtuProbe::MIN_PROBE_LEN, 1232, 1472, MAX_PACKET_SIZE] {
        let mut probe = vec![7; length];
        PathMtuProbe::write_probe(0x0102_0304, &mut probe);
        let packet = LpPacket::decode(&probe).expect("valid");
        let expected = Some(PathMtuProbe::Probe(0x0102_0304));
        assert_eq!((packet.path_mtu_probe, packet.fragment), (expected, None), "{length}");
        assert_eq!(PathMtuProbe::probe_number(&probe), Some(0x0102_0304), "{length}");
        assert!(!PathMtuProbe::is_answer(&probe));
        assert!(probe[15..].iter().all(|&byte| byte == 0), "{length}");
    }
    let table = [
        ("01 01 02 03 04", Some(PathMtuProbe::Probe(0x0102_0304))),
        ("00 01 02 03 04 00 FF", Some(PathMtuProbe::Answer(0x0102_0304))),
        ("02 01 02 03 04", None),
        ("01 01 02 03", None),
        ("", None),
    ];
    for (value, expected) in table {
        let frame = packet(types::LP_PACKET, &[&packet(types::LP_PATH_MTU_PROBE, &[&hex(value)])]);
        assert_eq!(LpPacket::decode(&frame).expect("valid").path_mtu_probe, expected, "{value}");
    }
    assert!((800..=959).contains(&types::LP_PATH_MTU_PROBE) && types::LP_PATH_MTU_PROBE & 0b11 == 0, "ignorable");
}

#[test]
fn bare_packets() {
    let interest = hex(INTEREST);
    assert!(LpHeader::default().is_empty());
    assert_eq!(encode_packet(&LpHeader::default(), Some(&interest)), interest);
    let mut expected = LpPacket::default();
    expected.fragment = Some(&interest);
    assert_eq!(LpPacket::decode(&interest), Ok(expected));
    let data = packet(types::DATA, &[]);
    assert_eq!(LpPacket::decode(&data).map(|packet| packet.fragment), Ok(Some(&data[..])));
    assert_eq!(LpPacket::decode(&[7, 0]), Err(DecodeError::UnexpectedType));
    assert_eq!(LpPacket::decode(&[&interest[..], &[0]].concat()), Err(DecodeError::TrailingBytes));
    assert_eq!(LpPacket::decode(&[]), Err(DecodeError::Truncated));
    let long = packet(types::DATA, &[&vec![0; MAX_PACKET_SIZE]]);
    assert_eq!(LpPacket::decode(&long), Err(DecodeError::TooLong));
    assert_eq!(LpPacket::decode(&[100, 0]), Ok(LpPacket::default()), "IDLE without any field");
}

/// Fields in order, the expected result, and a description.
type Case<'a> = (&'a [&'a Vec<u8>], Result<(), DecodeError>, &'a str);

#[test]
fn order_of_fields() {
    let sequence = hex("51 08 00 00 00 00 00 00 00 01");
    let (index, count, token) = (hex("52 01 00"), hex("53 01 01"), hex("62 01 AA"));
    let (mark, fragment) = (hex("FD 03 40 01 01"), hex("50 00"));
    let ack = hex("FD 03 44 08 00 00 00 00 00 00 00 07");
    let unknown = hex("FD 03 54 00");
    let cases: &[Case<'_>] = &[
        (&[&sequence, &index, &count, &token, &mark, &ack, &fragment], Ok(()), "all in order"),
        (&[&ack, &ack, &ack], Ok(()), "Ack repeats"),
        (&[&token, &token], Err(DecodeError::LinkHeaderOrder), "PitToken repeats"),
        (&[&mark, &mark], Err(DecodeError::LinkHeaderOrder), "CongestionMark repeats"),
        (&[&index, &sequence], Err(DecodeError::LinkHeaderOrder), "decreasing"),
        (&[&ack, &mark], Err(DecodeError::LinkHeaderOrder), "decreasing, after an Ack"),
        (&[&ack, &mark, &ack], Err(DecodeError::LinkHeaderOrder), "Acks not together"),
        (&[&fragment, &token], Err(DecodeError::LinkHeaderOrder), "Fragment not last"),
        (&[&fragment, &fragment], Err(DecodeError::LinkHeaderOrder), "two Fragments"),
        (&[&fragment, &ack], Err(DecodeError::LinkHeaderOrder), "Ack after the Fragment"),
        (&[&token, &unknown, &fragment], Ok(()), "unknown field in order"),
        (&[&unknown, &unknown], Err(DecodeError::LinkHeaderOrder), "unknown field repeats"),
        (&[&unknown, &ack], Err(DecodeError::LinkHeaderOrder), "unknown field out of order"),
    ];
    for (fields, expected, what) in cases {
        let fields: Vec<&[u8]> = fields.iter().map(|field| field.as_slice()).collect();
        assert_eq!(decode_fields(&fields), *expected, "{what}");
    }
}

#[test]
fn unknown_fields() {
    let known = [800, 812, 816, 820, 832, 836, 840, 844, 848];
    for typ in (1..=1100_u32).filter(|typ| !known.contains(typ) && !matches!(typ, 80..=83 | 98)) {
        let expected =
            if (800..=959).contains(&typ) && typ % 4 == 0 { Ok(()) } else { Err(DecodeError::UnknownLinkHeader) };
        assert_eq!(decode_fields(&[&packet(typ, &[&[1]])]), expected, "type {typ}");
    }
}

#[test]
fn values_of_fields() {
    let cases = [
        ("51 04 00 00 00 01", Err(DecodeError::BadLength), "Sequence of 4 bytes"),
        ("52 03 00 00 01", Err(DecodeError::BadNumberLength), "FragIndex of 3 bytes"),
        ("53 02 00 05", Ok(()), "FragCount in a longer form"),
        ("62 00", Err(DecodeError::BadLength), "empty PitToken"),
        ("FD 03 20 00", Ok(()), "Nack without reason"),
        ("FD 03 20 05 FD 03 21 01 07", Ok(()), "Nack with an unknown reason"),
        ("FD 03 20 06 FD 03 21 02 00 32", Ok(()), "Nack with a reason in a longer form"),
        ("FD 03 20 02 C8 00", Err(DecodeError::UnknownLinkHeader), "unknown element in a Nack"),
        ("FD 03 20 04 FD 03 54 00", Ok(()), "ignorable element in a Nack"),
        ("FD 03 34 00", Err(DecodeError::MissingElement), "empty CachePolicy"),
        ("FD 03 34 05 FD 03 35 01 02", Err(DecodeError::BadValue), "unknown CachePolicyType"),
        ("FD 03 40 00", Err(DecodeError::BadNumberLength), "empty CongestionMark"),
        ("FD 03 44 01 01", Err(DecodeError::BadLength), "Ack of 1 byte"),
        ("FD 03 48 00", Err(DecodeError::BadLength), "empty TxSequence"),
        ("FD 03 4C 01 00", Err(DecodeError::BadLength), "NonDiscovery with a value"),
        ("FD 03 50 00", Err(DecodeError::Truncated), "empty PrefixAnnouncement"),
        ("FD 03 50 02 05 00", Err(DecodeError::UnexpectedType), "PrefixAnnouncement that is not a Data"),
        ("FD 03 50 03 06 00 00", Err(DecodeError::TrailingBytes), "PrefixAnnouncement with bytes after the Data"),
        ("FD 03 50 02 06 00", Ok(()), "PrefixAnnouncement with an invalid Data"),
        ("51 08 00", Err(DecodeError::Truncated), "cut off"),
        ("FE 00 00 03 40 01 01", Err(DecodeError::NonMinimalNumber), "type in a longer form"),
    ];
    for (bytes, expected, what) in cases {
        assert_eq!(decode_fields(&[&hex(bytes)]), expected, "{what}");
    }
    assert_eq!(decode_fields(&[&packet(98, &[&[1; 32]])]), Ok(()));
    assert_eq!(decode_fields(&[&packet(98, &[&[1; 33]])]), Err(DecodeError::BadLength));
}

/// Fields with any value that a sender may choose.
#[derive(Debug, Clone)]
struct Fields {
    header: LpHeader<'static>,
    token: Vec<u8>,
    acks: Vec<u64>,
    has_announcement: bool,
}

fn any_fields() -> impl Strategy<Value = Fields> {
    let number = || option::of(any::<u64>());
    let reason = option::of(prop_oneof![Just(0), Just(50), Just(100), Just(150), any::<u64>()].prop_map(NackReason));
    (
        (number(), number(), number(), vec(any::<u8>(), 0..=32), reason, number(), number()),
        (option::of(Just(1)), number(), vec(any::<u64>(), 0..4), number(), any::<bool>(), any::<bool>()),
    )
        .prop_map(|(first, second)| Fields {
            header: LpHeader {
                sequence: first.0,
                frag_index: first.1,
                frag_count: first.2,
                nack: first.4,
                incoming_face_id: first.5,
                next_hop_face_id: first.6,
                cache_policy: second.0,
                congestion_mark: second.1,
                tx_sequence: second.3,
                non_discovery: second.4,
                ..LpHeader::default()
            },
            token: first.3,
            acks: second.2,
            has_announcement: second.5,
        })
}

proptest! {
    #[test]
    fn round_trip(fields in any_fields(), fragment in option::of(vec(any::<u8>(), 1..400))) {
        let name: Name = "/A/32=PA/v=1/seg=0".parse().expect("name");
        let announcement = DataBuilder::new(name).sign(&DigestSigner).expect("signed");
        let header = LpHeader {
            pit_token: PitToken::from_slice(&fields.token).expect("at most 32 bytes"),
            acks: &fields.acks,
            prefix_announcement: fields.has_announcement.then_some(&announcement[..]),
            ..fields.header
        };
        // A bare packet must be an Interest or Data.
        prop_assume!(!header.is_empty() || fragment.is_none());
        let frame = encode_packet(&header, fragment.as_deref());
        match &fragment {
            Some(fragment) => prop_assert_eq!(header_len(&header, fragment.len()) + fragment.len(), frame.len()),
            None => prop_assert_eq!(idle_len(&header), frame.len()),
        }
        let packet = LpPacket::decode(&frame).expect("valid");
        let acks: Vec<u64> = packet.acks().collect();
        prop_assert_eq!(packet.acks().len(), acks.len());
        let decoded = LpHeader {
            sequence: packet.sequence,
            frag_index: packet.frag_index,
            frag_count: packet.frag_count,
            pit_token: packet.pit_token,
            nack: packet.nack,
            incoming_face_id: packet.incoming_face_id,
            next_hop_face_id: packet.next_hop_face_id,
            cache_policy: packet.cache_policy,
            congestion_mark: packet.congestion_mark,
            acks: &acks,
            tx_sequence: packet.tx_sequence,
            non_discovery: packet.non_discovery,
            prefix_announcement: packet.prefix_announcement,
        };
        prop_assert_eq!(decoded, header);
        prop_assert_eq!(packet.fragment, fragment.as_deref());
        if let Some(fragment) = packet.fragment {
            prop_assert!(std::ptr::eq(fragment, &frame[frame.len() - fragment.len()..]));
        }
    }
}

/// Decodes a frame with only a PIT token and one whole Interest or Data, using the general decoder.
fn usual_frame(frame: &[u8]) -> Option<UsualFrame> {
    let packet = LpPacket::decode(frame).ok()?;
    let fragment = packet.fragment?;
    let token = packet.pit_token.as_slice();
    let token = if token.is_empty() { Vec::new() } else { self::packet(types::LP_PIT_TOKEN, &[token]) };
    let framed = self::packet(types::LP_PACKET, &[&token, &self::packet(types::LP_FRAGMENT, &[fragment])]);
    if fragment != frame && framed != frame {
        return None;
    }
    let is_data = match read_single_element(fragment).ok()?.typ {
        types::INTEREST => false,
        types::DATA => true,
        _ => return None,
    };
    Some(UsualFrame { pit_token: packet.pit_token, header_len: frame.len() - fragment.len(), is_data })
}

/// Frames of a usual shape, some with a changed byte, and a few of any shape.
fn nearly_usual_frame() -> impl Strategy<Value = Vec<u8>> {
    let fragment = (prop_oneof![4 => 5_u32..=6, 1 => any::<u8>().prop_map(|typ| u32::from(typ).max(1))], 0_usize..600);
    let change = option::weighted(0.5, (any::<prop::sample::Index>(), any::<u8>()));
    let shaped = (option::of(vec(any::<u8>(), 0..=33)), fragment, any_fields(), change).prop_map(
        |(token, (typ, value_len), fields, change)| {
            let element = packet(typ, &[&vec![7; value_len]]);
            let mut frame = match token {
                Some(token) if token.len() > PitToken::MAX_LEN => {
                    packet(types::LP_PACKET, &[&packet(types::LP_PIT_TOKEN, &[&token]), &packet(80, &[&element])])
                }
                Some(token) if token.is_empty() => packet(types::LP_PACKET, &[&packet(80, &[&element])]),
                Some(token) => {
                    let pit_token = PitToken::from_slice(&token).expect("at most 32 bytes");
                    encode_packet(&LpHeader { pit_token, ..LpHeader::default() }, Some(&element))
                }
                None => encode_packet(&fields.header, Some(&element)),
            };
            if let Some((offset, value)) = change {
                let offset = offset.index(frame.len().min(60));
                frame[offset] = value;
            }
            frame
        },
    );
    prop_oneof![8 => shaped, 1 => vec(any::<u8>(), 0..40)]
}

#[test]
fn usual_shapes() {
    let cases = [
        ("05 00", Some((0, 0, false)), "bare Interest"),
        ("06 01 00", Some((0, 0, true)), "bare Data"),
        ("07 00", None, "neither"),
        ("06 01", None, "cut off"),
        ("06 00 00", None, "with trailing bytes"),
        ("06 FD 00 00", None, "LENGTH in a longer form"),
        ("64 04 50 02 05 00", Some((4, 0, false)), "LpPacket without fields"),
        ("64 07 62 01 AA 50 02 06 00", Some((7, 1, true)), "short token"),
        ("64 0E 62 08 01 02 03 04 05 06 07 08 50 02 06 00", Some((14, 8, true)), "token of eight bytes"),
        ("64 0F 62 09 01 02 03 04 05 06 07 08 09 50 02 06 00", Some((15, 9, true)), "longer token"),
        ("64 06 62 00 50 02 06 00", None, "empty token"),
        ("64 05 62 01 AA 50 00", None, "empty fragment"),
        ("64 03 62 01 AA", None, "IDLE"),
        ("64 00", None, "IDLE without any field"),
        ("64 09 FD 03 40 01 01 50 02 05 00", None, "congestion mark"),
        ("64 05 50 02 05 00 00", None, "with trailing bytes after the fragment"),
        ("64 05 50 03 05 00 00", None, "with trailing bytes after the packet"),
    ];
    for (bytes, expected, what) in cases {
        let frame = hex(bytes);
        let usual = UsualFrame::decode(&frame);
        assert_eq!(usual.map(|usual| (usual.header_len, usual.pit_token.len(), usual.is_data)), expected, "{what}");
        assert_eq!(usual, usual_frame(&frame), "{what}");
    }
    let longest = packet(types::DATA, &[&vec![0; MAX_PACKET_SIZE - 4]]);
    assert!(UsualFrame::decode(&longest).is_some());
    assert_eq!(UsualFrame::decode(&packet(types::DATA, &[&vec![0; MAX_PACKET_SIZE - 3]])), None);
}

proptest! {
    #[test]
    fn probes_are_recognized_as_they_are_decoded(
        change in option::of((0_usize..16, any::<u8>())),
        is_probe in any::<bool>(),
        number in any::<u32>(),
        length in PathMtuProbe::MIN_PROBE_LEN..2000,
    ) {
        let mut frame = if is_probe { vec![0; length] } else { PathMtuProbe::answer(number).to_vec() };
        if is_probe {
            PathMtuProbe::write_probe(number, &mut frame);
        }
        if let Some((offset, value)) = change {
            let offset = offset % frame.len();
            frame[offset] = value;
        }
        let decoded = LpPacket::decode(&frame).ok().and_then(|packet| packet.path_mtu_probe);
        if PathMtuProbe::is_answer(&frame) {
            prop_assert!(matches!(decoded, Some(PathMtuProbe::Answer(_))));
        }
        if let (Some(number), Ok(_)) = (PathMtuProbe::probe_number(&frame), LpPacket::decode(&frame)) {
            prop_assert_eq!(decoded, Some(PathMtuProbe::Probe(number)));
        }
        if change.is_none() {
            let expected = if is_probe { PathMtuProbe::Probe(number) } else { PathMtuProbe::Answer(number) };
            prop_assert_eq!(decoded, Some(expected));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn usual_frames_are_read_as_all_others(frame in nearly_usual_frame()) {
        prop_assert_eq!(UsualFrame::decode(&frame), usual_frame(&frame));
    }

    #[test]
    fn token_headers_are_written_as_all_others(
        token in vec(any::<u8>(), 0..=PitToken::MAX_LEN),
        packet_len in prop_oneof![0_usize..300, 0_usize..MAX_PACKET_SIZE, 65_000_usize..70_000],
    ) {
        let pit_token = PitToken::from_slice(&token).expect("at most 32 bytes");
        let mut header = vec![0xEE; token_header_len(&pit_token, packet_len)];
        if !header.is_empty() {
            encode_token_header(&pit_token, packet_len, &mut header);
        }
        let expected = encode_packet(&LpHeader { pit_token, ..LpHeader::default() }, Some(&vec![0; packet_len]));
        prop_assert_eq!(&header[..], &expected[..expected.len() - packet_len]);
    }
}
