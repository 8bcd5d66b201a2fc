//! Loading strategies: what is refused. Programs that are accepted need a compiler, which tests of the whole router have.

use super::*;
use crate::nfd::numbers::MAX_COMMAND_FILE_BYTES;

fn load(fixture: &Fixture, parameters: &ControlParameters, file: &[u8]) -> ControlResponse {
    let name = names::localhost_verb("strategy-choice", "load").append_generic(parameters.to_vec());
    let interest =
        InterestBuilder::new(name).application_parameters(file).sign(&DigestSigner, &options()).expect("signed");
    fixture.give(&interest, APP, b"t");
    fixture.take_one().response()
}

#[test]
fn what_is_no_program_is_refused_and_changes_nothing() {
    run(async {
        let fixture = Fixture::new();
        for file in [&b""[..], b"\x7fELF", &[0; 7_000]] {
            let response = load(&fixture, &named("/mine"), file);
            assert_eq!(response.code, 409);
            assert!(response.text.contains("not an object file"), "{}", response.text);
        }
        let response = load(&fixture, &named("/two/components"), b"");
        assert_eq!(response.code, 400);
        assert_eq!(load(&fixture, &named("/mine"), &[0; MAX_COMMAND_FILE_BYTES]).code, 409, "it fits into a packet");
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
