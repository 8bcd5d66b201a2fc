//! Round trips of every message, tolerance of decoders, known bytes, and arbitrary input.

use std::fmt::Debug;

use namehop_face::FacePersistency;
use namehop_packet::{FaceScope, LinkType};
use namehop_wire::Name;
use namehop_wire::tlv::Writer;
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

use super::*;

fn any_name() -> impl Strategy<Value = Name> {
    vec(vec(any::<u8>(), 0..6), 0..5).prop_map(|parts| parts.into_iter().fold(Name::new(), Name::append_generic))
}

fn any_member<T: Code + Debug>() -> impl Strategy<Value = T> {
    proptest::sample::select(T::ALL)
}

fn any_text() -> impl Strategy<Value = String> {
    "[a-z0-9+]{1,6}://\\PC{0,12}"
}

prop_compose! {
    fn any_parameters()(
        (name, strategy) in (of(any_name()), of(any_name())),
        (uri, local_uri, policy) in (of(any_text()), of(any_text()), of(any_text())),
        numbers in proptest::array::uniform12(of(any::<u64>())),
    ) -> ControlParameters {
        let [face_id, origin, cost, capacity, count, flags, mask, expiration_period_ms, face_persistency,
            base_congestion_marking_interval_ns, default_congestion_threshold_bytes, mtu_bytes] = numbers;
        ControlParameters {
            name, face_id, uri, local_uri, origin, cost, capacity, count, flags, mask, strategy,
            expiration_period_ms, face_persistency, base_congestion_marking_interval_ns,
            default_congestion_threshold_bytes, mtu_bytes, policy,
        }
    }
}

prop_compose! {
    fn any_face_status()(
        (uri, local_uri) in (any_text(), any_text()),
        scope in any_member::<FaceScope>(),
        persistency in any_member::<FacePersistency>(),
        link_type in any_member::<LinkType>(),
        options in proptest::array::uniform4(of(any::<u64>())),
        is_up in of(any::<bool>()),
        numbers in proptest::array::uniform10(any::<u64>()),
    ) -> FaceStatus {
        let [expiration_period_ms, base_congestion_marking_interval_ns, default_congestion_threshold_bytes, mtu_bytes]
            = options;
        let [face_id, in_interests, in_data, in_nacks, out_interests, out_data, out_nacks, in_bytes, out_bytes, flags]
            = numbers;
        FaceStatus {
            face_id, uri, local_uri, expiration_period_ms, scope, persistency, link_type,
            base_congestion_marking_interval_ns, default_congestion_threshold_bytes, mtu_bytes,
            in_interests, in_data, in_nacks, out_interests, out_data, out_nacks, in_bytes, out_bytes, flags, is_up,
        }
    }
}

prop_compose! {
    fn any_event()(
        (uri, local_uri) in (any_text(), any_text()),
        kind in any_member::<FaceEventKind>(),
        scope in any_member::<FaceScope>(),
        persistency in any_member::<FacePersistency>(),
        link_type in any_member::<LinkType>(),
        (face_id, flags) in any::<(u64, u64)>(),
    ) -> FaceEventNotification {
        FaceEventNotification { kind, face_id, uri, local_uri, scope, persistency, link_type, flags }
    }
}

prop_compose! {
    fn any_filter()(
        texts in proptest::array::uniform3(of(any_text())),
        scope in of(any_member::<FaceScope>()),
        persistency in of(any_member::<FacePersistency>()),
        link_type in of(any_member::<LinkType>()),
        face_id in of(any::<u64>()),
    ) -> FaceQueryFilter {
        let [uri_scheme, uri, local_uri] = texts;
        FaceQueryFilter { face_id, uri_scheme, uri, local_uri, scope, persistency, link_type }
    }
}

fn any_fib_entry() -> impl Strategy<Value = FibEntry> {
    let next_hop = any::<(u64, u64)>().prop_map(|(face_id, cost)| NextHopRecord { face_id, cost });
    (any_name(), vec(next_hop, 0..4)).prop_map(|(name, next_hops)| FibEntry { name, next_hops })
}

fn any_rib_entry() -> impl Strategy<Value = RibEntry> {
    let route =
        (any::<[u64; 4]>(), of(any::<u64>())).prop_map(|([face_id, origin, cost, flags], expiration_period_ms)| {
            Route { face_id, origin, cost, flags, expiration_period_ms }
        });
    (any_name(), vec(route, 0..4)).prop_map(|(name, routes)| RibEntry { name, routes })
}

prop_compose! {
    fn any_readvertise_status()(
        (destination, command_prefix) in (any_text(), any_name()),
        face_ids in vec(any::<u64>(), 0..3),
        numbers in proptest::array::uniform10(any::<u64>()),
        last_error in of((any_name(), any_text(), any::<u64>())),
    ) -> ReadvertiseStatus {
        let [prefixes @ .., announced, withdrawn, refused, nacked, timed_out, left_out] = numbers;
        let [announced_prefixes, waiting_prefixes, refused_prefixes, withdrawing_prefixes] = prefixes;
        let last_error = last_error.map(|(prefix, reason, age_ms)| ReadvertiseError { prefix, reason, age_ms });
        ReadvertiseStatus {
            destination, command_prefix, face_ids, announced_prefixes, waiting_prefixes, refused_prefixes,
            withdrawing_prefixes, last_error,
            counters: ReadvertiseCounters { announced, withdrawn, refused, nacked, timed_out, left_out },
        }
    }
}

fn any_general_status() -> impl Strategy<Value = GeneralStatus> {
    (any_text(), any::<[u64; 15]>()).prop_map(|(version, n)| GeneralStatus {
        version,
        start_timestamp_ms: n[0],
        current_timestamp_ms: n[1],
        name_tree_entries: n[2],
        fib_entries: n[3],
        pit_entries: n[4],
        measurements_entries: n[5],
        cs_entries: n[6],
        in_interests: n[7],
        in_data: n[8],
        in_nacks: n[9],
        out_interests: n[10],
        out_data: n[11],
        out_nacks: n[12],
        satisfied_interests: n[13],
        unsatisfied_interests: n[14],
    })
}

/// Checks that a list decodes to itself, even with elements of another type in between.
fn list_round_trip<T: Element + PartialEq + Debug>(items: &[T]) -> Result<(), TestCaseError> {
    let mut writer = Writer::new();
    for item in items {
        item.encode(&mut writer);
        writer.element(250, b"unknown");
    }
    let decoded = decode_items::<T>(writer.as_slice());
    prop_assert_eq!(decoded.as_deref(), Ok(items));
    Ok(())
}

/// Returns the elements of a TLV-VALUE in reverse order, with unknown ones (one of them critical) before and after.
fn disordered(wire: &[u8]) -> Vec<u8> {
    let outer = namehop_wire::tlv::read_single_element(wire).expect("an element");
    let mut reader = namehop_wire::tlv::Reader::new(outer.value);
    let mut elements = Vec::new();
    while let Ok(element) = reader.read_element() {
        elements.push(element.wire);
    }
    let mut writer = Writer::new();
    writer.nested(outer.typ, |writer| {
        writer.element(9999, b"?");
        for element in elements.iter().rev() {
            writer.raw(element);
        }
        writer.element(10_000, b"?");
    });
    writer.into_vec()
}

/// Returns a second tier with different numbers in its fields.
fn disk([one, two, three, four, five]: [u64; 5]) -> CsDisk {
    CsDisk {
        state: DiskState::Stalled,
        capacity_bytes: one,
        used_bytes: two,
        reads: three,
        writes: four,
        written_bytes: five,
        errors: one / 2,
        checksum_failures: two / 2,
        stalls: three / 2,
        stored: four / 2,
        not_stored: five / 2,
        hits: one / 3,
        misses: two / 3,
        timeouts: three / 3,
        busy: four / 3,
        waiting: one / 5,
        erasing_workers: five / 3,
    }
}

proptest! {
    #[test]
    fn parameters_round_trip_in_any_order(parameters in any_parameters()) {
        let wire = parameters.to_vec();
        prop_assert_eq!(ControlParameters::decode(&wire), Ok(parameters.clone()));
        prop_assert_eq!(ControlParameters::decode(&disordered(&wire)), Ok(parameters.clone()));
    }

    #[test]
    fn responses_round_trip(code: u64, text in any_text(), parameters in of(any_parameters())) {
        let mut response = ControlResponse::new(code, text);
        if let Some(parameters) = &parameters {
            response = response.with_parameters(parameters);
        }
        let decoded = ControlResponse::decode(&response.to_vec());
        prop_assert_eq!(decoded, Ok(response.clone()));
        prop_assert_eq!(response.parameters(), Ok(parameters.unwrap_or_default()));
    }

    #[test]
    fn datasets_round_trip(
        faces in vec(any_face_status(), 0..4),
        fib in vec(any_fib_entry(), 0..4),
        rib in vec(any_rib_entry(), 0..4),
        choices in vec((any_name(), any_name()), 0..4),
        channels in vec(any_text(), 0..4),
        cs in any::<[u64; 5]>(),
        drops in vec((of(any::<u64>()), any_text(), any_text(), any::<u64>()), 0..4),
        destinations in vec(any_readvertise_status(), 0..4),
    ) {
        list_round_trip(&destinations)?;
        list_round_trip(&faces)?;
        list_round_trip(&fib)?;
        list_round_trip(&rib)?;
        let choices: Vec<_> = choices.into_iter().map(|(name, strategy)| StrategyChoice { name, strategy }).collect();
        list_round_trip(&choices)?;
        let channels: Vec<_> = channels.into_iter().map(|local_uri| ChannelStatus { local_uri }).collect();
        list_round_trip(&channels)?;
        let drops: Vec<_> = drops
            .into_iter()
            .map(|(face_id, layer, reason, count)| DropCount { face_id, layer, reason, count })
            .collect();
        list_round_trip(&drops)?;
        let [capacity, flags, entries, hits, misses] = cs;
        let counters = CsPolicyCounters {
            policy: "lru".to_owned(),
            hits,
            misses,
            insertions: capacity,
            evictions: entries,
            rejections: flags,
        };
        let by_policy = vec![counters, CsPolicyCounters { policy: "arc".to_owned(), ..CsPolicyCounters::default() }];
        list_round_trip(&[
            CsInfo { capacity, flags, entries, hits, misses, ..CsInfo::default() },
            CsInfo { disk: Some(disk(cs)), ..CsInfo::default() },
            CsInfo { policy: Some("arc".to_owned()), by_policy, ..CsInfo::default() },
        ])?;
    }

    #[test]
    fn events_and_filters_round_trip_in_any_order(event in any_event(), filter in any_filter()) {
        prop_assert_eq!(FaceEventNotification::decode(&event.to_vec()), Ok(event.clone()));
        prop_assert_eq!(FaceEventNotification::decode(&disordered(&event.to_vec())), Ok(event.clone()));
        prop_assert_eq!(FaceQueryFilter::decode(&filter.to_vec()), Ok(filter.clone()));
        prop_assert_eq!(FaceQueryFilter::decode(&disordered(&filter.to_vec())), Ok(filter.clone()));
    }

    #[test]
    fn the_general_status_round_trips(status in any_general_status()) {
        prop_assert_eq!(GeneralStatus::from_content(&status.to_content()), Ok(status.clone()));
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        bytes in vec(any::<u8>(), 0..200),
        typ in proptest::sample::select(vec![101u8, 104, 128, 130, 150, 192]),
    ) {
        let framed = [&[typ, bytes.len() as u8][..], &bytes].concat();
        for input in [&bytes[..], &framed] {
            let _ = ControlParameters::decode(input);
            let _ = ControlResponse::decode(input).map(|response| response.parameters());
            let _ = FaceEventNotification::decode(input);
            let _ = FaceQueryFilter::decode(input);
            let _ = GeneralStatus::from_content(input);
            let _ = decode_items::<FaceStatus>(input);
            let _ = decode_items::<ChannelStatus>(input);
            let _ = decode_items::<FibEntry>(input);
            let _ = decode_items::<RibEntry>(input);
            let _ = decode_items::<StrategyChoice>(input);
            let _ = decode_items::<CsInfo>(input);
            let _ = decode_items::<DropCount>(input);
        }
    }

    #[test]
    fn damaged_messages_never_panic(parameters in any_parameters(), at: prop::sample::Index, byte: u8) {
        let mut wire = parameters.to_vec();
        let at = at.index(wire.len());
        wire[at] = byte;
        let _ = ControlParameters::decode(&wire);
        let _ = ControlParameters::decode(&wire[..at]);
    }
}

#[test]
fn known_bytes_of_a_command_and_its_response() {
    let parameters = ControlParameters {
        name: Some("/A".parse().expect("a name")),
        face_id: Some(300),
        origin: Some(255),
        cost: Some(10),
        flags: Some(1),
        strategy: Some("/S".parse().expect("a name")),
        ..ControlParameters::default()
    };
    let wire = [
        0x68, 0x19, // ControlParameters
        0x07, 0x03, 0x08, 0x01, 0x41, // Name
        0x69, 0x02, 0x01, 0x2C, // FaceId
        0x6F, 0x01, 0xFF, // Origin
        0x6A, 0x01, 0x0A, // Cost
        0x6C, 0x01, 0x01, // Flags
        0x6B, 0x05, 0x07, 0x03, 0x08, 0x01, 0x53, // Strategy
    ];
    assert_eq!(parameters.to_vec(), wire);
    let response = ControlResponse::ok(&parameters).to_vec();
    let head = [0x65, 0x22, 0x66, 0x01, 0xC8, 0x67, 0x02, b'O', b'K'];
    assert_eq!(response, [&head[..], &wire].concat());
}

#[test]
fn the_first_of_repeated_fields_counts() {
    let parameters = ControlParameters::decode(&[0x68, 0x06, 0x6A, 0x01, 1, 0x6A, 0x01, 2]).expect("decodes");
    assert_eq!(parameters.cost, Some(1));
}

#[test]
fn missing_and_bad_fields_are_named() {
    assert_eq!(decode_items::<NextHopRecord>(&[129, 3, 105, 1, 1]), Err(CodecError::Missing("cost")));
    assert_eq!(ControlResponse::decode(&[101, 3, 102, 1, 200]), Err(CodecError::Missing("StatusText")));
    assert_eq!(ControlParameters::decode(&[104, 3, 114, 1, 0xFF]), Err(CodecError::NotText("uri")));
    assert_eq!(ControlParameters::decode(&[101, 0]), Err(CodecError::Missing("ControlParameters")));
    assert!(matches!(ControlParameters::decode(&[104, 5, 106, 3, 0, 0, 0]), Err(CodecError::Tlv(_))));
    assert_eq!(FaceQueryFilter::decode(&[150, 3, 132, 1, 7]), Err(CodecError::UnknownValue("scope")));
}

#[test]
fn field_sets_name_their_fields() {
    let parameters = ControlParameters { uri: Some(String::new()), mtu_bytes: Some(0), ..Default::default() };
    let fields = parameters.fields();
    assert_eq!(fields, FieldSet::URI | FieldSet::MTU);
    assert!(fields.contains(FieldSet::URI) && !fields.contains(FieldSet::NAME));
    assert_eq!(fields.without(FieldSet::URI).names().next(), Some("Mtu"));
    assert_eq!(FieldSet::NAME.with(FieldSet::MTU).names().collect::<Vec<_>>(), ["Name", "Mtu"]);
    assert_eq!(FieldSet::NONE.names().next(), None);
}

#[test]
fn a_filter_matches_on_every_field_given() {
    let status = FaceStatus {
        face_id: 300,
        uri: "udp4://192.0.2.1:6363".to_owned(),
        local_uri: "udp4://192.0.2.2:6363".to_owned(),
        expiration_period_ms: None,
        scope: FaceScope::NonLocal,
        persistency: FacePersistency::Persistent,
        link_type: LinkType::PointToPoint,
        base_congestion_marking_interval_ns: None,
        default_congestion_threshold_bytes: None,
        mtu_bytes: None,
        in_interests: 0,
        in_data: 0,
        in_nacks: 0,
        out_interests: 0,
        out_data: 0,
        out_nacks: 0,
        in_bytes: 0,
        out_bytes: 0,
        flags: 0,
        is_up: None,
    };
    let all = FaceQueryFilter {
        face_id: Some(300),
        uri_scheme: Some("udp4".to_owned()),
        uri: Some(status.uri.clone()),
        local_uri: Some(status.local_uri.clone()),
        scope: Some(FaceScope::NonLocal),
        persistency: Some(FacePersistency::Persistent),
        link_type: Some(LinkType::PointToPoint),
    };
    assert!(all.matches(&status) && FaceQueryFilter::default().matches(&status));
    for other in [
        FaceQueryFilter { face_id: Some(301), ..all.clone() },
        FaceQueryFilter { uri_scheme: Some("udp".to_owned()), ..all.clone() },
        FaceQueryFilter { uri: Some("udp4://192.0.2.3:6363".to_owned()), ..all.clone() },
        FaceQueryFilter { local_uri: Some(String::new()), ..all.clone() },
        FaceQueryFilter { scope: Some(FaceScope::Local), ..all.clone() },
        FaceQueryFilter { persistency: Some(FacePersistency::OnDemand), ..all.clone() },
        FaceQueryFilter { link_type: Some(LinkType::AdHoc), ..all },
    ] {
        assert!(!other.matches(&status), "{other:?}");
    }
}

#[test]
fn origins_have_names() {
    for origin in [0, 64, 65, 66, 128, 129, 255, 7] {
        assert_eq!(numbers::origin::from_name(&numbers::origin::name(origin)), Some(origin));
    }
    assert_eq!(numbers::origin::name(128), "nlsr");
    assert_eq!(numbers::origin::from_name("nobody"), None);
}
