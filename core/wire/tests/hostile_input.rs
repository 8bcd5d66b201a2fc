//! Runs every parser on arbitrary bytes and on damaged packets: it must return, and never panic.

use namehop_wire::builder::InterestSignatureOptions;
use namehop_wire::certificate::{Certificate, self_signed_certificate};
use namehop_wire::lp::{LpHeader, LpPacket, NackReason, PitToken, encode_packet};
use namehop_wire::security::{
    DigestSigner, DigestVerifier, KeySigner, KeyType, PrivateKey, PublicKey, base64, verify_data, verify_interest,
};
use namehop_wire::tlv::{Reader, frame_length, read_var_number};
use namehop_wire::{
    Data, DataBuilder, DataHeader, Interest, InterestBuilder, InterestRewrite, MAX_PACKET_SIZE, Name, NameRef,
    PrefixAnnouncement, SignatureInfo, ValidityPeriod, rewrite_interest,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// Runs every parser, and all accessors of the decoded views.
fn parse_everything(bytes: &[u8]) {
    let _ = read_var_number(bytes);
    let _ = frame_length(bytes);
    let _ = PublicKey::from_der(bytes);
    let _ = PrivateKey::from_pkcs8(bytes);
    let _ = SignatureInfo::decode(bytes);
    let _ = ValidityPeriod::decode(bytes);
    let mut reader = Reader::new(bytes);
    while reader.read_element().is_ok() {}
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = text.parse::<Name>();
        let _ = base64::decode(text);
    }
    if let Ok(name) = NameRef::from_value(bytes) {
        use_name(name);
    }
    if let Ok(interest) = Interest::decode(bytes) {
        use_interest(&interest);
    }
    let change = InterestRewrite {
        nonce: Some(1),
        hop_limit: Some(2),
        remove_forwarding_hint: true,
        lifetime_ms: Some(3),
        ..InterestRewrite::default()
    };
    let mut out = [0; MAX_PACKET_SIZE];
    if let Ok(length) = rewrite_interest(bytes, &change, &mut out)
        && Interest::decode(bytes).is_ok()
    {
        let rewritten = Interest::decode(&out[..length]).expect("the rewritten packet is valid");
        assert_eq!((rewritten.nonce, rewritten.hop_limit, rewritten.lifetime_ms), (Some(1), Some(2), Some(3)));
        assert_eq!(rewritten.forwarding_hint, None);
    }
    let header = DataHeader::decode(bytes);
    if let Ok(data) = Data::decode(bytes) {
        let header = header.expect("a valid Data has a valid header");
        assert_eq!((header.name, header.freshness_ms), (data.name, data.freshness_ms));
        use_name(data.name);
        let _ = verify_data(&data, &DigestVerifier);
        let _ = PrefixAnnouncement::decode(&data);
        if let Ok(certificate) = Certificate::from_data(data) {
            let _ = (certificate.identity(), certificate.key_name(), certificate.public_key());
        }
    }
    if let Ok(packet) = LpPacket::decode(bytes) {
        let _ = packet.acks().count();
        for inner in [packet.fragment, packet.prefix_announcement].into_iter().flatten() {
            if inner.len() < bytes.len() {
                parse_everything(inner);
            }
        }
    }
}

fn use_name(name: NameRef<'_>) {
    assert_eq!(name.components().count(), name.len());
    assert_eq!(name.to_string().parse::<Name>().as_ref().map(Name::as_ref), Ok(name));
    let _ = (name.last(), name.get_from_end(1), name.without_last(2), name.suffix(1), name.to_owned());
}

fn use_interest(interest: &Interest<'_>) {
    use_name(interest.name);
    if let Some(hint) = interest.forwarding_hint {
        hint.iter().for_each(use_name);
    }
    if let (Some(at), Some(nonce)) = (interest.offsets.nonce.map(usize::from), interest.nonce) {
        assert_eq!(interest.wire()[at..at + 4], nonce.to_be_bytes());
    }
    let _ = (interest.check_parameters_digest(), interest.signed_portions());
    let _ = verify_interest(interest, &DigestVerifier);
}

/// One valid packet of every kind.
fn valid_packets() -> Vec<Vec<u8>> {
    let name = |uri: &str| uri.parse::<Name>().expect("name");
    let interest = InterestBuilder::new(name("/A/v=1/seg=2"))
        .can_be_prefix(true)
        .must_be_fresh(true)
        .forwarding_hint(name("/hint/one"))
        .forwarding_hint(name("/hint/two"))
        .nonce(0x0102_0304)
        .lifetime_ms(1000)
        .hop_limit(9);
    let signed = interest.clone().application_parameters(*b"parameters");
    let signed = signed.sign(&DigestSigner, &InterestSignatureOptions::now().expect("random")).expect("signed");
    let interest = interest.build().expect("built");
    let data = DataBuilder::new(name("/A/32=word/t=5")).freshness_ms(5).content(vec![7; 50]);
    let data = data.sign(&DigestSigner).expect("signed");
    let validity = ValidityPeriod { not_before_s: 1, not_after_s: 2_000_000_000 };
    let prefix = name("/announced");
    let announcement = PrefixAnnouncement {
        prefix: prefix.as_ref(),
        version: 1,
        expiration_ms: 1000,
        validity_period: Some(validity),
    };
    let announcement = announcement.encode(&DigestSigner).expect("signed");
    let key = PrivateKey::generate(KeyType::Ecdsa).expect("generated");
    let public_key = key.public_key().to_der();
    let private_key = key.pkcs8().to_vec();
    let signer = KeySigner::new(key, name("/a/KEY/1"));
    let certificate = self_signed_certificate(&signer, 1, validity).expect("signed");
    let fields = LpHeader {
        sequence: Some(1),
        frag_index: Some(0),
        frag_count: Some(1),
        pit_token: PitToken::from_slice(&[1, 2, 3, 4]).expect("short"),
        nack: Some(NackReason::DUPLICATE),
        incoming_face_id: Some(300),
        next_hop_face_id: Some(301),
        cache_policy: Some(1),
        congestion_mark: Some(1),
        acks: &[1, 2, 3],
        tx_sequence: Some(4),
        non_discovery: true,
        prefix_announcement: Some(&announcement),
    };
    let frame = encode_packet(&fields, Some(&interest));
    vec![interest, signed, data, announcement, certificate, public_key, private_key, frame]
}

#[test]
fn valid_packets_and_all_their_beginnings() {
    for packet in valid_packets() {
        for end in 0..=packet.len() {
            parse_everything(&packet[..end]);
        }
    }
}

#[test]
fn every_single_byte_changed() {
    for packet in valid_packets() {
        for position in 0..packet.len() {
            for value in [0, 1, 7, 8, 0x7F, 252, 253, 254, 255] {
                let mut changed = packet.clone();
                changed[position] = value;
                parse_everything(&changed);
            }
        }
    }
}

#[test]
fn as_many_components_as_a_packet_can_hold() {
    let name = [[8, 0]; 4396].concat();
    let mut packet = vec![5, 253];
    packet.extend_from_slice(&(name.len() as u16 + 4).to_be_bytes());
    packet.extend_from_slice(&[7, 253]);
    packet.extend_from_slice(&(name.len() as u16).to_be_bytes());
    packet.extend_from_slice(&name);
    assert_eq!(packet.len(), MAX_PACKET_SIZE);
    let interest = Interest::decode(&packet).expect("valid");
    assert_eq!((interest.name.len(), interest.name.value()), (4396, &name[..]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn arbitrary_bytes(bytes in vec(any::<u8>(), 0..300)) {
        parse_everything(&bytes);
    }

    #[test]
    fn arbitrary_bytes_in_a_valid_frame(
        typ in prop_oneof![Just(5_u8), Just(6), Just(100)],
        value in vec(prop_oneof![3 => 0_u8..60, 1 => any::<u8>()], 0..250),
    ) {
        let mut bytes = vec![typ, value.len() as u8];
        bytes.extend_from_slice(&value);
        parse_everything(&bytes);
    }

    #[test]
    fn damaged_packets(
        which in 0_usize..8,
        changes in vec((any::<prop::sample::Index>(), any::<u8>(), 0_u8..3), 1..5),
    ) {
        let mut packet = valid_packets().swap_remove(which);
        for (index, byte, kind) in changes {
            if packet.is_empty() {
                break;
            }
            let position = index.index(packet.len());
            match kind {
                0 => packet[position] = byte,
                1 => packet.insert(position, byte),
                _ => drop(packet.remove(position)),
            }
        }
        parse_everything(&packet);
    }
}
