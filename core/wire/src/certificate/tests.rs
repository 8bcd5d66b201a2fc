//! Certificates and their files.

use std::path::Path;

use super::*;
use crate::security::{DigestSigner, KeyType, PrivateKey};
use crate::test_util::Directory;

const VALIDITY: ValidityPeriod = ValidityPeriod { not_before_s: 1000, not_after_s: 2000 };

fn name(uri: &str) -> Name {
    uri.parse().expect("name")
}

#[test]
fn self_signed_certificates() {
    for key_type in [KeyType::Ecdsa, KeyType::Ed25519] {
        let key_name = new_key_name(name("/example/alice").as_ref()).expect("random numbers");
        let signer = KeySigner::new(PrivateKey::generate(key_type).expect("generated"), key_name.clone());
        let packet = self_signed_certificate(&signer, 9, VALIDITY).expect("signed");
        let certificate = Certificate::decode(&packet).expect("valid");
        assert_eq!(certificate.name(), key_name.clone().append_generic("self").append_version(9));
        assert_eq!(
            (certificate.key_name(), certificate.identity()),
            (key_name.as_ref(), name("/example/alice").as_ref())
        );
        assert_eq!(certificate.validity_period(), VALIDITY);
        let locator = certificate.data().signature_info.key_locator.expect("locator");
        assert!(certificate.is_located_by(&locator));
        let public = certificate.public_key().expect("key");
        assert_eq!(public, signer.key().public_key());
        certificate.verify(&public, 1000).expect("first second");
        certificate.verify(&public, 2000).expect("last second");
        for time in [0, 999, 2001] {
            assert!(matches!(certificate.verify(&public, time), Err(SecurityError::NotValidNow)));
        }
    }
}

#[test]
fn certificates_issued_by_another_key() {
    let issuer_name = name("/example/KEY/root");
    let issuer = KeySigner::new(PrivateKey::generate(KeyType::Ecdsa).expect("generated"), issuer_name.clone());
    let subject = PrivateKey::generate(KeyType::Ed25519).expect("generated");
    let key_name = name("/example/bob/KEY/1");
    let contents = CertificateContents {
        key_name: key_name.as_ref(),
        public_key: &subject.public_key(),
        issuer_id: ComponentRef::generic(b"root"),
        version: 1,
        validity_period: VALIDITY,
    };
    let packet = issue_certificate(&contents, &issuer).expect("signed");
    let certificate = Certificate::decode(&packet).expect("valid");
    assert_eq!(certificate.name(), name("/example/bob/KEY/1/root/v=1"));
    assert_eq!(certificate.data().signature_info.key_locator, Some(KeyLocator::Name(issuer_name.as_ref())));
    certificate.verify(&issuer.key().public_key(), 1500).expect("the issuer signed the certificate");
    assert!(matches!(certificate.verify(&subject.public_key(), 1500), Err(SecurityError::SignatureType)));
    let other_key = PrivateKey::generate(KeyType::Ecdsa).expect("generated").public_key();
    assert!(matches!(certificate.verify(&other_key, 1500), Err(SecurityError::BadSignature)));

    let not_a_key = CertificateContents { key_name: issuer_name.prefix(1), ..contents };
    let error = issue_certificate(&not_a_key, &issuer).expect_err("the name is not a key name");
    assert!(matches!(error, BuildError::Sign(SecurityError::NotCertificate)));

    // The key in the certificate verifies its owner's signatures.
    let signer = KeySigner::new(subject, certificate.name().to_owned());
    let packet = DataBuilder::new(name("/example/bob/x")).sign(&signer).expect("signed");
    let data = Data::decode(&packet).expect("valid");
    assert!(certificate.is_located_by(&data.signature_info.key_locator.expect("locator")));
    verify_data(&data, &certificate.public_key().expect("key")).expect("the owner signed the certificate");
}

#[test]
fn what_locates_a_certificate() {
    let signer = KeySigner::new(PrivateKey::generate(KeyType::Ed25519).expect("generated"), name("/a/b/KEY/1"));
    let packet = self_signed_certificate(&signer, 1, VALIDITY).expect("signed");
    let certificate = Certificate::decode(&packet).expect("valid");
    let located = |uri: &str| certificate.is_located_by(&KeyLocator::Name(name(uri).as_ref()));
    assert!(located("/a/b/KEY") && located("/a/b/KEY/1") && located("/a/b/KEY/1/self/v=1"));
    assert!(!located("/a/b") && !located("/") && !located("/a/b/KEY/2") && !located("/a/b/KEY/1/self/v=2"));
    assert!(!certificate.is_located_by(&KeyLocator::KeyDigest(&[0; 32])));
}

#[test]
fn what_is_not_a_certificate() {
    let decode = |uri: &str, content_type, validity: Option<ValidityPeriod>| {
        let mut builder = DataBuilder::new(name(uri)).content_type(content_type);
        if let Some(validity) = validity {
            builder = builder.validity_period(validity);
        }
        let packet = builder.sign(&DigestSigner).expect("signed");
        Certificate::decode(&packet).map(|_| ()).map_err(|error| matches!(error, SecurityError::NotCertificate))
    };
    assert_eq!(decode("/a/KEY/1/self/v=1", 2, Some(VALIDITY)), Ok(()));
    assert_eq!(decode("/a/KEY/1/self/v=1", 0, Some(VALIDITY)), Err(true));
    assert_eq!(decode("/a/KEY/1/self/v=1", 2, None), Err(true));
    assert_eq!(decode("/a/KEY/1/self", 2, Some(VALIDITY)), Err(true));
    assert_eq!(decode("/a/32=KEY/1/self/v=1", 2, Some(VALIDITY)), Err(true));
    assert!(matches!(Certificate::decode(b""), Err(SecurityError::Decode(_))));
}

#[test]
fn certificate_files() {
    let directory = Directory::new("certificates");
    let signer = KeySigner::new(PrivateKey::generate(KeyType::Ecdsa).expect("generated"), name("/a/KEY/1"));
    let packet = self_signed_certificate(&signer, 1, VALIDITY).expect("signed");
    let path = directory.file("a.ndncert");
    save_certificate(&path, &packet).expect("saved");
    assert_eq!(load_certificate(&path).expect("loaded"), packet);
    let text = std::fs::read_to_string(&path).expect("text");
    let messy = text.split_inclusive('\n').map(|line| format!("  {}\r\n\t\n", line.trim_end())).collect::<String>();
    std::fs::write(&path, messy).expect("written");
    assert_eq!(load_certificate(&path).expect("white space must be ignored"), packet);
    std::fs::write(&path, "BgA=").expect("written");
    assert!(matches!(load_certificate(&path), Err(SecurityError::Decode(_))));
    std::fs::write(&path, "!").expect("written");
    assert!(matches!(load_certificate(&path), Err(SecurityError::BadText)));
    assert!(matches!(load_certificate(Path::new("/nonexistent/a.ndncert")), Err(SecurityError::Io(_))));
}
