//! Loading strategies: refusals, and authorization. Tests of the whole router compile programs from C and load them.

use namehop_client::nfd::Element;
use namehop_client::nfd::numbers::MAX_COMMAND_FILE_BYTES;

use super::dispatch::key_and_certificate;
use super::*;

/// Creates a router that accepts commands of the module with any signature, and lists this key for it.
fn with_listed_key() -> (Fixture, impl Signer) {
    let folder = tempfile::tempdir().expect("a folder");
    let (signer, certificate) = key_and_certificate(folder.path(), "/operator");
    let rules = [crate::authentication::Signer::Any, crate::authentication::Signer::Certificate(certificate)]
        .map(|signer| crate::authentication::Rule { signer, modules: vec!["strategy-choice".to_owned()] });
    (Fixture::with_security(&SecurityConfig { rules: rules.into(), ..SecurityConfig::default() }), signer)
}

/// Sends a file in a command with a signature time `later_ms` milliseconds from now.
fn load(
    fixture: &Fixture,
    signer: &dyn Signer,
    parameters: &ControlParameters,
    file: &[u8],
    later_ms: u64,
) -> ControlResponse {
    let name = names::localhost_verb("strategy-choice", "load").append_generic(parameters.to_vec());
    let options = InterestSignatureOptions { time_ms: Some(unix_time_ms() + later_ms), ..options() };
    let interest = InterestBuilder::new(name).application_parameters(file).sign(signer, &options).expect("signed");
    fixture.give(&interest, APP, b"t");
    fixture.take_one().response()
}

#[test]
fn loading_takes_a_listed_key() {
    run(async {
        let (with_rules, signer) = with_listed_key();
        for fixture in [&Fixture::new(), &with_rules] {
            let refused = load(fixture, &DigestSigner, &named("/mine"), b"no program", 0);
            assert_eq!(refused.code, 403, "{}", refused.text);
            assert!(refused.text.contains("[[management.authorizations]]"), "{}", refused.text);
        }
        assert_eq!(load(&with_rules, &signer, &named("/mine"), b"no program", 0).code, 409, "the file is read");
    });
}

#[test]
fn what_is_no_program_is_refused_and_changes_nothing() {
    run(async {
        let (fixture, signer) = with_listed_key();
        for (later_ms, file) in (1..).zip([&b""[..], b"\x7fELF", &[0; 7_000]]) {
            let response = load(&fixture, &signer, &named("/mine"), file, later_ms);
            assert_eq!(response.code, 409);
            assert!(response.text.contains("not an object file"), "{}", response.text);
        }
        assert_eq!(load(&fixture, &signer, &named("/two/components"), b"", 10).code, 400);
        let largest = [0; MAX_COMMAND_FILE_BYTES - 200];
        assert_eq!(load(&fixture, &signer, &named("/mine"), &largest, 11).code, 409, "the file fits into a packet");
        assert!(fixture.changes().is_empty());
    });
}

#[test]
fn what_is_not_loaded_cannot_be_unloaded() {
    run(async {
        let fixture = Fixture::new();
        assert_eq!(fixture.command("strategy-choice", "unload", &named("/multicast")).await.code, 404);
        assert_eq!(fixture.command("strategy-choice", "unload", &named("/")).await.code, 400);
        assert!(fixture.changes().is_empty());
    });
}
