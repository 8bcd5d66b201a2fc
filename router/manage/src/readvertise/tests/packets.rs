//! Commands and answers as packets, and the routes that each destination gets.

use std::time::Duration;

use namehop_client::nfd::numbers::origin;
use namehop_client::nfd::{ControlParameters, ControlResponse, Element, ReadvertiseStatus};
use namehop_packet::FaceId;
use namehop_wire::certificate::{new_key_name, save_certificate, self_signed_certificate};
use namehop_wire::lp::LpPacket;
use namehop_wire::security::{
    DigestSigner, DigestVerifier, KeySigner, KeyType, PrivateKey, save_private_key, unix_time_ms, verify_interest,
};
use namehop_wire::{DataBuilder, Interest, KeyLocator, Name, ValidityPeriod};

use super::super::{DaemonSettings, Destination, GatewaySettings, IdentityError, SigningIdentity, read_token};
use super::name;
use crate::authentication::SignedCommand;

const FACE: FaceId = FaceId(300);

fn daemon() -> Destination {
    Destination::daemon(DaemonSettings { origins: vec![origin::CLIENT] })
}

/// Creates an identity `/site/host`, and the folder with its files.
fn identity() -> (SigningIdentity, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let key = PrivateKey::generate(KeyType::Ed25519).expect("a key");
    save_private_key(&folder.path().join("key"), &key).expect("saved");
    let key_name = new_key_name(name("/site/host").as_ref()).expect("a name");
    let signer = KeySigner::new(key, key_name);
    let always = ValidityPeriod { not_before_s: 0, not_after_s: 4_102_444_799 };
    let certificate = self_signed_certificate(&signer, 1, always).expect("issued");
    save_certificate(&folder.path().join("certificate"), &certificate).expect("saved");
    let identity = SigningIdentity::load(&folder.path().join("key"), &folder.path().join("certificate"));
    (identity.expect("key and certificate match"), folder)
}

fn gateway() -> Destination {
    let settings = GatewaySettings {
        signing: identity().0,
        origins: vec![origin::APP, origin::CLIENT],
        cost: 15,
        refresh: Duration::from_secs(25),
    };
    Destination::gateway(settings)
}

/// One decoded command.
struct Sent {
    name: Name,
    parameters: ControlParameters,
    interest: Vec<u8>,
    token: (usize, u64),
}

fn next(destination: &mut Destination, now_ms: u64) -> Option<Sent> {
    let frame = destination.next_frame(1, now_ms)?;
    let packet = LpPacket::decode(&frame).expect("a frame");
    let interest = Interest::decode(packet.fragment.expect("an Interest")).expect("an Interest");
    let command = SignedCommand::read(&interest, 4).expect("a signed command");
    Some(Sent {
        name: interest.name.to_owned(),
        parameters: ControlParameters::decode(command.parameters.expect("parameters")).expect("parameters"),
        interest: packet.fragment.expect("an Interest").to_vec(),
        token: read_token(&packet.pit_token).expect("a token of this router"),
    })
}

fn answer(destination: &mut Destination, sent: &Sent, code: u64, now_ms: u64) {
    let content = ControlResponse::new(code, "as the test says").to_vec();
    let data = DataBuilder::new(sent.name.clone()).content(content).sign(&DigestSigner).expect("a Data");
    destination.answered(sent.token.1, &data, now_ms);
}

#[test]
fn a_daemon_gets_what_nlsr_and_ndn_dv_understand() {
    let mut daemon = daemon();
    daemon.routes_changed(name("/app").as_ref(), None, Some(3), 0);
    daemon.reached_through(vec![FACE], 0);
    let sent = next(&mut daemon, 0).expect("a command");
    assert_eq!(sent.token.0, 1);
    assert!(name("/localhost/nlsr/rib/register").is_prefix_of(sent.name.as_ref()));
    assert_eq!(sent.name.len(), 6, "ndn-dv requires this length");
    let expected = ControlParameters { name: Some(name("/app")), cost: Some(3), ..ControlParameters::default() };
    assert_eq!(sent.parameters, expected);
    let interest = Interest::decode(&sent.interest).expect("an Interest");
    assert!(interest.must_be_fresh && interest.check_parameters_digest());
    assert!(verify_interest(&interest, &DigestVerifier).is_ok());
    answer(&mut daemon, &sent, 200, 1);

    daemon.routes_changed(name("/app").as_ref(), Some(3), None, 5_000);
    let sent = next(&mut daemon, 5_000).expect("a command");
    assert!(name("/localhost/nlsr/rib/unregister").is_prefix_of(sent.name.as_ref()));
    assert_eq!(sent.parameters, ControlParameters { name: Some(name("/app")), ..ControlParameters::default() });
    answer(&mut daemon, &sent, 204, 5_001);
    let status = daemon.status(5_001);
    assert_eq!((status.counters.announced, status.counters.withdrawn), (1, 1));
    let prefixes = status.announced_prefixes + status.waiting_prefixes + status.withdrawing_prefixes;
    assert_eq!((prefixes, status.last_error), (0, None));
}

#[test]
fn names_of_one_host_or_link_are_never_announced() {
    for mut destination in [daemon(), gateway()] {
        destination.reached_through(vec![FACE], 0);
        for prefix in ["/localhost", "/localhost/app", "/localhop/nfd", "/localhop/site/host"] {
            destination.routes_changed(name(prefix).as_ref(), None, Some(0), 0);
            destination.found(name(prefix).as_ref(), Some(0), 0);
        }
        assert!(next(&mut destination, 0).is_none());
    }
}

#[test]
fn a_gateway_gets_the_identity_for_everything_under_it() {
    let mut gateway = gateway();
    gateway.reached_through(vec![FACE], 0);
    gateway.routes_changed(name("/elsewhere").as_ref(), None, Some(0), 0);
    gateway.routes_changed(name("/site").as_ref(), None, Some(0), 0);
    assert!(next(&mut gateway, 0).is_none(), "the gateway's key does not cover these prefixes");
    gateway.routes_changed(name("/site/host/a").as_ref(), None, Some(0), 0);
    gateway.routes_changed(name("/site/host").as_ref(), None, Some(7), 0);
    let sent = next(&mut gateway, 0).expect("a command");
    assert!(name("/localhop/nfd/rib/register").is_prefix_of(sent.name.as_ref()));
    let expected = ControlParameters {
        name: Some(name("/site/host")),
        origin: Some(origin::CLIENT),
        cost: Some(15),
        expiration_period_ms: Some(300_000),
        ..ControlParameters::default()
    };
    assert_eq!(sent.parameters, expected);
    let interest = Interest::decode(&sent.interest).expect("an Interest");
    let signature = interest.signature_info.expect("signed");
    let Some(KeyLocator::Name(locator)) = signature.key_locator else { panic!("the signature must name its key") };
    assert_eq!(locator.len(), 6, "the locator names the certificate");
    assert!(signature.time_ms.is_some_and(|time_ms| unix_time_ms() - time_ms < 60_000));
    answer(&mut gateway, &sent, 200, 1);

    gateway.routes_changed(name("/site/host/a").as_ref(), Some(0), None, 5_000);
    assert!(next(&mut gateway, 5_000).is_none(), "one covered prefix still has a route");
    gateway.routes_changed(name("/site/host").as_ref(), Some(7), None, 5_000);
    let withdrawal = next(&mut gateway, 5_000).expect("a command");
    let expected = ControlParameters { cost: None, expiration_period_ms: None, ..sent.parameters };
    assert_eq!(withdrawal.parameters, expected);
}

#[test]
fn commands_to_a_gateway_go_one_by_one_with_rising_times() {
    let mut gateway = gateway();
    gateway.reached_through(vec![FACE], 0);
    gateway.routes_changed(name("/site/host/a").as_ref(), None, Some(0), 0);
    let mut last_ms = 0;
    for round in 0..5_u64 {
        let now_ms = gateway.next_due_ms().expect("a refresh");
        let sent = next(&mut gateway, now_ms).expect("a command");
        assert!(next(&mut gateway, now_ms).is_none());
        let interest = Interest::decode(&sent.interest).expect("an Interest");
        let time_ms = interest.signature_info.and_then(|info| info.time_ms).expect("a time");
        assert!(time_ms > last_ms);
        last_ms = time_ms;
        answer(&mut gateway, &sent, 200, now_ms);
        let pause_ms = gateway.next_due_ms().expect("a refresh") - now_ms;
        assert!((22_500..=27_500).contains(&pause_ms), "round {round}: {pause_ms}");
    }
}

#[test]
fn a_new_face_means_a_new_daemon_and_the_loss_of_one_of_two_nothing() {
    let mut daemon = daemon();
    daemon.routes_changed(name("/app").as_ref(), None, Some(3), 0);
    let mut is_reset = |faces: &[u32], now_ms: u64| {
        daemon.reached_through(faces.iter().map(|&face| FaceId(face)).collect(), now_ms);
        let sent = next(&mut daemon, now_ms);
        if let Some(sent) = &sent {
            answer(&mut daemon, sent, 200, now_ms);
        }
        sent.is_some()
    };
    assert!(is_reset(&[300], 0));
    assert!(!is_reset(&[300], 1));
    assert!(is_reset(&[300, 301], 2));
    assert!(!is_reset(&[301], 3));
    assert!(!is_reset(&[], 4));
    assert!(is_reset(&[301], 5), "a face that returns counts as new");
    daemon.face_up(FaceId(999), 6);
    assert!(next(&mut daemon, 6).is_none());
    daemon.face_up(FaceId(301), 7);
    assert!(next(&mut daemon, 7).is_some(), "the peer may have been restarted");
}

#[test]
fn answers_that_make_no_sense_are_refusals() {
    let mut daemon = daemon();
    daemon.routes_changed(name("/app").as_ref(), None, Some(3), 0);
    daemon.reached_through(vec![FACE], 0);
    let sent = next(&mut daemon, 0).expect("a command");
    daemon.answered(sent.token.1 + 1, b"", 0);
    assert_eq!(daemon.status(0).counters.refused, 0, "an answer with an unknown id is ignored");
    daemon.answered(sent.token.1, b"\x06\x00", 0);
    assert_eq!(daemon.status(0).counters.refused, 1);
    let due_ms = daemon.next_due_ms().expect("the command is repeated");
    let sent = next(&mut daemon, due_ms).expect("a command");
    let empty = DataBuilder::new(sent.name.clone()).sign(&DigestSigner).expect("a Data");
    daemon.answered(sent.token.1, &empty, due_ms);
    assert_eq!(daemon.status(0).counters.refused, 2);
}

#[test]
fn key_and_certificate_must_belong_together() {
    let (own, folder) = identity();
    assert_eq!(*own.identity(), name("/site/host"));
    let (_, other) = identity();
    let load = |key: &tempfile::TempDir, certificate: &tempfile::TempDir, file: &str| {
        SigningIdentity::load(&key.path().join(file), &certificate.path().join("certificate"))
    };
    assert!(load(&folder, &folder, "key").is_ok());
    assert!(matches!(load(&other, &folder, "key"), Err(IdentityError::OtherKey { .. })));
    assert!(matches!(load(&folder, &folder, "missing"), Err(IdentityError::Key { .. })));
    let swapped = SigningIdentity::load(&folder.path().join("key"), &folder.path().join("key"));
    assert!(matches!(swapped, Err(IdentityError::Certificate { .. })));
}

#[test]
fn the_status_counts_announced_refused_and_waiting_prefixes() {
    let mut daemon = daemon();
    for (number, prefix) in ["/a", "/b", "/c", "/d"].into_iter().enumerate() {
        daemon.routes_changed(name(prefix).as_ref(), None, Some(number as u64), 0);
    }
    let counts = |status: &ReadvertiseStatus| {
        [status.announced_prefixes, status.waiting_prefixes, status.refused_prefixes, status.withdrawing_prefixes]
    };
    let status = daemon.status(0);
    assert_eq!((status.destination.as_str(), status.command_prefix.clone()), ("daemon", name("/localhost/nlsr/rib")));
    assert!(status.face_ids.is_empty() && status.last_error.is_none());
    assert_eq!(counts(&status), [0, 4, 0, 0], "without a destination all prefixes wait");

    daemon.reached_through(vec![FACE], 0);
    let mut sent: Vec<Sent> = std::iter::from_fn(|| next(&mut daemon, 0)).collect();
    sent.sort_by_key(|sent| sent.parameters.cost);
    answer(&mut daemon, &sent[0], 200, 1);
    answer(&mut daemon, &sent[1], 403, 2);
    daemon.nacked(sent[2].token.1, 3);
    let status = daemon.status(10);
    assert_eq!(status.face_ids, [u64::from(FACE.0)]);
    assert_eq!(counts(&status), [1, 2, 1, 0]);
    let error = status.last_error.expect("the last of two errors");
    assert_eq!((error.prefix, error.age_ms), (name("/c"), 7));
    assert!(error.reason.contains("Nack"), "{}", error.reason);
    answer(&mut daemon, &sent[3], 403, 20);
    daemon.routes_changed(name("/a").as_ref(), Some(0), None, 30);
    let status = daemon.status(30);
    assert_eq!(counts(&status), [0, 1, 2, 1]);
    assert_eq!(status.last_error.expect("an error").reason, "403 as the test says");

    // A refusal is forgotten when the prefix is accepted later.
    let again = next(&mut daemon, 100_000).expect("the command is repeated");
    answer(&mut daemon, &again, 200, 100_000);
    let rest: Vec<Sent> = std::iter::from_fn(|| next(&mut daemon, 100_000)).collect();
    for sent in rest {
        answer(&mut daemon, &sent, 200, 100_001);
    }
    assert_eq!(counts(&daemon.status(100_001)), [3, 0, 0, 0]);
}
