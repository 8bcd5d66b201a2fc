//! Keys and certificates as bytes, as text and in files.

use std::fs;

use namehop_wire::certificate::{load_certificate, save_certificate};
use namehop_wire::security::{PrivateKey, PublicKey, Verifier, base64, load_private_key, save_private_key};

use crate::files::Folder;

/// The first byte chooses the interpretation of the rest.
pub fn keys(bytes: &[u8]) {
    let Some((&kind, bytes)) = bytes.split_first() else { return };
    match kind % 5 {
        0 => public_key(bytes),
        1 => {
            if let Ok(key) = PrivateKey::from_pkcs8(bytes) {
                private_key(&key, bytes);
            }
        }
        2 => text(bytes),
        3 => key_file(bytes),
        _ => certificate_file(bytes),
    }
}

/// DER has one encoding for each value.
fn public_key(bytes: &[u8]) {
    let Ok(key) = PublicKey::from_der(bytes) else { return };
    assert_eq!(key.to_der(), bytes);
    for signature_type in 0..8 {
        key.verify(signature_type, &[b"message"], bytes).expect_err("this is no signature");
    }
}

/// A decoded key creates signatures that its public key verifies.
fn private_key(key: &PrivateKey, bytes: &[u8]) {
    assert_eq!(key.pkcs8(), bytes);
    let signature = key.sign(&[b"mess", b"age"]).expect("a signature");
    key.public_key().verify(key.signature_type(), &[b"message"], &signature).expect("own signature");
}

/// Except for white space, base64 has one encoding for each value.
fn text(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(decoded) = base64::decode(text) else { return };
    let dense = |text: &str| text.split_ascii_whitespace().collect::<String>();
    assert_eq!(dense(&base64::encode_lines(&decoded)), dense(text));
}

fn key_file(bytes: &[u8]) {
    let folder = Folder::new();
    let (given, saved) = (folder.path("given"), folder.path("saved"));
    fs::write(&given, bytes).expect("written");
    let Ok(key) = load_private_key(&given) else { return };
    save_private_key(&saved, &key).expect("saved");
    let again = load_private_key(&saved).expect("own file");
    private_key(&again, key.pkcs8());
}

fn certificate_file(bytes: &[u8]) {
    let folder = Folder::new();
    let path = folder.path("certificate");
    fs::write(&path, bytes).expect("written");
    let Ok(packet) = load_certificate(&path) else { return };
    save_certificate(&path, &packet).expect("saved");
    assert_eq!(load_certificate(&path).expect("own file"), packet);
}
