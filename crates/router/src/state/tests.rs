//! The journal keeps what it was told, whatever happens to the file.

use std::fs;
use std::io::Write;
use std::time::{Duration, Instant};

use super::*;

fn route(prefix: &str, face: &str, cost: u64) -> Record {
    let key = RouteKey { prefix: prefix.to_owned(), face: face.to_owned(), local: None };
    Record::Route(RouteRecord { key, terms: RouteTerms { cost, flags: 1, expires_unix_ms: None } })
}

fn face(uri: &str) -> Record {
    Record::Face(FaceRecord {
        uri: uri.to_owned(),
        local_uri: None,
        persistency: 2,
        flags: 0,
        mtu: Some(1400),
        base_congestion_marking_interval_ns: None,
        default_congestion_threshold_bytes: None,
    })
}

fn strategy(prefix: &str, strategy: &str) -> Record {
    Record::Strategy(StrategyRecord { prefix: prefix.to_owned(), strategy: strategy.to_owned() })
}

#[test]
fn changes_are_there_after_reopening_without_any_closing() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("deep/er/state.json");
    let (mut journal, state) = Journal::open(&path).expect("new");
    assert_eq!(state, SavedState::default());
    let records = [
        face("udp4://192.0.2.1:6363"),
        route("/a", "udp4://192.0.2.1:6363", 5),
        route("/a", "udp4://192.0.2.1:6363", 7),
        route("/b", "udp4://192.0.2.1:6363", 1),
        Record::RouteRemoved(RouteKey { prefix: "/b".into(), face: "udp4://192.0.2.1:6363".into(), local: None }),
        strategy("/a", "/localhost/nfd/strategy/asf/v=5"),
        Record::StrategyRemoved("/z".into()),
        Record::ContentStore(ContentStoreRecord { capacity_packets: 10, admit: true, serve: false }),
    ];
    let mut expected = SavedState::default();
    for record in records {
        journal.append(&record).expect("append");
        expected.fold(record);
    }
    // Forgetting the journal runs no code of ours, as when the process is killed; only the lock must go.
    drop(journal);
    for _ in 0..2 {
        let (_journal, state) = Journal::open(&path).expect("again");
        assert_eq!(state, expected);
        assert_eq!(state.routes.len(), 1);
        assert_eq!(state.strategies["/z"], None);
    }
}

#[test]
fn a_destroyed_face_takes_its_routes_along() {
    let mut state = SavedState::default();
    for record in [face("a"), face("b"), route("/x", "a", 1), route("/x", "b", 1), Record::FaceRemoved("a".into())] {
        state.fold(record);
    }
    assert_eq!(state.faces.keys().collect::<Vec<_>>(), ["b"]);
    assert_eq!(state.routes.keys().map(|key| key.face.as_str()).collect::<Vec<_>>(), ["b"]);
}

#[test]
fn damaged_lines_are_set_aside_and_the_rest_is_used() {
    for damage in [&b"{\"route\":{\"prefix\":\"/c"[..], b"\xff\xfe\x00garbage\n", b"{\"unknown\":1}\n", b"\n"] {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("state.json");
        let (mut journal, _) = Journal::open(&path).expect("new");
        journal.append(&route("/a", "f", 1)).expect("append");
        drop(journal);
        fs::OpenOptions::new().append(true).open(&path).expect("open").write_all(damage).expect("damage");
        let (mut journal, state) = Journal::open(&path).expect("opens all the same");
        assert_eq!(state.routes.len(), 1);
        let copies = fs::read_dir(folder.path())
            .expect("list")
            .filter(|entry| entry.as_ref().is_ok_and(|entry| entry.file_name().to_string_lossy().contains("damaged")));
        assert_eq!(copies.count(), 1);
        journal.append(&route("/b", "f", 1)).expect("append");
        drop(journal);
        assert_eq!(Journal::open(&path).expect("clean now").1.routes.len(), 2);
    }
}

#[test]
fn a_file_of_something_else_does_not_stop_the_router() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("state.json");
    fs::write(&path, b"not a state file at all").expect("write");
    let (_journal, state) = Journal::open(&path).expect("opens");
    assert_eq!(state, SavedState::default());
}

#[test]
fn a_newer_version_and_a_second_router_are_refused() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("state.json");
    fs::write(&path, "{\"header\":{\"format\":\"namehop-state\",\"version\":9}}\n").expect("write");
    assert!(matches!(Journal::open(&path), Err(StateError::Newer { version: 9, .. })));
    let other = folder.path().join("other.json");
    let _first = Journal::open(&other).expect("first");
    assert!(matches!(Journal::open(&other), Err(StateError::InUse { .. })));
}

#[test]
fn a_long_journal_is_rewritten_while_it_grows() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("state.json");
    let (mut journal, _) = Journal::open(&path).expect("new");
    let long = "x".repeat(60_000);
    let mut cost = 0;
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut peak = 0;
    // Until it was shortened in the background, and some more.
    while fs::metadata(&path).expect("file").len() >= peak {
        assert!(Instant::now() < deadline, "never shortened");
        peak = fs::metadata(&path).expect("file").len();
        cost += 1;
        journal.append(&route(&format!("/{long}"), "f", cost)).expect("append");
        journal.append(&route(&format!("/{cost}"), "f", cost)).expect("append");
    }
    journal.append(&route("/last", "f", 1)).expect("append");
    drop(journal);
    let (_journal, state) = Journal::open(&path).expect("again");
    assert_eq!(state.routes.len() as u64, cost + 2);
    let key = RouteKey { prefix: format!("/{long}"), face: "f".into(), local: None };
    assert_eq!(state.routes[&key].cost, cost);
}
