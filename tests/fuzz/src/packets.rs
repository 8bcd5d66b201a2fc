//! Parsers of packets: decoding and encoding agree, and different decoders of a packet agree.

use namehop_client::nfd::{ControlParameters, Element};
use namehop_hash::{HashKey, Lanes, PrefixHashes, hash_group, hash_name, hash_prefixes};
use namehop_wire::certificate::Certificate;
use namehop_wire::data::content_type;
use namehop_wire::lp::{LpPacket, PathMtuProbe};
use namehop_wire::security::{DigestSigner, NullSigner};
use namehop_wire::tlv::{Writer, frame_length, read_single_element, types};
use namehop_wire::{
    Data, DataBuilder, DataHeader, Interest, InterestRewrite, MAX_PACKET_SIZE, Name, NameRef, PrefixAnnouncement,
    SignatureInfo, ValidityPeriod, rewrite_interest,
};

/// Checks a name: every prefix is a prefix, the URI parses to the same name, and the one-pass hashes, alone and in a
/// group, equal the hashes of the prefixes.
pub fn name(bytes: &[u8]) {
    let Ok(name) = NameRef::from_value(bytes) else { return };
    let count = name.components().count();
    assert_eq!(count, name.len());
    let uri = name.to_string();
    let read: Name = uri.parse().unwrap_or_else(|error| panic!("own URI {uri} does not parse: {error}"));
    assert_eq!(read.value(), bytes, "{uri}");
    let key = HashKey::new(1, 2);
    let mut hashes = PrefixHashes::default();
    let hashed = hash_prefixes(&key, bytes, &mut hashes);
    // The neighbours in the group are parts of the name and need not be valid names.
    let group = [&bytes[..bytes.len() / 2], bytes, &bytes[bytes.len() / 3..], bytes, b""];
    for lanes in Lanes::available() {
        let mut results = [const { PrefixHashes::new() }; 5];
        hash_group(&key, lanes, &group, &mut results);
        for result in [&results[1], &results[3]] {
            assert_eq!(result.result(), hashed);
            assert!(result.iter().eq(hashes.iter()), "{lanes}");
        }
        assert_eq!(results[4].full(), hash_name(&key, b""));
    }
    if hashed.is_err() {
        assert!(count > namehop_wire::MAX_NAME_COMPONENTS);
        return;
    }
    for depth in 0..=count {
        let prefix = name.prefix(depth);
        assert!(prefix.is_prefix_of(name));
        assert_eq!(hashes.get(depth), hash_name(&key, prefix.value()));
    }
}

/// Checks an Interest: rewriting changes only the requested fields.
pub fn interest(bytes: &[u8]) {
    let _ = frame_length(bytes);
    let Ok(interest) = Interest::decode(bytes) else { return };
    assert!(!interest.name.is_empty());
    let _ = (interest.check_parameters_digest(), interest.signed_portions());
    let change =
        InterestRewrite { nonce: Some(7), hop_limit: Some(3), remove_forwarding_hint: true, ..Default::default() };
    let mut out = vec![0; bytes.len() + 64];
    let Ok(length) = rewrite_interest(bytes, &change, &mut out) else { return };
    let changed = Interest::decode(&out[..length]).expect("a rewritten Interest decodes");
    assert_eq!(changed.name.value(), interest.name.value());
    assert_eq!((changed.nonce, changed.hop_limit), (Some(7), Some(3)));
    assert_eq!(changed.can_be_prefix, interest.can_be_prefix);
    assert_eq!(changed.must_be_fresh, interest.must_be_fresh);
    assert_eq!(changed.lifetime_ms, interest.lifetime_ms);
    assert_eq!(changed.application_parameters, interest.application_parameters);
    assert!(changed.forwarding_hint.is_none());
}

/// Checks a Data: the header decoder and the full decoder agree.
pub fn data(bytes: &[u8]) {
    let head = DataHeader::decode(bytes);
    let Ok(data) = Data::decode(bytes) else { return };
    let head = head.expect("what decodes as a whole has a head that decodes");
    assert_eq!(head.name.value(), data.name.value());
    assert_eq!(head.freshness_ms, data.freshness_ms);
    assert_eq!(data.full_name().components().count(), data.name.len() + 1);
}

/// Checks a link packet: its fields are within the packet, and probes are recognized as they are decoded.
pub fn link_packet(bytes: &[u8]) {
    let Ok(packet) = LpPacket::decode(bytes) else { return };
    assert!(bytes.len() <= MAX_PACKET_SIZE);
    let acks = packet.acks().count();
    assert!(acks * 12 <= bytes.len());
    if let Some(fragment) = packet.fragment {
        assert!(bytes.ends_with(fragment) || fragment.is_empty());
    }
    if let Some(number) = PathMtuProbe::probe_number(bytes) {
        assert_eq!(packet.path_mtu_probe, Some(PathMtuProbe::Probe(number)));
    }
    if PathMtuProbe::is_answer(bytes) {
        assert!(matches!(packet.path_mtu_probe, Some(PathMtuProbe::Answer(_))));
    }
}

/// Checks a certificate.
pub fn certificate(bytes: &[u8]) {
    let Ok(certificate) = Certificate::decode(bytes) else { return };
    let _ = certificate.public_key();
    assert!(certificate.identity().is_prefix_of(certificate.key_name()));
}

/// Checks parameters of a management command: encoding and decoding them gives the same parameters.
pub fn control_parameters(bytes: &[u8]) {
    let Ok(parameters) = ControlParameters::decode(bytes) else { return };
    let again = ControlParameters::decode(&parameters.to_vec()).expect("own encoding decodes");
    assert_eq!(again, parameters);
}

/// Checks a SignatureInfo, of a Data or an Interest: encoding and decoding it gives the same SignatureInfo.
pub fn signature_info(bytes: &[u8]) {
    let Ok(info) = SignatureInfo::decode(bytes) else { return };
    let info = SignatureInfo { validity_period: info.validity_period.map(writable), ..info };
    let mut writer = Writer::new();
    info.encode(types::SIGNATURE_INFO, &mut writer);
    let element = read_single_element(writer.as_slice()).expect("one element");
    assert_eq!(SignatureInfo::decode(element.value), Ok(info));
}

/// Limits times to the end of the year 9999: a leap second there can be decoded, but not encoded.
fn writable(validity: ValidityPeriod) -> ValidityPeriod {
    const LAST_SECOND: u64 = 253_402_300_799;
    ValidityPeriod {
        not_before_s: validity.not_before_s.min(LAST_SECOND),
        not_after_s: validity.not_after_s.min(LAST_SECOND),
    }
}

/// Checks a prefix announcement, given as a Data or as its Content: encoding and decoding it gives the same
/// announcement.
pub fn prefix_announcement(bytes: &[u8]) {
    let packet;
    let data = match Data::decode(bytes) {
        Ok(data) => data,
        Err(_) => {
            let name: Name = "/a/32=PA/v=1/seg=0".parse().expect("a name");
            let builder = DataBuilder::new(name).content_type(content_type::PREFIX_ANNOUNCEMENT).content(bytes);
            let Ok(built) = builder.sign(&NullSigner) else { return };
            packet = built;
            Data::decode(&packet).expect("own encoding")
        }
    };
    let Ok(read) = PrefixAnnouncement::decode(&data) else { return };
    let read = PrefixAnnouncement { validity_period: read.validity_period.map(writable), ..read };
    match read.encode(&DigestSigner) {
        Ok(packet) => {
            let data = Data::decode(&packet).expect("own encoding");
            assert_eq!(PrefixAnnouncement::decode(&data), Ok(read));
        }
        // The digest may be longer than the original signature.
        Err(error) => assert!(bytes.len() + 100 > MAX_PACKET_SIZE, "{error}"),
    }
}
