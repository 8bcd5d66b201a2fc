//! Requests that get an answer, commands in both formats, and requests refused before their command is examined.

use namehop_client::nfd::Element;
use namehop_wire::tlv::{Nni, Writer, types};
use namehop_wire::{Interest, SignatureInfo};

use super::*;

#[test]
fn both_forms_of_commands_are_answered_under_their_own_name() {
    run(async {
        let fixture = Fixture::new();
        let parameters = named("/A").to_vec();
        let new = signed_command(names::localhost(), "rib", "register", &parameters, &DigestSigner);

        let mut info = Writer::new();
        SignatureInfo::default().encode(types::SIGNATURE_INFO, &mut info);
        let signed = names::localhost_verb("rib", "register")
            .append_generic(&parameters)
            .append_generic(Nni::new(unix_time_ms()).as_slice())
            .append_generic([9; 8])
            .append_generic(info.as_slice());
        let mut value = Writer::new();
        value.element(types::SIGNATURE_VALUE, &DigestSigner.sign(&[signed.value()]).expect("signed"));
        let old = InterestBuilder::new(signed.append_generic(value.as_slice())).build().expect("built");

        for interest in [new, old] {
            fixture.give(&interest, APP, b"12345678");
            let sent = fixture.take_one();
            assert_eq!(sent.response().code, 200);
            assert_eq!(sent.token, b"12345678");
            assert_eq!(sent.data().name, Interest::decode(&interest).expect("an Interest").name);
            assert!(sent.no_cache, "answers to local commands are not cached");
        }
        assert_eq!(fixture.fib("/A"), [(256, 0)]);
    });
}

#[test]
fn the_answer_is_byte_for_byte_as_specified() {
    run(async {
        let fixture = Fixture::new();
        let parameters = ControlParameters { cost: Some(7), ..named("/A") };
        let interest = signed_command(names::localhost(), "fib", "add-nexthop", &parameters.to_vec(), &DigestSigner);
        fixture.give(&interest, APP, b"");
        let frame = fixture.sent.borrow_mut().remove(0);
        let no_cache = b"\xFD\x03\x34\x05\xFD\x03\x35\x01\x01";
        assert_eq!((frame[0], frame[1] as usize), (0x64, frame.len() - 2));
        assert_eq!(frame[2..11], *no_cache);
        assert_eq!((frame[11], frame[12] as usize), (0x50, frame.len() - 13));
        let data_starts = 13;
        let data = Data::decode(&frame[data_starts..]).expect("a Data");
        let expected = [
            0x65, 0x15, // ControlResponse
            0x66, 0x01, 0xC8, // StatusCode 200
            0x67, 0x02, b'O', b'K', // StatusText
            0x68, 0x0C, // ControlParameters
            0x07, 0x03, 0x08, 0x01, 0x41, // Name /A
            0x69, 0x02, 0x01, 0x00, // FaceId 256
            0x6A, 0x01, 0x07, // Cost 7
        ];
        assert_eq!(data.content, expected);
        assert_eq!(data.signature_info.signature_type, 0);
    });
}

#[test]
fn authorizations_can_name_every_module_with_verbs() {
    let modules = Management::<FakeRouter>::MODULES.map(|(module, _)| module);
    assert_eq!(modules, names::module::WITH_COMMANDS);
}

#[test]
fn what_is_no_request_gets_no_answer() {
    run(async {
        let fixture = Fixture::new();
        let parameters = named("/A").to_vec();
        let good = signed_command(names::localhost(), "rib", "register", &parameters, &DigestSigner);
        let unsigned = |name: Name| InterestBuilder::new(name).can_be_prefix(true).build().expect("built");
        let mut wrong_digest = good.clone();
        *wrong_digest.last_mut().expect("not empty") ^= 1;
        for interest in [
            unsigned(names::localhost()),
            unsigned(names::localhost().append_generic("rib")),
            unsigned(names::localhost_verb("rib", "nothing")),
            unsigned(names::localhost_verb("nobody", "list")),
            unsigned(names::localhost_verb("rib", "register")),
            unsigned(names::localhost_verb("rib", "register").append_generic(&parameters)),
            unsigned(name("/localhost/nfdx/rib/list")),
            unsigned(name("/localhost/other")),
            unsigned(name("/localhost/nfd/32=rib/list")),
            signed_command(names::localhost(), "rib", "frobnicate", &parameters, &DigestSigner),
            signed_command(names::localhop(), "rib", "register", &parameters, &DigestSigner),
            wrong_digest,
            vec![5, 0],
            vec![],
        ] {
            fixture.give(&interest, APP, b"t");
        }
        fixture.give(&good, NEIGHBOUR, b"t");
        fixture.give(&good, 9999, b"t");
        fixture.management.receive(&good);
        fixture.management.receive(b"\x64\x00");
        fixture.management.receive(b"garbage");
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(fixture.take().is_empty());
        assert_eq!(fixture.management.rib_sizes(), (0, 0));
        fixture.give(&good, APP, b"t");
        assert_eq!(fixture.take_one().response().code, 200);
    });
}

#[test]
fn malformed_and_unsuitable_parameters_are_named() {
    run(async {
        let fixture = Fixture::new();
        let interest = signed_command(names::localhost(), "rib", "register", b"\x68\x05\x6A", &DigestSigner);
        fixture.give(&interest, APP, b"t");
        let response = fixture.take_one().response();
        assert_eq!(response.code, 400);
        assert!(response.text.contains("malformed"), "{}", response.text);

        let number = Some(1);
        for (module, verb, parameters, word) in [
            ("rib", "register", ControlParameters::default(), "Name is required"),
            ("rib", "register", ControlParameters { mask: number, ..named("/A") }, "Mask is not"),
            ("rib", "unregister", ControlParameters { cost: number, ..named("/A") }, "Cost is not"),
            ("fib", "add-nexthop", ControlParameters { origin: number, ..named("/A") }, "Origin is not"),
            ("fib", "remove-nexthop", ControlParameters { cost: number, ..named("/A") }, "Cost is not"),
            ("cs", "config", named("/A"), "Name is not"),
            ("cs", "config", ControlParameters { flags: number, ..Default::default() }, "together"),
            ("cs", "erase", ControlParameters { count: Some(0), ..named("/A") }, "at least 1"),
            ("strategy-choice", "set", named("/A"), "Strategy is required"),
            ("strategy-choice", "unset", named("/"), "/"),
            ("faces", "create", ControlParameters::default(), "Uri is required"),
            ("faces", "update", ControlParameters { mask: number, ..Default::default() }, "together"),
            ("faces", "destroy", ControlParameters::default(), "FaceId is required"),
            ("faces", "destroy", ControlParameters { face_id: Some(0), ..Default::default() }, "0 is none"),
        ] {
            let response = fixture.command(module, verb, &parameters).await;
            assert_eq!(response.code, 400, "{module}/{verb}");
            assert!(response.text.contains(word), "{module}/{verb}: {}", response.text);
            assert!(response.body.is_empty());
        }
        assert!(fixture.changes().is_empty());
    });
}

#[test]
fn commands_that_are_not_authorized_change_nothing() {
    run(async {
        let folder = tempfile::tempdir().expect("a folder");
        let (signer, certificate) = key_and_certificate(folder.path(), "/alice");
        let security = SecurityConfig {
            rules: vec![crate::authentication::Rule {
                signer: crate::authentication::Signer::Certificate(certificate),
                modules: vec!["rib".to_owned()],
            }],
            ..SecurityConfig::default()
        };
        let fixture = Fixture::with_security(&security);
        assert_eq!(fixture.command("rib", "register", &named("/A")).await.code, 403);
        let give = |module: &str, verb: &str| {
            let command = signed_command(names::localhost(), module, verb, &named("/A").to_vec(), &signer);
            fixture.give(&command, APP, b"t");
            let code = fixture.take_one().response().code;
            // The same packet sent again is a replay.
            fixture.give(&command, APP, b"t");
            assert_eq!(fixture.take_one().response().code, 403);
            code
        };
        assert_eq!(give("fib", "add-nexthop"), 403);
        assert!(fixture.fib("/A").is_empty());
        assert_eq!(give("rib", "register"), 200);
        assert_eq!(fixture.fib("/A"), [(256, 0)]);
    });
}

#[test]
fn neighbours_command_the_rib_with_a_trusted_key_only() {
    run(async {
        let folder = tempfile::tempdir().expect("a folder");
        let (signer, certificate) = key_and_certificate(folder.path(), "/neighbour");
        let localhop = crate::authentication::TrustConfig { anchors: vec![certificate.into()], certificates: None };
        let fixture = Fixture::with_security(&SecurityConfig { localhop, ..SecurityConfig::default() });
        let give = |module: &str, verb: &str, signer: &dyn Signer| {
            let parameters = named("/neighbour/A").to_vec();
            let command = signed_command(names::localhop(), module, verb, &parameters, signer);
            fixture.give(&command, NEIGHBOUR, b"t");
            fixture.take().first().map(|sent| {
                let code = sent.response().code;
                assert!(sent.no_cache, "answers to commands are not cached");
                code
            })
        };
        assert_eq!(give("rib", "register", &DigestSigner), Some(403));
        assert_eq!(give("fib", "add-nexthop", &signer), None, "neighbours can use only the RIB");
        assert_eq!(give("rib", "register", &signer), Some(200));
        assert_eq!(fixture.fib("/neighbour/A"), [(257, 0)]);
    });
}

#[test]
fn ports_are_opened_for_listed_keys_and_by_the_routers_policy_for_others() {
    run(async {
        let folder = tempfile::tempdir().expect("a folder");
        let (signer, certificate) = key_and_certificate(folder.path(), "/operator");
        let rule = |signer| crate::authentication::Rule { signer, modules: vec!["faces".to_owned()] };
        let rules = vec![
            rule(crate::authentication::Signer::Any),
            rule(crate::authentication::Signer::Certificate(certificate)),
        ];
        let open = Fixture::new();
        let with_rules = Fixture::with_security(&SecurityConfig { rules, ..SecurityConfig::default() });
        let memif =
            ControlParameters { uri: Some("memif:///etc/x.sock?id=0".to_owned()), ..ControlParameters::default() };
        let command =
            |signer: &dyn Signer| signed_command(names::localhost(), "faces", "create", &memif.to_vec(), signer);
        for (fixture, command, code) in [
            (&open, command(&DigestSigner), 403),
            (&with_rules, command(&DigestSigner), 403),
            (&with_rules, command(&signer), 200),
        ] {
            fixture.give(&command, APP, b"t");
            let response = fixture.wait_for_one().await.response();
            assert_eq!(response.code, code, "{}", response.text);
        }
        assert!(open.changes().is_empty());
    });
}

#[test]
fn neighbours_have_routes_for_their_own_face_and_the_names_of_their_key_only() {
    run(async {
        let folder = tempfile::tempdir().expect("a folder");
        let (signer, certificate) = key_and_certificate(folder.path(), "/neighbour");
        let localhop = crate::authentication::TrustConfig { anchors: vec![certificate.into()], certificates: None };
        let fixture = Fixture::with_security(&SecurityConfig { localhop, ..SecurityConfig::default() });
        let mut time_ms = unix_time_ms();
        let mut give = |verb: &str, prefix: &str, face_id: Option<u64>| {
            let parameters = ControlParameters { face_id, ..named(prefix) };
            let name = names::localhop().append_generic("rib").append_generic(verb).append_generic(parameters.to_vec());
            time_ms += 1;
            let options = InterestSignatureOptions { time_ms: Some(time_ms), ..options() };
            let command = InterestBuilder::new(name).nonce(1).sign(&signer, &options).expect("signed");
            fixture.give(&command, NEIGHBOUR, b"t");
            fixture.take_one().response().code
        };
        fixture.command("rib", "register", &named("/neighbour/B")).await;
        for verb in ["register", "unregister"] {
            assert_eq!(give(verb, "/neighbour/B", Some(APP)), 403, "{verb}: the face of another peer");
            assert_eq!(give(verb, "/neighbour/B", Some(9999)), 403, "{verb}: a face that does not exist");
            for prefix in ["/", "/neighbo", "/other", "/localhop", "/localhop/x", "/localhost/x"] {
                assert_eq!(give(verb, prefix, None), 403, "{verb}: {prefix} is not a name of the key");
                assert!(fixture.fib(prefix).is_empty(), "{prefix}");
            }
            assert_eq!(give(verb, "/neighbour/A", None), 200);
            assert_eq!(give(verb, "/neighbour", Some(0)), 200);
            assert_eq!(give(verb, "/neighbour/A", Some(NEIGHBOUR)), 200);
        }
        assert_eq!((fixture.fib("/neighbour/A"), fixture.fib("/neighbour/B")), (vec![], vec![(256, 0)]));
    });
}

#[test]
fn neighbours_have_a_limited_number_of_routes() {
    run(async {
        let folder = tempfile::tempdir().expect("a folder");
        let (signer, certificate) = key_and_certificate(folder.path(), "/neighbour");
        let localhop = crate::authentication::TrustConfig { anchors: vec![certificate.into()], certificates: None };
        let remote_routes = crate::rib::RouteLimits { per_face: 2, remote: 3, total: usize::MAX };
        let security = SecurityConfig { localhop, remote_routes, ..SecurityConfig::default() };
        let fixture = Fixture::with_security(&security);
        let mut time_ms = unix_time_ms();
        let mut give = |prefix: &str| {
            let parameters = named(prefix).to_vec();
            let name = names::localhop().append_generic("rib").append_generic("register").append_generic(parameters);
            time_ms += 1;
            let options = InterestSignatureOptions { time_ms: Some(time_ms), ..options() };
            let command = InterestBuilder::new(name).nonce(1).sign(&signer, &options).expect("signed");
            fixture.give(&command, NEIGHBOUR, b"t");
            fixture.take_one().response()
        };
        assert_eq!(["/neighbour/A", "/neighbour/B", "/neighbour/A"].map(|prefix| give(prefix).code), [200; 3]);
        fixture.changes();
        let refused = give("/neighbour/C");
        assert_eq!(refused.code, 507);
        assert!(refused.text.contains("max_remote_routes_per_face"), "{}", refused.text);
        let face = fixture.router().face(testing::NEIGHBOUR).expect("a face");
        assert_eq!(face.counters.link_drop(namehop_face::counters::LinkDrop::TooManyRoutes), 1);
        assert!(fixture.changes().is_empty(), "a refused route is not saved");
        assert!(fixture.fib("/neighbour/C").is_empty());
        // Applications on the router's own host are not limited.
        for prefix in ["/a", "/b", "/c", "/d"] {
            assert_eq!(fixture.command("rib", "register", &named(prefix)).await.code, 200);
        }
    });
}

#[test]
fn a_response_without_room_for_its_body_is_sent_without_it() {
    run(async {
        let fixture = Fixture::new();
        let long = Name::new().append_generic(vec![b'x'; 4500]);
        let parameters = ControlParameters { name: Some(long), ..ControlParameters::default() };
        let response = fixture.command("rib", "register", &parameters).await;
        assert_eq!((response.code, response.body.len()), (200, 0));
    });
}

#[test]
fn arbitrary_frames_never_panic() {
    use proptest::prelude::*;
    let fixture = Fixture::new();
    proptest!(|(bytes in proptest::collection::vec(any::<u8>(), 0..300))| {
        fixture.management.receive(&bytes);
    });
    let good = signed_command(names::localhost(), "rib", "register", &named("/A").to_vec(), &DigestSigner);
    proptest!(|(at in 0..good.len(), byte: u8, length in 0..good.len())| {
        let mut damaged = good.clone();
        damaged[at] = byte;
        fixture.give(&damaged, APP, b"t");
        fixture.give(&damaged[..length], APP, b"t");
    });
}

/// Creates a new key and saves its certificate in a file.
pub(super) fn key_and_certificate(
    folder: &std::path::Path,
    identity: &str,
) -> (namehop_wire::security::KeySigner, std::path::PathBuf) {
    use namehop_wire::certificate::{save_certificate, self_signed_certificate};
    use namehop_wire::security::{KeySigner, KeyType, PrivateKey};
    let key = PrivateKey::generate(KeyType::Ed25519).expect("a key");
    let signer = KeySigner::new(key, name(&format!("{identity}/KEY/1")));
    let always = namehop_wire::ValidityPeriod { not_before_s: 0, not_after_s: unix_time_ms() };
    let path = folder.join("certificate.ndncert");
    save_certificate(&path, &self_signed_certificate(&signer, 1, always).expect("issued")).expect("saved");
    (signer, path)
}
