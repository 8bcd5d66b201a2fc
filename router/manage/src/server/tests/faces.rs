//! Creating, changing and destroying faces.

use super::*;
use namehop_client::nfd::Element;

fn create(text: &str) -> ControlParameters {
    ControlParameters { uri: Some(text.to_owned()), ..ControlParameters::default() }
}

#[test]
fn create_answers_with_the_properties_of_the_new_face() {
    run(async {
        let fixture = Fixture::new();
        let parameters = ControlParameters {
            face_persistency: Some(2),
            flags: Some(2),
            mask: Some(6),
            mtu_bytes: Some(1400),
            default_congestion_threshold_bytes: Some(1000),
            ..create("udp4://192.0.2.9:6363")
        };
        let response = fixture.command("faces", "create", &parameters).await;
        assert_eq!(response.code, 200, "{}", response.text);
        let expected = ControlParameters {
            face_id: Some(258),
            local_uri: Some("udp4://192.0.2.2:6363".to_owned()),
            mask: None,
            ..parameters
        };
        assert_eq!(response.parameters(), Ok(expected), "only the requested optional properties");
        assert!(flags(&fixture.router().faces().get(FaceId(258)).expect("made")).contains(FaceFlags::RELIABILITY));
        assert_eq!(fixture.changes(), ["created udp4://192.0.2.9:6363"]);
    });
}

#[test]
fn create_for_an_existing_peer_answers_with_that_face() {
    run(async {
        let fixture = Fixture::new();
        let response = fixture.command("faces", "create", &create("udp4://192.0.2.1:6363")).await;
        assert_eq!(response.code, 409);
        let existing = response.parameters().expect("parameters");
        assert_eq!(existing.face_id, Some(NEIGHBOUR));
        assert_eq!(existing.uri.as_deref(), Some("udp4://192.0.2.1:6363"));
        assert_eq!(existing.face_persistency, Some(0));
        assert!(fixture.changes().is_empty());
    });
}

#[test]
fn create_refuses_what_cannot_be() {
    run(async {
        let fixture = Fixture::new();
        let with_local =
            |text: &str, local: &str| ControlParameters { local_uri: Some(local.to_owned()), ..create(text) };
        let on_demand = ControlParameters { face_persistency: Some(1), ..create("udp4://192.0.2.9:6363") };
        let unknown_persistency = ControlParameters { face_persistency: Some(7), ..create("udp4://192.0.2.9:6363") };
        let local_fields = ControlParameters { flags: Some(1), mask: Some(1), ..create("udp4://192.0.2.9:6363") };
        for (code, parameters) in [
            (400, create("udp4://example.net:6363")),
            (400, create("udp://192.0.2.9")),
            (400, create("what is this")),
            (400, with_local("udp4://192.0.2.9:6363", "nonsense")),
            (400, unknown_persistency),
            (406, on_demand),
            (406, create("udp4://224.0.23.170:56363")),
            (406, with_local("udp4://192.0.2.9:6363", "udp4://192.0.2.2:6363")),
            (406, with_local("tcp4://192.0.2.9:6363", "tcp4://192.0.2.2:6363")),
            (406, create("ether://[02:00:00:00:00:01]")),
            (406, with_local("ether://[02:00:00:00:00:01]", "dev://eth0")),
            (406, local_fields),
            (504, create("tcp4://192.0.2.9:6363")),
        ] {
            let response = fixture.command("faces", "create", &parameters).await;
            assert_eq!(response.code, code, "{parameters:?}: {}", response.text);
            assert!(!response.text.is_empty());
        }
        assert_eq!(fixture.router().faces().len(), 2);
        assert!(fixture.changes().is_empty());
    });
}

#[test]
fn a_slow_creation_delays_no_other_command() {
    run(async {
        let fixture = Fixture::new();
        let slow = signed_command(
            names::localhost(),
            "faces",
            "create",
            &create("tcp4://192.0.2.9:6363").to_vec(),
            &DigestSigner,
        );
        fixture.give(&slow, APP, b"slow");
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(fixture.command("rib", "register", &named("/A")).await.code, 200);
        tokio::time::sleep(Duration::from_secs(4)).await;
        let sent = fixture.take_one();
        assert_eq!((sent.token.as_slice(), sent.response().code), (&b"slow"[..], 504));
    });
}

#[test]
fn update_changes_all_or_nothing() {
    run(async {
        let fixture = Fixture::new();
        let parameters = ControlParameters {
            face_id: Some(NEIGHBOUR),
            face_persistency: Some(2),
            mtu_bytes: Some(1200),
            base_congestion_marking_interval_ns: Some(5_000_000),
            ..ControlParameters::default()
        };
        let response = fixture.command("faces", "update", &parameters).await;
        // A permanent UDP face keeps its path open.
        let expected = ControlParameters { flags: Some(FaceFlags::KEEP_ALIVE.0), ..parameters.clone() };
        assert_eq!((response.code, response.parameters()), (200, Ok(expected)));
        assert_eq!(fixture.changes(), ["updated udp4://192.0.2.1:6363"]);

        let bad = ControlParameters {
            face_persistency: Some(0),
            flags: Some(1),
            mask: Some(1),
            mtu_bytes: Some(10),
            base_congestion_marking_interval_ns: Some(0),
            ..parameters
        };
        let response = fixture.command("faces", "update", &bad).await;
        let refused = ControlParameters { face_id: None, face_persistency: None, ..bad };
        assert_eq!((response.code, response.parameters()), (409, Ok(refused)));
        let face = fixture.router().faces().get(FaceId(257)).expect("exists");
        assert_eq!(face.persistency(), FacePersistency::Permanent, "nothing changed");
        assert!(fixture.changes().is_empty());
    });
}

#[test]
fn the_routers_own_faces_cannot_be_changed() {
    run(async {
        let fixture = Fixture::new();
        let mut params = FaceParams::new(FaceUri::Internal, FaceUri::Internal);
        params.scope = namehop_packet::face::FaceScope::Local;
        params.flags = FaceFlags::LOCAL_FIELDS;
        fixture.router().faces().insert_reserved(FaceId::INTERNAL, params).expect("free");
        let parameters =
            ControlParameters { face_id: Some(1), flags: Some(0), mask: Some(1), ..ControlParameters::default() };
        let response = fixture.command("faces", "update", &parameters).await;
        assert_eq!(response.code, 406, "{}", response.text);
        let face = fixture.router().faces().get(FaceId::INTERNAL).expect("exists");
        assert!(flags(&face).contains(FaceFlags::LOCAL_FIELDS), "management needs IncomingFaceId");
    });
}

#[test]
fn update_without_a_face_means_the_own_one() {
    run(async {
        let fixture = Fixture::new();
        let parameters = ControlParameters { flags: Some(1), mask: Some(1), ..ControlParameters::default() };
        let response = fixture.command("faces", "update", &parameters).await;
        assert_eq!(response.code, 200, "{}", response.text);
        let done = response.parameters().expect("parameters");
        assert_eq!((done.face_id, done.flags, done.mtu_bytes), (Some(APP), Some(1), None));
        for face_id in [9999, u64::MAX] {
            let parameters = ControlParameters { face_id: Some(face_id), ..parameters.clone() };
            assert_eq!(fixture.command("faces", "update", &parameters).await.code, 404);
        }
    });
}

#[test]
fn destroy_takes_the_routes_along_and_is_answered_for_absent_faces_too() {
    run(async {
        let fixture = Fixture::new();
        let by_route = ControlParameters { face_id: Some(NEIGHBOUR), ..named("/A") };
        fixture.command("rib", "register", &by_route).await;
        fixture.command("fib", "add-nexthop", &ControlParameters { face_id: Some(NEIGHBOUR), ..named("/B") }).await;
        fixture.changes();
        let destroy = |id| ControlParameters { face_id: Some(id), ..ControlParameters::default() };
        let response = fixture.command("faces", "destroy", &destroy(NEIGHBOUR)).await;
        assert_eq!((response.code, response.parameters()), (200, Ok(destroy(NEIGHBOUR))));
        assert!(fixture.fib("/A").is_empty() && fixture.fib("/B").is_empty());
        assert_eq!(fixture.management.rib_sizes(), (0, 0));
        assert_eq!(fixture.changes(), ["destroyed udp4://192.0.2.1:6363"]);
        for id in [NEIGHBOUR, 9999, u64::MAX] {
            assert_eq!(fixture.command("faces", "destroy", &destroy(id)).await.code, 200);
        }
        assert!(fixture.changes().is_empty());

        let internal = FaceParams::new(uri("internal://"), uri("internal://"));
        fixture.router().faces().insert_reserved(FaceId::INTERNAL, internal).expect("free");
        assert_eq!(fixture.command("faces", "destroy", &destroy(1)).await.code, 406);
    });
}
