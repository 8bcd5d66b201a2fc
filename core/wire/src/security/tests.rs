//! Signatures of every type, keys of another implementation, files.

use super::*;
use crate::builder::{DataBuilder, InterestBuilder, InterestSignatureOptions};
use crate::signature::signature_type;
use crate::test_util::Directory;
use crate::{Data, Interest, Name};

const RSA_KEY: &str = include_str!("testdata/rsa.pem");

fn name(uri: &str) -> Name {
    uri.parse().expect("name")
}

fn pem(text: &str) -> PrivateKey {
    PrivateKey::from_pkcs8(&file::decode_pem(text).expect("PEM")).expect("key")
}

/// A signer and verifier of every kind that offers protection.
fn pairs() -> Vec<(Box<dyn Signer>, Box<dyn Verifier>)> {
    let keys = [
        PrivateKey::generate(KeyType::Ecdsa).expect("generated"),
        PrivateKey::generate(KeyType::Ed25519).expect("generated"),
        pem(RSA_KEY),
    ];
    let mut pairs: Vec<(Box<dyn Signer>, Box<dyn Verifier>)> = vec![
        (Box::new(DigestSigner), Box::new(DigestVerifier)),
        (Box::new(HmacSigner::new(b"secret", name("/hmac"))), Box::new(HmacVerifier::new(b"secret"))),
    ];
    for key in keys {
        let public = PublicKey::from_der(&key.public_key().to_der()).expect("the encoding of this module");
        pairs.push((Box::new(KeySigner::new(key, name("/k/KEY/1"))), Box::new(public)));
    }
    pairs
}

#[test]
fn data_of_every_signature_type() {
    let mut seen = Vec::new();
    for (signer, verifier) in pairs() {
        let packet = DataBuilder::new(name("/A")).content(*b"content").sign(&*signer).expect("signed");
        let data = Data::decode(&packet).expect("valid");
        assert_eq!(data.signature_info.signature_type, signer.signature_type());
        assert_eq!(data.signature_info.key_locator, signer.key_locator());
        verify_data(&data, &*verifier).expect("the signature is valid");
        seen.push(signer.signature_type());

        // Any flipped bit breaks either the packet or the signature.
        for position in 2..packet.len() {
            let mut changed = packet.clone();
            changed[position] ^= 1;
            if let Ok(data) = Data::decode(&changed) {
                assert!(verify_data(&data, &*verifier).is_err(), "byte {position}");
            }
        }
    }
    assert_eq!(seen, [0, 4, 3, 5, 1]);
}

#[test]
fn interests_of_every_signature_type() {
    let options = InterestSignatureOptions { nonce: Some([7; 8]), time_ms: Some(1), sequence: Some(2) };
    for (signer, verifier) in pairs() {
        let builder = InterestBuilder::new(name("/A/B")).nonce(1).application_parameters(*b"parameters");
        let packet = builder.sign(&*signer, &options).expect("signed");
        let interest = Interest::decode(&packet).expect("valid");
        let info = interest.signature_info.expect("signed");
        assert_eq!((info.nonce, info.time_ms, info.sequence), (Some(&[7; 8][..]), Some(1), Some(2)));
        verify_interest(&interest, &*verifier).expect("the signature is valid");

        // The signature does not cover what a forwarder may change.
        let mut forwarded = packet.clone();
        forwarded[usize::from(interest.offsets.nonce.expect("present"))] ^= 1;
        verify_interest(&Interest::decode(&forwarded).expect("valid"), &*verifier)
            .expect("the nonce must not be signed");

        for position in
            interest.offsets.name.range().chain(usize::from(interest.offsets.nonce.unwrap_or(0)) + 4..packet.len())
        {
            let mut changed = packet.clone();
            changed[position] ^= 1;
            if let Ok(interest) = Interest::decode(&changed) {
                assert!(verify_interest(&interest, &*verifier).is_err(), "byte {position}");
            }
        }
    }
}

#[test]
fn interests_that_cannot_be_verified() {
    let packet = InterestBuilder::new(name("/A")).application_parameters(*b"p").build().expect("built");
    let unsigned = Interest::decode(&packet).expect("valid");
    assert!(matches!(verify_interest(&unsigned, &DigestVerifier), Err(SecurityError::NotSigned)));
    let options = InterestSignatureOptions::now().expect("random numbers");
    let mut packet = InterestBuilder::new(name("/A")).sign(&DigestSigner, &options).expect("signed");
    let digest_at = 2 + 2 + 3 + 2;
    packet[digest_at] ^= 1;
    let interest = Interest::decode(&packet).expect("the decoder does not compute the digest");
    assert!(matches!(verify_interest(&interest, &DigestVerifier), Err(SecurityError::ParametersDigest)));
}

#[test]
fn two_sets_of_options_differ() {
    let (first, second) = (InterestSignatureOptions::now(), InterestSignatureOptions::now());
    let (first, second) = (first.expect("random numbers"), second.expect("random numbers"));
    assert_ne!(first.nonce, second.nonce);
    assert!(first.time_ms.is_some_and(|time| time > 1_600_000_000_000));
}

#[test]
fn signature_type_must_fit_the_key() {
    let pairs = pairs();
    for (index, (signer, _)) in pairs.iter().enumerate() {
        let packet = DataBuilder::new(name("/A")).sign(&**signer).expect("signed");
        let data = Data::decode(&packet).expect("valid");
        for (other, (_, verifier)) in pairs.iter().enumerate().filter(|(other, _)| *other != index) {
            let result = verify_data(&data, &**verifier);
            assert!(matches!(result, Err(SecurityError::SignatureType)), "{index} by {other}");
        }
    }
    let packet = DataBuilder::new(name("/A")).sign(&NullSigner).expect("signed");
    let data = Data::decode(&packet).expect("valid");
    assert_eq!((data.signature_info.signature_type, data.signature_value), (signature_type::NULL, &[][..]));
    assert!(pairs.iter().all(|(_, verifier)| verify_data(&data, &**verifier).is_err()));
}

#[test]
fn another_key_of_the_same_kind_does_not_verify() {
    for key_type in [KeyType::Ecdsa, KeyType::Ed25519] {
        let key = PrivateKey::generate(key_type).expect("generated");
        let other = PrivateKey::generate(key_type).expect("generated").public_key();
        let signature = key.sign(&[b"ab", b"c"]).expect("signed");
        let verify = |key: &PublicKey, parts: &[&[u8]]| key.verify(key_signature_type(key_type), parts, &signature);
        verify(&key.public_key(), &[b"abc"]).expect("a signature is independent of the parts");
        verify(&key.public_key(), &[b"a", b"", b"bc"]).expect("a signature is independent of the parts");
        assert!(matches!(verify(&other, &[b"abc"]), Err(SecurityError::BadSignature)));
    }
    let wrong = HmacVerifier::new(b"guess");
    let tag = HmacSigner::new(b"secret", Name::new()).sign(&[b"abc"]).expect("signed");
    assert!(wrong.verify(signature_type::HMAC_WITH_SHA256, &[b"abc"], &tag).is_err());
}

const fn key_signature_type(key_type: KeyType) -> u64 {
    match key_type {
        KeyType::Ecdsa => signature_type::SHA256_WITH_ECDSA,
        KeyType::Ed25519 => signature_type::ED25519,
        KeyType::Rsa => signature_type::SHA256_WITH_RSA,
    }
}

#[test]
fn keys_and_signatures_of_openssl() {
    let message: &[&[u8]] = &[b"signed by ", b"another implementation"];
    macro_rules! fixture {
        ($key:literal, $kind:literal) => {
            base64::decode(include_str!(concat!("testdata/", $key, ".", $kind, ".txt"))).expect("base64")
        };
    }
    let cases = [
        (KeyType::Rsa, pem(RSA_KEY), fixture!("rsa", "public"), fixture!("rsa", "signature")),
        (
            KeyType::Ecdsa,
            pem(include_str!("testdata/ecdsa.pem")),
            fixture!("ecdsa", "public"),
            fixture!("ecdsa", "signature"),
        ),
        (
            KeyType::Ed25519,
            pem(include_str!("testdata/ed25519.pem")),
            fixture!("ed25519", "public"),
            fixture!("ed25519", "signature"),
        ),
    ];
    for (key_type, private, public, signature) in cases {
        assert_eq!(private.key_type(), key_type);
        assert_eq!(private.public_key().to_der(), public);
        let public = PublicKey::from_der(&public).expect("key");
        public.verify(key_signature_type(key_type), message, &signature).expect("made by openssl");
        assert!(public.verify(key_signature_type(key_type), &[b"x"], &signature).is_err());
    }
    let p384 = PublicKey::from_der(&fixture!("p384", "public")).expect("key");
    p384.verify(signature_type::SHA256_WITH_ECDSA, message, &fixture!("p384", "signature")).expect("made by openssl");
    assert_eq!(p384.to_der(), fixture!("p384", "public"));
}

#[test]
fn bad_keys() {
    assert!(matches!(PrivateKey::generate(KeyType::Rsa), Err(SecurityError::Unsupported)));
    assert!(matches!(PrivateKey::from_pkcs8(b""), Err(SecurityError::BadKey)));
    let key = PrivateKey::generate(KeyType::Ecdsa).expect("generated");
    assert!(matches!(PrivateKey::from_pkcs8(&key.pkcs8()[..80]), Err(SecurityError::BadKey)));
    assert!(matches!(PublicKey::from_der(key.pkcs8()), Err(SecurityError::BadKey)));
    assert!(!format!("{key:?}").contains("pkcs8"), "the secret must not be printed");
}

#[test]
fn key_files() {
    let directory = Directory::new("keys");
    let path = directory.file("key.pem");
    let key = PrivateKey::generate(KeyType::Ed25519).expect("generated");
    save_private_key(&path, &key).expect("saved");
    assert_eq!(load_private_key(&path).expect("loaded").pkcs8(), key.pkcs8());
    assert!(
        matches!(save_private_key(&path, &key), Err(SecurityError::Io(_))),
        "an existing key must not be overwritten"
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&path).expect("metadata").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    for (file, content) in [
        ("binary", key.pkcs8().to_vec()),
        ("base64", base64::encode_lines(key.pkcs8()).into_bytes()),
        ("commented", format!("a comment\n{}", std::fs::read_to_string(&path).expect("text")).into_bytes()),
    ] {
        let path = directory.file(file);
        std::fs::write(&path, content).expect("written");
        assert_eq!(load_private_key(&path).expect(file).pkcs8(), key.pkcs8());
    }
    std::fs::write(directory.file("cut"), "-----BEGIN PRIVATE KEY-----\nAAAA\n").expect("written");
    assert!(matches!(load_private_key(&directory.file("cut")), Err(SecurityError::BadText)));
}

#[test]
fn signature_times_grow_until_the_clock_is_set_back() {
    let now = 1_800_000_000_000;
    assert_eq!(next_signature_time_ms(0, now), now);
    assert_eq!(next_signature_time_ms(now, now), now + 1);
    assert_eq!(next_signature_time_ms(now + 60_000, now), now + 60_001);
    assert_eq!(next_signature_time_ms(now + 60_001, now), now);
}
