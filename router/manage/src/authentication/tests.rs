//! Commands in both formats, the policy, and certificate chains, with real keys and certificates in files.

use std::path::PathBuf;

use namehop_client::nfd::{ControlParameters, Element};
use namehop_wire::builder::InterestSignatureOptions;
use namehop_wire::certificate::{CertificateContents, issue_certificate, save_certificate, self_signed_certificate};
use namehop_wire::security::{DigestSigner, KeySigner, KeyType, PrivateKey};
use namehop_wire::tlv::{Nni, Writer, types};
use namehop_wire::{
    ComponentRef, Data, Interest, InterestBuilder, Name, PrefixAnnouncement, SignatureInfo, ValidityPeriod,
};

use super::*;

const NOW: u64 = 1_800_000_000_000;
const VERB: usize = 4;

fn always() -> ValidityPeriod {
    ValidityPeriod { not_before_s: 0, not_after_s: NOW / 500 }
}

fn verb() -> Name {
    namehop_client::nfd::names::localhost_verb("rib", "register")
}

fn signer_of(identity: &str) -> KeySigner {
    let key = PrivateKey::generate(KeyType::Ecdsa).expect("a key");
    let name: Name = format!("{identity}/KEY/1").parse().expect("a name");
    KeySigner::new(key, name)
}

fn options(time_ms: u64, nonce: u8) -> InterestSignatureOptions {
    InterestSignatureOptions { nonce: Some([nonce; 8]), time_ms: Some(time_ms), sequence: None }
}

fn command_v03(signer: &dyn namehop_wire::security::Signer, options: &InterestSignatureOptions) -> Vec<u8> {
    let name = verb().append_generic(ControlParameters::default().to_vec());
    InterestBuilder::new(name).sign(signer, options).expect("signed")
}

fn command_v02(signer: &dyn namehop_wire::security::Signer, time_ms: u64, nonce: u64) -> Vec<u8> {
    let info = SignatureInfo {
        signature_type: signer.signature_type(),
        key_locator: signer.key_locator(),
        ..SignatureInfo::default()
    };
    let mut info_wire = Writer::new();
    info.encode(types::SIGNATURE_INFO, &mut info_wire);
    let signed = verb()
        .append_generic(ControlParameters::default().to_vec())
        .append_generic(Nni::new(time_ms).as_slice())
        .append_generic(nonce.to_be_bytes())
        .append_generic(info_wire.as_slice());
    let value = signer.sign(&[signed.value()]).expect("signed");
    let mut value_wire = Writer::new();
    value_wire.element(types::SIGNATURE_VALUE, &value);
    InterestBuilder::new(signed.append_generic(value_wire.as_slice())).build().expect("built")
}

fn decide(authenticator: &mut Authenticator, zone: Zone, module: &str, packet: &[u8]) -> Result<(), Rejection> {
    authority(authenticator, zone, module, packet).map(|_| ())
}

fn authority(
    authenticator: &mut Authenticator,
    zone: Zone,
    module: &str,
    packet: &[u8],
) -> Result<Authority, Rejection> {
    let interest = Interest::decode(packet).expect("an Interest");
    let command = SignedCommand::read(&interest, VERB).expect("a command");
    authenticator.authorize(zone, module, &command.signature, NOW)
}

struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        Files(tempfile::tempdir().expect("a folder"))
    }

    fn save(&self, name: &str, packet: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        save_certificate(&path, packet).expect("saved");
        path
    }

    fn anchor(&self, name: &str, signer: &KeySigner, validity: ValidityPeriod) -> PathBuf {
        self.save(name, &self_signed_certificate(signer, 1, validity).expect("issued"))
    }
}

fn issue(subject: &KeySigner, issuer: &KeySigner, validity_period: ValidityPeriod) -> Vec<u8> {
    let contents = CertificateContents {
        key_name: subject.locator().as_ref(),
        public_key: &subject.key().public_key(),
        issuer_id: ComponentRef::generic(b"issuer"),
        version: 1,
        validity_period,
    };
    issue_certificate(&contents, issuer).expect("issued")
}

#[test]
fn both_forms_are_read_alike() {
    let signer = signer_of("/alice");
    for packet in [command_v03(&signer, &options(NOW, 7)), command_v02(&signer, NOW, u64::from_be_bytes([7; 8]))] {
        let interest = Interest::decode(&packet).expect("an Interest");
        let command = SignedCommand::read(&interest, VERB).expect("a command");
        assert_eq!(command.parameters, Some(&ControlParameters::default().to_vec()[..]));
        let info = command.signature.info;
        assert_eq!((info.time_ms, info.nonce), (Some(NOW), Some(&[7; 8][..])));
        assert_eq!(info.key_locator.and_then(|locator| locator.name()), Some(signer.locator().as_ref()));
        let verified = namehop_wire::security::Verifier::verify(
            &signer.key().public_key(),
            info.signature_type,
            &command.signature.signed_portions,
            command.signature.value,
        );
        assert!(verified.is_ok());
    }
}

#[test]
fn what_is_not_a_whole_command_is_not_read() {
    let read = |packet: &[u8]| SignedCommand::read(&Interest::decode(packet).expect("an Interest"), VERB).is_some();
    let name = verb().append_generic(ControlParameters::default().to_vec());
    assert!(!read(&InterestBuilder::new(verb()).build().expect("built")), "unsigned");
    assert!(!read(&InterestBuilder::new(name.clone()).build().expect("built")), "unsigned");
    let unsigned = InterestBuilder::new(name.clone()).application_parameters(b"x".to_vec());
    assert!(!read(&unsigned.build().expect("built")), "parameters without a signature");
    let longer = InterestBuilder::new(name.clone().append_generic("more"));
    assert!(!read(&longer.sign(&DigestSigner, &options(NOW, 1)).expect("signed")), "one component too many");

    let mut packet = command_v03(&DigestSigner, &options(NOW, 1));
    assert!(read(&packet));
    *packet.last_mut().expect("not empty") ^= 1;
    assert!(!read(&packet), "the parameters digest is wrong");

    let old = command_v02(&DigestSigner, NOW, 1);
    assert!(read(&old));
    let interest = Interest::decode(&old).expect("an Interest");
    for (index, bad) in [(5, &b"\x01\x02\x03"[..]), (6, b""), (7, b"\x16\x01\x1b"), (8, b"\x99\x00")] {
        let name: Name = interest
            .name
            .components()
            .enumerate()
            .map(|(i, component)| if i == index { ComponentRef::generic(bad) } else { component })
            .collect();
        assert!(!read(&InterestBuilder::new(name).build().expect("built")), "component {index}");
    }
}

#[test]
fn without_rules_local_applications_may_do_everything() {
    let mut authenticator = Authenticator::started_at(&SecurityConfig::default(), NOW - 1000).expect("loaded");
    let unknown = signer_of("/stranger");
    for packet in [
        command_v03(&DigestSigner, &options(NOW, 1)),
        command_v02(&DigestSigner, 5, 1),
        command_v03(&unknown, &options(5, 1)),
        command_v02(&unknown, NOW, 1),
    ] {
        for _ in 0..2 {
            assert_eq!(decide(&mut authenticator, Zone::Localhost, "faces", &packet), Ok(()));
        }
        assert!(decide(&mut authenticator, Zone::Localhop, "rib", &packet).is_err());
    }
    assert!(!authenticator.is_localhop_enabled());
}

#[test]
fn a_wrong_digest_is_refused_from_local_applications_too() {
    let mut authenticator = Authenticator::started_at(&SecurityConfig::default(), NOW - 1000).expect("loaded");
    struct WrongDigest;
    impl namehop_wire::security::Signer for WrongDigest {
        fn signature_type(&self) -> u64 {
            0
        }
        fn key_locator(&self) -> Option<namehop_wire::KeyLocator<'_>> {
            None
        }
        fn sign(&self, _: &[&[u8]]) -> Result<Vec<u8>, namehop_wire::security::SecurityError> {
            Ok(vec![0; 32])
        }
    }
    for packet in [command_v03(&WrongDigest, &options(NOW, 1)), command_v02(&WrongDigest, NOW, 1)] {
        assert!(decide(&mut authenticator, Zone::Localhost, "faces", &packet).is_err());
    }
}

#[test]
fn rules_tie_modules_to_keys_and_stop_replays() {
    let files = Files::new();
    let (alice, bob) = (signer_of("/alice"), signer_of("/bob"));
    let config = SecurityConfig {
        rules: vec![
            Rule {
                signer: Signer::Certificate(files.anchor("alice.ndncert", &alice, always())),
                modules: vec!["rib".to_owned(), "fib".to_owned()],
            },
            Rule { signer: Signer::Any, modules: vec!["cs".to_owned()] },
        ],
        ..SecurityConfig::default()
    };
    let mut authenticator = Authenticator::started_at(&config, NOW - 1000).expect("loaded");
    let mut local = |module: &str, packet: &[u8]| decide(&mut authenticator, Zone::Localhost, module, packet);

    let first = command_v03(&alice, &options(NOW, 1));
    assert_eq!(local("rib", &first), Ok(()));
    assert!(local("rib", &first).is_err(), "replayed");
    assert_eq!(local("fib", &command_v03(&alice, &options(NOW, 2))), Ok(()), "same signature time, other nonce");
    assert_eq!(local("rib", &command_v02(&alice, NOW + 1, 1)), Ok(()));
    assert_eq!(
        local("rib", &command_v02(&alice, NOW, 9)),
        Ok(()),
        "commands of two programs with one key may be reordered"
    );
    assert!(local("faces", &command_v03(&alice, &options(NOW + 2, 1))).is_err(), "module not listed");
    assert!(local("rib", &command_v03(&bob, &options(NOW + 2, 1))).is_err(), "key not listed");
    let impostor = signer_of("/alice");
    assert!(local("rib", &command_v03(&impostor, &options(NOW + 2, 1))).is_err(), "another key with a listed name");
    assert!(local("rib", &command_v03(&DigestSigner, &options(NOW + 2, 1))).is_err());
    assert_eq!(local("cs", &command_v03(&DigestSigner, &options(NOW, 1))), Ok(()));
    assert_eq!(local("rib", &command_v03(&alice, &options(NOW + 2, 1))), Ok(()), "rejected commands leave no record");
}

#[test]
fn the_locator_may_be_the_certificate_name() {
    let files = Files::new();
    let alice = signer_of("/alice");
    let path = files.anchor("alice.ndncert", &alice, always());
    let config = SecurityConfig {
        rules: vec![Rule { signer: Signer::Certificate(path), modules: vec!["rib".to_owned()] }],
        ..SecurityConfig::default()
    };
    let mut authenticator = Authenticator::started_at(&config, NOW - 1000).expect("loaded");
    let pkcs8 = alice.key().pkcs8().to_vec();
    for (number, locator) in [(1, "/alice/KEY/1"), (2, "/alice/KEY/1/self/v=1"), (3, "/alice/KEY/1/other/v=9")] {
        let key = PrivateKey::from_pkcs8(&pkcs8).expect("a key");
        let signer = KeySigner::new(key, locator.parse().expect("a name"));
        let packet = command_v03(&signer, &options(NOW + number, 1));
        assert_eq!(decide(&mut authenticator, Zone::Localhost, "rib", &packet), Ok(()), "{locator}");
    }
    let key = PrivateKey::from_pkcs8(&pkcs8).expect("a key");
    let signer = KeySigner::new(key, "/alice".parse().expect("a name"));
    assert!(decide(&mut authenticator, Zone::Localhost, "rib", &command_v03(&signer, &options(NOW + 4, 1))).is_err());
}

#[test]
fn expired_certificates_authorize_nothing() {
    let files = Files::new();
    let alice = signer_of("/alice");
    let past = ValidityPeriod { not_before_s: 0, not_after_s: NOW / 1000 - 1 };
    let config = SecurityConfig {
        rules: vec![Rule {
            signer: Signer::Certificate(files.anchor("alice.ndncert", &alice, past)),
            modules: vec!["rib".to_owned()],
        }],
        ..SecurityConfig::default()
    };
    let mut authenticator = Authenticator::started_at(&config, NOW - 1000).expect("loaded");
    let refused = decide(&mut authenticator, Zone::Localhost, "rib", &command_v03(&alice, &options(NOW, 1)));
    assert!(refused.is_err_and(|error| error.0.contains("not valid at this time")));
}

#[test]
fn chains_lead_from_anchors_to_keys() {
    let files = Files::new();
    let folder = Files::new();
    let (root, site, alice, mallory) =
        (signer_of("/root"), signer_of("/root/site"), signer_of("/root/site/alice"), signer_of("/mallory"));
    // The folder is read in order of file names: here the leaf precedes its issuer.
    folder.save("1-alice.ndncert", &issue(&alice, &site, always()));
    folder.save("2-site.ndncert", &issue(&site, &root, always()));
    folder.save("3-mallory.ndncert", &issue(&mallory, &mallory, always()));
    std::fs::write(folder.0.path().join("4-readme.txt"), "not a certificate").expect("written");
    let trust = TrustConfig {
        anchors: vec![files.anchor("root.ndncert", &root, always()).into()],
        certificates: Some(folder.0.path().to_owned()),
    };
    let config = SecurityConfig { localhop: trust.clone(), prefix_announcements: trust, ..SecurityConfig::default() };
    let mut authenticator = Authenticator::started_at(&config, NOW - 1000).expect("loaded");
    assert!(authenticator.is_localhop_enabled());
    for (nonce, signer) in (1..).zip([&root, &site, &alice]) {
        let packet = command_v03(signer, &options(NOW, nonce));
        assert_eq!(decide(&mut authenticator, Zone::Localhop, "rib", &packet), Ok(()));
        assert!(decide(&mut authenticator, Zone::Localhop, "rib", &packet).is_err(), "replayed");
    }
    let packet = command_v03(&mallory, &options(NOW, 1));
    assert!(decide(&mut authenticator, Zone::Localhop, "rib", &packet).is_err());
    let packet = command_v03(&DigestSigner, &options(NOW, 1));
    assert!(decide(&mut authenticator, Zone::Localhop, "rib", &packet).is_err());

    let prefix: Name = "/root/site/alice".parse().expect("a name");
    let announce = |signer: &KeySigner| {
        let announcement =
            PrefixAnnouncement { prefix: prefix.as_ref(), version: 1, expiration_ms: 1000, validity_period: None };
        announcement.encode(signer).expect("signed")
    };
    let verify =
        |packet: &[u8]| authenticator.verify_announcement(&Data::decode(packet).expect("Data"), prefix.as_ref(), NOW);
    assert_eq!(verify(&announce(&alice)), Ok(()));
    assert!(verify(&announce(&mallory)).is_err());
    let mut forged = announce(&alice);
    *forged.last_mut().expect("not empty") ^= 1;
    assert!(verify(&forged).is_err());
    let empty = Authenticator::started_at(&SecurityConfig::default(), NOW - 1000).expect("loaded");
    let packet = announce(&alice);
    assert!(empty.verify_announcement(&Data::decode(&packet).expect("Data"), prefix.as_ref(), NOW).is_err());
}

/// Returns the names of `names` for which the key may have routes.
fn allowed<'a>(authenticator: &mut Authenticator, signer: &KeySigner, names: &[&'a str]) -> Vec<&'a str> {
    let nonce = next_nonce();
    let packet = command_v03(signer, &options(NOW, nonce));
    let authority = authority(authenticator, Zone::Localhop, "rib", &packet).expect("trusted");
    let Authority::Neighbour(namespace) = authority else { panic!("{authority:?}") };
    let is_allowed = |name: &&&str| namespace.check(name.parse::<Name>().expect("a name").as_ref()).is_ok();
    names.iter().filter(is_allowed).copied().collect()
}

/// Returns a nonce that no other command of the test has.
fn next_nonce() -> u8 {
    use std::sync::atomic::{AtomicU8, Ordering};
    static NEXT: AtomicU8 = AtomicU8::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

const NAMES: [&str; 10] = [
    "/",
    "/example",
    "/example/alice",
    "/example/alice/x",
    "/example/alic",
    "/example/bob",
    "/bank",
    "/localhop",
    "/localhop/nfd",
    "/localhost/x",
];

#[test]
fn a_key_has_routes_under_its_own_identity() {
    let files = Files::new();
    let folder = Files::new();
    let (example, alice, bank) = (signer_of("/example"), signer_of("/example/alice"), signer_of("/bank"));
    folder.save("alice.ndncert", &issue(&alice, &example, always()));
    // An anchor may issue certificates for identities outside its own.
    folder.save("bank.ndncert", &issue(&bank, &example, always()));
    let certificate = files.anchor("example.ndncert", &example, always());
    let with = |prefixes: &[&str]| {
        let prefixes = prefixes.iter().map(|prefix| prefix.parse().expect("a name")).collect();
        let anchors = vec![Anchor { certificate: certificate.clone(), prefixes }];
        let trust = TrustConfig { anchors, certificates: Some(folder.0.path().to_owned()) };
        let config =
            SecurityConfig { localhop: trust.clone(), prefix_announcements: trust, ..SecurityConfig::default() };
        Authenticator::started_at(&config, NOW - 1000).expect("loaded")
    };
    let mut narrow = with(&[]);
    assert_eq!(allowed(&mut narrow, &alice, &NAMES), ["/example/alice", "/example/alice/x"]);
    assert_eq!(allowed(&mut narrow, &bank, &NAMES), ["/bank"]);
    assert_eq!(allowed(&mut narrow, &example, &NAMES), NAMES[1..6]);
    let mut wider = with(&["/bank", "/example/b"]);
    assert_eq!(allowed(&mut wider, &alice, &NAMES), ["/example/alice", "/example/alice/x", "/bank"]);
    let mut open = with(&["/"]);
    assert_eq!(allowed(&mut open, &alice, &NAMES), NAMES[..7], "names of one host or link are never allowed");

    let announced = |authenticator: &Authenticator, signer: &KeySigner| -> Vec<&str> {
        let is_taken = |name: &&str| {
            let prefix: Name = name.parse().expect("a name");
            let announcement =
                PrefixAnnouncement { prefix: prefix.as_ref(), version: 1, expiration_ms: 1000, validity_period: None };
            let packet = announcement.encode(signer).expect("signed");
            authenticator.verify_announcement(&Data::decode(&packet).expect("Data"), prefix.as_ref(), NOW).is_ok()
        };
        NAMES.into_iter().filter(is_taken).collect()
    };
    assert_eq!(announced(&narrow, &alice), ["/example/alice", "/example/alice/x"]);
    assert_eq!(announced(&wider, &alice), ["/example/alice", "/example/alice/x", "/bank"]);
    assert_eq!(announced(&open, &alice), NAMES[..7]);
}

#[test]
fn a_key_below_an_anchor_issues_for_identities_under_its_own_only() {
    let files = Files::new();
    let folder = Files::new();
    let (example, alice) = (signer_of("/example"), signer_of("/example/alice"));
    let (laptop, bob, all) = (signer_of("/example/alice/laptop"), signer_of("/example/bob"), signer_of(""));
    for (number, (subject, issuer)) in
        [(&alice, &example), (&laptop, &alice), (&bob, &alice), (&all, &alice)].into_iter().enumerate()
    {
        folder.save(&format!("{number}.ndncert"), &issue(subject, issuer, always()));
    }
    let localhop = TrustConfig {
        anchors: vec![files.anchor("example.ndncert", &example, always()).into()],
        certificates: Some(folder.0.path().to_owned()),
    };
    let mut authenticator =
        Authenticator::started_at(&SecurityConfig { localhop, ..SecurityConfig::default() }, NOW - 1000)
            .expect("loaded");
    let names = ["/", "/example/alice", "/example/alice/laptop/x", "/example/bob"];
    assert_eq!(allowed(&mut authenticator, &laptop, &names), ["/example/alice/laptop/x"]);
    for untrusted in [&bob, &all] {
        let packet = command_v03(untrusted, &options(NOW, 1));
        let refused =
            decide(&mut authenticator, Zone::Localhop, "rib", &packet).expect_err("the issuer is not delegated");
        assert!(refused.0.contains("not trusted"), "{refused}");
    }
}

#[test]
fn an_expired_certificate_anywhere_breaks_the_chain() {
    let files = Files::new();
    let folder = Files::new();
    let (root, site, alice) = (signer_of("/root"), signer_of("/root/site"), signer_of("/root/site/alice"));
    let past = ValidityPeriod { not_before_s: 0, not_after_s: NOW / 1000 - 1 };
    folder.save("site.ndncert", &issue(&site, &root, past));
    folder.save("alice.ndncert", &issue(&alice, &site, always()));
    let localhop = TrustConfig {
        anchors: vec![files.anchor("root.ndncert", &root, always()).into()],
        certificates: Some(folder.0.path().to_owned()),
    };
    let config = SecurityConfig { localhop, ..SecurityConfig::default() };
    let mut authenticator = Authenticator::started_at(&config, NOW - 1000).expect("loaded");
    let refused = decide(&mut authenticator, Zone::Localhop, "rib", &command_v03(&alice, &options(NOW, 1)));
    assert!(refused.is_err_and(|error| error.0.contains("/root/site/KEY")));
    assert_eq!(decide(&mut authenticator, Zone::Localhop, "rib", &command_v03(&root, &options(NOW, 1))), Ok(()));
}

#[test]
fn missing_files_are_named() {
    let missing = PathBuf::from("/nonexistent/anchor.ndncert");
    let config = SecurityConfig {
        localhop: TrustConfig { anchors: vec![missing.into()], certificates: None },
        ..SecurityConfig::default()
    };
    let error = Authenticator::started_at(&config, NOW - 1000).expect_err("a missing file is an error");
    assert!(error.to_string().contains("/nonexistent/anchor.ndncert"), "{error}");
    let files = Files::new();
    let root = signer_of("/root");
    let localhop = TrustConfig {
        anchors: vec![files.anchor("root.ndncert", &root, always()).into()],
        certificates: Some(PathBuf::from("/nonexistent/folder")),
    };
    let error = Authenticator::started_at(&SecurityConfig { localhop, ..SecurityConfig::default() }, NOW - 1000)
        .expect_err("a missing folder is an error");
    assert!(error.to_string().contains("/nonexistent/folder"), "{error}");
}

#[test]
fn random_names_never_panic_the_reader() {
    use proptest::prelude::*;
    let component = (prop_oneof![Just(8_u32), Just(32)], proptest::collection::vec(any::<u8>(), 0..12));
    proptest!(|(rest in proptest::collection::vec(component, 0..7))| {
        let mut name = verb();
        for (typ, value) in &rest {
            name.push(ComponentRef::new(*typ, value).expect("valid"));
        }
        let packet = InterestBuilder::new(name).build().expect("built");
        let interest = Interest::decode(&packet).expect("an Interest");
        let _ = SignedCommand::read(&interest, VERB);
    });
}
