//! Tests of the order of preference, with their own files and without the process environment.

use super::*;

fn surroundings(directory: &Path) -> Environment {
    Environment {
        transport_variable: None,
        config_files: vec![directory.join("user.conf"), directory.join("system.conf")],
        default_sockets: vec![directory.join("a.sock"), directory.join("b.sock")],
    }
}

#[test]
fn argument_beats_environment_beats_file_beats_default() {
    let directory = tempfile::tempdir().unwrap();
    let mut around = surroundings(directory.path());
    let defaults = around.candidates(None).unwrap();
    assert_eq!(defaults.len(), 2);
    assert!(defaults.iter().all(|candidate| candidate.origin == Origin::Default));

    fs::write(directory.path().join("system.conf"), "transport=unix:///system.sock\n").unwrap();
    let chosen = around.candidates(None).unwrap();
    assert_eq!(chosen[0].uri.to_string(), "unix:///system.sock");
    assert_eq!(chosen[0].origin, Origin::File(directory.path().join("system.conf")));

    fs::write(directory.path().join("user.conf"), "; mine\n transport = tcp4://127.0.0.1 \n").unwrap();
    assert_eq!(around.candidates(None).unwrap()[0].uri.to_string(), "tcp4://127.0.0.1:6363");

    around.transport_variable = Some("udp://h".to_owned());
    let chosen = around.candidates(None).unwrap();
    assert_eq!((chosen.len(), chosen[0].origin.clone()), (1, Origin::Environment));

    let chosen = around.candidates(Some("/tmp/nfd.sock")).unwrap();
    assert_eq!((chosen.len(), chosen[0].origin.clone()), (1, Origin::Argument));
}

#[test]
fn a_file_without_transport_ends_the_search_of_files() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("user.conf"), "pib=pib-sqlite3\ntransport=\n").unwrap();
    fs::write(directory.path().join("system.conf"), "transport=unix:///system.sock\n").unwrap();
    let chosen = surroundings(directory.path()).candidates(None).unwrap();
    assert_eq!(chosen[0].origin, Origin::Default);
}

#[test]
fn a_bad_uri_is_an_error_that_says_where_it_stands() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("user.conf"), "transport=nonsense\n").unwrap();
    let error = surroundings(directory.path()).candidates(None).unwrap_err().to_string();
    assert!(error.contains("user.conf") && error.contains("nonsense"), "{error}");
}

#[test]
fn an_unreadable_file_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("user.conf")).unwrap();
    let error = surroundings(directory.path()).candidates(None).unwrap_err();
    assert!(matches!(error, ClientConfError::Unreadable { .. }), "{error}");
}
